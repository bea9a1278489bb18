"""A damaged line shows an epoch that is far too high: what comes after it still counts."""

from tests.tracker.consumer.consumer_story import ConsumerStory, told

EPOCHS = ("first_epoch", "generation", "cause", "member_id")
ORDERS = ("orders",)


def logged(third: int = 3, fourth: int = 4) -> ConsumerStory:
    """Two members join, one minute after the other; a third and a fourth one follow within a second."""
    story = ConsumerStory()
    story.at(0).joins("a", 1).at(60_000).joins("b", 2).at(120_000).joins("c", third)
    return story.at(121_000).joins("d", fourth)


def rebalances(story: ConsumerStory, until: int = 600_000):
    return told(story.rows(until=until), "rebalances", *EPOCHS)


def test_a_line_of_the_coordinator_whose_epoch_is_damaged_is_the_round_before_the_next():
    assert rebalances(logged(third=93)) == rebalances(logged())
    assert rebalances(logged())[-1] == (3, 4, "MEMBER_JOINED", "c")


def test_so_it_is_where_lines_are_missing_too():
    """Epochs 3 to 5 are not in the log."""
    assert rebalances(logged(third=96, fourth=7)) == rebalances(logged(third=6, fourth=7))


def test_two_lines_of_one_epoch_are_one_round():
    rows = logged(third=93, fourth=3).rows(until=600_000)
    assert told(rows, "rebalance_rounds", "epoch", "cause", "member_id")[-1:] == [(3, "MEMBER_JOINED", "c")]


def test_after_the_rebalance_was_written_the_next_one_has_the_epoch_of_its_line():
    story = logged(third=93, fourth=94).at(240_000).joins("e", 95)
    assert [row[:2] for row in rebalances(story)] == [(1, 1), (2, 2), (93, 94), (95, 95)]
    late = ConsumerStory().at(0).joins("a", 1).at(60_000).joins("b", 92).at(120_000).joins("c", 3)
    assert [row[:2] for row in rebalances(late)] == [(1, 1), (92, 92), (3, 3)]


def test_a_copy_of_a_line_is_no_round():
    story = logged().at(122_000).raised(4).at(180_000).raised(3)
    assert rebalances(story) == rebalances(logged())


def answered(damaged: int | None = None, agreeing: int | None = None) -> ConsumerStory:
    """Requests alone: two members, and a third one that joins at 20 s."""
    story = ConsumerStory()
    story.at(0).beat("a", 0, 1, ("orders-0", "orders-1"), ORDERS)
    story.at(5_000).beat("b", 0, 2, (), ORDERS).at(5_100).beat("a", 1, 1, ("orders-0",)).at(5_200).beat("a", 1, 2, ("orders-0",))
    story.at(5_300).beat("b", 2, 2, ("orders-1",))
    for ms in (10_000, 15_000):
        story.at(ms).beat("a", 2, 2).at(ms + 300).beat("b", 2, 2)
    if damaged is not None:
        story.at(17_000).beat("a", 2, damaged)
    if agreeing is not None:
        story.at(17_300).beat("b", 2, agreeing)
    return story


def test_an_answer_with_an_epoch_that_no_other_one_has_is_no_evidence():
    def end(story: ConsumerStory) -> ConsumerStory:
        story.at(20_000).beat("c", 0, 3, (), ORDERS).at(20_100).beat("a", 2, 3).at(20_300).beat("b", 2, 3)
        return story.at(25_000).beat("c", 3, 3)

    assert rebalances(end(answered(damaged=902))) == rebalances(end(answered()))
    assert rebalances(end(answered()))[-1] == (3, 3, "MEMBER_JOINED", "c")


def test_a_hole_in_the_log_shows_by_two_answers_that_agree():
    assert rebalances(answered(damaged=50, agreeing=50).at(20_000).beat("a", 2, 50), until=60_000)[-1][1] == 50
    assert rebalances(answered(damaged=50, agreeing=902), until=60_000)[-1][:2] == (2, 2)


def test_a_few_epochs_that_no_line_explains_count_at_once():
    rows = rebalances(answered(damaged=4, agreeing=4).at(20_000).beat("a", 4, 4), until=60_000)
    assert rows[-1][:2] == (3, 4)
