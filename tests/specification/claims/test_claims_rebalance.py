"""Claims about second and later rebalances: who comes first, and what opens one. Short transcripts, on every release.

The ids are those of docs/claims.md. A claim that is wrong, or true for some releases only, is held by what happens instead.
"""

import pytest

from coordinator_model.specification.transitions import Trigger
from tests.specification.scene import over_time, settled

# Second and later rebalances: who comes first.


@pytest.mark.claims("D10", "D18", "D19", "D20", "D08", "D13", "C03", "C11", "C19", "D03")
def test_the_leader_comes_first(release):
    # It need not have changed anything: this is how a leader asks for a new assignment when a topic has more partitions.
    settled(release, "A", "B", "C").play("""
        > 2000 A join
          2000 group: Stable -> PreparingRebalance, generation 3: leader_rejoin (A-1)
        > 2100 B join
          nothing
        > 2200 C join
          2200 group: PreparingRebalance -> CompletingRebalance, generation 4: join_phase_ended
          2200 A <- Join: A-1 generation 4, range, led by A-1, members A-1 B-1 C-1
          2200 B <- Join: B-1 generation 4, range, led by A-1
          2200 C <- Join: C-1 generation 4, range, led by A-1
    """)


@pytest.mark.claims("D12", "D21", "D22", "D23", "D24", "D25", "D32")
def test_followers_come_before_the_leader(release):
    settled(release, "A", "B", "C", "D").play("""
        # Unchanged: answered at once, as if nothing were the matter, and the assignment is the old one.
        > 2000 B join
          2000 B <- Join: B-1 generation 4, range, led by A-1
        > 2010 B sync
          2010 B <- Sync: P-B-1
        > 2100 C join
          2100 C <- Join: C-1 generation 4, range, led by A-1
        > 2200 A join
          2200 group: Stable -> PreparingRebalance, generation 4: leader_rejoin (A-1)
        > 2300 D join
          nothing
        # They were not lucky: they have to come again, and everybody waits for them.
        > 2400 B heartbeat
          2400 B <- Heartbeat: REBALANCE_IN_PROGRESS
        > 2500 B join
          nothing
        > 2600 C join
          2600 group: PreparingRebalance -> CompletingRebalance, generation 5: join_phase_ended
          2600 A <- Join: A-1 generation 5, range, led by A-1, members A-1 B-1 C-1 D-1
          2600 B <- Join: B-1 generation 5, range, led by A-1
          2600 C <- Join: C-1 generation 5, range, led by A-1
          2600 D <- Join: D-1 generation 5, range, led by A-1
    """)


@over_time("dropped", {"0.9": 11_000, "0.10.1": 32_000})
@pytest.mark.claims("D25", "C11")
def test_a_follower_that_was_answered_early_and_does_not_come_again_is_dropped(release, dropped):
    # Although it heartbeats: at the end of the join phase; in 0.10.0, where that keeps no session, when its session ends.
    scene = settled(release, "A", "B").play("""
        > 1900 B join
          1900 B <- Join: B-1 generation 2, range, led by A-1
        > 2000 A join
    """)
    for at_ms in range(9_000, dropped, 9_000):
        scene.play(f"> {at_ms} B heartbeat\n{at_ms} B <- Heartbeat: REBALANCE_IN_PROGRESS")
    scene.play(f"> {dropped}")
    assert scene.removed() == {"B-1": dropped}


@pytest.mark.claims("D26", "D27", "D28", "D29", "D30", "D32", "D09")
def test_a_new_member_comes_first(release):
    settled(release, "A", "B", "C").play("""
        > 2000 N join
          2000 group: N-1 added
          2000 group: Stable -> PreparingRebalance, generation 3: new_member (N-1)
        # An unchanged follower is not let go any more: the group prepares.
        > 2100 B join
          nothing
        > 2200 A join
          nothing
        > 2300 C join
          2300 group: PreparingRebalance -> CompletingRebalance, generation 4: join_phase_ended
          2300 A <- Join: A-1 generation 4, range, led by A-1, members A-1 B-1 C-1 N-1
          2300 B <- Join: B-1 generation 4, range, led by A-1
          2300 C <- Join: C-1 generation 4, range, led by A-1
          2300 N <- Join: N-1 generation 4, range, led by A-1
    """)


# What opens a rebalance: not only new members and the leader.


@pytest.mark.claims("D11", "D33", "C02")
def test_a_follower_with_other_topics_opens_a_rebalance(release):
    settled(release, "A", "B").play("""
        > 2000 B join range=other-topics
          2000 group: Stable -> PreparingRebalance, generation 2: member_metadata_changed (B-1)
        > 2100 A join
          2100 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          2100 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1
          2100 B <- Join: B-1 generation 3, range, led by A-1
    """)


@pytest.mark.claims("D11")
def test_the_same_protocols_in_another_order_are_a_change(release):
    settled(release, "A range=v1 rr=v1", "B range=v1 rr=v1").play("""
        > 1000 B join range=v1 rr=v1
          1000 B <- Join: B-1 generation 2, range, led by A-1
        > 2000 B join rr=v1 range=v1
          2000 group: Stable -> PreparingRebalance, generation 2: member_metadata_changed (B-1)
    """)


@pytest.mark.claims("D33")
@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("> 2000 B leave", "leave"),
        ("> 2000 A heartbeat\n> 11000", "session_expired"),
        ("> 2000 B join range=other-topics", "member_metadata_changed"),
    ],
)
def test_ordinary_members_open_rebalances_too(release, what, reason):
    scene = settled(release, "A", "B").play(what)
    assert [trigger for at_ms, trigger in scene.rebalances() if at_ms >= 2_000] == [reason]
    assert [effect.member_id for effect in scene.effects if getattr(effect, "trigger", None) is Trigger(reason)] == ["B-1"]


@over_time("error", {"0.9": "NOT_ENOUGH_REPLICAS", "0.10.1": "COORDINATOR_NOT_AVAILABLE"})
@pytest.mark.claims("D33", "B14")
def test_a_failed_write_of_the_assignment_opens_a_rebalance(release, error):
    # The assignment is written before anybody hears of it, and before the group is Stable.
    settled(release, "A", "B").play(f"""
        > 2000 A join
        > 2010 B join
        > 2020 B sync
        > 2030 A sync error=NOT_ENOUGH_REPLICAS
          2030 group: CompletingRebalance -> PreparingRebalance, generation 3: assignment_append_failed (A-1)
          2030 A <- Sync: {error}
          2030 B <- Sync: {error}
    """)


# CompletingRebalance (AwaitingSync up to 1.0), which the article leaves out.


@pytest.mark.claims("D32", "D35")
def test_unchanged_members_are_answered_at_once_before_the_assignment_is_there(release):
    # The leader included, which in Stable would open a rebalance.
    settled(release, "A", "B").play("""
        > 2000 A join
        > 2010 B join
        > 2020 B join
          2020 B <- Join: B-1 generation 3, range, led by A-1
        > 2030 A join
          2030 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1
    """)


@pytest.mark.claims("D33", "D35")
def test_a_changed_member_opens_a_rebalance_before_the_assignment_is_there(release):
    settled(release, "A", "B").play("""
        > 2000 A join
        > 2010 B join
        > 2020 B sync
        > 2030 B join range=other-topics
    """)
    settled(release, "A", "B", "C").play("""
        > 2000 A join
        > 2010 B join
        > 2015 C join
        > 2020 C sync
          nothing
        > 2030 B join range=other-topics
          2030 group: CompletingRebalance -> PreparingRebalance, generation 4: member_metadata_changed (B-1)
          2030 C <- Sync: REBALANCE_IN_PROGRESS
    """)


@pytest.mark.claims("D35", "C10", "D16")
def test_a_new_member_opens_a_rebalance_before_the_assignment_is_there(release):
    settled(release, "A", "B").play("""
        > 2000 A join
        > 2010 B join
        > 2020 B sync
          nothing
        > 2030 C join
          2030 group: C-1 added
          2030 group: CompletingRebalance -> PreparingRebalance, generation 3: new_member (C-1)
          2030 B <- Sync: REBALANCE_IN_PROGRESS
    """)
