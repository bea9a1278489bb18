"""What real consumers read twice, and what was lost or stood still, against what the tables say of it.

The scenes were played on a real broker (tests/data/offset-scenes): consumers noted each record that they processed. With the
positions of consumers, which FETCH requests have, what was read twice is mostly known; without them a range is told, in which it lies.
"""

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

import pytest

from coordinator_model.offsets.handovers import NEAR
from coordinator_model.offsets.ledger import RECENT
from coordinator_model.offsets.reads import SPAN_MS
from jobs.common.settings import Settings
from jobs.common.times import epoch_ms
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.names import FINDINGS, GROUP_EVENTS, REBALANCE_OFFSETS
from tests.effort import long

pytestmark = pytest.mark.slow

SCENES = sorted((Path(__file__).parents[1] / "data" / "offset-scenes").iterdir())
(WITH_LISTS,) = [scenes for scenes in SCENES if scenes.name == "kafka-4.2.0"]
NOT_READ_MS = 20_000
POLL_MS = 2_000
BEGINS_WITHIN_MS = 15_000  # a client that took several partitions over reads them one after the other
ANSWER = 3  # records at most: one comes every 250 ms, and requests wait for half a second
NO_REBALANCE = {"is-killed-and-comes-back-eager-librdkafka"}  # a static member came back in time
NOTHING_COMMITTED = {("commits-itself-cooperative-librdkafka", "joins")}
OUT_OF_RANGE = {"is-outlived-eager-librdkafka"}  # its records were deleted: only FETCH shows that
STANDING = ("PARTITION_NOT_READ", "COMMITS_STOPPED")
WITH_POSITIONS, POLLED, LISTED = "with-positions", "polled", "listed"
ALSO_LOGGED = {  # of what a broker logs beside requests about groups, what is left
    WITH_POSITIONS: ("FETCH", "METADATA", "LIST_OFFSETS"),
    POLLED: (),
    LISTED: ("LIST_OFFSETS",),  # and nobody polls
}


class Recording:
    """A recording, and what is made of it: with the positions of clients, or without; with polls, or with ends that a tool asked for."""

    def __init__(self, scenes: Path, folder: Path, kind: str) -> None:
        self.scenes, self.kind, self.positions = scenes, kind, kind == WITH_POSITIONS
        source = folder / "input" / "c"
        (source / "broker-1").mkdir(parents=True)
        if kind != LISTED:
            (source / "poll").symlink_to(scenes / "poll")
        (source / "broker-1" / "server.log.gz").symlink_to(scenes / "broker-1" / "server.log.gz")
        requests = gzip.decompress((scenes / "broker-1" / "kafka-request.log.gz").read_bytes()).decode().splitlines(keepends=True)
        left_out = [f'"requestApiKeyName":"{api}"' for api in {*ALSO_LOGGED[WITH_POSITIONS]} - {*ALSO_LOGGED[kind]}]
        kept = [line for line in requests if not any(sign in line for sign in left_out)]
        (source / "broker-1" / "kafka-request.log").write_text("".join(kept))
        assert self.positions == (len(kept) == len(requests))
        assert at_once.process(folder / "input", folder / "lake", settings=Settings(not_read_ms=NOT_READ_MS), most_lines=1 << 30)
        self.lake = folder / "lake"
        self.handed_over = defaultdict(list)
        for row in sorted(table_rows(self.lake / REBALANCE_OFFSETS), key=lambda row: row["started_at"]):
            self.handed_over[row["group_id"], int(row["partition"].rpartition("-")[2])].append(row)

    def lines(self, name):
        path = self.scenes / name
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            return [json.loads(line) for line in file]

    def findings(self, *codes):
        rows = table_rows(self.lake / FINDINGS)
        return [row | {"details": json.loads(row["details"])} for row in rows if row["code"] in codes]


@pytest.fixture(
    scope="module",
    params=[
        (pytest.param if scenes is WITH_LISTS and kind != POLLED else long)((scenes, kind), id=f"{scenes.name}-{kind}")
        for scenes in SCENES
        for kind in (WITH_POSITIONS, POLLED, LISTED)
        if kind != LISTED or scenes is WITH_LISTS
    ],
)
def of(request, tmp_path_factory):
    scenes, kind = request.param
    return Recording(scenes, tmp_path_factory.mktemp("scenes"), kind)


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


def told_hand_overs(of):
    """What is told of each hand-over with a row, how much more its former owner read when it woke up, and the row."""
    woke = defaultdict(int)
    for told in of.lines("truth.jsonl"):
        if told["zombie"]:
            woke[told["group"], told["partition"]] += told["reread"]
    for told in filter(is_handed_over, of.lines("truth.jsonl")):
        group = told["group"]
        if group in NO_REBALANCE and told["old_client"] == told["new_client"]:
            continue
        if (group, told["actions"][-1].split()[-1]) in NOTHING_COMMITTED or (group in OUT_OF_RANGE and told["skipped"]):
            continue
        row = row_of(told, of.handed_over[group, told["partition"]])
        assert row is not None, told
        yield told, woke[group, told["partition"]], row


def test_what_was_read_twice_lies_in_the_range(of):
    bounded = unbounded = lost = 0
    for told, _, row in told_hand_overs(of):
        if row["resumed_offset"] == -1:
            assert row["reread_max"] is None, "nothing tells where it began"
            lost += 1
        elif row["reread_max"] is None:
            assert row["reread_min"] <= told["reread"], (told, row)
            unbounded += 1
        else:
            bounded += 1
    assert bounded > 60
    assert unbounded < (40 if of.kind == LISTED else 10), "of five seconds one end is kept: groups were rebalanced before the second one"
    assert lost == 12


def test_positions_tell_how_much_was_read_twice(of):
    """With a request for records after the last commit: but for what two answers had brought, if its client died.

    The others are wide ranges: of clients that were behind, that stalled, that began.
    """
    exact = near = more = 0
    for told, woke, row in told_hand_overs(of):
        if row["reread_max"] is None or row["resumed_offset"] == -1:
            continue
        assert row["reread_min"] <= told["reread"] + woke, (told, row)
        assert told["reread"] <= row["reread_max"], (told, row)
        if told["reread"]:
            more += 1
            exact += row["reread_min"] == row["reread_max"]
            near += 0 < row["reread_min"] >= row["reread_max"] - 2 * ANSWER
    assert near > more / 2 or not of.positions, (near, more)
    assert exact == (4 if of.positions else 0), "an owner that went on itself, when its offset had been set back by 50"


def test_the_range_is_no_wider_than_two_intervals_of_commits(of):
    """Records come every 250 ms, but where a producer hurries."""
    of_commits = {line["group"]: line for line in of.lines("groups.jsonl")}
    for (group, _), rows in of.handed_over.items():
        interval_ms = int(of_commits[group]["settings"].get("auto.commit.interval.ms", 5_000))
        if "behind" in group or of_commits[group]["commit_every"]:
            continue
        for row in rows:
            if row["reread_max"] is not None and row["reread_min"] == 0:
                between_ends = 1 if of.kind == LISTED else 0
                assert row["reread_max"] <= (2 * (interval_ms + 1_000)) / 250 + 1 + between_ends, row


def test_lag_that_was_added_is_what_was_written_meanwhile(of):
    written = defaultdict(list)
    for line in of.lines("produced.jsonl.gz"):
        written[line["topic"], line["partition"]].append(line["at"])
    told = 0
    for (group, partition), rows in of.handed_over.items():
        times = sorted(written[group, partition])
        for row in rows:
            if row["lag_added"] is not None and "behind" not in group:
                came = bisect_right(times, epoch_ms(row["resumed_at"])) - bisect_right(times, epoch_ms(row["committed_at"]))
                assert abs(row["lag_added"] - came) <= 1 + 0.05 * came, row
                told += 1
    assert told > 100


def test_when_the_lag_was_back(of):
    """By the records that the producer wrote: the first commit after at which no more were left than at one of the last ones before."""
    written, commits = defaultdict(list), defaultdict(list)
    for line in of.lines("produced.jsonl.gz"):
        written[line["topic"], line["partition"]].append(line["at"])
    for row in table_rows(of.lake / GROUP_EVENTS):
        for told in row["offsets"] or () if row["kind"] in ("OFFSET_COMMIT", "TXN_OFFSET_COMMIT") else ():
            place = row["group_id"], int(told["partition"].rpartition("-")[2])
            commits[place].append((epoch_ms(row["occurred_at"]), told["offset"]))
    same = other = missing = 0
    between_ends = SPAN_MS if of.kind == LISTED else POLL_MS
    for place, rows in of.handed_over.items():
        times = sorted(written[place])
        lags = [(at, max(bisect_right(times, at) - offset, 0)) for at, offset in sorted(commits[place])]
        for row in rows:
            if row["lag_before"] is None or row["next_commit_at"] is None or "idle" in place[0]:
                continue
            usual = max(lag for at, lag in [one for one in lags if one[0] <= epoch_ms(row["committed_at"])][-RECENT:])
            back = next((at for at, lag in lags if at >= epoch_ms(row["next_commit_at"]) and lag <= usual + NEAR), None)
            if row["caught_up_at"] is None:
                missing += back is not None
            elif epoch_ms(row["caught_up_at"]) == back:
                same += 1
            else:
                other += 1
                assert "behind" in place[0] or abs(epoch_ms(row["caught_up_at"]) - back) <= between_ends, (row, back)
    assert same > 120
    assert other + missing < same / 20, (same, other, missing)


def test_what_is_found_is_what_was_done(of):
    rewound = of.findings("OFFSET_REWOUND")
    assert {(row["group_id"], row["details"]["reread"], row["details"]["by_member"]) for row in rewound} == {
        ("is-rewound-eager-librdkafka", 50, False)
    }
    without = {"is-deleted-earliest-eager-java", "is-deleted-latest-eager-librdkafka", "expires-eager-librdkafka"}
    assert {row["group_id"] for row in of.findings("OFFSETS_EXPIRED")} == without
    began = {(told["group"], told["partition"]): told for told in of.lines("truth.jsonl") if told["old_client"] == told["new_client"]}
    for row in of.findings("OFFSET_RESET"):
        details = row["details"]
        assert row["group_id"] in without | (OUT_OF_RANGE if of.positions else set())
        told = began[row["group_id"], int(details["partition"].rpartition("-")[2])]
        if of.positions:
            assert (details["skipped_max"], details["reread_min"]) == (told["skipped"], told["reread"]), (row, told)
        else:
            assert told["skipped"] <= details["skipped_max"], (row, told)
            assert details["reread_min"] <= told["reread"], (row, told)
    assert len(of.findings("OFFSET_RESET")) == (16 if of.positions else 12)


def test_what_a_client_that_came_back_without_a_rebalance_read_again(of):
    """Where it is told: it takes positions."""
    truth = [told for told in of.lines("truth.jsonl") if told["group"] in NO_REBALANCE and told["old_client"] == told["new_client"]]
    again = {(told["partition"], told["reread"]) for told in truth if told["reread"] and of.positions}
    found = of.findings("READ_AGAIN")
    assert {row["group_id"] for row in found} <= NO_REBALANCE
    ranges = {int(row["details"]["partition"][-1]): (row["details"]["reread_min"], row["details"]["reread_max"]) for row in found}
    assert ranges.keys() == {partition for partition, _ in again}
    assert all(ranges[partition][0] <= reread <= ranges[partition][1] for partition, reread in again)


def test_a_partition_that_nobody_reads_is_told_in_time_and_no_other(of):
    (line,) = [line for line in of.lines("groups.jsonl") if line["scene"] == "is_stuck"]
    paused = next(action["at"] for action in line["actions"] if "reads no longer" in action["text"])
    found = of.findings(*STANDING)
    assert {(row["group_id"], row["code"]) for row in found} == {(line["group"], "PARTITION_NOT_READ")}
    for row in found:
        assert NOT_READ_MS <= epoch_ms(row["occurred_at"]) - paused <= NOT_READ_MS + 10_000
