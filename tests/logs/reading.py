"""One log read whole by LogReader, and what it keeps of it."""

from jobs.logs.bytes import open_log
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from tests.logs.log_makers import write


def reader(path, mark=None, zone="UTC", **options):
    return LogReader(lambda: open_log(path), LocalTimes(zone), mark, **options)


def read(path, **options):
    log, kept = reader(path, **options), KeptLines()
    lines = log.read(kept)
    log.close()
    return kept, lines


def rows(kept):
    return [
        (position, at, text, kept.faults.get(i, ""))
        for i, (position, at, text) in enumerate(zip(kept.positions, kept.ats, kept.texts, strict=True))
    ]


def judged(tmp_path, lines, end=b"\n", **options):
    """Position, fault of the lines kept."""
    kept, count = read(write(tmp_path / "a.log", lines, end), **options)
    assert count == len(lines)
    return [(position, fault) for position, _, _, fault in rows(kept)]
