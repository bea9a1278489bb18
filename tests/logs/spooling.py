"""A spool over logs written by hand, and a consumer of its slices that does what Spark does."""

from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import datetime, timezone

import pyarrow.parquet as pq

from jobs.logs.lines import LineLimits
from jobs.logs.slice_files import SliceFiles
from jobs.logs.slice_rows import read_share, shares_in
from jobs.logs.spool import ARROW_SCHEMA, Spool, SpoolSettings
from tests.logs.log_makers import coordinator, fetch, other, request, write

SMALL_BLOCKS = LineLimits(block_bytes=2_000)


class Consumer:
    """Does what ingest does: takes the slices that are published, in order, and deletes them."""

    def __init__(self):
        self.slices = []
        self.parts = 0

    def take(self, folder):
        for path in sorted(path for path in (folder / "slices").iterdir() if path.name <= self._newest(folder)):
            table = pq.read_table(path)
            assert table.schema.equals(ARROW_SCHEMA)
            rows = table.to_pylist()
            parts = [row for row in rows if row["record"] == "part"]
            in_parts = [line for part in parts for line in self._lines_of(folder, part)]
            lines = [*in_parts, *(row for row in rows if row["record"] == "line")]
            if in_parts:  # the slice's own lines of a log lie before and behind those of its parts
                lines.sort(key=lambda row: row["position"])
            self.slices.append([*lines, *(row for row in rows if row["record"] not in ("line", "part"))])
            path.unlink()

    def _newest(self, folder):
        files = SliceFiles(folder)
        return files.path(files.newest()).name

    def _lines_of(self, folder, row):
        """The rows in the file of a part."""
        self.parts += 1
        lines = rows_of_part(folder / "parts" / row["text"], row["position"])
        assert sum(line["lines"] for line in lines) == row["lines"]
        return lines

    @property
    def rows(self):
        return [row for rows in self.slices for row in rows]

    def of(self, record):
        return [row for row in self.rows if row["record"] == record]

    def faults(self):
        """How many lines have each fault."""
        return Counter(row["fault"] for row in self.of("line") if row["fault"])

    def lines(self):
        """What was kept, by file: comparable if its lines are in the same order."""
        return {origin: [r for r in self.of("line") if r["origin"] == origin] for origin in {r["origin"] for r in self.rows}}

    def ends(self):
        """How far the logs of each file were read in each slice."""
        clocks = self.of("clock")
        return {origin: sorted(r["position"] for r in clocks if r["origin"] == origin) for origin in {r["origin"] for r in clocks}}

    def logs(self, ends):
        """What was kept, by log: comparable whatever the slices were. They decide only which of two logs in a file comes first.

        A file holds several where times fall back, which `ends` tells, and where clients write among brokers.
        """
        found = defaultdict(list)
        for row in self.of("line"):
            found[row["broker"], row["origin"], bisect_left(ends.get(row["origin"], []), row["position"])].append(row)
        return found

    def counts(self):
        counts = Counter()
        for row in self.rows:
            counts[row["origin"]] += row["lines"]
        return {origin: n for origin, n in counts.items() if n}


def rows_of_part(path, before):
    """All shares of a part, in the order of the log. `before`: lines of the log before it."""
    rows = [row for share in range(shares_in(path)) for table in read_share(path, share, before) for row in table.to_pylist()]
    return sorted(rows, key=lambda row: row["position"])


def run(inputs, folder, consumer=None, workers=None, **settings):
    consumer = consumer or Consumer()
    reports = []
    spool = Spool(inputs, folder, settings=SpoolSettings(**settings))
    spool.workers = workers
    for report in spool.slices():
        reports.append(report)
        consumer.take(folder)
    return consumer, reports


def assert_same(consumer, whole):
    """Two consumers have the same lines, those of each log in the same order, and count as many."""
    ends = whole.ends()
    assert consumer.logs(ends) == whole.logs(ends)
    assert consumer.counts() == whole.counts()


def brokers(root, count=3, lines=200, step=100):
    """Brokers with a request log and a server log each, of the same span of time."""
    for b in range(count):
        write(root / f"b{b}" / "kafka-request.log", [(request, fetch)[i % 3 == 0](i * step + b) for i in range(lines)])
        write(root / f"b{b}" / "server.log", [(coordinator, other)[i % 2](i * step * 5 + b) for i in range(lines // 5)])
    return root


def at_ms(row):
    return None if row["at"] is None else round((row["at"] - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds() * 1000)
