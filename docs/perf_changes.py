#!/usr/bin/env python3
"""Draws perf_changes.svg: three real series of Talos and the changes that
metrics_detect_changes() finds in them (as test/t/301_change_detection.pl has
them). Usage: docs/perf_changes.py FOLDER, that of runs1.json and so on."""

import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench", "lib"))
from change_detection import scores  # noqa: E402

WIDTH, HEIGHT, MARGIN = 900, 220, 40


def panel(name, top):
    with open(os.path.join(sys.argv[1], name + ".json"), encoding="utf-8") as file:
        rows = [(run[2], run[1][0], run[3]) for run in json.load(file)["test_runs"]]
    changes = [row for row in scores(rows) if row[5]]
    low, high = min(row[2] for row in rows), max(row[2] for row in rows)
    first, last = min(row[0] for row in rows), max(row[0] for row in rows)

    def x(time):
        return MARGIN + (WIDTH - 2 * MARGIN) * (time - first) / (last - first)

    def y(value):
        return top + HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - low) / (high - low)

    found = "; ".join(f"{prev:.6g} → {new:.6g} (t {t:.4g})" for _, _, t, prev, new, _ in changes)
    yield f'<text x="{MARGIN}" y="{top + 24}">{name}, {len(rows)} measurements: {found}</text>'
    for time, _, value in rows:
        yield f'<circle cx="{x(time):.1f}" cy="{y(value):.1f}" r="1.5"/>'
    for time, *_ in changes:
        yield f'<path d="M{x(time):.1f} {top + MARGIN}V{top + HEIGHT - MARGIN}"/>'


def main():
    names = ("runs1", "runs3", "tp5rss")
    body = "\n".join(line for number, name in enumerate(names) for line in panel(name, number * HEIGHT))
    with open(os.path.join(HERE, "perf_changes.svg"), "w", encoding="utf-8") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT * len(names)}" font-family="sans-serif" font-size="13">\n'
                   '<style>circle { fill: #36c } path { stroke: #c30; stroke-dasharray: 4 3 }</style>\n'
                   f'<rect width="100%" height="100%" fill="white"/>\n{body}\n</svg>\n')


main()
