"""Claims about sessions, leaving and the clock of a join phase: short transcripts, on every release they speak of.

The ids are those of docs/claims.md. A claim that is wrong, or true for some releases only, is held by what happens instead.
"""

import pytest

from coordinator_model.specification.transitions import Trigger
from tests.specification.scene import RELEASES, Scene, before, each, over_time, settled, since

# Leaving.


@pytest.mark.claims("A15", "C01", "C10")
def test_who_leaves_is_removed_and_the_others_rebalance(release):
    settled(release, "A", "B").play("""
        > 2000 B leave
          2000 group: B-1 removed: leave
          2000 group: Stable -> PreparingRebalance, generation 2: leave (B-1)
          2000 B <- Leave: NONE
        > 2100 A heartbeat
          2100 A <- Heartbeat: REBALANCE_IN_PROGRESS
    """)


@pytest.mark.claims("A15")
def test_leaving_while_the_group_prepares_starts_no_rebalance_but_may_end_the_join_phase(release):
    settled(release, "A", "B").play("""
        > 2000 A join
          2000 group: Stable -> PreparingRebalance, generation 2: leader_rejoin (A-1)
        > 2100 B leave
          2100 group: B-1 removed: leave
          2100 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          2100 A <- Join: A-1 generation 3, range, led by A-1, members A-1
          2100 B <- Leave: NONE
    """)


@each(since("2.3"))
@pytest.mark.claims("A12")
def test_a_static_member_goes_when_its_session_ends(release):
    Scene(release).play("""
        > 0 A restart static
        > 5 A sync
        > 9000 A heartbeat
        > 18999
          nothing
        > 19000
          19000 group: A-1 removed: session_expired
          19000 group: nobody leads instead of A-1
          19000 group: Stable -> PreparingRebalance, generation 1: session_expired (A-1)
          19000 group: PreparingRebalance -> Empty, generation 2: join_phase_ended_empty
    """)


@each(since("2.4"))
@pytest.mark.claims("A12")
def test_an_administrator_can_remove_a_static_member_before(release):
    Scene(release).play("""
        > 0 A restart static
        > 5 A sync
        > 100 admin leave instance=instance-A
          100 group: A-1 removed: leave
          100 group: nobody leads instead of A-1
          100 group: Stable -> PreparingRebalance, generation 1: leave (A-1)
          100 group: PreparingRebalance -> Empty, generation 2: join_phase_ended_empty
          100 admin <- Leave: NONE
    """)


# Sessions.


@pytest.mark.claims("A28", "A33", "A34", "C01", "C10")
def test_a_session_ends_to_the_millisecond_after_the_last_heartbeat(release):
    settled(release, "A", "B").play("""
        > 8000 A heartbeat
        > 9000 B heartbeat
        > 17000 A heartbeat
        > 18999
          nothing
        > 19000
          19000 group: B-1 removed: session_expired
          19000 group: Stable -> PreparingRebalance, generation 2: session_expired (B-1)
    """)


@pytest.mark.claims("A34", "C10")
def test_an_expiry_interrupts_the_sync_phase(release):
    # The leader computes its assignment for longer than its session. Who waits for it is told to join again.
    settled(release, "A", "B").play("""
        > 2000 A join
        > 2010 B join
        > 2020 B sync
          nothing
        > 12010
          12010 group: A-1 removed: session_expired
          12010 group: B-1 leads instead of A-1
          12010 group: CompletingRebalance -> PreparingRebalance, generation 3: session_expired (A-1)
          12010 B <- Sync: REBALANCE_IN_PROGRESS
    """)


@pytest.mark.claims("A35")
def test_an_expiry_while_the_group_prepares_may_end_the_join_phase(release):
    settled(release, "A", "B").play("""
        > 2000 A join
        > 10999
          nothing
        > 11000
          11000 group: B-1 removed: session_expired
          11000 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          11000 A <- Join: A-1 generation 3, range, led by A-1, members A-1
    """)


@pytest.mark.claims("A32")
def test_who_waits_for_an_answer_does_not_expire(release):
    # Session 10 s. A waits 19 s for B to join, then B 19 s for A's assignment.
    scene = settled(release, "A", "B session=30000").play("""
        > 1000 A join
        > 20000 B join
          20000 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          20000 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1
          20000 B <- Join: B-1 generation 3, range, led by A-1
        > 20010 A leave
        > 20020 B join
        > 20030 A restart
        > 20040 B join session=30000
    """)
    assert scene.group.leader == "B-1"
    scene.play("""
        > 20050 A sync
          nothing
        > 39000 B sync
          39000 group: CompletingRebalance -> Stable, generation 5: assignment_stored (B-1)
          39000 B <- Sync: P-B-1
          39000 A <- Sync: P-A-2
    """)


@over_time("removed", {"0.10.1": False, "2.1.1": True})
@pytest.mark.claims("A32")
def test_a_new_member_may_wait_for_five_minutes(release, removed):
    # A is busy for longer, and its rebalance timeout allows it to be.
    scene = Scene(release).play("""
        > 0 A join session=300000 rebalance=400000
        > 5 A sync
        > 1000 B join
        > 200000 A heartbeat
        > 300999
          nothing
    """)
    told = """
          301000 group: B-1 removed: session_expired
          301000 B <- Join: UNKNOWN_MEMBER_ID
    """
    scene.play(f"> 301000\n{told if removed else 'nothing'}")


@pytest.mark.claims("A29")
def test_the_sessions_of_an_unloaded_group_end_without_a_trace(release):
    scene = settled(release, "A", "B").play("""
        > 2000 coordinator unload
          2000 group: Stable -> Dead, generation 2: unloaded
        > 60000
          nothing
        > 60000 coordinator load
          nothing
        > 69999
          nothing
        > 70000
    """)
    # Each has a whole session from the loading on.
    assert scene.removed() == {"A-1": 70_000, "B-1": 70_000}


@each(since("2.2"))
@pytest.mark.claims("A30", "A38")
def test_an_id_that_is_not_used_is_forgotten(release):
    Scene(release).play("""
        > 0 A join v4
          0 A <- Join: MEMBER_ID_REQUIRED A-1
        > 9999
          nothing
        > 10000
          10000 group: A-1 removed: session_expired
        > 10001 A join v4
          10001 A <- Join: UNKNOWN_MEMBER_ID
        > 10002 A restart v4
          10002 A <- Join: MEMBER_ID_REQUIRED A-2
        > 10003 A join v4
          10003 group: A-2 added
          10003 group: Empty -> PreparingRebalance, generation 0: new_member (A-2)
          10003 group: PreparingRebalance -> CompletingRebalance, generation 1: join_phase_ended
          10003 A <- Join: A-2 generation 1, range, led by A-2, members A-2
    """)


@each(("0.10.2.2", *since("0.11")))
@pytest.mark.claims("A31")
def test_the_session_of_a_member_that_was_dropped_at_the_end_of_a_join_phase(release):
    scene = settled(release, "A", "B").play("""
        > 2000 A join
        > 10000 B heartbeat
        > 19000 B heartbeat
        > 28000 B heartbeat
        > 32000
          32000 group: B-1 removed: join_expired
          32000 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          32000 A <- Join: A-1 generation 3, range, led by A-1, members A-1
        > 32010 A sync
        > 37000 A heartbeat
        > 38000
    """)
    # B's session would have ended at 38000. Up to 0.11 it does: the group rebalances although nobody is missing.
    stale = [(38_000, "session_expired")] if release in before("1.0") else []
    assert scene.rebalances()[2:] == [(2_000, "leader_rejoin"), *stale]
    assert scene.removed() == {"B-1": 32_000}


@pytest.mark.claims("A31", "B17")
def test_the_same_in_0_10_0_where_only_a_commit_keeps_a_session_while_the_group_prepares():
    scene = settled("0.10.0.1", "A", "B").play("""
        > 2000 A join
        > 9000 B commit
          9000 B <- Commit: NONE
        > 12010 A sync
        > 19000
    """)
    assert scene.removed() == {"B-1": 12_000}
    assert scene.rebalances()[2:] == [(2_000, "leader_rejoin"), (19_000, "session_expired")]


@over_time("again", {"0.10.1": True, "2.1.1": False})
@pytest.mark.claims("B20")
def test_two_heartbeats_in_one_millisecond(release, again):
    # Up to 2.1.0 they leave two timers. The first removes B and thereby ends the join phase, the second finds nobody, and
    # starts another rebalance in the same millisecond.
    scene = settled(release, "A", "B").play("""
        > 2000 B heartbeat
        > 2000 B heartbeat
        > 3000 A join
        > 12000
    """)
    assert scene.removed() == {"B-1": 12_000}
    assert scene.state == ("PreparingRebalance" if again else "CompletingRebalance")
    assert scene.rebalances()[-1] == ((12_000, "session_expired") if again else (3_000, "leader_rejoin"))


@over_time("ends", {"0.9": 11_000, "0.10.0": 19_000})
@pytest.mark.claims("B17", "B20")
def test_a_commit_is_stored_and_since_0_10_0_it_keeps_the_session(release, ends):
    scene = settled(release, "A", "B")
    assert "g" not in scene.coordinator.offsets
    scene.play("""
        > 9000 B commit
          9000 B <- Commit: NONE
        > 9000 S commit as=stranger generation=2
          9000 S <- Commit: UNKNOWN_MEMBER_ID
        > 30000
    """)
    assert scene.removed() == {"A-1": 11_000, "B-1": ends}
    assert scene.coordinator.offsets == {"g": 9_000}


# The join phase.


@over_time("ends", {"0.10.0": 22_000, "0.10.1": 42_000})
@pytest.mark.claims("A36", "D14", "D31")
def test_a_join_phase_lasts_as_long_as_the_most_patient_member_allows(release, ends):
    # Not a setting of the broker, nor of the member that is missing: the largest rebalance timeout (0.10.0: session timeout)
    # of the members at the moment at which the phase begins. B is alive all the while, which its commits show.
    scene = settled(release, "A rebalance=40000 session=20000", "B rebalance=20000").play("""
        > 2000 A join
        # Who comes later changes nothing.
        > 3000 C join rebalance=90000 session=30000
        > 4000 A join
    """)
    for at_ms in range(9_000, ends, 9_000):
        scene.play(f"> {at_ms} B commit")
    scene.play(f"> {ends - 1}")
    assert scene.state == "PreparingRebalance"
    scene.play(f"> {ends}")
    assert (scene.state, scene.removed()) == ("CompletingRebalance", {"B-1": ends})


@over_time("ends", {"0.9": 0, "0.11": 3_000})
@pytest.mark.claims("A36")
def test_the_first_join_phase_lasts_as_long_as_the_initial_delay(release, ends):
    scene = Scene(release, 3_000).play("> 0 A join rebalance=60000\n> 10000")
    ended = [effect.at_ms for effect in scene.effects if getattr(effect, "trigger", None) is Trigger.JOIN_PHASE_ENDED]
    assert ended == [ends]


@pytest.mark.claims("A37", "C11", "D20")
def test_a_join_phase_ends_with_the_last_member_and_all_are_answered(release):
    settled(release, "A", "B", "C").play("""
        > 2000 A join
          2000 group: Stable -> PreparingRebalance, generation 3: leader_rejoin (A-1)
        > 3000 C join
          nothing
        > 4000 B join
          4000 group: PreparingRebalance -> CompletingRebalance, generation 4: join_phase_ended
          4000 A <- Join: A-1 generation 4, range, led by A-1, members A-1 B-1 C-1
          4000 B <- Join: B-1 generation 4, range, led by A-1
          4000 C <- Join: C-1 generation 4, range, led by A-1
    """)


@each(since("2.2"))
@pytest.mark.claims("A37", "A38")
def test_a_join_phase_also_waits_for_ids_that_were_handed_out(release):
    settled(release, "A", "B").play("""
        > 2000 C join v4
          2000 C <- Join: MEMBER_ID_REQUIRED C-1
        > 2100 A join
          2100 group: Stable -> PreparingRebalance, generation 2: leader_rejoin (A-1)
        > 2200 B join
          nothing
        > 2300 C join v4
          2300 group: C-1 added
          2300 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          2300 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1 C-1
          2300 B <- Join: B-1 generation 3, range, led by A-1
          2300 C <- Join: C-1 generation 3, range, led by A-1
    """)


def test_the_releases_are_in_order_and_none_is_missing():
    assert RELEASES[0] == "0.9.0.1"
    assert RELEASES[-1] == "4.2.0"
    assert before("2.6") + since("2.6") == RELEASES
    assert before("2.6")[-1] == "2.5.1"
