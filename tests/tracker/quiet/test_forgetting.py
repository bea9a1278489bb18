"""Groups of which nothing is left are forgotten: tools make one for every run, and a pipeline runs for months."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.codec import decode_shard
from coordinator_model.tracker.shard import FORGET_MS, Shard
from coordinator_model.view.rows import Row
from tests.tracker.consumer.consumer_story import ConsumerStory
from tests.tracker.story import START_MS, Story, play, table

MONTH_MS = FORGET_MS
HOUR_MS = 3_600_000


def lived(story: Story, ms: int, member: str, generation: int = 1) -> Story:
    """A group of one member, from its JoinGroup to its LeaveGroup a minute later."""
    story.at(ms).id_issued(member).at(ms + 3_000).join(member, generation, member, [member], waited=2_900)
    story.at(ms + 3_010).sync(member, generation, {member: ("t-0",)}).beats([member], generation, ms + 4_000, ms + 60_000)
    return story.at(ms + 60_500).leave(member, reason="the consumer is being closed")


def clock(ms: int) -> Event:
    return Event("broker-1", "clock", "", 0, START_MS + ms, START_MS + ms, kinds.CLOCK, beats=(0, 0))


def test_a_group_without_members_is_forgotten_after_a_month():
    story = lived(Story(), 0, "a-1")
    shard = Shard()
    shard.observe([*story.events, *story.heard(120_000)])
    assert shard.summary()[0] == 1
    empty = len(Shard().encode())
    for ms, groups in ((MONTH_MS, 1), (MONTH_MS + 200_000, 0)):  # a minute after its end it is no burst of rebalances either
        assert shard.observe([clock(ms)]) == []
        assert shard.summary()[0] == groups
    assert len(shard.encode()) < empty + 200


def test_an_id_that_was_only_asked_for_is_forgotten_too():
    found = Event("broker-1", "request", "f", 1, START_MS, START_MS - 1, kinds.FIND_COORDINATOR, "console-1", coordinator_id=1)
    shard = Shard()
    shard.observe([found, clock(10_000)])
    assert shard.summary()[1] == 1
    shard.observe([clock(MONTH_MS + 10_000)])
    assert shard.summary() == (0, 0, 0)


def test_a_group_with_members_is_kept_however_long_its_coordinator_has_nothing_to_log():
    story = Story()
    story.at(0).log_preparing(0, "Adding new member a-1 with group instance id null; client reason: not provided.", member="a-1")
    story.at(3_000).log_stabilized(1, members=1)
    story.at(3_010).log_assignment(1, leader="a-1", members=1)
    shard = Shard()
    shard.observe([*story.events, *story.heard(60_000)])
    shard.observe([clock(3 * MONTH_MS)])
    assert shard.summary()[0] == 1


@pytest.mark.parametrize(("left", "kept"), [((), 1), (("a-1",), 0)])
def test_so_is_a_consumer_group_until_its_last_member_has_left(left: tuple[str, ...], kept: int):
    story = ConsumerStory()
    story.at(0).joins("a-1", 1).at(10).beat("a-1", 0, 1, ("t-0",), ("t",))
    for member in left:
        story.at(60_000).line(kinds.DEPARTED, member).raised(2).computed(2)
    shard = Shard()
    shard.observe([*story.events, *story.heard(200_000)])
    shard.observe([clock(3 * MONTH_MS)])
    assert shard.summary()[0] == kept


@pytest.mark.parametrize(("later_ms", "told"), [(MONTH_MS - 3_600_000, [1, 2]), (MONTH_MS + 3_600_000, [1, 2, 1, 2])])
def test_after_a_month_the_name_is_a_new_groups_whether_the_old_one_was_forgotten_by_then_or_not(later_ms: int, told: list[int]):
    """Its generations begin anew. Within the month they would be the old group's: lines that come again."""
    story = lived(lived(Story(), 0, "a-1"), later_ms, "b-1")
    before = [event for event in story.events if event.at_ms < START_MS + later_ms]
    after = story.events[len(before) :]
    heard = story.heard(later_ms + 70_000)
    at_once = play([[*story.events, *heard]])
    in_turn = play([[*before, *story.heard(70_000)], [clock(later_ms - 60_000)], [*after, *heard]], snapshot=True)
    assert [row.values for row in in_turn] == [row.values for row in at_once]
    assert [row["generation"] for row in table(at_once, "rebalances")] == told


def test_a_group_whose_next_line_waits_is_kept_until_that_is_read():
    shard = Shard()
    first = lived(Story(), 0, "a-1")
    shard.observe([*first.events, *first.heard(120_000)])
    again = Story()
    again.at(MONTH_MS + 200_000).id_issued("b-1")
    assert shard.observe([*again.events, clock(MONTH_MS + 200_001)]) == []
    assert shard.summary()[:2] == (1, 1)


def lives(count: int) -> list[Story]:
    """Groups that come and go, one an hour after the other; the first one comes back at last."""
    stories = [lived(Story(f"console-{number}"), number * HOUR_MS, f"c-{number}") for number in range(count)]
    lived(stories[0], count * HOUR_MS, "c-again", 3)
    return stories


def observed(shard: Shard, stories: list[Story], *, stored: bool) -> tuple[list[Row], Shard]:
    """What is told hour by hour, and the shard. `stored`: it passes through its stored form each time."""
    rows = []
    for hour in range(len(stories) + 2):
        begin, end = START_MS + hour * HOUR_MS, START_MS + (hour + 1) * HOUR_MS
        rows += shard.observe(
            [*(e for story in stories for e in story.events if begin <= e.at_ms < end), clock(hour * HOUR_MS + 1_800_000)]
        )
        if stored:
            shard = Shard.decode(shard.encode())
    return rows, shard


def test_groups_at_rest_go_on_as_if_they_had_not_rested():
    stories = lives(20)
    rows, shard = observed(Shard(), stories, stored=True)
    assert rows == observed(Shard(), stories, stored=False)[0]
    state = decode_shard(shard.encode())
    assert (shard.summary()[0], sum(bucket.groups for bucket in state.resting.values())) == (20, 20)
    assert not state.groups
    assert [row["generation"] for row in table(rows, "rebalances") if row["group_id"] == "console-0"] == [1, 2, 3, 4]


def test_groups_at_rest_are_not_unpacked_for_the_event_of_another():
    _, shard = observed(Shard(), lives(20), stored=True)
    before = decode_shard(shard.encode()).resting
    shard.observe([*lived(Story("orders"), 30 * HOUR_MS, "a-1").events, clock(30 * HOUR_MS + 30_000)])
    state = decode_shard(shard.encode())
    assert list(state.groups) == ["orders"]
    assert state.resting == before
    shard.observe([*Story("console-3").at(31 * HOUR_MS).id_issued("c-new").events, clock(31 * HOUR_MS)])
    assert sorted(decode_shard(shard.encode()).groups) == ["console-3"]  # of the other one a minute ago


def test_groups_at_rest_are_forgotten_after_a_month():
    _, shard = observed(Shard(), lives(5), stored=True)
    for hours, groups in ((3, 3), (40, 0)):
        shard.observe([clock(MONTH_MS + hours * HOUR_MS)])
        shard = Shard.decode(shard.encode())
        assert shard.summary()[0] == groups
    assert not decode_shard(shard.encode()).resting
