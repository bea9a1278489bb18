"""Iteration order of hash maps. The traces check it against Kafka with up to 6 members (0.10: 20); here, the growth."""

import itertools

import pytest

from coordinator_model.specification.config import HashMapKind
from coordinator_model.specification.map_order import MapOrder, _improve_immutable, first_of_most, string_hash


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


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ("a34 a82 a91 a37 a58 a89 a41 a63 a60 a14 a3 a39", "a3"),  # 12: as many as a table of 16 holds
        ("a28 a2 a50 a18 a4 a92 a20 a57 a90 a64 a86 a54 a69", "a54"),  # 13: the table has 32 places now
    ],
)
def test_a_tie_of_many_in_java(names, first):
    """What a JVM's HashMap yields first."""
    assert first_of_most(dict.fromkeys(names.split(), 1), HashMapKind.JAVA) == first


def scala_improve(hash_code):
    """scala.collection.Hashing.improve, as it is written there: with signed numbers of 32 bits."""

    def int32(number):
        return (number + 2**31) % 2**32 - 2**31

    def shift_right(number, bits):  # >>>
        return int32(number % 2**32 // 2**bits)

    h = int32(hash_code + int32(-int32(hash_code * 2**9) - 1))
    h = int32(h ^ shift_right(h, 14))
    h = int32(h + int32(h * 2**4))
    return int32(h ^ shift_right(h, 10))


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky", "", *KEYS])
def test_immutable_maps_of_scala_2_13_mix_the_hash(name):
    assert _improve_immutable(name) == scala_improve(string_hash(name)) % 2**32


def digits(name):
    """The hash as an immutable map of Scala 2.13 reads it: five bits at a time, from the lowest."""
    h = scala_improve(string_hash(name))
    return [h // 2**shift % 32 if shift < 30 else h % 2**32 // 2**30 for shift in range(0, 35, 5)]


ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", *KEYS)


def test_a_tie_of_two():
    for names in itertools.permutations(ASSIGNORS, 2):
        votes = dict.fromkeys(names, 1)
        assert first_of_most(votes, HashMapKind.SCALA_2_13) == min(names, key=digits)
        for kind in (HashMapKind.JAVA, HashMapKind.SCALA_2_11):
            assert first_of_most(votes, kind) == inserted(kind, votes).first(votes)


def test_in_scala_2_13_names_that_share_a_place_come_after_all_others():
    assert [digits(name)[0] for name in ("range", "sticky", "default")] == [20, 20, 21]
    assert first_of_most({"range": 1, "sticky": 1, "default": 1}, HashMapKind.SCALA_2_13) == "default"
    assert first_of_most({"range": 2, "sticky": 1, "default": 1}, HashMapKind.SCALA_2_13) == "range"


def test_names_of_one_hash():
    for names in (("Aa", "BB"), ("BB", "Aa")):
        first, last = names
        votes = dict.fromkeys(names, 1)
        winners = [first_of_most(votes, kind) for kind in (HashMapKind.JAVA, HashMapKind.SCALA_2_13, HashMapKind.SCALA_2_11)]
        assert winners == [first, first, last]
