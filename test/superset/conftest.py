"""A database with sample data, the Superset of tools/superset on it, and a browser that has opened the dashboards.

Run by tools/check superset.  PGHOST, PGPORT and PGUSER say where a server is
whose superuser may make the database "superset"; METRICS_SCREENSHOTS is where
screenshots go.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import urllib.parse

import psycopg2
import psycopg2.extras
import pytest
import yaml
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).parents[2]
BUNDLE = ROOT / "superset"
sys.path.insert(0, str(ROOT / "tools/lib"))
import superset_import  # noqa: E402

DASHBOARDS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(BUNDLE.glob("dashboards/*.yaml"))}
CHARTS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(BUNDLE.glob("charts/*.yaml"))}
DATASETS = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(BUNDLE.glob("datasets/*/*.yaml"))}

# Until when the sample data goes: the same in every run.
UNTIL = "2026-02-01 00:00+00"

# A page on which all charts are in view, for Superset draws no others.
VIEWPORT = {"width": 1440, "height": 3400}


class Database:
    """The database as the role metrics_bi sees it."""

    def __init__(self):
        host = urllib.parse.quote(os.environ["PGHOST"], safe="/")
        self.uri = f"postgresql://metrics_bi@/superset?host={host}&port={os.environ['PGPORT']}"
        psql = ["psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-o", os.devnull]
        subprocess.run([*psql, "-d", "postgres", "-c", "CREATE DATABASE superset"], check=True)
        subprocess.run(
            [
                *(*psql, "-d", "superset", "-v", f"until={UNTIL}"),
                *("-c", "CREATE EXTENSION metrics_ext"),
                *("-c", "SELECT metrics_create_store()"),
                *("-f", ROOT / "tools/lib/sample.sql"),
                *("-c", "ANALYZE"),
                *("-c", "CREATE ROLE metrics_bi LOGIN"),
                *("-c", "SELECT metrics_grant('metrics_bi', 'bi')"),
                *("-c", "ALTER DATABASE superset SET timezone = 'America/New_York'"),
            ],
            check=True,
        )
        self.connection = psycopg2.connect(self.uri, options="-c timezone=UTC")
        self.connection.autocommit = True

    def rows(self, query, *arguments):
        with self.connection.cursor(cursor_factory=psycopg2.extras.DictCursor) as cursor:
            cursor.execute(query, arguments)
            return cursor.fetchall()

    def value(self, query, *arguments):
        ((value,),) = self.rows(query, *arguments)
        return value


class Superset:
    """What tools/superset started, signed in to as admin."""

    def __init__(self, uri):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = subprocess.Popen(
            [ROOT / "tools/superset", "--port", str(self.port), uri],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        self.password = None
        for line in self.process.stdout:
            if login := re.match(r"Login: +admin, password (\S+)", line):
                self.password = login[1]
            if line.startswith("Ctrl-C"):
                break
        assert self.password, "tools/superset did not start"
        self.url = f"http://127.0.0.1:{self.port}"
        self.session = superset_import.sign_in(self.url, self.password)

    def get(self, path, **arguments):
        return self.call("get", path, **arguments)

    def call(self, method, path, **arguments):
        answer = self.session.request(method, f"{self.url}/api/v1/{path}", timeout=300, **arguments)
        assert answer.ok, f"{path}: {answer.status_code} {answer.text}"
        return answer.json()

    def ids(self, kind):
        """The ids of all that is of a kind, by UUID."""
        listed = self.get(f"{kind}/", params={"q": "(page_size:1000)"})
        assert len(listed["result"]) == listed["count"]
        return {item["uuid"]: item["id"] for item in listed["result"]}

    def import_bundle(self, uri):
        superset_import.import_bundle(self.session, self.url, superset_import.pack(BUNDLE, uri))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.stdout.read()
        return self.process.wait(timeout=60)


class Dashboard:
    """A dashboard in the browser, with the queries that its charts sent."""

    def __init__(self, context, superset, name, query=""):
        self.name = name
        self.charts = [
            item["meta"]["uuid"] for item in DASHBOARDS[name]["position"].values()
            if isinstance(item, dict) and item["type"] == "CHART"
        ]  # fmt: skip
        self.ids = superset.ids("chart")
        self.queries = {}
        self.faults = []
        self.page = context.new_page()
        self.page.set_default_timeout(120_000)
        self.page.on("response", self.note)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.goto(f"{superset.url}/superset/dashboard/{DASHBOARDS[name]['slug']}/{query}")
        self.wait()

    def note(self, response):
        """Keep the query of a chart, and what went wrong with it."""
        url = urllib.parse.urlsplit(response.url)
        if url.path != "/api/v1/chart/data":
            return
        if not response.ok:
            self.faults.append(f"{response.status}: {response.text()}")
        form_data = urllib.parse.parse_qs(url.query).get("form_data")
        if form_data:
            self.queries[json.loads(form_data[0])["slice_id"]] = response.request.post_data_json

    def chart(self, file):
        return self.page.locator(f'[data-test-chart-id="{self.ids[CHARTS[file]["uuid"]]}"]')

    def wait(self):
        """Until each chart shows something: drawn pixels, rows or a number."""
        self.page.wait_for_function(
            """count => {
                const charts = [...document.querySelectorAll('[data-test-chart-id]')];
                const drawn = canvas => canvas.width > 0 && canvas.getContext('2d')
                    .getImageData(0, 0, canvas.width, canvas.height).data
                    .reduce((sum, byte, i) => sum + (i % 4 == 3 && byte > 0), 0) > 1000;
                return charts.length == count
                    && !document.querySelector('[data-test-chart-id] .loading, [data-test-chart-id] [data-test="loading-indicator"]')
                    && charts.every(chart => chart.querySelector('.ant-alert, .ant-empty')
                        || chart.querySelector('tbody tr td, .header-line')
                        || [...chart.querySelectorAll('canvas')].some(drawn));
            }""",
            arg=len(self.charts),
        )
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_timeout(1500)  # the animation of a chart, for the screenshots

    def filter(self, name, value):
        """Choose a value of a native filter, apply it, and wait."""
        box = self.page.locator(f"input#NATIVE_FILTER-{name}")
        box.focus()
        box.fill(value)
        self.page.locator(".ant-select-item-option", has_text=re.compile(f"^{re.escape(value)}$")).first.click()
        with self.page.expect_response(lambda response: "/api/v1/chart/data" in response.url and "form_data" in response.url):
            self.page.get_by_role("button", name="Apply filters").click()
        self.wait()

    def errors(self):
        return self.faults + self.page.locator("[data-test-chart-id] .ant-alert, [data-test-chart-id] .ant-empty").all_inner_texts()

    def table(self, file):
        rows = self.chart(file).locator("tbody tr").all()
        return [[cell.strip() for cell in row.locator("td").all_inner_texts()] for row in rows]

    def number(self, file):
        return self.chart(file).locator(".header-line").inner_text().strip()

    def screenshot(self, name, first=None, last=None):
        """The page; down to the chart last; or the charts from first to last."""
        clip = None
        if last:
            box = self.chart(last).bounding_box()
            clip = {"x": 0, "y": 0, "width": VIEWPORT["width"], "height": box["y"] + box["height"] + 24}
        if first:
            box = self.chart(first).bounding_box()
            x, y = box["x"] - 24, box["y"] - 24
            clip = {"x": x, "y": y, "width": clip["width"] - x, "height": clip["height"] - y}
        self.page.screenshot(path=pathlib.Path(os.environ["METRICS_SCREENSHOTS"]) / f"{name}.png", clip=clip)


def pytest_configure():
    def give_up(*_):
        pytest.exit("20 minutes are over", returncode=1)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20 * 60)


@pytest.fixture(scope="session")
def database():
    database = Database()
    yield database
    database.connection.close()


@pytest.fixture(scope="session")
def superset(database):
    superset = Superset(database.uri)
    yield superset
    superset.stop()


@pytest.fixture(scope="session")
def browser(superset):
    """A browser in which admin has signed in."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        context = chromium.new_context(viewport=VIEWPORT, timezone_id="UTC", locale="en-US")
        page = context.new_page()
        page.goto(superset.url + "/login/")
        page.fill("#username", "admin")
        page.fill("#password", superset.password)
        page.press("#password", "Enter")
        page.wait_for_url("**/welcome/**", timeout=120_000)
        yield context
        chromium.close()


@pytest.fixture(scope="session")
def dashboards(browser, superset):
    """The dashboards, opened when they are asked for."""

    class Opened(dict):
        def __missing__(self, name):
            self[name] = Dashboard(browser, superset, name)
            return self[name]

    return Opened()
