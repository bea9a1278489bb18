"""The plain reading of raw lines: what it finds, and that a wrong column does not pass."""

from __future__ import annotations

import base64
import json

import pytest

from scripts.truth import second_opinion

COORDINATOR = """\
[2026-11-21 06:00:00,000] INFO [GroupCoordinator 1]: Preparing to rebalance group orders in state PreparingRebalance with old generation 0 (__consumer_offsets-3) (reason: Adding new member a) (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:00:03,000] INFO [GroupCoordinator 1]: Stabilized group orders generation 1 (__consumer_offsets-3) with 2 members (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:00:03,010] INFO [GroupCoordinator 1]: Assignment received from leader a for group orders for generation 1. The group has 2 members, 0 of which are static. (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:01:00,000] INFO [GroupCoordinator 1]: Preparing to rebalance group orders in state PreparingRebalance with old generation 1 (__consumer_offsets-3) (reason: Removing member b on LeaveGroup) (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:01:02,000] INFO [GroupCoordinator 1]: Stabilized group orders generation 2 (__consumer_offsets-3) with 1 members (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:01:02,005] INFO [GroupCoordinator 1]: Assignment received from leader a for group orders for generation 2. The group has 1 members, 0 of which are static. (kafka.coordinator.group.GroupCoordinator)
"""  # noqa: E501 - lines of a log


def line(at, api, request, response):
    body = {
        "requestHeader": {"requestApiKeyName": api},
        "request": {"groupId": "orders", **request},
        "response": {"errorCode": 0, **response},
    }
    return f"[2026-11-21 {at}] DEBUG Completed request:{json.dumps(body, separators=(',', ':'))} (kafka.request.logger)\n"


def joined(at, generation, *members):
    listed = [{"memberId": member, "groupInstanceId": None} for member in members]
    return line(at, "JOIN_GROUP", {}, {"generationId": generation, "leader": "a", "protocolName": "range", "members": listed})


def synced(at, generation, **numbers):
    def encoded(of_member):
        partitions = b"".join(number.to_bytes(4, "big") for number in of_member)
        topic = b"\0\6clicks" + len(of_member).to_bytes(4, "big") + partitions
        return base64.b64encode(b"\0\1" + (1).to_bytes(4, "big") + topic + b"\xff\xff\xff\xff").decode()

    assignments = [{"memberId": member, "assignment": encoded(of_member)} for member, of_member in numbers.items()]
    return line(at, "SYNC_GROUP", {"generationId": generation, "memberId": "a", "assignments": assignments}, {"assignment": ""})


@pytest.fixture
def found(tmp_path):
    broker = tmp_path / "broker-1"
    broker.mkdir()
    (broker / "server.log").write_text(COORDINATOR)
    (broker / "kafka-request.log").write_text(
        joined("06:00:03,001", 1, "a", "b")
        + synced("06:00:03,011", 1, a=[0, 1], b=[2])
        + joined("06:01:02,001", 2, "a")
        + synced("06:01:02,006", 2, a=[0, 1, 2])
    )
    return second_opinion.generations(tmp_path, "UTC")


def told(made, **columns):
    """A row of `rebalances` that agrees with the lines, but for these columns."""
    names = {"group_id": made.group, "generation": made.number, "joined_unnamed": 0, "left_unnamed": 0}
    return names | second_opinion.expected(made) | columns


def test_what_it_reads_of_a_departure(found):
    values = second_opinion.expected(found[1])
    assert (values["join_ms"], values["sync_ms"], values["total_ms"], values["outcome"]) == (2_000, 5, 2_005, "COMPLETED")
    assert (values["members_before"], values["members_after"], values["joined"], values["left"]) == (2, 1, [], ["b"])
    assert (values["partitions"], values["partitions_moved"], values["leader_id"], values["protocol"]) == (3, 1, "a", "range")


def test_rows_that_agree(found):
    opinion = second_opinion.compare(found, [told(made) for made in found], exact=True)
    assert opinion.differences == []
    assert opinion.checked["rebalance"] == 2
    assert opinion.checked["partitions_moved"] == 2


@pytest.mark.parametrize(
    ("column", "value"),
    [("left", []), ("members_before", 3), ("partitions_moved", 0), ("join_ms", 1_999), ("outcome", "SUPERSEDED"), ("left_unnamed", 1)],
)
def test_each_wrong_column_is_named(found, column, value):
    opinion = second_opinion.compare(found, [told(found[0]), told(found[1], **{column: value})], exact=True)
    assert [difference.split(" is ")[0] for difference in opinion.differences] == [
        f"orders generation 2: {column.removesuffix('_unnamed')}"
    ]


def test_a_column_that_the_evidence_does_not_show_is_not_compared(found):
    opinion = second_opinion.compare(found, [told(found[0]), told(found[1], partitions=None)], exact=True)
    assert (opinion.differences, opinion.checked["partitions"]) == ([], 1)


def test_a_rebalance_without_a_row(found):
    assert second_opinion.compare(found, [told(found[0])], exact=True).differences == ["orders generation 2: no row"]
