"""What a heartbeat that changes a subscription makes of the subscriptions of the group, before it is written."""

from coordinator_model.specification.consumer.core import Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.handlers.epochs import names_after, update_epoch
from coordinator_model.specification.consumer.handlers.membership import MemberChange
from coordinator_model.specification.consumer.member import ConsumerGroupMember
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from tests.specification.consumer.small_consumer_groups import SmallGroup, joining


def with_expressions(*expressions):
    """Members m0, m1, ..., each with an expression whose topics are known."""
    group = SmallGroup()
    for at, expression in enumerate(expressions):
        group.ask(joining(f"m{at}", topics=(), regex=expression, rebalance_timeout_ms=600_000), 11_000 * at)
    assert set(group.state.resolved) == set(expressions)
    return group


def subscription_after(group, before, after):
    place = group.coordinator.groups["g"]
    return update_epoch(place, place.state, MemberChange(before, after), BumpCause.SUBSCRIPTION, Operation()).subscription


def test_a_change_of_expression_counts_before_it_is_written():
    group = with_expressions("a", "b")
    first = group.member("m0")
    assert set(names_after(group.state, MemberChange(first, first._replace(regex="b")))) == {"b"}
    assert set(names_after(group.state, MemberChange(first, first._replace(rack_id="r")))) == {"a", "b"}
    newcomer = ConsumerGroupMember("o")
    assert subscription_after(group, newcomer, newcomer._replace(regex="b")) is SubscriptionType.HETEROGENEOUS
    group = with_expressions("a")
    only = group.member("m0")
    assert subscription_after(group, only, only._replace(regex="nobody has it")) is SubscriptionType.HOMOGENEOUS


def test_an_expression_that_others_use_keeps_its_topics():
    group = with_expressions("a", "a")
    first = group.member("m0")
    change = MemberChange(first, first._replace(regex="", topics=("b",)))
    assert names_after(group.state, change) == {"a": (0, 1), "b": (1, 0)}


def test_a_static_member_that_returns_is_not_counted_twice():
    group = SmallGroup().after(joining("m", instance_id="i"), joining("n", "a", "b"))
    returned = group.member("m")._replace(member_id="new", epoch=0)
    assert subscription_after(group, returned, returned._replace(topics=("a", "b"))) is SubscriptionType.HOMOGENEOUS
    newcomer = ConsumerGroupMember("o", instance_id="another")
    assert subscription_after(group, newcomer, newcomer._replace(topics=("a",))) is SubscriptionType.HETEROGENEOUS


def test_a_member_that_takes_the_expression_of_another_makes_both_alike():
    group = with_expressions("a", "b")
    for member_id, other in (("m0", "b"), ("m1", "a")):  # an expression that nobody has any more comes first in one of both orders
        member = group.member(member_id)
        assert subscription_after(group, member, member._replace(regex=other)) is SubscriptionType.HOMOGENEOUS


def test_a_member_that_names_topics_beside_a_new_expression_is_not_alike():
    group = SmallGroup().after(joining("m", "b"))
    only = group.member("m")
    assert subscription_after(group, only, only._replace(regex="a")) is SubscriptionType.HETEROGENEOUS
