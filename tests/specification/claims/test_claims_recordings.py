"""Claims about clients and brokers, held against recordings of real ones: kafka-clients and brokers 3.9.1 and 4.2.0.

The ids are those of docs/claims.md. Only the Java client is asked, unless a test says otherwise: the claims are about it. What
is not on the wire is looked up in Kafka's own class files.
"""

import gzip
import json
import re
import zipfile
from collections import defaultdict
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.hash_maps import string_hash
from coordinator_model.specification.partition import coordinator_partition
from jobs.common.places import jar_dir

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
BOTH = pytest.mark.parametrize("recording", ["kafka-3.9.1", "kafka-4.2.0"])
JAVA = "apache-kafka-java"
OF_INTEREST = re.compile(r'"requestApiKeyName":"(?:[A-Z_]*GROUP|HEARTBEAT|FIND_COORDINATOR|OFFSET_(?:COMMIT|FETCH)|FETCH)"')
UNTOUCHED = ("hotel-index-1", "hotel-index-2", "hotel-index-3")  # of 3.9.1: defaults, and nothing happened to them


class Seen(NamedTuple):
    """One request in the log of a broker, with its answer."""

    answered_ms: int  # within the day
    took_ms: float
    broker: int
    api: str
    version: int
    client: str
    connection: str
    software: str
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def error(self):
        return self.response.get("errorCode")

    @property
    def member(self):
        return self.request.get("memberId")


@lru_cache
def log(recording):
    """All requests of a recording but those of metadata and producers, in the order of their answers."""
    seen = []
    for path in sorted((RECORDINGS / recording).glob("broker-*/kafka-request.log.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            seen += [parsed(line, int(path.parent.name[-1])) for line in lines if OF_INTEREST.search(line)]
    return sorted(seen, key=lambda each: each.answered_ms)


def parsed(line, broker):
    time, _, rest = line[1:].partition("] ")
    entry = json.loads(rest[rest.index("{") : rest.rindex("}") + 1])
    header = entry["requestHeader"]
    hours, minutes, seconds = time[11:].replace(",", ".").split(":")
    return Seen(
        round((int(hours) * 60 + int(minutes)) * 60_000 + float(seconds) * 1_000),
        entry["totalTimeMs"],
        broker,
        header["requestApiKeyName"],
        header["requestApiVersion"],
        header["clientId"],
        entry["connection"],
        entry["clientInformation"]["softwareName"],
        entry["request"],
        entry["response"],
    )


def java(recording, *apis):
    return [each for each in log(recording) if each.software == JAVA and each.api in apis]


def on_connections(requests):
    """The requests by connection. The coordinator answers those of one connection in their order."""
    lines = defaultdict(list)
    for each in requests:
        lines[each.broker, each.connection].append(each)
    return lines.values()


def rejoins(recording, api, error):
    """What clients that were answered `error` send as their next JoinGroup, as (old member id, new member id)."""
    pairs = []
    for requests in on_connections(java(recording, api, "JOIN_GROUP")):
        for index, each in enumerate(requests):
            joins = [later.member for later in requests[index + 1 :] if later.api == "JOIN_GROUP"]
            if each.api == api and each.error == error.value and joins:
                pairs.append((each.member, joins[0]))
    return pairs


# Finding the coordinator.


def lookups(recording):
    """By group: which brokers answered lookups, and which they named."""
    answered, named = defaultdict(set), defaultdict(set)
    for each in java(recording, "FIND_COORDINATOR"):
        for found in each.response["coordinators"]:
            if found["errorCode"] == 0:
                answered[found["key"]].add(each.broker)
                named[found["key"]].add(found["nodeId"])
    return answered, named


@BOTH
@pytest.mark.claims("B02")
def test_any_broker_says_who_the_coordinator_is(recording):
    answered, named = lookups(recording)
    settled = [group for group, nodes in named.items() if len(nodes) == 1]  # the coordinator did not move
    assert len(settled) >= 8
    assert {len(named[group]) for group in settled} == {1}
    assert sum(answered[group] > named[group] for group in settled) >= 7  # others answered too, and named the same one


@BOTH
@pytest.mark.claims("B02")
def test_the_coordinator_has_a_connection_of_its_own(recording):
    # To the client it is a node of its own (its id is 2^31 - 1 - the broker's), even if it also fetches from that broker.
    group = defaultdict(set)
    fetch = defaultdict(set)
    for each in java(recording, "HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_COMMIT"):
        group[each.client, each.broker].add(each.connection)
    for each in java(recording, "FETCH"):
        fetch[each.client, each.broker].add(each.connection)
    both = group.keys() & fetch.keys()
    assert len(both) >= 7
    assert not any(group[client] & fetch[client] for client in both)


@BOTH
@pytest.mark.claims("B01")
def test_the_coordinator_is_who_leads_the_partition_of_the_hash(recording):
    leads = defaultdict(set)
    elected = re.compile(
        r"Elected as the group coordinator for partition (\d+) |Scheduling loading of metadata from __consumer_offsets-(\d+) "
    )
    for path in (RECORDINGS / recording).glob("broker-*/server.log.gz"):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for match in filter(None, map(elected.search, lines)):
                leads[int(match[1] or match[2])].add(int(path.parent.name[-1]))
    assert len(leads) == 50
    groups = {each.request["groupId"]: each.broker for each in log(recording) if each.api == "HEARTBEAT" and each.error == 0}
    assert len(groups) > 15
    assert [group for group, broker in groups.items() if broker not in leads[coordinator_partition(group)]] == []
    # In 3.9.1 each of the two brokers led every partition once; in 4.2.0 a rule that only cuts off the sign shows.
    wrong = [group for group, broker in groups.items() if broker not in leads[(string_hash(group) & 0x7FFFFFFF) % 50]]
    assert bool(wrong) is (recording == "kafka-4.2.0")


@BOTH
@pytest.mark.claims("A40")
def test_a_member_that_is_sent_away_looks_for_the_coordinator_and_goes_on(recording):
    # NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE: it gives the connection up and asks. What it sends on a new one, and is
    # answered well, is a heartbeat of the same id and generation.
    sent_away = [each for each in java(recording, "HEARTBEAT") if each.error in (15, 16)]
    assert len(sent_away) >= 8
    for each in sent_away:
        later = [other for other in java(recording, "FIND_COORDINATOR", "JOIN_GROUP", "HEARTBEAT") if other.client == each.client]
        later = [other for other in later if other.answered_ms > each.answered_ms]
        good = next(other for other in later if other.error == 0 and other.connection != each.connection)
        assert (good.api, good.member, good.request["generationId"]) == ("HEARTBEAT", each.member, each.request["generationId"])
        assert "FIND_COORDINATOR" in {other.api for other in later[: later.index(good)]}


# Joining.


@pytest.mark.claims("B21", "B16", "C15")
@pytest.mark.parametrize("client", UNTOUCHED)
def test_what_a_consumer_asks_for_in_which_order(client):
    first = {}
    for each in java("kafka-3.9.1", "FIND_COORDINATOR", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_FETCH", "HEARTBEAT", "FETCH"):
        if each.client == client and (each.api != "FETCH" or each.error == 0):
            first.setdefault(each.api, each.answered_ms - each.took_ms)
    coordination = ["FIND_COORDINATOR", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_FETCH", "HEARTBEAT"]
    assert [api for api in sorted(first, key=first.__getitem__) if api in coordination] == coordination
    # Of the fetches only a sample was kept, but none is from before the assignment.
    assert first["FETCH"] > first["OFFSET_FETCH"]


@BOTH
@pytest.mark.claims("A38", "K19", "B10")
def test_a_dynamic_member_joins_in_two_steps(recording):
    handed_out = 0
    for requests in on_connections(java(recording, "JOIN_GROUP")):
        for first, second in pairwise(requests):
            if first.error == Error.MEMBER_ID_REQUIRED.value:
                assert (first.member, first.request["groupInstanceId"], first.version) == ("", None, 9)
                assert second.member == first.response["memberId"]
                handed_out += 1
    assert handed_out >= 20
    # Static members are let in at once.
    static = [each for each in java(recording, "JOIN_GROUP") if each.request["groupInstanceId"] and not each.member]
    assert {each.error for each in static} == {0}


@BOTH
@pytest.mark.claims("C16", "C19", "B12", "B13", "C20")
def test_who_is_told_what_and_who_assigns(recording):
    leaders = {}
    for each in log(recording):
        if each.api == "JOIN_GROUP":
            assert all(protocol["metadata"] for protocol in each.request["protocols"])
            if each.error == 0 and not each.response.get("skipAssignment"):
                leads = each.response["memberId"] == each.response["leader"]
                assert bool(each.response["members"]) is leads
                leaders[each.request["groupId"], each.response["generationId"]] = each.response["leader"]
    syncs = java(recording, "SYNC_GROUP")
    assert len(syncs) > 60
    for each in syncs:
        leads = leaders[each.request["groupId"], each.request["generationId"]] == each.member
        assert bool(each.request["assignments"]) is leads


@BOTH
@pytest.mark.claims("C07", "C18", "B11")
def test_the_first_to_join_leads_the_first_generation(recording):
    rows = [json.loads(line) for line in (RECORDINGS / recording / "rebalances.jsonl").read_text(encoding="utf-8").splitlines()]
    first = [row for row in rows if row["protocol"] == "classic" and row["generation"] == 1]
    assert len(first) > 10
    assert all(f"Adding new member {row['leader']} " in row["reason_text"] for row in first)


# Heartbeats.


@BOTH
@pytest.mark.claims("A07")
def test_what_a_heartbeat_carries(recording):
    beats = [each.request for each in java(recording, "HEARTBEAT")]
    assert {tuple(sorted(request)) for request in beats} == {("generationId", "groupId", "groupInstanceId", "memberId")}
    members = {request["memberId"]: request["groupInstanceId"] for request in beats}
    static = {member: instance for member, instance in members.items() if instance}
    assert 0 < len(static) < len(members)
    assert all(member for member in members)


@pytest.mark.claims("A10", "B09", "K04", "K06")
@pytest.mark.parametrize("client", UNTOUCHED)
def test_the_defaults_on_the_wire(client):
    requests = [each for each in java("kafka-3.9.1", "JOIN_GROUP", "HEARTBEAT") if each.client == client]
    joins = {(each.request["sessionTimeoutMs"], each.request["rebalanceTimeoutMs"]) for each in requests if each.api == "JOIN_GROUP"}
    assert joins == {(45_000, 300_000)}
    beats = [each.answered_ms for each in requests if each.api == "HEARTBEAT"]
    assert sum(abs(later - earlier - 3_000) <= 50 for earlier, later in pairwise(beats)) >= len(beats) - 5  # a broker was killed


def first_heartbeats(recording, software):
    """How long after the answers to JoinGroup and SyncGroup each first heartbeat came, and the interval after it."""
    requests = [each for each in log(recording) if each.software == software and each.api in ("JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT")]
    for line in on_connections(requests):
        for join, sync, first, second in zip(line, line[1:], line[2:], line[3:], strict=False):
            if [each.api for each in (join, sync, first, second)] == ["JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "HEARTBEAT"]:
                came, came_next = (each.answered_ms - each.took_ms for each in (first, second))
                if join.error == sync.error == 0 and sync.took_ms < 1_000:
                    yield came - join.answered_ms, came - sync.answered_ms, came_next - came


@BOTH
@pytest.mark.claims("A04", "K02", "K04")
def test_the_first_heartbeat_comes_one_interval_after_the_answer_to_join_group(recording):
    # Never earlier, so that it is not counted from the answer to SyncGroup shows where that took some time.
    firsts = list(first_heartbeats(recording, JAVA))
    assert len(firsts) > 50
    assert [after_join for after_join, _, interval in firsts if not -10 < after_join - round(interval, -2) < 100] == []
    assert sum(after_sync < round(interval, -2) - 10 for _, after_sync, interval in firsts) >= 5
    # librdkafka begins right after the assignment. Who rejoins goes on as before.
    others = list(first_heartbeats(recording, "confluent-kafka-python"))
    assert len(others) > 20
    assert sum(after_sync < 30 for _, after_sync, _ in others) > len(others) / 3


@BOTH
@pytest.mark.claims("A04", "A46", "B21", "K02", "K04")
def test_heartbeats_go_out_while_a_member_waits_for_its_assignment(recording):
    # The leader took too long, so this SyncGroup took 9 s. What the member sent meanwhile comes on the same connection, behind
    # it: three or four heartbeats of the generation that has no assignment, handled within a few milliseconds.
    slow = 0
    for requests in on_connections(java(recording, "SYNC_GROUP", "HEARTBEAT")):
        for index, each in enumerate(requests):
            if each.api == "SYNC_GROUP" and each.took_ms > 8_000:
                behind = [
                    other for other in requests[index + 1 :] if other.answered_ms - each.answered_ms < 20 and other.api == "HEARTBEAT"
                ]
                assert 3 <= len(behind) <= 4
                assert {other.request["generationId"] for other in behind} == {each.request["generationId"]}
                slow += 1
    assert slow >= 2


@BOTH
@pytest.mark.claims("A41", "C04", "K11", "K20")
def test_who_hears_of_a_rebalance_rejoins_with_its_id(recording):
    for api in ("HEARTBEAT", "SYNC_GROUP"):
        pairs = rejoins(recording, api, Error.REBALANCE_IN_PROGRESS)
        assert len(pairs) >= 2
        assert [(old, new) for old, new in pairs if old != new] == []


@BOTH
@pytest.mark.claims("A43", "K13")
def test_who_is_unknown_rejoins_without_its_id(recording):
    pairs = rejoins(recording, "HEARTBEAT", Error.UNKNOWN_MEMBER_ID) + rejoins(recording, "SYNC_GROUP", Error.UNKNOWN_MEMBER_ID)
    assert len(pairs) >= 2
    assert {new for _, new in pairs} == {""}


@pytest.mark.claims("A44", "A06", "K14")
def test_a_fenced_consumer_sends_nothing_any_more():
    requests = java("kafka-3.9.1", "HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP", "LEAVE_GROUP", "OFFSET_COMMIT")
    fenced = [line for line in on_connections(requests) if Error.FENCED_INSTANCE_ID.value in {each.error for each in line}]
    assert len(fenced) == 1
    assert fenced[0][-1].error == Error.FENCED_INSTANCE_ID.value


# Leaving.


@BOTH
@pytest.mark.claims("A09", "A13", "A14", "K07")
def test_a_consumer_that_does_not_poll_leaves_once_and_comes_back_as_somebody_else(recording):
    stuck = [
        each for each in java(recording, "LEAVE_GROUP") if each.request["members"][0].get("reason") == "consumer poll timeout has expired."
    ]
    left = [each.request["members"][0]["memberId"] for each in stuck]
    assert len(left) == len(set(left)) == 4  # once each, also where the answer was that nobody knows the member
    assert {each.response["members"][0]["errorCode"] for each in stuck} == {0, Error.UNKNOWN_MEMBER_ID.value}
    for each, member in zip(stuck, left, strict=True):
        later = [other for other in java(recording, "HEARTBEAT", "JOIN_GROUP") if other.client == each.client]
        later = [other for other in later if other.answered_ms > each.answered_ms]
        assert [other for other in later if other.member == member] == []
        assert (later[0].api, later[0].member) == ("JOIN_GROUP", "")


@BOTH
@pytest.mark.claims("A11", "A12", "K08")
def test_static_members_do_not_say_that_they_leave(recording):
    entries = [(each.client, entry) for each in java(recording, "LEAVE_GROUP") for entry in each.request["members"]]
    named = [(client, entry["memberId"]) for client, entry in entries if entry["groupInstanceId"]]
    assert named == [("ops-admin", "")]  # an administrator removed one
    static = {each.response["memberId"] for each in log(recording) if each.api == "JOIN_GROUP" and each.request.get("groupInstanceId")}
    assert len(static) > 3
    assert not static & {entry["memberId"] for _, entry in entries}


# Offsets.


@BOTH
@pytest.mark.claims("B17")
def test_commits_go_to_the_coordinator(recording):
    _, named = lookups(recording)
    accepted = 0
    for each in java(recording, "OFFSET_COMMIT"):
        errors = {partition["errorCode"] for topic in each.response["topics"] for partition in topic["partitions"]}
        if errors == {0}:
            assert each.broker in named[each.request["groupId"]]
            accepted += 1
    assert accepted > 900
    if recording == "kafka-3.9.1":  # auto commit, at its default of 5 s
        times = [each.answered_ms for each in java(recording, "OFFSET_COMMIT") if each.client == "hotel-index-1"]
        assert sum(abs(later - earlier - 5_000) <= 100 for earlier, later in pairwise(times)) >= 30


# The class files of the client that Spark brings along.


@pytest.mark.claims("A02")
def test_what_the_heartbeat_thread_is_called():
    jars = sorted(jar_dir().glob("kafka-clients-*.jar"))
    if not jars:
        pytest.skip("no JARs: `make` resolves them")
    with zipfile.ZipFile(jars[0]) as jar:
        thread = jar.read("org/apache/kafka/clients/consumer/internals/AbstractCoordinator$HeartbeatThread.class")
    # Constants of a class file: a byte 1, two bytes of length, the text. The group id is appended to the two.
    for text in (b"kafka-coordinator-heartbeat-thread", b" | "):
        assert b"\x01" + len(text).to_bytes(2, "big") + text in thread
