"""Lines about groups of other types than `consumer`: a Connect cluster, a schema registry, a share group and a streams group (4.2.0).

The requests were made with Kafka's own classes and sent to a real broker, whose lines these are (tests/data/group-types).
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.rows import Row
from jobs.laws.laws import breaches
from jobs.parsing import coordinator_log, request_log
from jobs.parsing.consumer_protocol import subscription
from tests.tracker.consumer.consumer_story import ConsumerStory, told

LOGGED = (
    "[2026-11-26 08:40:56,576] INFO [GroupCoordinator id=2 topic=__consumer_offsets partition=38] [GroupId flow][MemberId a-1] {} "
    "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
)
DATA = Path(__file__).parents[2] / "data" / "group-types"
SHARE, FLOW, CONNECT, REGISTRY, ORDERS = "share-inbox", "flow", "connect-cluster", "schema-registry", "orders-app"
FIELDS = ("rebalance_timeout_ms", "group_id", "member_id", "generation", "reason", "state", "protocol_type", "member_count")
FIRST, SECOND = "M6DVZubwTUGK_FxoiRQ72A", "r1D-YtDPQNqal-zHf1B00g"
DAY_MS = 1_800_000_000_000


def lines(name: str) -> list[str]:
    return (DATA / name).read_text(encoding="utf-8").splitlines()


def at_us(line: str) -> int:
    hours, minutes, seconds = line[12:24].replace(",", ".").split(":")
    return DAY_MS * 1_000 + round((int(hours) * 3_600 + int(minutes) * 60 + float(seconds)) * 1_000_000)


@cache
def parsed() -> list[tuple[str, int, dict[str, Any]]]:
    """File, number and columns of each line."""
    readers = {"server.log": coordinator_log.row, "debug.log": coordinator_log.row, "kafka-request.log": request_log.row}
    return [
        (name, n, read(line, at_us(line)) | {"at": at_us(line)}) for name, read in readers.items() for n, line in enumerate(lines(name), 1)
    ]


def rows(group: str) -> list[Row]:
    """What the tracker makes of the coordinator's log."""
    logged = [(number, columns) for name, number, columns in parsed() if name != "kafka-request.log" and columns["group_id"] == group]
    events = []
    for number, columns in logged:
        at_ms = columns["at"] // 1_000
        named = {field: columns[field] for field in FIELDS if columns.get(field) is not None}
        events.append(Event("b", "coordinator", "server.log", number, at_ms, at_ms, columns["kind"], **named))
    last_ms = max(event.at_ms for event in events) + 60_000
    return Shard().observe([*events, *(Event("b", "clock", "", 0, last_ms, last_ms, kind) for kind in (kinds.CLOCK, kinds.END))])


def of(table: str, group: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values[column] for column in columns) for row in rows(group) if row.table == table]


def test_no_line_is_damage_and_heartbeats_of_other_groups_that_only_go_on_are_passed_over():
    assert {columns["verdict"] for _, _, columns in parsed()} == {"event", "skipped"}
    skipped = [lines(name)[number - 1] for name, number, columns in parsed() if columns["verdict"] == "skipped"]
    assert len(skipped) == 24
    assert all('"requestApiKeyName":"S' in line or '"requestApiKeyName":"INITIALIZE_SHARE' in line for line in skipped)


def test_classic_groups_name_their_protocol_type_and_their_bytes_are_not_decoded():
    joins = {(c["group_id"], c["protocol_type"]) for _, _, c in parsed() if c.get("kind") == kinds.JOIN_GROUP}
    assert joins == {(CONNECT, "connect"), (REGISTRY, "sr")}
    assert subscription(b"http://worker:8083", "connect") == (None, None)


def test_a_connect_cluster_is_followed_like_any_classic_group():
    told = of("rebalances", CONNECT, "generation", "cause", "outcome", "group_protocol")
    assert told == [(1, "MEMBER_JOINED", "COMPLETED", "classic"), (2, "POLL_TIMEOUT", "EMPTIED", "classic")]


def test_a_share_group_is_told_as_one_with_the_members_that_come_and_go():
    assert {protocol for (protocol,) in of("rebalances", SHARE, "group_protocol")} == {"share"}
    rounds = of("rebalance_rounds", SHARE, "epoch", "cause")
    assert rounds == [
        (1, "MEMBER_JOINED"), (2, "UNKNOWN"), (3, "MEMBER_JOINED"), (4, "MEMBER_LEFT"), (5, "UNKNOWN"), (6, "SESSION_TIMEOUT"),
    ]  # fmt: skip
    assert of("group_transitions", SHARE, "to_state") == [("Stable",), ("Empty",)]
    assert [kind for (kind,) in of("member_sessions", SHARE, "end_kind")] == ["LEFT", "SESSION_TIMEOUT"]
    ((code, advice),) = of("findings", SHARE, "code", "advice")
    assert code == "SESSION_TIMEOUT"
    assert "share.session.timeout.ms of the group" in advice


def test_a_streams_group_is_told_as_one_with_the_members_that_come_and_go():
    assert {protocol for (protocol,) in of("rebalances", FLOW, "group_protocol")} == {"streams"}
    rounds = of("rebalance_rounds", FLOW, "epoch", "cause")
    assert rounds == [(2, "MEMBER_JOINED"), (3, "MEMBER_JOINED"), (4, "MEMBER_LEFT"), (5, "SESSION_TIMEOUT")]
    assert [kind for (kind,) in of("member_sessions", FLOW, "end_kind")] == ["LEFT", "SESSION_TIMEOUT"]
    assert "streams.session.timeout.ms of the group" in of("findings", FLOW, "advice")[0][0]
    ends = of("rebalances", FLOW, "first_epoch", "generation", "end_seen", "partitions_moved")
    assert ends == [(2, 2, True, 0), (3, 4, True, 4), (5, 5, True, 0)]


def test_a_setting_of_a_streams_group_that_changed_is_the_cause_of_its_rebalance():
    line = "Assignment configurations changed to {num.standby.replicas=2}. Triggering rebalance."
    story = ConsumerStory().at(0).line(kinds.JOINED, "a-1", protocol_type=kinds.STREAMS).raised(2).computed(2).at(60_000)
    story.line(coordinator_log.row(LOGGED.format(line), 0)["state"], "a-1", protocol_type=kinds.STREAMS, reason=line)
    rows = story.raised(3).computed(3).rows(until=120_000)
    assert told(rows, "rebalances", "generation", "cause", "member_id")[-1] == (3, "GROUP_CONFIG_CHANGED", None)
    evidence = json.loads(told(rows, "rebalances", "evidence")[-1][0])
    assert len(evidence) == 3  # with the line that says so


def test_lines_at_debug_tell_as_much_of_a_consumer_group_as_its_requests():
    assert of("rebalance_rounds", ORDERS, "epoch", "cause", "member_id") == [
        (1, "MEMBER_JOINED", FIRST), (2, "MEMBER_JOINED", SECOND), (3, "SUBSCRIPTION_CHANGED", SECOND), (4, "SUBSCRIPTION_CHANGED", SECOND),
        (5, "REGEX_RESOLVED", None), (6, "REBALANCE_TIMEOUT", SECOND), (7, "MEMBER_LEFT", FIRST),
    ]  # fmt: skip
    costs = of(
        "rebalances", ORDERS, "generation", "end_seen", "partitions", "partitions_moved", "unavailable_partition_ms", "slowest_member_id"
    )
    assert costs[:2] == [(1, True, 4, 0, 0, None), (2, True, 4, 2, 1_020, FIRST)]
    told = [json.loads(text) for (text,) in of("rebalance_rounds", ORDERS, "revocations")]
    assert [[(one["member_id"], one["partitions"], one["end"]) for one in entries] for entries in told] == [
        [], [(FIRST, 2, "ACKNOWLEDGED")], [(SECOND, 1, "REBALANCE_TIMEOUT")], [(SECOND, 1, "REBALANCE_TIMEOUT")], [], [], [],
    ]  # fmt: skip
    assert [code for (code,) in of("findings", ORDERS, "code")] == ["REBALANCE_TIMEOUT"]


@pytest.mark.parametrize("group", [SHARE, FLOW, CONNECT, REGISTRY, ORDERS])
def test_no_law_is_broken(group):
    tables = {}
    for row in rows(group):
        tables.setdefault(row.table, []).append(row.values)
    assert breaches(tables) == []
