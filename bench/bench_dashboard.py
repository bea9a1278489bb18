"""How fast the dashboard is, and how large: 2,000 groups with 100,000 rebalances, one of them with 1,000 members and 500 rebalances.

Measures in Chromium: first content, the timeline, the time of a frame while it is panned, and the memory of the process.

    python -m bench.bench_dashboard [--groups N] [--rebalances N] [--members N] [--own N] [--lakehouse DIR]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import psutil
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from jobs.common.places import PROJECT
from jobs.lakehouse import tables
from schemas.tables import FOLDED_TABLES, PROVISIONAL_TABLES
from schemas.tables import TABLES as FINAL_TABLES
from tests.dashboard.browsing import browsing

BIG = "group-0"


def make(lakehouse: Path, numbers: dict[str, int]) -> None:
    """Writes the lakehouse."""
    schemas = FINAL_TABLES | PROVISIONAL_TABLES | FOLDED_TABLES
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    for name, number in numbers.items():
        connection.execute(f"SET VARIABLE {name} = {number}")
    connection.execute((PROJECT / "bench" / "dashboard.sql").read_text(encoding="utf-8"))
    for name, schema in schemas.items():
        tables.ensure_table(lakehouse, name, schema)
    for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
        fields = pa.schema(DeltaTable(str(lakehouse / name)).schema().to_arrow())
        rows = connection.execute(f"SELECT * FROM {name} ORDER BY group_id").to_arrow_table()  # noqa: S608 - a name from above
        columns = [
            rows[field.name].cast(field.type) if field.name in rows.column_names else pa.nulls(len(rows), field.type) for field in fields
        ]
        write_deltalake(str(lakehouse / name), pa.table(columns, schema=fields), mode="append")


def browse(url: str) -> dict[str, Any]:
    """What a reader waits for."""
    drawn, timeline = "main[data-drawn]", ".timeline-canvas[data-frames]"
    group = "/group?" + urlencode({"cluster": "production", "group": BIG})
    found: dict[str, Any] = {}
    with browsing() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        for name, address, selector in (
            ("at a glance", "/", drawn),
            ("again", "/", drawn),
            ("groups", "/groups", drawn),
            ("timeline", group, timeline),
            ("timeline again", group, timeline),
        ):
            began = time.perf_counter()
            page.goto(url + address)
            page.wait_for_selector(selector, timeout=120_000)
            found[f"{name}, s"] = round(time.perf_counter() - began, 2)
            if name == "groups":
                paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
                found["first content, s"] = round(paint / 1000, 2)
        page.wait_for_selector("main[aria-busy=false]")
        return found | frames(page)


def frames(page: Any) -> dict[str, Any]:
    """Pans by pointer and takes the time between frames as the browser gives them."""
    page.evaluate("""() => { window.__gaps = []; let last = 0; const next = (now) => { if (last) window.__gaps.push(now - last); last = now;
        if (window.__gaps.length < 400) requestAnimationFrame(next); }; requestAnimationFrame(next); }""")
    box = page.locator(".timeline-canvas").first.bounding_box()
    x, y = box["x"] + box["width"] * 0.6, box["y"] + min(box["height"] / 2, 300)
    page.mouse.move(x, y)
    page.keyboard.down("Shift")  # a drag without it zooms
    for _ in range(3):
        page.mouse.down()
        for step in range(60):
            page.mouse.move(x - 6 * step, y)
        page.mouse.up()
        page.mouse.move(x, y)
    page.keyboard.up("Shift")
    gaps = sorted(page.evaluate("window.__gaps"))
    return {
        "frames": len(gaps),
        "median frame, ms": round(statistics.median(gaps), 1),
        "p95 frame, ms": round(gaps[int(len(gaps) * 0.95)], 1),
    }


def main() -> None:
    """Makes the lakehouse, serves it, and prints what was measured."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in (("groups", 2_000), ("rebalances", 100_000), ("members", 1_000), ("own", 500)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--lakehouse", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lakehouse = given.lakehouse or Path(folder) / "lake"
        if not lakehouse.exists():
            each = max((given.rebalances - given.own) // max(given.groups - 1, 1), 1)
            make(lakehouse, {"groups": given.groups, "members": given.members, "own": given.own, "each": each})
        command = [sys.executable, "-m", "jobs.cli", "dashboard", "--lakehouse", str(lakehouse), "--port", "0"]
        with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as process:
            line = process.stdout.readline() if process.stdout else ""
            url = line.partition("http://")[2].partition("/ ")[0]
            found = browse(f"http://{url}")
            own = psutil.Process(process.pid)
            found |= {"RSS, MB": round(own.memory_info().rss / 1e6), "processor, s": round(sum(own.cpu_times()[:2]), 1)}
            process.terminate()
        print("dashboard:", found)


if __name__ == "__main__":
    main()
