"""Iteration order of hash maps. The traces check it against Kafka with up to 6 members (0.10: 20); here, the growth."""

import pytest

from coordinator_model.config import HashMapKind
from coordinator_model.map_order import MapOrder, first_of_most, string_hash


def inserted(kind, keys):
    order = MapOrder(kind)
    for size, key in enumerate(keys, start=1):
        order.added(key, size)
    return order


KEYS = [f"k{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("kind", "size", "capacity"),
    [
        (HashMapKind.JAVA, 12, 16),
        (HashMapKind.JAVA, 13, 32),
        (HashMapKind.JAVA, 25, 64),
        (HashMapKind.SCALA_2_13, 11, 16),
        (HashMapKind.SCALA_2_13, 12, 32),
        (HashMapKind.SCALA_2_13, 24, 64),
        (HashMapKind.SCALA_2_11, 12, 16),
        (HashMapKind.SCALA_2_11, 13, 32),
    ],
)
def test_growth(kind, size, capacity):
    assert inserted(kind, KEYS[:size]).capacity == capacity


@pytest.mark.parametrize("kind", HashMapKind)
def test_every_key_once_and_never_a_smaller_map(kind):
    order = inserted(kind, KEYS)
    capacity = order.capacity
    assert sorted(order.keys(KEYS)) == sorted(KEYS)
    for key in KEYS[5:]:
        order.removed(key)
    assert order.capacity == capacity
    assert sorted(order.keys(KEYS[:5])) == KEYS[:5]
    assert order.first(KEYS[:5]) == order.keys(KEYS[:5])[0]
    assert inserted(kind, []).first([]) is None


def test_java_keeps_insertion_order_within_a_bucket():
    # "Aa" and "BB" have the same String.hashCode, the best-known collision of Java.
    assert string_hash("Aa") == string_hash("BB") == 2112
    assert MapOrder(HashMapKind.JAVA).keys(["Aa", "BB"]) == ["Aa", "BB"]
    assert MapOrder(HashMapKind.JAVA).keys(["BB", "Aa"]) == ["BB", "Aa"]


def test_java_buckets_ascend():
    # One-letter strings hash to their code: 'a' is 97, bucket 1; 'p' is 112, bucket 0.
    assert MapOrder(HashMapKind.JAVA).keys(["b", "a", "p"]) == ["p", "a", "b"]


def test_scala_2_11_puts_the_newest_in_front_of_its_bucket():
    assert inserted(HashMapKind.SCALA_2_11, ["Aa", "BB"]).keys(()) == ["BB", "Aa"]


def test_a_vote_that_is_not_tied_needs_no_order():
    for kind in HashMapKind:
        assert first_of_most({"range": 1, "rr": 2}, kind) == "rr"
        assert first_of_most({"range": 2, "rr": 1}, kind) == "range"


@pytest.mark.claims("B06")
def test_a_tied_vote():
    # As in scripted010/vote_tie: 0.10 takes range, 3.9.1 rr.
    assert first_of_most({"rr": 1, "range": 1}, HashMapKind.SCALA_2_11) == "range"
    assert first_of_most({"rr": 1, "range": 1}, HashMapKind.SCALA_2_13) == "rr"
