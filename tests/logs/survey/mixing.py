"""Lays the logs of a recording out as people hand them over: in one file, in other zones, shuffled; and reads them as events."""

import gzip
import random
import re
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from coordinator_model.events import CLIENT_SOURCE, FETCH
from jobs.logs.spool import Spool, SpoolSettings
from jobs.parsing.kinds import parsed

_TIME = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")


def logs_of(recording: Path) -> dict[str, bytes]:
    """The logs of a recording, by their paths."""
    names = sorted(path.relative_to(recording) for path in recording.rglob("*.log.gz"))
    return {str(name)[:-3]: gzip.decompress((recording / name).read_bytes()) for name in names}


def moved(line: bytes, by: timedelta) -> bytes:
    """A line with its local time in another zone."""
    match = _TIME.search(line, 0, 48) if by and line[:1] == b"[" else None
    if match is None:
        return line
    at = datetime.fromisoformat(match[0].decode()) + by
    return line[: match.start()] + at.isoformat(match[0][10:11].decode()).encode() + line[match.end() :]


def shuffled(logs: dict[str, list[bytes]], seed: int, chunk: int) -> list[bytes]:
    """The lines of several logs in one file, each in its order, in chunks of at most so many."""
    rng = random.Random(seed)
    left = {name: iter(lines) for name, lines in logs.items()}
    mixed: list[bytes] = []
    while left:
        name = rng.choice(sorted(left))
        took = [line for _, line in zip(range(rng.randint(1, chunk)), left[name], strict=False)]
        mixed += took
        if not took:
            del left[name]
    return mixed


def events_of(inputs: Path, folder: Path, **settings: object) -> tuple[Counter[tuple[object, ...]], Spool]:
    """What a run makes of the lines of a folder, apart from where they stand, and from the container that stands before a client's line."""
    spool = Spool(inputs, folder, settings=SpoolSettings(**settings))  # type: ignore[arg-type]
    events: Counter[tuple[object, ...]] = Counter()
    for report in spool.slices():
        for batch in pq.read_table(report.path).to_batches():
            for row in parsed(batch).to_pylist():
                if row["kind"] == FETCH:  # a row for each log of a slice
                    events["lines of FETCH",] += row["lines"]
                    continue
                if row["source"] == CLIENT_SOURCE:
                    row["client_host"] = None
                if row["verdict"] in ("event", "quarantine"):
                    events[
                        tuple((k, str(v)) for k, v in sorted(row.items()) if k not in {"origin", "position", "raw", "place", "beats"})
                    ] += 1
        report.path.unlink()
    return events, spool
