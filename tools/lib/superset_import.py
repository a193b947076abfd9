"""Pack the dashboards of a folder for a database, and import them.

superset_import.py FOLDER zip        writes the bundle to standard output
superset_import.py FOLDER URL        imports it there, over what is there

DATABASE_URI in the environment is the database; SUPERSET_PASSWORD is admin's.
"""

import io
import json
import os
import pathlib
import re
import sys
import time
import zipfile


def pack(folder, database_uri):
    """The ZIP file that Superset takes: one folder, YAML files only."""
    bundle = io.BytesIO()
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*.yaml")):
            name = path.relative_to(folder).as_posix()
            text = path.read_text()
            if name.startswith("databases/") and database_uri:
                line = "sqlalchemy_uri: " + json.dumps(database_uri)
                text = re.sub(r"^sqlalchemy_uri: .*$", lambda _: line, text, flags=re.MULTILINE)
            archive.writestr("metrics_ext/" + name, text)
    return bundle.getvalue()


def sign_in(url, password, patience=180):
    """A session that may change things, once the server answers."""
    import requests

    session = requests.Session()
    until = time.monotonic() + patience
    while True:
        try:
            session.get(url + "/health", timeout=10).raise_for_status()
            break
        except requests.RequestException:
            if time.monotonic() > until:
                raise
            time.sleep(0.5)
    login = {"username": "admin", "password": password, "provider": "db"}
    answer = session.post(url + "/api/v1/security/login", json=login, timeout=60)
    answer.raise_for_status()
    session.headers["Authorization"] = "Bearer " + answer.json()["access_token"]
    answer = session.get(url + "/api/v1/security/csrf_token/", timeout=60)
    answer.raise_for_status()
    session.headers["X-CSRFToken"] = answer.json()["result"]
    session.headers["Referer"] = url
    return session


def import_bundle(session, url, bundle):
    """Database, datasets, charts and dashboards, each replaced if it is there."""
    answer = session.post(url + "/api/v1/assets/import/", files={"bundle": ("metrics_ext.zip", bundle)}, timeout=300)
    if not answer.ok:
        raise SystemExit(f"Superset refuses the bundle: {answer.text}")


if __name__ == "__main__":
    packed = pack(pathlib.Path(sys.argv[1]), os.environ.get("DATABASE_URI"))
    if sys.argv[2] == "zip":
        sys.stdout.buffer.write(packed)
    else:
        import_bundle(sign_in(sys.argv[2], os.environ["SUPERSET_PASSWORD"]), sys.argv[2], packed)
