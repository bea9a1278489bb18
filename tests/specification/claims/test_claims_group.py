"""Claims about leader, vote, assignment, states and offsets: short transcripts, on every release they speak of.

The ids are those of docs/claims.md. A claim that is wrong, or true for some releases only, is held by what happens instead.
"""

from itertools import pairwise, permutations

import pytest

from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.partition import coordinator_partition
from coordinator_model.specification.requests import Heartbeat, JoinAnswer
from coordinator_model.states import State
from scripts.truth.trace_files import load_traces
from tests.specification.scene import Scene, each, over_time, settled, since

# Which broker.


@each(("0.10.2.2", "3.9.1", "4.2.0"))
@pytest.mark.claims("B01")
def test_a_group_is_at_home_where_its_partition_is_led(release):
    # abs(hashCode) mod 50. The hash of "orders" is negative: to cut its sign off instead would give 17.
    config = Scene(release).coordinator.config
    for group_id, partition in (("orders", 31), ("payments", 13)):
        assert coordinator_partition(group_id) == partition
        here = Coordinator(config, 0, [partition])
        elsewhere = Coordinator(config, 0, set(range(50)) - {partition})
        answers = [broker.handle(group_id, Heartbeat("a", 1), 0).replies[0].answer for broker in (here, elsewhere)]
        assert [answer.error.name for answer in answers] == ["UNKNOWN_MEMBER_ID", "NOT_COORDINATOR"]


# The leader.


@pytest.mark.claims("B11", "C07", "C17", "C18", "D30")
def test_the_first_to_join_leads_and_goes_on_leading_whoever_comes_first_later(release):
    scene = Scene(release).play("> 0 A join")
    assert scene.group.leader == "A-1"
    scene.play("""
        > 5 A sync
        > 10 B join
        > 20 A join
          20 group: PreparingRebalance -> CompletingRebalance, generation 2: join_phase_ended
          20 A <- Join: A-1 generation 2, range, led by A-1, members A-1 B-1
          20 B <- Join: B-1 generation 2, range, led by A-1
    """)


@over_time("heir", {"0.9": "F-1", "2.6": "E-1"})
@pytest.mark.claims("B03", "C17")
def test_another_leads_only_when_the_leader_is_gone(release, heir):
    # Whoever the hash map of the members yields first (of Scala 2.11 and 2.12, of 2.13, of Java). That is arbitrary, but no
    # lots are drawn: the ids decide, and not the order in which the members came.
    for others in permutations("EFG"):
        scene = settled(release, "A", *others).play("> 2000 A leave")
        assert scene.group.leader == heir


@pytest.mark.claims("B03", "C17")
def test_a_leader_that_does_not_rejoin_in_time_is_replaced(release):
    settled(release, "A", "B").play("""
        > 2000 B join range=other-topics
        > 10999
          nothing
        > 11000
          11000 group: A-1 removed: session_expired
          11000 group: B-1 leads instead of A-1
          11000 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          11000 B <- Join: B-1 generation 3, range, led by B-1, members B-1
    """)


# The vote.


def chosen(release, *preferences):
    """What a group chooses whose members A, B, C prefer these protocols, each in this order."""
    names = "ABCDEFG"[: len(preferences)]
    protocols = [" ".join(f"{name}=v1" for name in preference.split()) for preference in preferences]
    scene = Scene(release)
    for number in range(len(names)):
        for member in (number, *range(number)):
            scene.play(f"> {10 * number} {names[member]} join {protocols[member]}")
        scene.play(f"> {10 * number + 5} A sync")
    assert (scene.state, scene.group.leader) == ("Stable", "A-1")
    return scene.group.protocol


@pytest.mark.claims("B04")
def test_only_what_all_members_support_is_a_candidate(release):
    # The intersection, not the union: nobody's favourite wins.
    assert chosen(release, "range rr", "sticky rr", "range sticky rr") == "rr"


@pytest.mark.claims("B05", "B06", "B07")
def test_every_member_votes_for_the_first_candidate_of_its_own_list_and_most_votes_win(release):
    # A leads and is outvoted: the coordinator counts, the leader has one vote like the others.
    assert chosen(release, "range rr", "rr range", "rr range") == "rr"
    assert chosen(release, "rr range", "range rr", "range rr") == "range"
    # sticky is B's and C's first choice, but no candidate: both vote for their second.
    assert chosen(release, "range rr", "sticky rr range", "sticky rr range") == "rr"


# The assignment.


@pytest.mark.claims("C08", "B08", "B14", "B15", "C15", "C20", "C21", "B13")
def test_the_leaders_plan_reaches_the_others_through_the_coordinator(release):
    settled(release, "A", "B", "C").play("""
        > 2000 A join
        > 2010 B join
        > 2020 C join
          2020 group: PreparingRebalance -> CompletingRebalance, generation 4: join_phase_ended
          2020 A <- Join: A-1 generation 4, range, led by A-1, members A-1 B-1 C-1
          2020 B <- Join: B-1 generation 4, range, led by A-1
          2020 C <- Join: C-1 generation 4, range, led by A-1
        # CompletingRebalance, and there is no plan yet: this is the state in which the group waits for it.
        > 2030 B sync
          nothing
        > 2040 C sync
          nothing
        > 2050 A sync
          2050 group: CompletingRebalance -> Stable, generation 4: assignment_stored (A-1)
          2050 A <- Sync: P-A-1
          2050 B <- Sync: P-B-1
          2050 C <- Sync: P-C-1
    """)


@over_time("gone", {"0.9": {}, "2.8": {"C-1": 32_010}})
@pytest.mark.claims("C09", "B14")
def test_a_group_is_stable_before_all_have_their_plan(release, gone):
    # With the leader's SyncGroup. The others may ask later; since 2.8 within one rebalance timeout (30 s), whoever heartbeats.
    scene = settled(release, "A", "B", "C").play("""
        > 2000 A join
        > 2005 B join
        > 2010 C join
        > 2020 A sync
          2020 group: CompletingRebalance -> Stable, generation 4: assignment_stored (A-1)
          2020 A <- Sync: P-A-1
        > 9000 B sync
          9000 B <- Sync: P-B-1
    """)
    for at_ms in range(9_000, 40_000, 9_000):
        for name in "ABC":
            scene.play(f"> {at_ms} {name} heartbeat")
    assert scene.removed() == gone


@pytest.mark.claims("C21", "B08")
def test_whom_the_leader_forgets_has_nothing_to_do(release):
    scene = settled(release, "A", "B").play("""
        > 2000 A join
        > 2010 B join
        > 2020 B sync
    """)
    scene.clients["A"].leads = ("A-1", "somebody-else")
    scene.play("""
        > 2030 A sync
          2030 group: CompletingRebalance -> Stable, generation 3: assignment_stored (A-1)
          2030 A <- Sync: P-A-1
          2030 B <- Sync: nothing assigned
    """)


@pytest.mark.claims("C16", "C19")
def test_the_leader_is_told_what_everybody_subscribes_to_the_others_are_not(release):
    scene = Scene(release)
    told = {}
    hear = scene.lines

    def listen(outcome):
        told.update({reply.ticket: reply.answer for reply in outcome.replies if isinstance(reply.answer, JoinAnswer)})
        return hear(outcome)

    scene.lines = listen
    scene.play("""
        > 0 A join range=topics-of-A
        > 5 A sync
        > 10 B join range=topics-of-B
        > 20 A join range=new-topics-of-A
    """)
    assert {member.member_id: member.metadata for member in told["A"].members} == {"A-1": b"new-topics-of-A", "B-1": b"topics-of-B"}
    assert told["B"].members == ()


# Why a group rebalances, and how members learn of it.


@each(since("2.3"))
@pytest.mark.claims("C01")
def test_a_static_member_that_returns_changes_no_number(release):
    scene = settled(release, "A static", "B static")
    before_ = scene.rebalances()
    scene.play("> 5000 B restart")
    assert (scene.rebalances(), scene.group.generation, sorted(scene.group.members)) == (before_, 2, ["A-1", "B-2"])


@pytest.mark.claims("C04")
def test_members_learn_of_a_rebalance_from_any_answer(release):
    settled(release, "A", "B").play("""
        > 2000 C join
        > 2100 A heartbeat
          2100 A <- Heartbeat: REBALANCE_IN_PROGRESS
        > 2100 A sync
          2100 A <- Sync: REBALANCE_IN_PROGRESS
        > 2200 A join
        > 2300 B join
          2300 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          2300 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1 C-1
          2300 B <- Join: B-1 generation 3, range, led by A-1
          2300 C <- Join: C-1 generation 3, range, led by A-1
        > 2400 B commit
          2400 B <- Commit: REBALANCE_IN_PROGRESS
    """)


@each(since("2.3"))
@pytest.mark.claims("C11")
def test_static_members_that_do_not_rejoin_are_kept(release):
    settled(release, "A", "B static session=60000").play("""
        > 2000 A join
        > 32000
          32000 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          32000 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1
    """)


# States.


@over_time("states", {"0.9": {"PreparingRebalance", "CompletingRebalance", "Stable", "Dead"}, "0.10.1": {state.value for state in State}})
@pytest.mark.claims("C05", "C10")
def test_which_states_there_are(release, states):
    # Every state but Dead is one that a group can rest in. Up to 1.0 Kafka calls CompletingRebalance AwaitingSync: the rules
    # are the same. Up to 0.10.0 there is no Empty.
    scene = settled(release, "A", "B").play("""
        > 2000 C join
        > 3000 A leave
        > 4000 B join
        > 5000 B sync
        > 6000 B leave
        > 7000 C leave
        > 8000 D join
        > 9000 coordinator unload
    """)
    seen = scene.states()
    assert set(seen) == states
    assert {pair for pair in pairwise(seen) if pair[0] == "Stable"} == {("Stable", "PreparingRebalance")}


@pytest.mark.claims("C06")
def test_a_group_that_only_commits(release):
    # No application subscribes, but one keeps its offsets in the group. In 0.10.0 those need no group.
    scene = Scene(release).play("""
        > 0 A commit
          0 A <- Commit: NONE
    """)
    assert scene.state == ("Empty" if release in since("0.10.1") else "absent")


@each(since("0.10.1"))
@pytest.mark.claims("C06", "C14")
def test_an_empty_group_without_offsets_goes_with_the_next_clean_up(release):
    # Every 600 s. Until then it is Empty, from then on it is as if it had never been.
    scene = settled(release, "A").play("> 2000 A leave\n> 599999")
    assert scene.state == "Empty"
    scene.play("> 600000")
    assert scene.state == "absent"


# Offsets.


@over_time("kept", {"0.10.1": False, "2.1": True})
@pytest.mark.claims("C13")
def test_whether_offsets_expire_while_the_group_is_at_work(release, kept):
    # Retention 15 minutes. Up to 2.0 each offset expires by itself, at the first clean-up after it is due.
    scene = settled(release, "A", offsets_retention_minutes=15, group_min_session_timeout_ms=1)
    scene.play("> 2000 A join session=300000\n> 2010 A sync\n> 2020 A commit")
    for at_ms in range(9_000, 1_210_000, 9_000):
        scene.play(f"> {at_ms} A heartbeat")
    assert (scene.state, "g" in scene.coordinator.offsets) == ("Stable", kept)


@pytest.mark.claims("C13")
def test_since_2_4_offsets_of_topics_that_nobody_subscribes_to_expire_too():
    # KIP-496, and the one thing here that the specification does not follow: to it topics are opaque. Kafka 3.9.1 was run,
    # with a member that subscribes to nothing: it drops the offset while the group is Stable, as 0.10.2.2 does.
    (recorded,) = [trace for _, trace in load_traces() if trace["name"] == "scripted010/offsets_expire_in_a_stable_group"][:1]
    assert (recorded["flavour_S"]["version"], recorded["flavour_S"]["same_outcome"]) == ("3.9.1", True)
    after = {step["at_ms"]: step["expect"]["group_after"]["state"] for step in recorded["steps"]}
    assert (after[1_200_001], after[1_790_000], after[1_800_001]) == ("Stable", "Empty", "None")


@each(since("0.10.1"))
@pytest.mark.claims("C14")
def test_offsets_go_with_a_clean_up_not_when_they_are_due(release):
    scene = settled(release, "A", offsets_retention_minutes=5).play("> 2000 A commit\n> 3000 A leave\n> 599999")
    assert "g" in scene.coordinator.offsets  # due since 302000 or 303000
    scene.play("> 600000")
    assert ("g" in scene.coordinator.offsets, scene.state) == (False, "absent")
