"""What consumers of three libraries processed in the scenes of tests/lab/cost_scenes.py, against what the tables say of it."""

import gzip
import json
from collections import defaultdict
from pathlib import Path

import pytest

from jobs.common.settings import Settings
from jobs.common.times import epoch_ms
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.names import FINDINGS, REBALANCE_OFFSETS

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parents[1] / "data" / "cost-scenes" / "kafka-4.4.0"
NOT_READ_MS = 20_000
NEVER = 1 << 62
EXPECTED = {
    "is-well": set(),
    "commits-seldom": {"SESSION_TIMEOUT"},  # at its end
    "fails-python": {"COMMITS_STOPPED"},  # of one batch with the other partition, which it goes back in, too
    "fails": {"PARTITION_NOT_READ"},
    "pauses": {"PARTITION_NOT_READ"},
    "hangs": {"OPEN_TRANSACTION"},
    "compacts": {"OFFSET_REWOUND", "SESSION_TIMEOUT"},
    "is-out": {"SESSION_TIMEOUT"},
    "assigns": {"READ_AGAIN"},
    "comes-back": {"READ_AGAIN"},
    "in-transactions": {"SESSION_TIMEOUT"},
    "loses-records": {"OFFSET_RESET"},
    "loses-an-offset": {"OFFSETS_EXPIRED", "OFFSET_RESET"},
    "is-set-forward": {"OFFSET_SET_FORWARD"},
    "keeps": {"SESSION_TIMEOUT"},
    "overruns": {"POLL_TIMEOUT"},
}


def lines(name):
    with gzip.open(RECORDED / f"{name}.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def scene(group):
    return next(name for name in EXPECTED if group.startswith(name))


class Told:
    """The rows, and what was processed: by group and partition, (time, client, run, offset) in the order of time."""

    def __init__(self, folder):
        source = folder / "input" / "c" / "broker-1"
        source.mkdir(parents=True)
        for path in (RECORDED / "broker-1").iterdir():
            (source / path.name).symlink_to(path)
        assert at_once.process(folder / "input", folder / "lake", settings=Settings(not_read_ms=NOT_READ_MS), most_lines=1 << 30)
        self.until = {line["group"]: line["actions"][-1]["at"] for line in lines("groups")}
        self.findings = [
            row | json.loads(row["details"])
            for row in table_rows(folder / "lake" / FINDINGS)
            if epoch_ms(row["occurred_at"]) <= self.until.get(row["group_id"], -1)
        ]
        self.rows = defaultdict(list)
        for row in sorted(table_rows(folder / "lake" / REBALANCE_OFFSETS), key=lambda row: row["started_at"]):
            if row["resumed_at"] is not None and row["resumed_offset"] >= 0:
                self.rows[row["group_id"], int(row["partition"][-1])].append(row)
        self.read = defaultdict(list)
        for line in lines("processed"):
            of = self.read[line["client"].rpartition("-")[0], line["partition"]]
            of += [(at, line["client"], line["run"], offset) for at, offset in line["read"]]
        for read in self.read.values():
            read.sort()

    def hand_overs(self):
        """Each row with how many records were read twice with it: that had been read before, and that its former owner read after."""
        for place, rows in self.rows.items():
            for row, following in zip(rows, [*rows[1:], None], strict=True):
                began = epoch_ms(row["resumed_at"])
                until = NEVER if following is None else epoch_ms(following["resumed_at"])
                before = {offset for at, *_, offset in self.read[place] if at <= began and offset >= row["resumed_offset"]}
                after = [one for one in self.read[place] if began < one[0] <= until]
                heir = next(((client, run) for _, client, run, _ in after if client == row["to_client_id"]), None)
                read = {offset for _, client, run, offset in after if (client, run) == heir}
                late = {offset for _, client, run, offset in after if (client, run) != heir} & read - before
                yield row, len(before & read), len(late)

    def counts(self, row):
        """How often each offset of the finding's partition was processed."""
        counts = defaultdict(int)
        for *_, offset in self.read[row["group_id"], int(row["partition"][-1])]:
            counts[offset] += 1
        return counts


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    return Told(tmp_path_factory.mktemp("scenes"))


def test_each_group_has_the_findings_of_what_was_done_to_it(told):
    found = defaultdict(set)
    for row in told.findings:
        found[row["group_id"]].add(row["code"])
    assert {group: found[group] for group in told.until} == {group: EXPECTED[scene(group)] for group in told.until}


def test_ranges_hold_what_was_read_twice_and_one_number_is_it(told):
    exact = ranges = 0
    for row, before, late in told.hand_overs():
        assert row["reread_min"] <= before + late, (row, before, late)
        assert row["reread_max"] is None or before <= row["reread_max"], (row, before, late)
        exact += row["reread_min"] == row["reread_max"]
        ranges += 0 < row["reread_min"] < (row["reread_max"] or 0)
    assert exact > 20
    assert ranges > 5


def test_in_compacted_topics_offsets_are_records_at_most(told):
    rows = [row for (group, _), rows in told.rows.items() for row in rows if group.startswith("compacts")]
    assert rows
    assert all(row["gaps"] and row["reread_min"] == 0 for row in rows)
    rewound = [row for row in told.findings if row["code"] == "OFFSET_REWOUND"]
    assert all("up to 30 records are read again" in row["message"] for row in rewound)
    assert all(count == 1 for row in rewound for count in told.counts(row).values()), "compaction had deleted them"


def test_what_a_client_that_came_back_read_again_is_in_the_range(told):
    for row in told.findings:
        if row["code"] == "READ_AGAIN":
            again = sum(count - 1 for count in told.counts(row).values() if count > 1)
            assert row["reread_min"] <= again <= row["reread_max"], row


def test_what_was_skipped_and_what_was_read_from_the_beginning_is_exact(told):
    for row in told.findings:
        read = told.counts(row) if row["code"] in ("OFFSET_RESET", "OFFSET_SET_FORWARD") else {}
        if row["code"] == "OFFSET_RESET":
            skipped = [offset for offset in range(row["from_offset"], row["begun_offset"]) if offset not in read]
            assert (row["skipped_max"], row["reread_min"]) == (len(skipped), sum(count > 1 for count in read.values())), row
        elif row["code"] == "OFFSET_SET_FORWARD":
            assert row["skipped"] == sum(offset not in read for offset in range(row["from_offset"], row["to_offset"])), row


def test_nothing_is_read_twice_where_an_administrator_set_the_offsets_forward(told):
    rows = [row for rows in told.rows.values() for row in rows if row["from_client_id"] == "admin" and "forward" in row["group_id"]]
    assert [(row["reread_min"], row["reread_max"]) for row in rows] == [(0, 0)] * 4


def test_how_long_nobody_read_while_all_consumers_were_gone(told):
    """They were killed, and their last sign of life was a heartbeat or a request for records, no more than a second before."""
    killed = {line["group"]: [one["at"] for one in line["actions"] if "kill" in one["text"]] for line in lines("groups")}
    for (group, _), rows in told.rows.items():
        if group.startswith("is-out"):
            row = max(rows, key=lambda row: row["unread_ms"])
            gone_ms = epoch_ms(row["resumed_at"]) - killed[group][-1]
            assert -500 <= row["unread_ms"] - gone_ms <= 1_500, (row, gone_ms)
