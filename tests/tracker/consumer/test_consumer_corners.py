"""Rare turns of groups of the consumer protocol."""

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.specification.consumer.codec import encode_consumer_group
from coordinator_model.specification.consumer.group import ConsumerGroup
from coordinator_model.tracker.consumer import prediction, replay, settling, undecided
from coordinator_model.tracker.group import GroupTracker
from coordinator_model.view.consumer_view import ConsumerView
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import View
from tests.tracker.consumer.consumer_story import ConsumerStory, told
from tests.tracker.story import START_MS

ORDERS = ("orders",)
BOTH = ("orders-0", "orders-1")


def one_member() -> ConsumerStory:
    """Of which requests and the coordinator's log tell: it joins."""
    return ConsumerStory().at(0).joins("a-1", 1).beat("a-1", 0, 1, BOTH, ORDERS)


def rebalances(story: ConsumerStory, until: int = 600_000):
    return told(story.rows(until=until), "rebalances", "first_epoch", "cause", "member_id")


def sessions(story: ConsumerStory, until: int = 600_000):
    return told(story.rows(until=until), "member_sessions", "member_id", "end_kind", "joined_at", "ended_at")


# Members of the classic protocol


def test_a_classic_member_joins_a_consumer_group_and_leaves_it():
    story = one_member()
    story.at(10_000).join("b-1", 2, "").at(10_100).sync("b-1", 2, {"b-1": ("orders-1",)})
    story.at(15_000).beat("a-1", 1, 2, ("orders-0",)).at(20_000).leave("b-1").at(25_000).beat("a-1", 2, 3, BOTH)
    rows = story.rows(until=600_000)
    assert told(rows, "rebalance_rounds", "epoch", "cause", "member_id") == [
        (1, "MEMBER_JOINED", "a-1"),
        (2, "MEMBER_JOINED", "b-1"),
        (3, "MEMBER_LEFT", "b-1"),
    ]
    assert told(rows, "rebalances", "first_epoch", "ended_at") == [(1, 0), (2, 25_000)]  # b-1 left before it had acknowledged epoch 2


@pytest.mark.parametrize("wrong", ["refused", "unknown", "unassigned"])
def test_requests_of_classic_members_that_say_nothing_of_the_group(wrong):
    story = one_member()
    usual = rebalances(story)
    story.at(10_000)
    if wrong == "refused":
        story.join("b-1", -1, "", error_code=Error.GROUP_MAX_SIZE_REACHED)
    elif wrong == "unknown":
        story.sync("b-1", 1)
    else:
        story.request(kinds.SYNC_GROUP, "a-1", generation=1)
    assert rebalances(story) == usual


# Removal


def test_a_group_that_is_deleted_by_a_request():
    story = one_member().at(10_000).beat("a-1", -1, -1)
    story.at(20_000).request(kinds.DELETE_GROUPS, "")
    steps = told(story.rows(until=600_000), "group_transitions", "from_state", "to_state")
    assert steps[-1] == ("Empty", "Dead")


def test_a_group_is_removed_once():
    """The request and the coordinator's log tell so."""
    story = one_member().at(10_000).beat("a-1", -1, -1)
    story.at(20_000).request(kinds.DELETE_GROUPS, "").at(20_001).log(kinds.GROUP_DEAD)
    steps = told(story.rows(until=600_000), "group_transitions", "to_state")
    assert steps.count(("Dead",)) == 1


# Members


def test_a_member_that_nobody_knows_leaves_for_a_while():
    story = one_member().at(10_000)
    usual = rebalances(story)
    assert rebalances(story.beat("z-1", -2, -2, instance_id="z")) == usual


def test_a_member_that_is_known_by_heartbeats_alone_joins_again():
    """It was fenced, and has kept its id: when it joined first is not known."""
    story = ConsumerStory().at(0).beat("a-1", 7, 7).beat("b-1", 7, 7).at(5_000).beat("a-1", 0, 7, BOTH, ORDERS).beat("b-1", 7, 7)
    story.at(10_000).beat("a-1", -1, -1).at(11_000).beat("b-1", 7, 8, BOTH)
    assert sessions(story)[:1] == [("a-1", "LEFT", 4_999, 10_000)]


# Calm groups


@pytest.mark.parametrize("sign", [{"member": "z-1"}, {"member": "a-1", "instance_id": "another"}, {"member": "away-1"}])
def test_a_heartbeat_that_is_not_steady_is_looked_at(sign):
    """Of a member that nobody knows, under an instance id that its member does not have, of one that is away."""
    story = one_member()
    story.at(100).joins("away-1", 2, instance_id="away").beat("away-1", 0, 2, (), ORDERS, instance_id="away")
    story.at(200).beat("a-1", 1, 1, ("orders-0",)).at(300).beat("a-1", 1, 2, ("orders-0",)).at(400).beat("away-1", 2, 2, ("orders-1",))
    story.at(70_000).beat("away-1", -2, -2, instance_id="away")
    for ms in range(5_000, 120_000, 5_000):
        story.at(ms).beat("a-1", 2, 2, beats=(0,))
    story.at(121_000).beat(sign.pop("member"), 2, 2, beats=(0,), **sign)
    assert rebalances(story)[:2] == [(1, "MEMBER_JOINED", "a-1"), (2, "MEMBER_JOINED", "away-1")]


# State of earlier versions


def test_a_state_that_knows_no_consumer_group_goes_on_with_one():
    g = GroupTracker(View("orders", consumer_protocol=True, consumer=None), TrackerSettings())
    (event,) = ConsumerStory().at(0).raised(5).events
    g.observe(event)
    assert g.view.consumer is not None
    assert g.view.consumer.epoch == 5


def test_a_state_that_knows_no_consumer_group_goes_on_with_a_classic_one():
    g = GroupTracker(View("orders", consumer_protocol=True, consumer=None), TrackerSettings())
    (event,) = ConsumerStory().at(0).join("a-1", 5, "a-1", ("a-1",)).events
    g.observe(event)
    assert not g.view.consumer_protocol
    assert g.rows == []


# Predicted answers


def test_an_error_of_the_broker_is_not_compared():
    """UNKNOWN_SERVER_ERROR: what became of the request is not known."""
    view = ConsumerView()
    (event,) = ConsumerStory().at(0).refused("a-1", 1, -1).events
    prediction.observe(view, event)
    assert view.prediction.undecided == {undecided.NOT_FOLLOWED: 1}


def test_a_rebalance_with_more_requests_than_are_kept_is_not_compared():
    view = ConsumerView()
    events = ConsumerStory().at(0).joins("a-1", 1).events[:1]
    for event in events * (prediction.CAPACITY + 1):
        prediction.note_reload(view, event)
    assert view.prediction.queue == []


def test_a_group_that_nobody_has_joined_yet_is_followed_from_its_stored_form():
    g, view = GroupTracker(View("orders"), TrackerSettings()), ConsumerView()
    empty = ConsumerGroup("orders", replay.settings("4.2.0"), START_MS, image=replay.image_of({}))
    view.prediction.group = encode_consumer_group(empty)
    (event,) = ConsumerStory().at(0).beat("a-1", 0, 1, (), ORDERS, rebalance_timeout_ms=60_000, owned=()).events
    settling.settle(g, view, [event], None, [])
    assert view.prediction.compared == 1


# Other evidence


def test_a_poll_that_finds_a_dead_group_ends_it_whichever_protocol_it_followed():
    """Admin describe gives a group that is gone no type."""
    story = ConsumerStory().at(0)
    story.broker = kinds.POLL_SOURCE
    story.add(kinds.POLL_SOURCE, kinds.CONSUMER_GROUP_DESCRIBED, state="Empty")
    story.at(10_000).add(kinds.POLL_SOURCE, kinds.GROUP_DESCRIBED, state="Dead")
    assert told(story.rows(until=600_000), "group_transitions", "to_state")[-1] == ("Dead",)
