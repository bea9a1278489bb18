"""Epochs that no line has, and targets whose epoch no other line has."""

import json

from coordinator_model import events as kinds
from coordinator_model.view.rows import Row
from jobs.laws.laws import breaches
from tests.tracker.consumer.consumer_story import ConsumerStory, told

DAY = 86_400_000
TOPICS = ("orders",)


def holes(rows: list[Row]) -> list[tuple]:
    """First and last missing epoch, when the hole begins, how long it is, and the epoch before."""
    found = [row for row in told(rows, "findings", "code", "occurred_at", "details", "generation") if row[0] == "LINES_MISSING"]
    return [(d["first"], d["last"], at, d["hole_ms"], epoch) for _, at, details, epoch in found for d in [json.loads(details)]]


def lawful(story: ConsumerStory) -> list[Row]:
    """The rows, which break no law."""
    rows = story.rows()
    assert breaches({name: [row.values for row in rows if row.table == name] for name in {row.table for row in rows}}) == []
    return rows


def logged() -> ConsumerStory:
    """a and b are members of epoch 2."""
    return ConsumerStory().at(0).joins("a", 1).at(60_000).joins("b", 2)


def test_the_missing_epochs_are_said():
    rows = lawful(logged().at(DAY).joins("c", 33))
    assert holes(rows) == [(3, 32, 60_000, DAY - 60_000, 2)]
    (message,) = [row[1] for row in told(rows, "findings", "code", "message")]
    assert message == "Epochs 3 to 32 are missing from these lines: what the group did for 23 h 59 min is not known."
    assert told(rows, "rebalances", "generation", "cause", "members_before", "joined", "left")[-1] == (33, "MEMBER_JOINED", None, ["c"], [])


def test_a_rebalance_that_ran_before_them_ended_unseen():
    story = logged().at(61_000).joins("c", 33)
    assert told(lawful(story), "rebalances", "first_epoch", "generation", "end_seen", "total_ms")[1:] == [
        (2, 2, False, None),
        (33, 33, False, None),
    ]
    assert holes(story.rows()) == [(3, 32, 60_000, 1_000, 2)]


def test_who_departs_with_the_first_epoch_after_them_is_told():
    story = logged().at(DAY).line(kinds.EXPIRED, "b").at(DAY + 1).raised(40).at(DAY + 3_000).computed(40)
    rows = lawful(story)
    assert told(rows, "rebalances", "generation", "cause", "member_id", "left")[-1] == (40, "SESSION_TIMEOUT", "b", ["b"])
    assert [hole[:2] for hole in holes(rows)] == [(3, 39)]


def test_a_departure_that_has_no_line_about_its_epoch_is_no_hole():
    """Up to Kafka 3.9 a departure raises the epoch, and no line says so."""
    story = logged().at(90_000).line(kinds.DEPARTED, "b").at(90_500).joins("c", 4)
    assert holes(lawful(story)) == []


def test_a_coordinator_that_gives_the_group_up_names_its_epoch():
    story = logged().at(DAY).line(kinds.GIVEN_UP, generation=9).at(DAY + 1_000).joins("c", 10)
    assert holes(lawful(story)) == [(3, 9, 60_000, DAY - 60_000, 2)]


def test_records_are_compacted():
    story = logged()
    story.on("offsets").at(DAY).add("offsets", kinds.EPOCH_STORED, generation=33)
    assert holes(story.rows()) == []


def test_a_late_start_is_none():
    assert holes(ConsumerStory().at(0).joins("a", 33).rows()) == []


def answered() -> ConsumerStory:
    """Requests alone: a and b are reconciled to epoch 2."""
    story = ConsumerStory().at(0).beat("a", 0, 1, ("orders-0", "orders-1"), TOPICS)
    story.at(5_000).beat("b", 0, 2, (), TOPICS).at(5_100).beat("a", 1, 1, ("orders-0",)).at(5_200).beat("a", 1, 2, ("orders-0",))
    return story.at(5_300).beat("b", 2, 2, ("orders-1",))


def test_two_answers_that_agree_show_a_hole_if_so_many_members_cannot_have_departed():
    story = answered().at(15_000).beat("a", 2, 50).at(15_300).beat("b", 2, 50).at(20_000).beat("a", 50, 50)
    rows = lawful(story.at(40_000).beat("a", 50, 50).at(40_001).beat("b", 50, 50))
    assert told(rows, "rebalance_rounds", "epoch") == [(1,), (2,), (50,)]
    assert holes(rows) == [(3, 49, 5_299, 10_001, 2)]
    assert told(rows, "rebalances", "partitions_moved", "members_before")[-1] == (None, None)


# targets


def targets(*epochs: int) -> list[Row]:
    """Of all lines those about targets alone, one a minute."""
    story = ConsumerStory()
    for minute, epoch in enumerate(epochs):
        story.at(60_000 * minute).computed(epoch)
    return lawful(story)


def test_a_computed_target_implies_its_epoch():
    columns = "generation", "first_epoch", "started_at", "start_seen", "total_ms", "cause", "protocol"
    assert told(targets(7, 8), "rebalances", *columns) == [
        (7, 7, 0, False, None, "UNKNOWN", "uniform"),
        (8, 8, 60_000, False, None, "UNKNOWN", "uniform"),
    ]
    assert told(targets(7, 8), "rebalance_rounds", "epoch", "start_exact", "computed_at") == [(7, False, 0), (8, False, 60_000)]
    assert holes(targets(7, 8)) == []


def test_targets_show_holes_too():
    assert holes(targets(7, 8, 15)) == [(9, 14, 60_000, 60_000, 8)]


def test_a_target_that_is_computed_again_is_the_same_rebalance():
    story = logged().at(60_900).computed(2)
    assert [row[0] for row in told(lawful(story), "rebalances", "generation")] == [1, 2]
