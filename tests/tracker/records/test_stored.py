"""Groups that records of __consumer_offsets and polls tell of, alone and beside a broker's own words."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from tests.tracker.records.record_story import SIX, A, B, C, RecordStory, joined_by_two, logged, rebalances, split
from tests.tracker.story import JOINED, START_MS, Story, table


def test_every_stored_generation_is_a_rebalance():
    first, second = rebalances(joined_by_two())
    assert (first["generation"], first["outcome"], first["cause"], first["member_id"]) == (1, "COMPLETED", "MEMBER_JOINED", A)
    assert (first["members_before"], first["members_after"], first["joined"]) == (0, 1, [A])
    assert (second["generation"], second["cause"], second["member_id"], second["client_id"]) == (2, "MEMBER_JOINED", B, "app")
    assert (second["client_host"], second["leader_id"], second["protocol"]) == ("10.0.0.9", A, "range")
    assert (second["members_before"], second["members_after"], second["joined"], second["left"]) == (1, 2, [B], [])
    assert (second["partitions"], second["partitions_moved"]) == (6, 3)


def test_its_end_is_known_and_its_start_is_not():
    _, second = rebalances(joined_by_two())
    assert (second["started_at"], second["joined_at"], second["ended_at"]) == (60_000, 60_000, 60_010)
    assert (second["join_ms"], second["sync_ms"], second["total_ms"]) == (None, 10, 10)
    assert second["unavailable_partition_ms"] is None


def test_the_states_follow_one_another():
    steps = [(t["from_state"], t["to_state"]) for t in table(joined_by_two().rows(), "group_transitions")]
    once = [("PreparingRebalance", "CompletingRebalance"), ("CompletingRebalance", "Stable")]
    assert steps == [("Empty", "PreparingRebalance"), *once, ("Stable", "PreparingRebalance"), *once]


def test_why_a_member_went_no_record_tells():
    story = joined_by_two()
    story.at(90_000).stored(3, split(A))
    last = rebalances(story)[-1]
    assert (last["cause"], last["member_id"], last["left"], last["joined"]) == ("UNKNOWN", None, [B], [])
    (session,) = table(story.rows(), "member_sessions")
    assert (session["member_id"], session["end_kind"], session["client_host"], session["joined_at"]) == (B, "UNKNOWN", "10.0.0.9", 60_000)
    assert table(story.rows(), "findings") == []


@pytest.mark.parametrize(
    "after",
    [
        (4, split(A, B, C)),  # a generation between them was not seen
        (3, split(B, C)),  # one came, one went
        (3, split(A, B)),  # nobody came
    ],
)
def test_what_is_not_certain_is_unknown(after):
    story = joined_by_two()
    story.at(90_000).stored(*after)
    last = rebalances(story)[-1]
    assert (last["generation"], last["cause"], last["member_id"]) == (after[0], "UNKNOWN", None)


def test_one_member_with_other_topics_changed_its_subscription():
    story = joined_by_two()
    story.at(90_000).stored(3, split(A, B), topics={B: ("orders", "refunds")})
    last = rebalances(story)[-1]
    assert (last["cause"], last["member_id"]) == ("SUBSCRIPTION_CHANGED", B)


def test_a_record_amid_the_life_of_a_group():
    story = RecordStory()
    story.at(0).stored(41, split(A, B))
    (only,) = rebalances(story)
    assert (only["generation"], only["cause"], only["members_before"], only["members_after"]) == (41, "UNKNOWN", None, 2)
    assert (only["joined"], only["left"], only["partitions"]) == ([], [], 6)


def test_a_group_that_empties_and_whose_offsets_expire():
    story = joined_by_two()
    story.at(90_000).stored(3, took=0)
    story.at(700_000).deleted()
    rows = story.rows()
    last = table(rows, "rebalances")[-1]
    assert (last["outcome"], last["generation"], last["members_after"], last["left"]) == ("EMPTIED", 3, 0, sorted([A, B]))
    assert {s["end_kind"] for s in table(rows, "member_sessions")} == {"UNKNOWN"}
    dead = table(rows, "group_transitions")[-1]
    assert (dead["occurred_at"], dead["from_state"], dead["to_state"], dead["trigger"]) == (700_000, "Empty", "Dead", "GROUP_REMOVED")


def test_a_group_that_comes_back_after_it_was_removed():
    story = joined_by_two()
    story.at(90_000).stored(3, took=0).at(100_000).deleted()
    story.at(200_000).stored(0).at(203_000).stored(1, split(C))
    last = rebalances(story)[-1]
    assert (last["generation"], last["cause"], last["member_id"], last["members_before"]) == (1, "MEMBER_JOINED", C, 0)


def test_a_record_that_goes_while_the_group_has_members_means_another_protocol():
    story = joined_by_two()
    story.at(90_000).deleted()
    rows = story.rows()
    assert [t["trigger"] for t in table(rows, "group_transitions") if t["occurred_at"] >= 90_000] == ["CONVERTED_TO_CONSUMER"]
    assert len(table(rows, "rebalances")) == 2


def test_a_static_member_that_comes_back_rebalances_nothing():
    story = RecordStory()
    story.at(0).stored(1, split(A, B), instances={A: "i-1", B: "i-2"})
    story.at(9_000).stored(1, split(A, C), instances={A: "i-1", C: "i-2"})
    rows = story.rows()
    assert len(table(rows, "rebalances")) == 1
    assert [(s["member_id"], s["end_kind"]) for s in table(rows, "member_sessions")] == [(B, "REPLACED")]


def test_records_that_were_dumped_twice_count_once():
    story = joined_by_two()
    again = [event._replace(origin="offsets/second.jsonl", position=event.position + 7) for event in story.events]
    once = story.rows()
    story.events += again
    assert story.rows() == once


def test_the_first_round_of_a_cooperative_rebalance_leaves_nobody_idle():
    story = RecordStory()
    story.at(0).stored(1, {A: ("orders-0", "orders-1")}, protocol="cooperative-sticky")
    story.at(9_000).stored(2, {A: ("orders-0",), B: ()}, protocol="cooperative-sticky")
    story.at(9_500).stored(3, {A: ("orders-0",), B: ("orders-1",)}, protocol="cooperative-sticky")
    assert table(story.rows(), "findings") == []


# polls
def polled():
    story = RecordStory()
    story.at(0).described("Stable", split(A))
    story.at(5_000).described("PreparingRebalance", {A: SIX, B: ()})
    return story.at(10_000).described("Stable", split(A, B), protocol="range")


def test_the_first_poll_proves_no_rebalance_and_a_change_does():
    (only,) = rebalances(polled())
    assert (only["generation"], only["outcome"], only["cause"], only["member_id"]) == (None, "COMPLETED", "MEMBER_JOINED", B)
    assert (only["started_at"], only["joined_at"], only["ended_at"]) == (5_000, None, 10_000)
    assert (only["join_ms"], only["sync_ms"], only["total_ms"]) == (None, None, 5_000)
    assert (only["members_before"], only["members_after"], only["client_host"]) == (1, 2, "10.0.0.9")


def test_a_first_poll_amid_a_rebalance():
    story = RecordStory()
    story.at(0).described("CompletingRebalance", {A: (), B: ()})
    story.at(5_000).described("Stable", split(A, B))
    (only,) = rebalances(story)
    assert (only["cause"], only["started_at"], only["ended_at"], only["members_before"], only["members_after"]) == (
        "UNKNOWN", 0, 5_000, None, 2,
    )  # fmt: skip
    assert (only["joined"], only["left"]) == ([], [])


def test_polls_that_show_no_phase_show_the_change():
    story = RecordStory()
    story.at(0).described("Empty")
    story.at(5_000).described("Stable", split(A, B))
    story.at(10_000).described("Stable", split(A, B))
    story.at(15_000).described("Stable", split(A))
    story.at(20_000).described("Empty")
    story.at(25_000).described("Dead")
    rows = story.rows()
    assert [(r["outcome"], r["cause"], r["ended_at"], r["left"]) for r in table(rows, "rebalances")] == [
        ("COMPLETED", "MEMBER_JOINED", 5_000, []),
        ("COMPLETED", "UNKNOWN", 15_000, [B]),
        ("EMPTIED", "UNKNOWN", 20_000, [A]),
    ]
    assert table(rows, "group_transitions")[-1]["to_state"] == "Dead"


def test_where_there_are_records_a_poll_adds_nothing():
    story = joined_by_two()
    alone = story.rows()
    story.at(3_500).described("Stable", split(A)).at(60_001).described("CompletingRebalance", {A: SIX, B: ()})
    story.at(65_000).described("Stable", split(A, B))
    assert table(story.rows(), "rebalances") == table(alone, "rebalances")


def also_stored(story):
    story.at(0).stored(0, took=0)
    story.at(3_011).stored(1, split(A), protocol="range", took=11)
    story.at(61_022).stored(2, split(A, B), protocol="range", took=22)
    story.at(91_006).stored(3, split(A), protocol="range", took=6)
    story.at(60_500).described("PreparingRebalance", {A: SIX, B: ()})
    return story.at(92_000).described("Stable", split(A))


SAME = ("generation", "started_at", "joined_at", "ended_at", "outcome", "cause", "reason", "member_id", "joined", "left", "members_after")


def test_beside_a_brokers_log_records_add_the_assignment_and_nothing_else():
    plain, both = logged().rows(95_000), also_stored(logged()).rows(95_000)
    rows = table(both, "rebalances")
    assert [[r[c] for c in SAME] for r in rows] == [[r[c] for c in SAME] for r in table(plain, "rebalances")]
    assert [(r["partitions"], r["partitions_moved"], r["protocol"]) for r in rows] == [(6, 0, "range"), (6, 3, "range"), (6, 3, "range")]
    assert [r["unavailable_partition_ms"] for r in rows] == [0, 6 * 1_020, 6 * 1_005]  # an eager protocol stops all
    assert [t["to_state"] for t in table(both, "group_transitions")] == [t["to_state"] for t in table(plain, "group_transitions")]
    assert [s["client_host"] for s in table(both, "member_sessions")] == ["10.0.0.9"]
    assert [f["code"] for f in table(both, "findings")] == [f["code"] for f in table(plain, "findings")]


def test_beside_requests_records_change_nothing():
    def story():
        told = RecordStory()
        told.at(3_000).join(A, 1, A, (A,), waited=3_000).at(3_005).sync(A, 1, split(A))
        told.beats([A], 1, 6_000, 30_000)
        return told.at(30_000).heartbeat(A, 1)

    plain, both = story(), story()
    both.at(3_006).stored(1, split(A)).at(9_000).described("Stable", split(A)).at(200_000).described("Stable", split(A))
    assert both.rows() == plain.rows()


def test_a_poll_that_goes_on_ends_no_session_of_a_broker_that_is_silent():
    story = RecordStory()
    story.at(3_000).join(A, 1, A, (A,), waited=3_000).at(3_005).sync(A, 1, split(A)).at(6_000).heartbeat(A, 1)
    batches = [[*story.events, *story.heard()]]
    for minute in range(1, 6):
        later = RecordStory()
        later.at(minute * 60_000).described("Stable", split(A))
        batches.append(later.events)
    shard = Shard()
    rows = [row for batch in batches for row in shard.observe(batch)]
    assert table(rows, "member_sessions") == []
    more = Story()
    more.at(7_000).leave(A).at(30_000).heartbeat(C, 9, error=25)
    rows += shard.observe([*more.events, *more.heard()])
    assert [s["end_kind"] for s in table(rows, "member_sessions")] == ["LEFT"]
    assert shard.summary()[2] == 0  # nothing came too late


def test_a_record_after_the_end_of_the_logs_waits_for_the_broker():
    """The next run may bring its lines of that time, which must not come too late."""
    story = logged()
    shard = Shard()
    rows = shard.observe([*story.events, Event("broker-1", "clock", "", 0, START_MS + 92_000, START_MS, kinds.END)])
    later = RecordStory()
    later.at(300_000).stored(4, split(A, C))
    rows += shard.observe([*later.events, Event("offsets", "clock", "", 0, START_MS + 300_000, START_MS, kinds.END)])
    assert (shard.summary(), len(table(rows, "rebalances"))) == ((1, 3, 0), 3)
    more = Story()
    more.at(299_000).log_preparing(3, JOINED.format(C), C).at(299_990).log_stabilized(4, 2).at(300_000).log_assignment(4, A, 2)
    rows += shard.observe([*more.events, Event("broker-1", "clock", "", 0, START_MS + 300_500, START_MS, kinds.END)])
    assert (shard.summary(), len(table(rows, "rebalances"))) == ((1, 0, 0), 4)
    assert table(rows, "rebalances")[-1]["partitions"] == 6
