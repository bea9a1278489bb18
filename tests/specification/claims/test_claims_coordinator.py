"""Claims about heartbeats as the coordinator answers them: short transcripts, on every release they speak of.

The ids are those of docs/claims.md. A claim that is wrong, or true for some releases only, is held by what happens instead.
"""

import pytest

from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.requests import Heartbeat, JoinGroup
from coordinator_model.specification.transitions import Trigger
from tests.specification.scene import Scene, each, over_time, settled, since

JOIN = JoinGroup("", 10_000, 30_000, "consumer", (("range", b"v1"),), api_version=1)


def answer(coordinator, group_id, request):
    (reply,) = coordinator.handle(group_id, request, 0).replies
    return reply.answer.error.name


# Heartbeats: what is answered, by state.


@over_time("error", {"0.9": "NOT_COORDINATOR", "2.0": "NONE"})
@pytest.mark.claims("A16")
def test_a_heartbeat_while_the_coordinator_loads(release, error):
    # Up to 1.1 a partition is not owned until it is loaded, and who owns it is asked first. Since 2.0 anybody is believed,
    # but nothing is noted down: a stranger is none the less a stranger afterwards.
    settled(release, "A").play(f"""
        > 2000 coordinator unload
        > 2100 coordinator load_begin
        > 2200 A heartbeat
          2200 A <- Heartbeat: {error}
        > 2200 S heartbeat as=stranger generation=1
          2200 S <- Heartbeat: {error}
        > 2300 coordinator load
        > 2400 S heartbeat
          2400 S <- Heartbeat: UNKNOWN_MEMBER_ID
        > 2400 A heartbeat
          2400 A <- Heartbeat: NONE
    """)


@pytest.mark.claims("A16")
def test_a_partition_that_is_loaded_again_believes_heartbeats_in_every_release(release):
    settled(release, "A").play("""
        > 2000 coordinator load_begin
        > 2100 S heartbeat as=stranger generation=1
          2100 S <- Heartbeat: NONE
    """)


@over_time("error", {"0.9": "UNKNOWN_MEMBER_ID", "2.0": "INVALID_GROUP_ID"})
@pytest.mark.claims("A17")
def test_what_is_refused_in_front_of_the_group(release, error):
    scene = settled(release, "A").play("""
        > 2000 coordinator unload
        > 2100 A heartbeat
          2100 A <- Heartbeat: NOT_COORDINATOR
        > 2100 S heartbeat as=stranger generation=1
          2100 S <- Heartbeat: NOT_COORDINATOR
    """)
    # Up to 1.1 only JoinGroup looks at the group id; a heartbeat takes the empty one for a group that does not exist.
    everywhere = Coordinator(scene.coordinator.config, 0, range(50))
    assert answer(everywhere, "", Heartbeat("A-1", 1)) == error
    assert answer(everywhere, "", JOIN) == "INVALID_GROUP_ID"


@pytest.mark.claims("A18", "C06")
def test_a_group_that_was_never_used_does_not_exist(release):
    scene = Scene(release).play("""
        > 0 A heartbeat as=A-1 generation=1
          0 A <- Heartbeat: UNKNOWN_MEMBER_ID
    """)
    assert scene.state == "absent"


@each(since("0.10.1"))
@pytest.mark.claims("A23")
def test_an_empty_group_knows_nobody(release):
    scene = settled(release, "A").play("> 2000 A leave")
    assert scene.state == "Empty"
    scene.play("""
        > 2100 A heartbeat
          2100 A <- Heartbeat: UNKNOWN_MEMBER_ID
        > 2100 A heartbeat generation=2
          2100 A <- Heartbeat: UNKNOWN_MEMBER_ID
    """)


def preparing(release):
    """A has rejoined; B, whose session ends at 11000, has not. The join phase would end after 30 s."""
    scene = settled(release, "A session=30000", "B").play("> 2000 A join")
    assert scene.state == "PreparingRebalance"
    return scene


def completing(release):
    """A leads and does not assign; the sessions of both began at 1000: B's ends after 10 s, A's after 30 s."""
    scene = Scene(release).play("""
        > 0 A join session=30000
        > 5 A sync
        > 10 B join
        > 1000 A join
    """)
    assert scene.state == "CompletingRebalance"
    return scene


@pytest.mark.claims("A26", "A21")
def test_heartbeats_in_stable(release):
    scene = settled(release, "A", "B").play("""
        > 9000 B heartbeat
          9000 B <- Heartbeat: NONE
        > 9000 S heartbeat as=stranger generation=2
          9000 S <- Heartbeat: UNKNOWN_MEMBER_ID
        > 9000 B heartbeat generation=1
          9000 B <- Heartbeat: ILLEGAL_GENERATION
        > 30000
    """)
    assert scene.removed() == {"A-1": 11_000, "B-1": 19_000}


@over_time(
    "stranger, other_generation, ends",
    {"0.9": ("REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS", 11_000), "0.10.1": ("UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", 19_000)},
)
@pytest.mark.claims("A21", "A22", "A25", "C04")
def test_heartbeats_in_preparing_rebalance(release, stranger, other_generation, ends):
    # Since 0.10.1 the member is heard of: its session starts again although it is told to rejoin.
    scene = preparing(release).play(f"""
        > 9000 B heartbeat
          9000 B <- Heartbeat: REBALANCE_IN_PROGRESS
        > 9000 S heartbeat as=stranger generation=2
          9000 S <- Heartbeat: {stranger}
        > 9000 B heartbeat generation=1
          9000 B <- Heartbeat: {other_generation}
        > 29000
    """)
    assert scene.removed() == {"B-1": ends}


@over_time(
    "member, stranger, other_generation, ends",
    {
        "0.9": ("REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS", "REBALANCE_IN_PROGRESS", 11_000),
        "0.10.1": ("REBALANCE_IN_PROGRESS", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", 11_000),
        "2.6": ("NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", 19_000),
    },
)
@pytest.mark.claims("A21", "A22", "A24")
def test_heartbeats_in_completing_rebalance(release, member, stranger, other_generation, ends):
    scene = completing(release).play(f"""
        > 9000 B heartbeat
          9000 B <- Heartbeat: {member}
        > 9000 S heartbeat as=stranger generation=2
          9000 S <- Heartbeat: {stranger}
        > 9000 B heartbeat generation=1
          9000 B <- Heartbeat: {other_generation}
        > 25000
    """)
    assert scene.removed() == {"B-1": ends}


# Heartbeats: the order of the checks.


@each(since("2.3"))
@pytest.mark.claims("A20")
def test_a_fenced_instance_is_told_so_although_it_is_no_member_any_more(release):
    scene = Scene(release).play("""
        > 0 A restart static
        > 5 A sync
        > 1000 A restart static
    """)
    assert list(scene.group.members) == ["A-2"]
    scene.play("""
        > 2000 old heartbeat as=A-1 generation=1 instance=instance-A
          2000 old <- Heartbeat: FENCED_INSTANCE_ID
        > 2000 old heartbeat as=A-1 generation=1
          2000 old <- Heartbeat: UNKNOWN_MEMBER_ID
        > 2000 A heartbeat
          2000 A <- Heartbeat: NONE
    """)


@each(("2.6.3", "2.7.2", "2.8.2"))
@pytest.mark.claims("A27")
def test_the_checks_of_a_heartbeat_one_after_the_other(release):
    scene = Scene(release).play("""
        # No group: nothing else matters.
        > 0 A heartbeat as=A-1 generation=7 instance=instance-A
          0 A <- Heartbeat: UNKNOWN_MEMBER_ID
        > 0 A restart static
        > 5 A sync
        > 10 B join
        > 20 A join
        > 25 A sync
        > 26 B sync
        > 1000 B heartbeat
        > 2000 A join
        # PreparingRebalance. Fenced before unknown, unknown before the generation, the generation before the state.
        > 3000 B heartbeat as=stranger generation=7 instance=instance-A
          3000 B <- Heartbeat: FENCED_INSTANCE_ID
        > 3000 B heartbeat as=stranger generation=7
          3000 B <- Heartbeat: UNKNOWN_MEMBER_ID
        > 3000 B heartbeat generation=7
          3000 B <- Heartbeat: ILLEGAL_GENERATION
    """)
    # Who is refused is not heard of.
    scene.play("> 11000")
    assert scene.removed() == {"B-1": 11_000}


@each(("2.6.3", "2.7.2", "2.8.2"))
@pytest.mark.claims("A27", "A19")
def test_a_dead_group_looks_at_nothing_else(release):
    scene = Scene(release).play("> 0 A restart static")
    scene.group.transition_to(Trigger.UNLOADED)  # only a request that raced with the unloading gets here
    scene.play("""
        > 10 A heartbeat as=stranger generation=7 instance=instance-A
          10 A <- Heartbeat: COORDINATOR_NOT_AVAILABLE
    """)


@over_time("snippets_fit", {"2.3": False, "2.6": True, "3.0": False})
@pytest.mark.claims("A47", "A20")
def test_which_releases_the_snippets_of_the_article_are_from(release, snippets_fit):
    # They answer NONE in CompletingRebalance (since 2.6), and ask of an instance only whether it is fenced, not whether it is
    # known (up to 2.8).
    scene = completing(release)
    story = [next(iter(scene.tell(f"9000 B heartbeat{option}"))).split()[-1] for option in ("", " instance=never-seen")]
    assert (story == ["NONE", "NONE"]) is snippets_fit
