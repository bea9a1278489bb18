"""A coordinator cannot write an assignment to __consumer_offsets: whose fault it is not, and what to look at."""

import json

from coordinator_model.errors import Error
from tests.diagnosis.narrated import Consumer, Group, causes, finding, findings, in_any_evidence

NOBODY = Consumer("", "", "")


def cannot_store(error: Error, logged: str, *, times: int, took: int = 3) -> Group:
    """d joins. The leader's assignment cannot be written, and all join again, so many times; then it can."""
    group = Group("a", "b", "c").live(60_000).comes("d", syncs=False)
    for number in range(times):
        given = {member.member: () for member in group.running()}
        group.at(group.now + took).sync(group.leader, group.generation, given, took=took, error_code=error, **group["a"].who())
        words = f"Error {logged} when storing group assignment during SyncGroup (member: {group.leader})"
        group.is_at(group.now + took).rebalance(words, NOBODY, syncs=number + 1 == times)
    return group.live(200_000)


@in_any_evidence
def test_a_record_that_is_too_large_is_told_once_however_often_it_is_tried(evidence):
    rows = cannot_store(Error.UNKNOWN_SERVER_ERROR, "UNKNOWN_SERVER_ERROR", times=5).seen(evidence)
    assert causes(rows) == ["MEMBER_JOINED", *["ASSIGNMENT_NOT_STORED"] * 5]
    assert findings(rows) == [("ASSIGNMENT_NOT_STORED", "")]
    told = finding(rows, "ASSIGNMENT_NOT_STORED")
    details = json.loads(told["details"])
    assert (details["rebalances"], details["errors"]) == (5, ["UNKNOWN_SERVER_ERROR"])
    assert "(UNKNOWN_SERVER_ERROR), so all members had to join again: 5 rebalances in " in told["message"]
    assert "max.message.bytes of __consumer_offsets" in told["advice"]


@in_any_evidence
def test_a_write_that_times_out_is_a_matter_of_the_replicas(evidence):
    """The Scala coordinator answers REBALANCE_IN_PROGRESS, after offsets.commit.timeout.ms."""
    rows = cannot_store(Error.REBALANCE_IN_PROGRESS, "REQUEST_TIMED_OUT", times=1, took=5_001).seen(evidence)
    told = finding(rows, "ASSIGNMENT_NOT_STORED")
    assert (json.loads(told["details"])["errors"], "min.insync.replicas" in told["advice"]) == (["REQUEST_TIMED_OUT"], True)
    assert "to join again: one rebalance." in told["message"]
