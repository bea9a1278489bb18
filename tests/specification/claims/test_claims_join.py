"""Claims about JoinGroup and the join phase: short transcripts, on every release they speak of.

The ids are those of docs/claims.md. A claim that is wrong, or true for some releases only, is held by what happens instead.
"""

from dataclasses import replace

import pytest

from tests.specification.scene import Scene, before, each, over_time, settled, since

# A group begins.


@over_time("fresh", {"0.9": "Stable", "0.10.1": "Empty"})
@pytest.mark.claims("D01", "D02")
def test_in_which_state_a_group_begins(release, fresh):
    # Nobody sees it: the group exists from its first JoinGroup on, and that moves it on at once.
    scene = Scene(release)
    assert scene.state == "absent"
    scene.play(f"""
        > 0 A join
          0 group: A-1 added
          0 group: {fresh} -> PreparingRebalance, generation 0: new_member (A-1)
          0 group: PreparingRebalance -> CompletingRebalance, generation 1: join_phase_ended
          0 A <- Join: A-1 generation 1, range, led by A-1, members A-1
    """)


@over_time(
    "end, answer, again",
    {
        "0.9": ("PreparingRebalance -> Dead, generation 1: last_member_gone", "absent", 1),
        "0.10.1": ("PreparingRebalance -> Empty, generation 2: join_phase_ended_empty", "Empty", 3),
    },
)
@pytest.mark.claims("C12", "D02")
def test_the_last_member_goes(release, end, answer, again):
    # In 0.9 and 0.10.0 a Stable group without members does not last: it is removed, and its generations start again at 1.
    scene = settled(release, "A").play(f"""
        > 2000 A leave
          2000 group: A-1 removed: leave
          2000 group: nobody leads instead of A-1
          2000 group: Stable -> PreparingRebalance, generation 1: leave (A-1)
          2000 group: {end}
          2000 A <- Leave: NONE
    """)
    assert scene.state == answer
    scene.play("> 3000 B join")
    assert scene.group.generation == again


@each(before("0.11"))
@pytest.mark.claims("D15", "D16", "D17", "B10", "B11", "C18")
def test_a_first_rebalance_up_to_0_10_2(release):
    # Nobody waits for anybody: the first consumer is a generation of its own before the second asks. The second finds a
    # group that is past PreparingRebalance, and opens another rebalance.
    scene = Scene(release).play("> 0 A join")
    assert (scene.state, scene.group.generation) == ("CompletingRebalance", 1)
    scene.play("""
        > 1 B join
          1 group: B-1 added
          1 group: CompletingRebalance -> PreparingRebalance, generation 1: new_member (B-1)
        > 2 A sync
          2 A <- Sync: REBALANCE_IN_PROGRESS
        > 3 A join
          3 group: PreparingRebalance -> CompletingRebalance, generation 2: join_phase_ended
          3 A <- Join: A-1 generation 2, range, led by A-1, members A-1 B-1
          3 B <- Join: B-1 generation 2, range, led by A-1
        > 4 A sync
        > 5 B sync
        # The third finds Stable: the same.
        > 6 C join
          6 group: C-1 added
          6 group: Stable -> PreparingRebalance, generation 2: new_member (C-1)
    """)
    assert scene.rebalances() == [(0, "new_member"), (1, "new_member"), (6, "new_member")]


@each(since("0.11"))
@pytest.mark.claims("D15", "D16", "D17", "C07", "C17", "C18")
def test_a_first_rebalance_since_0_11(release):
    # The initial delay: within it, and only within it, the picture of the article is right. How many consumers there will
    # be the coordinator does not know here either.
    scene = Scene(release, 3_000).play("""
        > 0 A join
          0 group: A-1 added
          0 group: Empty -> PreparingRebalance, generation 0: new_member (A-1)
    """)
    assert scene.group.leader == "A-1"  # long before all have joined
    scene.play("""
        > 1000 B join
          1000 group: B-1 added
        > 5999
          nothing
        > 6000
          6000 group: PreparingRebalance -> CompletingRebalance, generation 1: join_phase_ended
          6000 A <- Join: A-1 generation 1, range, led by A-1, members A-1 B-1
          6000 B <- Join: B-1 generation 1, range, led by A-1
        # Too late for the first rebalance.
        > 6001 C join
          6001 group: C-1 added
          6001 group: CompletingRebalance -> PreparingRebalance, generation 1: new_member (C-1)
    """)


# Who is let in.


@pytest.mark.claims("D04")
def test_who_speaks_another_protocol_is_refused_before_anything_else_is_asked(release):
    settled(release, "A").play("""
        > 2000 B join sticky=v1
          2000 B <- Join: INCONSISTENT_GROUP_PROTOCOL
        > 2000 C join type=connect
          2000 C <- Join: INCONSISTENT_GROUP_PROTOCOL
        > 2000 A join sticky=v1
          2000 A <- Join: INCONSISTENT_GROUP_PROTOCOL
        > 2000 S join as=stranger sticky=v1
          2000 S <- Join: INCONSISTENT_GROUP_PROTOCOL
    """)


@pytest.mark.claims("D34")
def test_any_protocol_type_will_do_if_all_agree(release):
    # "consumer" and "connect" are what Kafka's own clients say. The coordinator compares, nothing else.
    for protocol_type in ("consumer", "connect", "sr", "whatever"):
        scene = Scene(release).play(f"""
            > 0 A join type={protocol_type}
              0 group: A-1 added
              0 group: {"Empty" if release in since("0.10.1") else "Stable"} -> PreparingRebalance, generation 0: new_member (A-1)
              0 group: PreparingRebalance -> CompletingRebalance, generation 1: join_phase_ended
              0 A <- Join: A-1 generation 1, range, led by A-1, members A-1
            > 1 B join type=other
              1 B <- Join: INCONSISTENT_GROUP_PROTOCOL
        """)
        assert scene.group.protocol_type == protocol_type


@pytest.mark.claims("D05")
def test_an_unknown_id_is_refused_in_every_state(release):
    scene = Scene(release)
    refused = "S join as=stranger"
    scene.play(f"> 0 {refused}\n0 S <- Join: UNKNOWN_MEMBER_ID\n> 10 A join")
    for at_ms, then, state in ((20, "A sync", "CompletingRebalance"), (30, "B join", "Stable"), (40, "A join", "PreparingRebalance")):
        assert scene.state == state
        scene.play(f"> {at_ms} {refused}\n{at_ms} S <- Join: UNKNOWN_MEMBER_ID\n> {at_ms} {then}")
    assert list(scene.group.members) == ["A-1", "B-1"]
    scene.play("> 50 N join")  # without an id it is let in
    assert list(scene.group.members) == ["A-1", "B-1", "N-1"]


@pytest.mark.claims("D03", "D08", "D09", "C10", "C01")
def test_the_first_join_group_adds_a_member_the_next_ones_do_not(release):
    settled(release, "A").play("""
        > 2000 B join
          2000 group: B-1 added
          2000 group: Stable -> PreparingRebalance, generation 1: new_member (B-1)
        > 2100 A heartbeat
          2100 A <- Heartbeat: REBALANCE_IN_PROGRESS
        > 2200 B join as=B-1
          nothing
        > 2300 A join
          2300 group: PreparingRebalance -> CompletingRebalance, generation 2: join_phase_ended
          2300 A <- Join: A-1 generation 2, range, led by A-1, members A-1 B-1
          2300 B <- Join: B-1 generation 2, range, led by A-1
    """)


@pytest.mark.claims("A38", "B10")
def test_up_to_v3_the_first_join_group_makes_a_member(release):
    # An empty id, and the answer names the id that the coordinator made for it.
    settled(release, "A").play("""
        > 2000 B join
          2000 group: B-1 added
          2000 group: Stable -> PreparingRebalance, generation 1: new_member (B-1)
        > 2100 A join
          2100 group: PreparingRebalance -> CompletingRebalance, generation 2: join_phase_ended
          2100 A <- Join: A-1 generation 2, range, led by A-1, members A-1 B-1
          2100 B <- Join: B-1 generation 2, range, led by A-1
    """)


# PreparingRebalance.


@pytest.mark.claims("D07", "D14", "D31")
def test_who_comes_while_the_group_prepares_waits_with_the_others(release):
    # One join phase for all. It belongs to the group: who opened it may go.
    scene = settled(release, "A", "B").play("""
        > 2000 C join
          2000 group: C-1 added
          2000 group: Stable -> PreparingRebalance, generation 2: new_member (C-1)
        > 2100 D join
          2100 group: D-1 added
        > 2200 C leave as=C-1
    """)
    assert scene.state == "PreparingRebalance"
    scene.play("""
        > 2300 A join
          nothing
        > 2400 B join
          2400 group: PreparingRebalance -> CompletingRebalance, generation 3: join_phase_ended
          2400 A <- Join: A-1 generation 3, range, led by A-1, members A-1 B-1 D-1
          2400 B <- Join: B-1 generation 3, range, led by A-1
          2400 D <- Join: D-1 generation 3, range, led by A-1
    """)
    assert [reason for at_ms, reason in scene.rebalances() if at_ms >= 2_000] == ["new_member"]


@over_time("ends", {"2.6": True, "4.0": False})
@pytest.mark.claims("D13")
def test_after_which_join_groups_the_join_phase_is_looked_at(release, ends):
    # A group of three on a coordinator that allows two. C is refused, which costs it its membership: now all have joined.
    # The Scala coordinator looks at the join phase after every JoinGroup, the Java one only after one that it accepts.
    scene = settled(release, "A", "B", "C")
    scene.coordinator.restart(replace(scene.coordinator.config, group_max_size=2), 2_000)
    scene.play("""
        > 2100 A join
          nothing
        > 2200 B join
          nothing
        > 2300 C join
    """)
    assert sorted(scene.group.members) == ["A-1", "B-1"]
    assert scene.state == ("CompletingRebalance" if ends else "PreparingRebalance")


@each(("2.2.2", "2.3.1", "2.4.1", "2.5.1"))
def test_from_2_2_to_2_5_a_group_that_is_too_large_sheds_who_asks_first(release):
    # So there the last to rejoin is never refused, and the difference above cannot show.
    scene = settled(release, "A", "B", "C")
    scene.coordinator.restart(replace(scene.coordinator.config, group_max_size=2), 2_000)
    scene.play("""
        > 2100 B join
          2100 group: B-1 removed: group_max_size
          2100 B <- Join: GROUP_MAX_SIZE_REACHED
        > 2150 N join
          2150 N <- Join: GROUP_MAX_SIZE_REACHED
        > 2200 C join
          nothing
        > 2300 A join
          2300 group: PreparingRebalance -> CompletingRebalance, generation 4: join_phase_ended
          2300 A <- Join: A-1 generation 4, range, led by A-1, members A-1 C-1
          2300 C <- Join: C-1 generation 4, range, led by A-1
    """)
