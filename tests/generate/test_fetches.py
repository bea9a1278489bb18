"""Fetches of generated consumers: as many as wanted, and never behind what their group committed."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest

from jobs.generate.cluster import Cluster
from jobs.generate.sizes import SIZES, Size
from tests.generate.test_shape import REQUEST

pytestmark = pytest.mark.slow

BUSY = Size(30, 4, 2.0, commits=True, fetches=True)
BROKERS = 3


class Line(NamedTuple):
    """A request of a log."""

    at: str
    broker: int
    api: str
    number: int
    request: dict
    response: dict
    connection: str

    @property
    def process(self):
        """The address of the client's host: each process has its own."""
        return self.connection.partition("-")[2].partition(":")[0]

    def asked(self):
        return {part["partition"]: part["fetchOffset"] for topic in self.request["topics"] for part in topic["partitions"]}

    def told(self):
        return {part["partitionIndex"]: part["highWatermark"] for topic in self.response["responses"] for part in topic["partitions"]}


def read(taken):
    lines = []
    for is_request, broker, of_log in taken:
        for line in of_log if is_request else ():
            text = REQUEST.fullmatch(line.rstrip("\n"))
            assert text, line
            told = json.loads(text[1])
            header = told["requestHeader"]
            lines.append(
                Line(
                    line[1:24], broker, header["requestApiKeyName"], header["correlationId"], told["request"],
                    told["response"], told["connection"],
                )
            )  # fmt: skip
    return sorted(lines, key=lambda line: (line.at, line.number))


def taken(size=BUSY, seconds=60):
    cluster = Cluster(size, release="4.2.0", brokers=BROKERS, start_ms=0, seed=3)
    return read([one for _ in cluster.advance(seconds * 1_000) for one in cluster.book.take()])


@cache
def busy():
    return taken()


def fetches(lines):
    return [line for line in lines if line.api == "FETCH"]


def by_connection(lines):
    found: dict[str, list[Line]] = {}
    for line in lines:
        found.setdefault(line.connection, []).append(line)
    return found


def test_there_are_ten_for_each_heartbeat():
    lines = taken(replace(BUSY, rebalances=0.0), 20)
    seen = Counter(line.api for line in lines)
    assert 9.7 <= seen["FETCH"] / seen["HEARTBEAT"] <= 10.3
    assert sum(not line.request["topics"] for line in fetches(lines)) > 100  # nothing was new the time before
    assert sum(not line.response["responses"] for line in fetches(lines)) > 100
    assert all(len(of_one) >= 20 for of_one in by_connection(fetches(lines)).values())


def test_each_connection_has_one_session_whose_epochs_count_up():
    begun = 0
    for of_one in by_connection(fetches(busy())).values():
        sessions = {line.response["sessionId"] for line in of_one}
        assert len(sessions) == 1
        epochs = [line.request["sessionEpoch"] for line in of_one]
        assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))
        assert {line.request["sessionId"] for line in of_one} == (sessions if epochs[0] else sessions | {0}) or len(of_one) == 1
        assert [line.number for line in of_one] == sorted(line.number for line in of_one)
        begun += epochs[0] == 0
    assert begun > 30


def test_a_process_uses_each_correlation_id_once():
    for number, times in Counter((line.process, line.number) for line in busy()).items():
        assert times == 1, number


def test_positions_agree_with_commits():
    """A consumer begins where its group committed, goes on where the last answer ended, and never commits more than it got."""
    begins: dict[tuple[str, int], tuple[int, int]] = {}
    position: dict[tuple[str, int], int] = {}
    committed: dict[tuple[str, int], int] = {}
    seen = Counter[str]()
    for line in busy():
        if line.api == "OFFSET_FETCH":
            for of_group in line.response["groups"]:
                for part in (part for topic in of_group["topics"] for part in topic["partitions"]):
                    number, offset = part["partitionIndex"], part["committedOffset"]
                    assert committed.get((of_group["groupId"], number), offset) == offset, line
                    begins[line.process, number] = line.number, offset
        elif line.api == "OFFSET_COMMIT":
            answers = {part["partitionIndex"]: part["errorCode"] for topic in line.response["topics"] for part in topic["partitions"]}
            assert list(answers) == [part["partitionIndex"] for topic in line.request["topics"] for part in topic["partitions"]]
            failed = set(answers.values()) != {0}
            for part in (part for topic in line.request["topics"] for part in topic["partitions"]):
                number, offset = part["partitionIndex"], part["committedOffset"]
                seen["commits"] += 1
                place = line.process, number
                assert offset <= (begins[place][1] if place in begins else position.get(place, offset)), line
                if not failed:
                    group = line.request["groupId"]
                    assert offset >= committed.get((group, number), 0), line
                    committed[group, number] = offset
        elif line.api == "FETCH":
            for number, offset in line.asked().items():
                place = line.process, number
                if place in begins and begins[place][0] < line.number:  # else it was in the air
                    assert offset == begins.pop(place)[1], line
                    seen["begun"] += 1
                else:
                    assert offset == position.get(place, offset), line
                    seen["went on"] += 1
                position[place] = offset
            for number, end in line.told().items():
                assert end >= position.get((line.process, number), 0), line
                position[line.process, number] = end
    assert min(seen["commits"], seen["begun"], seen["went on"]) > 200


def test_all_groups_see_the_same_ends():
    ends: dict[tuple[str, int], int] = {}
    for line in fetches(busy()):
        for topic in line.response["responses"]:
            for part in topic["partitions"]:
                place = topic["topicId"], part["partitionIndex"]
                assert part["highWatermark"] >= ends.get(place, 0)
                assert part["recordsSizeInBytes"] > 0
                ends[place] = part["highWatermark"]


def test_the_log_names_topics_and_leaders():
    names: dict[str, str] = {}
    leaders: dict[tuple[str, int], int] = {}
    for line in busy():
        if line.api == "METADATA":
            for topic in line.response["topics"]:
                assert names.setdefault(topic["topicId"], topic["name"]) == topic["name"]
                assert [part["partitionIndex"] for part in topic["partitions"]] == list(range(8))
                for part in topic["partitions"]:
                    leaders[topic["topicId"], part["partitionIndex"]] = part["leaderId"] - 1
                    assert part["replicaNodes"][0] == part["leaderId"]
    assert len(set(names.values())) == len(names) == 20
    for line in fetches(busy()):
        for topic in line.request["topics"]:
            assert {leaders[topic["topicId"], part["partition"]] for part in topic["partitions"]} == {line.broker}
            assert re.match(rf"10\.0\.0\.{line.broker + 1}:", line.connection)


def test_a_process_asks_for_metadata_when_it_starts():
    first: dict[str, Line] = {}
    for line in busy():
        first.setdefault(line.process, line)
    started = {line.process for line in busy() if line.api == "JOIN_GROUP" and not line.request["memberId"]}
    new = [line for process, line in first.items() if process in started and line.api in {"METADATA", "FIND_COORDINATOR", "JOIN_GROUP"}]
    assert len(new) > 30
    assert {line.api for line in new} == {"METADATA"}


def test_groups_that_settled_fetch_each_partition_once():
    cluster = Cluster(replace(BUSY, groups=10), release="4.2.0", brokers=BROKERS, start_ms=0, seed=4)
    for _ in cluster.advance(60_000):
        cluster.book.take()
    assert cluster.book.rebalances > 20
    cluster._size = replace(BUSY, rebalances=0.0)
    for _ in cluster.advance(300_000):
        cluster.book.take()
    assert not any(group.busy for group in cluster.groups)  # what is simulated request by request costs more, and must come to an end
    assert {len(group.members) for group in cluster.groups} == {4}
    lines = read([one for _ in cluster.advance(301_500) for one in cluster.book.take()])
    for group in cluster.groups:
        hosts = {member.host for member in group.members}
        got = Counter(
            (number, line.process)
            for of_one in by_connection(line for line in fetches(lines) if line.process in hosts).values()
            for line in of_one[-1:]
            for number in line.told().keys() | line.asked().keys()
        )
        owners = {(number, member.host) for member in group.members for number in member.partitions}
        assert got.keys() <= owners
        fetched = {place for member in group.members for session in member.sessions for place in session.partitions}
        assert fetched == set(range(group.partitions))


def test_size_f_is_m_with_commits_and_fetches():
    assert replace(SIZES["F"], commits=False, fetches=False) == SIZES["M"]
    assert SIZES["F"].text() == "2,000 groups of 25 members, with commits and fetches"
    assert SIZES["Z"].text() == "5,000 groups of 1 to 2,000 members (Zipf), with commits"
