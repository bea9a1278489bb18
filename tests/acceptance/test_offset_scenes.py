"""What real consumers read twice, and what was lost or stood still, against what the tables say of it.

The scenes were played on a real broker (scripts/truth/offset_scenes.py): consumers noted each record that they processed. The logs have no
positions of consumers, so a range is told: what a client read twice lies in it.
"""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

import pytest

from jobs.common.settings import Settings
from jobs.common.times import epoch_ms
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.names import FINDINGS, REBALANCE_OFFSETS

pytestmark = pytest.mark.slow

SCENES = Path(__file__).parents[1] / "data" / "offset-scenes" / "kafka-4.4.0"
NOT_READ_MS = 20_000
BEGINS_WITHIN_MS = 15_000  # a client that took several partitions over reads them one after the other
NO_REBALANCE = {"is-killed-and-comes-back-eager-librdkafka"}  # a static member came back in time
NOTHING_COMMITTED = {("commits-itself-cooperative-librdkafka", "joins")}
OUT_OF_RANGE = {"is-outlived-eager-librdkafka"}  # its records were deleted: only FETCH shows that, which is not read
STANDING = ("PARTITION_NOT_READ", "COMMITS_STOPPED")


def lines(name):
    path = SCENES / name
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scenes")
    (folder / "input" / "c").mkdir(parents=True)
    for name in ("broker-1", "poll"):
        (folder / "input" / "c" / name).symlink_to(SCENES / name)
    assert at_once.process(folder / "input", folder / "lake", settings=Settings(not_read_ms=NOT_READ_MS), most_lines=1 << 30)
    return folder / "lake"


@pytest.fixture(scope="module")
def handed_over(lake):
    """Rows by group and number of the partition, in the order of time."""
    rows = defaultdict(list)
    for row in sorted(table_rows(lake / REBALANCE_OFFSETS), key=lambda row: row["started_at"]):
        rows[row["group_id"], int(row["partition"].rpartition("-")[2])].append(row)
    return rows


def findings(lake, *codes):
    return [row | {"details": json.loads(row["details"])} for row in table_rows(lake / FINDINGS) if row["code"] in codes]


def is_handed_over(told):
    """Whether a partition changed hands, or its client began anew. A thawed client that works off what it has does neither."""
    return not told["zombie"] and (told["old_client"] != told["new_client"] or told["reread"] or told["skipped"])


def row_of(told, rows):
    """The row of what is told: the client began there, and so soon before its first record."""
    fits = [
        row
        for row in rows
        if row["resumed_at"] is not None
        and row["resumed_offset"] in (told["resumed_offset"], -1)
        and -BEGINS_WITHIN_MS <= epoch_ms(row["resumed_at"]) - told["resumed_at"] <= 0
    ]
    return max(fits, key=lambda row: row["resumed_at"], default=None)


def test_what_was_read_twice_lies_in_the_range(handed_over):
    bounded = unbounded = lost = 0
    for told in filter(is_handed_over, lines("truth.jsonl")):
        group = told["group"]
        if group in NO_REBALANCE and told["old_client"] == told["new_client"]:
            continue
        if (group, told["actions"][-1].split()[-1]) in NOTHING_COMMITTED or (group in OUT_OF_RANGE and told["skipped"]):
            continue
        row = row_of(told, handed_over[group, told["partition"]])
        assert row is not None, told
        if row["resumed_offset"] == -1:
            assert row["reread_max"] is None, "nothing tells where it began"
            lost += 1
        elif row["reread_max"] is None:
            assert row["reread_min"] <= told["reread"], (told, row)
            unbounded += 1
        else:
            assert row["reread_min"] <= told["reread"] <= row["reread_max"], (told, row)
            bounded += 1
    assert bounded > 100
    assert unbounded < 10
    assert lost == 12


def test_the_range_is_no_wider_than_two_intervals_of_commits(handed_over):
    """Records come every 250 ms, but where a producer hurries."""
    of_commits = {line["group"]: line for line in lines("groups.jsonl")}
    for (group, _), rows in handed_over.items():
        interval_ms = int(of_commits[group]["settings"].get("auto.commit.interval.ms", 5_000))
        if "behind" in group or of_commits[group]["commit_every"]:
            continue
        for row in rows:
            if row["reread_max"] is not None and row["reread_min"] == 0:
                assert row["reread_max"] <= (2 * (interval_ms + 1_000)) / 250 + 1, row


def test_lag_that_was_added_is_what_was_written_meanwhile(handed_over):
    written = defaultdict(list)
    for line in lines("produced.jsonl.gz"):
        written[line["topic"], line["partition"]].append(line["at"])
    told = 0
    for (group, partition), rows in handed_over.items():
        times = sorted(written[group, partition])
        for row in rows:
            if row["lag_added"] is not None and "behind" not in group:
                came = bisect_right(times, epoch_ms(row["resumed_at"])) - bisect_right(times, epoch_ms(row["committed_at"]))
                assert abs(row["lag_added"] - came) <= 1 + 0.05 * came, row
                told += 1
    assert told > 100


def test_what_is_found_is_what_was_done(lake):
    rewound = findings(lake, "OFFSET_REWOUND")
    assert {(row["group_id"], row["details"]["reread"], row["details"]["by_member"]) for row in rewound} == {
        ("is-rewound-eager-librdkafka", 50, False)
    }
    without = {"is-deleted-earliest-eager-java", "is-deleted-latest-eager-librdkafka", "expires-eager-librdkafka"}
    assert {row["group_id"] for row in findings(lake, "OFFSETS_EXPIRED")} == without
    began = {(told["group"], told["partition"]): told for told in lines("truth.jsonl") if told["old_client"] == told["new_client"]}
    for row in findings(lake, "OFFSET_RESET"):
        assert row["group_id"] in without
        told = began[row["group_id"], int(row["details"]["partition"].rpartition("-")[2])]
        assert told["skipped"] <= row["details"]["skipped_max"], (row, told)
        assert row["details"]["reread_min"] <= told["reread"], (row, told)


def test_a_partition_that_nobody_reads_is_told_in_time_and_no_other(lake):
    (line,) = [line for line in lines("groups.jsonl") if line["scene"] == "is_stuck"]
    paused = next(action["at"] for action in line["actions"] if "reads no longer" in action["text"])
    found = findings(lake, *STANDING)
    assert {(row["group_id"], row["code"]) for row in found} == {(line["group"], "PARTITION_NOT_READ")}
    for row in found:
        assert NOT_READ_MS <= epoch_ms(row["occurred_at"]) - paused <= NOT_READ_MS + 10_000
