"""Why a rebalance began, where the coordinator's word or the first JoinGroup is not the whole answer."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import MemberEntry
from tests.diagnosis.narrated import (
    BOTH,
    LOG,
    REQUESTS,
    Group,
    causes,
    ends,
    finding,
    findings,
    in_any_evidence,
    where_requests_are_seen,
    where_the_log_is_seen,
)
from tests.tracker.story import table

KEPT = {"a": ("orders-0", "orders-2", "orders-4"), "b": ("orders-1", "orders-3", "orders-5")}


def pair() -> Group:
    """a leads, b follows, three partitions each."""
    return Group("a", "b").live(60_000)


# a member that comes back by itself


@where_requests_are_seen
@pytest.mark.parametrize("client", ["a", "b"])
def test_a_member_that_asks_for_other_topics_changed_its_subscription(evidence, client):
    rows = pair().rejoins(client, topics=("audit", "orders")).live(90_000).seen(evidence)
    (row,) = table(rows, "rebalances")[1:]
    assert (row["cause"], row["client_id"]) == ("SUBSCRIPTION_CHANGED", client)


@pytest.mark.parametrize(("client", "cause"), [("a", "LEADER_REJOINED"), ("b", "MEMBER_REJOINED")])
def test_the_coordinator_log_does_not_show_topics(client, cause):
    assert causes(pair().rejoins(client, topics=("audit", "orders")).live(90_000).seen(LOG)) == [cause]


@where_requests_are_seen
@pytest.mark.parametrize(("client", "cause"), [("a", "LEADER_REJOINED"), ("b", "MEMBER_REJOINED")])
def test_a_member_that_comes_back_with_all_as_it_was_has_its_reasons(evidence, client, cause):
    assert causes(pair().rejoins(client).live(90_000).seen(evidence)) == [cause]


@where_requests_are_seen
def test_a_leader_that_comes_back_and_gives_away_new_partitions_saw_the_topic_grow(evidence):
    grown = {client: (*partitions, f"orders-{6 + number}") for number, (client, partitions) in enumerate(KEPT.items())}
    assert causes(pair().rejoins("a", gives=grown).live(90_000).seen(evidence)) == ["METADATA_CHANGED"]


@where_requests_are_seen
def test_partitions_of_a_topic_that_nobody_had_are_no_growth(evidence):
    other = {**KEPT, "a": (*KEPT["a"], "audit-0")}
    assert causes(pair().rejoins("a", gives=other).live(90_000).seen(evidence)) == ["LEADER_REJOINED"]


@in_any_evidence
@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("subscription has changed from [orders] to [audit] at the beginning of the rebalance", "SUBSCRIPTION_CHANGED"),
        ("cached metadata has changed from (version1: {orders=6}) at the beginning of the rebalance to (...)", "METADATA_CHANGED"),
        ("need to revoke partitions and re-join", "REVOCATION_FOLLOW_UP"),
        ("rebalance enforced by user", "MEMBER_REJOINED"),
        ("triggered followup rebalance scheduled for 0", "REVOCATION_FOLLOW_UP"),
        ("triggered followup rebalance scheduled for 1795682338361", "PROBING_REBALANCE"),
        ("new price list", "MEMBER_REJOINED"),
    ],
)
def test_a_client_says_in_its_own_words_why_it_comes_back(evidence, words, cause):
    assert causes(pair().rejoins("a", words).live(90_000).seen(evidence)) == [cause]


@where_requests_are_seen
def test_words_count_before_what_was_asked_for(evidence):
    rows = pair().rejoins("a", "new price list", topics=("audit", "orders")).live(90_000).seen(evidence)
    assert causes(rows) == ["MEMBER_REJOINED"]


# cooperative rounds


def cooperative_join(pause_ms: int) -> Group:
    """c comes; b is to give up a partition for it, and joins again when it has."""
    group = pair()
    group["a"].owned, group["b"].owned = KEPT["a"], KEPT["b"]
    group.comes("c", gives={"a": KEPT["a"], "b": KEPT["b"][:2], "c": ()})
    group["b"].owned = KEPT["b"][:2]
    group.live(group.now + pause_ms)
    return group.rejoins("b", gives={"a": KEPT["a"], "b": KEPT["b"][:2], "c": KEPT["b"][2:]}).live(120_000)


@where_requests_are_seen
@pytest.mark.parametrize("pause_ms", [300, 9_900, 25_000])
def test_who_gave_up_partitions_joins_again_so_that_others_can_have_them(evidence, pause_ms):
    """However long its application takes to let go of them."""
    assert causes(cooperative_join(pause_ms).seen(evidence)) == ["MEMBER_JOINED", "REVOCATION_FOLLOW_UP"]


@where_requests_are_seen
def test_a_round_that_took_nothing_from_anybody_has_no_second_one(evidence):
    group = pair()
    group["a"].owned, group["b"].owned = KEPT["a"], KEPT["b"]
    group.comes("c", gives={**KEPT, "c": ()}).live(group.now + 300)
    assert causes(group.rejoins("b", gives={**KEPT, "c": ()}).live(90_000).seen(evidence)) == ["MEMBER_JOINED", "MEMBER_REJOINED"]


# who goes


@in_any_evidence
def test_a_static_member_that_leaves_was_removed_by_an_administrator(evidence):
    rows = Group("a", "b", "c", static=True).live(60_000).removed_by_admin("c").live(90_000).seen(evidence)
    assert (causes(rows), findings(rows)) == (["ADMIN_REMOVED"], [])
    assert [end for _, end in ends(rows)] == ["ADMIN_REMOVED"]


@where_requests_are_seen
def test_the_request_that_shows_who_asked_an_administrator_is_evidence(evidence):
    group = Group("a", "b", "c", static=True).live(60_000).removed_by_admin("c").live(90_000)
    told = next(row for row in table(group.seen(evidence), "rebalances") if row["cause"] == "ADMIN_REMOVED")
    askers = {(event.origin, event.position): event.client_id for event in group.events if event.kind == kinds.LEAVE_GROUP}
    assert [askers[line] for ref in json.loads(told["evidence"]) if (line := (ref["origin"], ref["position"])) in askers] == [
        "adminclient-1"
    ]


@where_the_log_is_seen
def test_so_was_one_that_is_removed_by_its_member_id_without_a_word(evidence):
    """A static member does not leave by itself (KIP-345)."""
    group = Group("a", "b", static=True).comes("c", instance="i-c").live(60_000)
    assert causes(group.leaves("c").live(90_000).seen(evidence))[-1] == "ADMIN_REMOVED"


@in_any_evidence
def test_a_dynamic_member_that_leaves_without_a_word_left(evidence):
    assert causes(pair().leaves("b").live(120_000).seen(evidence)) == ["MEMBER_LEFT"]


@where_requests_are_seen
def test_a_static_member_that_says_that_it_closes_was_not_removed(evidence):
    """KafkaConsumer.close(LEAVE_GROUP), 4.1 and later."""
    group = Group("a", "b", "c", static=True).live(60_000)
    assert causes(group.leaves("c", "the consumer is being closed").live(90_000).seen(evidence)) == ["MEMBER_LEFT"]


# a member that does not sync


def never_syncs(client: str, late_ms: int = 0) -> Group:
    """c comes at 60 s; all join generation 2, and then this one does not send SyncGroup: after 30 s the coordinator removes it.

    If it leads, everybody waits for it, and is then sent back to join.
    """
    group = Group("a", "b", session_ms=45_000).live(60_000).comes("c", syncs=False)
    joined = group.now
    due = joined + 30_000 + late_ms
    gone = group[client]
    if gone.member == group.leader:
        for member in group.running():
            if member is not gone:
                group.at(due).request(
                    kinds.SYNC_GROUP, member.member, took=29_990, generation=2, error_code=Error.REBALANCE_IN_PROGRESS, **member.who()
                )
    else:
        group.assigns(without=client)
        group.dies(client).live(due)
    del group.consumers[client]
    group.is_at(due).log(kinds.MEMBERS_NOT_SYNCED, members=(MemberEntry(gone.member, "", 0, "", None),))
    return group.rebalance(f"Removing [{gone.member}] on pending sync request expiration", gone).live(150_000)


@where_the_log_is_seen
@pytest.mark.parametrize("client", ["a", "c"])
def test_a_member_that_joins_and_does_not_sync_is_told(evidence, client):
    rows = never_syncs(client).seen(evidence)
    assert findings(rows) == [("SYNC_TIMEOUT", client)]
    assert causes(rows) == ["MEMBER_JOINED", "SYNC_TIMEOUT"]
    assert (client, "SYNC_TIMEOUT") in ends(rows)


def test_a_sync_that_comes_late_shows_how_long_the_assignment_took():
    """From the end of the join phase: the timer with which the coordinator removes a member may be late."""
    group = never_syncs("a", late_ms=9)
    removed = finding(group.seen(BOTH), "SYNC_TIMEOUT")
    group.is_at(removed["occurred_at"] + 10_000).request(
        kinds.SYNC_GROUP, removed["member_id"], took=0, generation=2, error_code=Error.UNKNOWN_MEMBER_ID, client_id="a"
    )
    message = finding(group.is_at(150_000).seen(BOTH), "UNKNOWN_MEMBER")["message"]
    assert "(SYNC_TIMEOUT). It came 40 s after the join phase: " in message
    assert message.endswith("to allow that, raise max.poll.interval.ms (now 30 s) above 40.1 s.")


def test_a_leader_that_does_not_sync_is_seen_in_the_requests_of_those_who_waited():
    rows = never_syncs("a").seen(REQUESTS)
    assert findings(rows) == [("SYNC_TIMEOUT", "a")]
    assert causes(rows) == ["MEMBER_JOINED", "SYNC_TIMEOUT"]
    assert ("a", "SYNC_TIMEOUT") in ends(rows)
