"""Lines a second and memory of a backfill, beside what DuckDB needs to parse the same files.

    python bench/backfill.py [--lines 5000000] [--recording DIR]

A recording is repeated (repeat_recording.py) to the number of lines wanted; `rebalance run --once` works through it in a
process of its own, with a driver of 2 GB, while the resident memory of the JVM and of the Python processes is sampled. The
rival, DuckDB, only parses the request lines to one row each and counts them: no state, no tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb
from deltalake import DeltaTable
from memory import Sample, sample, slope
from repeat_recording import repeat

ROOT: Final = Path(__file__).resolve().parents[1]
RECORDING: Final = ROOT / "tests" / "data" / "recordings" / "kafka-4.2.0"
SAMPLE_SECONDS: Final = 2.0


def backfill(source: Path, lakehouse: Path) -> tuple[float, list[Sample]]:
    """Runs the pipeline; returns seconds and samples."""
    command = [sys.executable, "-m", "jobs.cli", "run", "--input", str(source), "--lakehouse", str(lakehouse), "--once"]
    since = time.monotonic()
    with subprocess.Popen(command, cwd=ROOT) as process:
        samples = []
        while process.poll() is None:
            samples.append(sample(process.pid, since))
            time.sleep(SAMPLE_SECONDS)
    if process.returncode:
        raise SystemExit(f"rebalance run ended with exit code {process.returncode}")
    return time.monotonic() - since, samples


def rival(source: Path) -> float:
    """Seconds that DuckDB takes to parse the request lines."""
    since = time.monotonic()
    duckdb.sql(
        f"""
        WITH lines AS (
          SELECT column0 AS line FROM read_csv('{source}/*/*/kafka-request.log', header=false, delim='\x01', quote='', escape='',
                                               columns={{'column0': 'VARCHAR'}}, max_line_size=33554432)
          WHERE contains(column0, '_GROUP"') OR contains(column0, 'HEARTBEAT"') OR contains(column0, 'OFFSET_COMMIT"')
        ), parsed AS (
          SELECT line[2:24] AS stamp, json_extract_string(substr(line, instr(line, '{{'), length(line) - instr(line, '{{') - 22),
            ['$.requestHeader.requestApiKeyName', '$.request.groupId', '$.request.memberId', '$.request.generationId',
             '$.response.errorCode', '$.connection', '$.totalTimeMs']) AS fields
          FROM lines
        )
        SELECT fields[2], fields[1], count(*), max(stamp) FROM parsed GROUP BY ALL
        """  # noqa: S608 - the folder is ours
    ).fetchall()
    return time.monotonic() - since


def main(argv: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=5_000_000)
    parser.add_argument("--recording", type=Path, default=RECORDING)
    parser.add_argument("--folder", type=Path, default=ROOT / ".bench", help="where the input and the lakehouse go")
    parser.add_argument("--keep", action="store_true", help="keep them")
    arguments = parser.parse_args(argv)
    source, lakehouse = arguments.folder / "input", arguments.folder / "lakehouse"
    shutil.rmtree(arguments.folder, ignore_errors=True)
    lines = repeat(arguments.recording, source, arguments.lines)
    size = sum(path.stat().st_size for path in source.rglob("*.log"))
    print(f"input: {lines:,} lines, {size / 1e6:,.0f} MB", flush=True)
    seconds, samples = backfill(source, lakehouse)
    duck = rival(source)
    batches = DeltaTable(str(lakehouse / "input_lines")).to_pyarrow_dataset().to_table(["batch_id"], use_threads=False)["batch_id"].unique()
    result = {
        "lines": lines,
        "seconds": round(seconds, 1),
        "lines_per_second": round(lines / seconds),
        "slices": len(batches),
        "jvm_peak_mb": round(max(s.jvm for s in samples)),
        "python_peak_mb": round(max(s.python for s in samples)),
        "jvm_slope_mb_per_minute": round(slope(samples, "jvm"), 1),
        "python_slope_mb_per_minute": round(slope(samples, "python"), 1),
        "duckdb_parse_seconds": round(duck, 1),
        "ratio_to_duckdb": round(seconds / duck, 1),
    }
    print(json.dumps(result, indent=2))
    if not arguments.keep:
        shutil.rmtree(arguments.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
