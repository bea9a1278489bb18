"""`Generated 7 tombstone records while cleaning up group metadata`: Kafka 4 names the partition, not the group that went."""

import pytest

from coordinator_model import events as kinds
from tests.diagnosis.narrated import Group
from tests.tracker.story import Story, play, table

PARTITION = 5


def emptied() -> Group:
    """orders has one member, which leaves at 60 s."""
    group = Group("a").live(60_000)
    group.leaves("a", "the consumer is being closed")
    group.events = [e._replace(coordinator_partition=PARTITION) if e.source == "coordinator" else e for e in group.events]
    return group


def cleaned(group: Story, ms: int, partition: int = PARTITION, count: int = 7) -> Story:
    group.at(ms)
    return group.add("coordinator", kinds.GROUPS_CLEANED, group_id="", coordinator_partition=partition, member_count=count)


def ends(rows):
    return [(row["occurred_at"], row["trigger"]) for row in table(rows, "group_transitions") if row["to_state"] == "Dead"]


def test_the_only_group_of_the_partition_went_if_it_was_empty():
    group = cleaned(emptied(), 200_000)
    assert ends(group.rows(260_000)) == [(200_000, "OFFSETS_EXPIRED")]


@pytest.mark.parametrize(("partition", "count"), [(PARTITION + 1, 7), (PARTITION, 0)])
def test_it_stays_if_another_partition_was_cleaned_or_nothing_had_expired(partition, count):
    assert ends(cleaned(emptied(), 200_000, partition, count).rows(260_000)) == []


def test_a_group_at_work_loses_only_offsets_that_it_does_not_use():
    """KIP-496: topics that no member subscribes to any more."""
    group = Group("a").live(60_000)
    group.events = [e._replace(coordinator_partition=PARTITION) if e.source == "coordinator" else e for e in group.events]
    assert ends(cleaned(group, 200_000).rows(260_000)) == []


@pytest.mark.parametrize(("seen_ms", "gone"), [(100_000, []), (230_000, [(200_000, "OFFSETS_EXPIRED")])])
def test_of_two_groups_nobody_can_say_which_one_unless_the_other_came_later(seen_ms, gone):
    group = emptied()
    group.at(seen_ms).add("coordinator", kinds.MEMBER_ID_ISSUED, group_id="other", coordinator_partition=PARTITION, member_id="m")
    cleaned(group, 200_000)
    events = [*group.events, *group.heard(260_000)]
    assert ends(play([events])) == gone
    assert ends(play([[event] for event in sorted(events, key=lambda e: e.at_ms)], snapshot=True)) == gone


def test_a_group_that_comes_back_begins_anew():
    group = cleaned(emptied(), 200_000)
    group.now, group.generation = 210_000, 0
    group.is_at(210_000).comes("b", ends=3_000)
    rows = play([[*group.evidence("both logs", 260_000)]])
    assert [row["generation"] for row in table(rows, "rebalances")] == [1, 2, 1]
    assert not [row for row in table(rows, "findings") if row["code"] == "MODEL_DIVERGENCE"]
