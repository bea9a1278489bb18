"""The assignors alone, where a group would need many steps to get there. The recorded traces test them as groups use them."""

import pytest

from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.consumer.assignors.group_spec import GroupSpec, MemberSpec
from coordinator_model.specification.consumer.assignors.range_assignor import assign_ranges
from coordinator_model.specification.consumer.assignors.target import subscribed_names
from coordinator_model.specification.consumer.assignors.uniform_heterogeneous import assign_evenly
from coordinator_model.specification.consumer.assignors.uniform_homogeneous import assign_uniformly
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.member import ConsumerGroupMember, each_partition
from coordinator_model.specification.consumer.records import RegularExpression
from coordinator_model.specification.consumer.subscriptions import SubscriptionType
from coordinator_model.specification.consumer.topics import Topic, TopicId, TopicImage
from coordinator_model.specification.hash_maps import JavaHashMap, hash_set_of


def spec_of(partitions, members, names=None):
    """A group of members with shares. `partitions`: topic => number; `members`: id => topic => partitions it has.

    Each subscribes to the topics that it has partitions of, or all to `names`.
    """
    topics = {name: Topic(name, TopicId(0, at), count) for at, (name, count) in enumerate(partitions.items())}
    specs = JavaHashMap()
    for member_id, has in members.items():
        share = tuple((topics[name].topic_id, tuple(numbers)) for name, numbers in has.items() if numbers)
        specs.put(member_id, MemberSpec(None, tuple(hash_set_of(names or has)), share))
    assigned = set(each_partition(*(spec.share for _, spec in specs.items())))
    subscription = SubscriptionType.HOMOGENEOUS if names else SubscriptionType.HETEROGENEOUS
    return GroupSpec(specs, subscription, assigned, TopicImage(topics.values()))


def loads(shares):
    return {member_id: sum(len(numbers) for _, numbers in share) for member_id, share in shares.items()}


def test_partitions_wander_from_member_to_member_for_sixteen_rounds():
    # Each topic has two subscribers, so that members form a chain: m0 - m1 - ... - m18. Each has one partition more than the next,
    # but the last has three fewer. What it lacks is made good by its neighbour in the first round, by that one's in the second, ...
    counts = [20 - at for at in range(18)]
    members = {f"m{at}": {f"t{at:02}": range(count)} for at, count in enumerate(counts)}
    members["m18"] = {}
    for at in range(18):
        members[f"m{at + 1}"][f"t{at:02}"] = ()
    after = loads(assign_evenly(spec_of({f"t{at:02}": count for at, count in enumerate(counts)}, members)))
    assert [after[f"m{at}"] for at in range(3)] == [20, 19, 17]  # the sixteenth round takes one from m2, and then it is over


def test_a_share_has_room_for_all_it_is_expected_to_hold():
    shares = assign_evenly(spec_of({"a": 24}, {"m": {"a": ()}, "n": {"a": ()}}))
    orders = {member_id: partitions for member_id, ((_, partitions),) in shares.items()}
    assert orders == {"m": tuple(range(0, 24, 2)), "n": tuple(range(1, 24, 2))}  # in a map with 16 buckets, 16 would follow 0


def test_members_that_drop_a_topic_still_share_the_others():
    shares = assign_uniformly(spec_of({"a": 4, "b": 2}, {"m": {"a": range(4), "b": range(2)}, "n": {}}, names=("b",)))
    assert shares == {"m": ((TopicId(0, 1), (0,)),), "n": ((TopicId(0, 1), (1,)),)}


@pytest.mark.parametrize(("named", "order"), [("x", "abx"), ("xy", "abxy"), ("xyz", "xyzab"), ("axy", "axyb"), ("a", "ab")])
def test_names_and_matches_come_in_the_order_of_a_union_set(named, order):
    state = ConsumerGroupState.new(KafkaVersion.of("4.2.0"))
    state.replay(RegularExpression("[ab]", ("a", "b"), 0, 0))
    member = ConsumerGroupMember("m", topics=tuple(named), regex="[ab]")
    assert subscribed_names(state, member) == tuple(order)  # the larger set first; of equals, the matches


# The ids of these topics share a bucket of a small map, and so do their names: there, the order in which they were put in is seen.
TWINS = {"zero": 1, "Aa": 2, "two": 1, "three": 1, "four": 1, "BB": 2}
AA, BB = TopicId(0, 1), TopicId(0, 5)


def topics_in_order(shares):
    return {member_id: [topic_id for topic_id, _ in share] for member_id, share in shares.items()}


def test_ranges_of_equal_members_come_in_the_order_of_the_first():
    spec = spec_of(TWINS, {"m": {}, "n": {}}, names=("BB", "Aa"))
    spec.members.put("n", spec.members["n"]._replace(names=("Aa", "BB")))
    assert topics_in_order(assign_ranges(spec)) == {"m": [BB, AA], "n": [BB, AA]}


def test_names_of_topics_that_do_not_exist_count_where_members_differ():
    absent = ("x", "y", "z")
    same = spec_of(TWINS, {"m": {}}, names=("BB", "Aa", *absent))
    assert topics_in_order(assign_ranges(same)) == {"m": [BB, AA]}
    different = same._replace(subscription=SubscriptionType.HETEROGENEOUS)
    assert topics_in_order(assign_ranges(different)) == {"m": [AA, BB]}  # room for five: a bucket each


def test_a_topic_of_which_a_member_gave_all_is_no_longer_in_its_share():
    shares = assign_evenly(spec_of({"a": 1, "b": 2}, {"m": {"a": (0,), "b": (0, 1)}, "n": {"a": ()}}))
    assert shares == {"m": ((TopicId(0, 1), (0, 1)),), "n": ((TopicId(0, 0), (0,)),)}
