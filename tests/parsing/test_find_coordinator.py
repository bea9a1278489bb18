"""Where a group lives: what brokers answered to FindCoordinator, against what their coordinators logged.

A broker answers from its copy of the cluster's metadata. While a partition moves, that copy is ahead of the new leader's own
line "elected": by up to 644 ms in the recordings, which is the first election of all, of a topic that was just made.
"""

import gzip
from collections import Counter, defaultdict
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from coordinator_model import events as e
from coordinator_model.errors import Error
from coordinator_model.specification.partition import coordinator_partition
from jobs.parsing import batch
from tests.parsing.reading import read_lines

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
MOVE = timedelta(seconds=1)

EXPECTED = {
    "kafka-3.9.1": Counter({"led": 496, "moving there": 19, "no coordinator": 2}),
    "kafka-4.2.0": Counter({"led": 1091, "moving there": 49, "no coordinator": 4, "of a transaction": 8}),
}


def lines(recording):
    """FindCoordinator and coordinator lines of all brokers, as RAW."""
    found = []
    for path in sorted((RECORDINGS / recording).glob("broker-*/*.log.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            for position, text in enumerate(file, 1):
                if '"FIND_COORDINATOR"' in text or "[GroupCoordinator " in text or "[GroupMetadataManager " in text:
                    at = datetime.strptime(text[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)
                    found.append((recording, path.parent.name, "line", path.name, position, at, text.rstrip("\n"), None, 1, None, None))
    return found


@pytest.fixture(scope="module", params=sorted(EXPECTED))
def recorded(request):
    """The recording's name, rows of group_events by kind, number of lines skipped."""
    told = read_lines(lines(request.param))
    verdicts = Counter(zip(told["verdict"].to_pylist(), told["source"].to_pylist(), strict=True))
    assert not any(verdict == "quarantine" for verdict, _ in verdicts)
    rows = defaultdict(list)
    for row in batch.events(told, 0).sort_by([("occurred_at", "ascending"), ("position", "ascending")]).to_pylist():
        rows[row["kind"]].append(row)
    return request.param, rows, verdicts["skipped", "request"]


def elections(rows):
    """(time, broker) of every election, by partition."""
    found = defaultdict(list)
    for row in rows[e.COORDINATOR_ELECTED]:
        found[row["coordinator_partition"]].append((row["occurred_at"], row["broker"]))
    return found


def brokers_of_nodes(rows):
    """The brokers whose coordinator lines have each node id."""
    found = defaultdict(set)
    for kind, kept in rows.items():
        for row in kept:
            if kind != e.FIND_COORDINATOR and row["coordinator_id"] is not None:
                found[row["coordinator_id"]].add(row["broker"])
    return found


def test_the_coordinator_that_is_answered_leads_the_partition_of_the_group(recorded):
    name, rows, skipped = recorded
    led, brokers = elections(rows), brokers_of_nodes(rows)
    assert {len(folders) for folders in brokers.values()} == {1}
    outcomes = Counter({"of a transaction": skipped})
    for answer in rows[e.FIND_COORDINATOR]:
        partition = coordinator_partition(answer["group_id"])
        assert answer["coordinator_partition"] == partition
        if answer["error_code"] != Error.NONE:
            assert (answer["error_code"], answer["coordinator_id"]) == (Error.COORDINATOR_NOT_AVAILABLE, None)
            outcomes["no coordinator"] += 1
            continue
        (named,) = brokers[answer["coordinator_id"]]
        leader = next((broker for at, broker in reversed(led[partition]) if at <= answer["occurred_at"]), None)
        successors = {broker for at, broker in led[partition] if answer["occurred_at"] < at <= answer["occurred_at"] + MOVE}
        assert named == leader or named in successors, answer
        outcomes["led" if named == leader else "moving there"] += 1
    assert +outcomes == EXPECTED[name]


def test_the_address_that_is_answered_is_the_one_its_clients_connect_to(recorded):
    """Here every broker advertises an IP address, so node ids and addresses tell the same brokers apart."""
    _, rows, _ = recorded
    brokers = brokers_of_nodes(rows)
    listening = {(row["connection"].split("-")[0], row["broker"]) for row in rows[e.FIND_COORDINATOR]}
    answered = {(row["coordinator_address"], *brokers[row["coordinator_id"]]) for row in rows[e.FIND_COORDINATOR] if row["coordinator_id"]}
    assert answered == listening
    assert len(answered) == len(brokers)


def test_groups_are_where_the_coordinator_logs_them(recorded):
    """By the lines that name both a group and its partition, which rows keep as it is said."""
    _, rows, _ = recorded
    named = [row for kind, kept in rows.items() if kind != e.FIND_COORDINATOR for row in kept if row["group_id"]]
    assert len(named) > 200
    assert [row for row in named if row["coordinator_partition"] != coordinator_partition(row["group_id"])] == []
