"""The iteration orders of hash maps. The recorded traces check them against Kafka where they decide something; here, the growth."""

import itertools

import pytest

from coordinator_model.specification import hash_maps
from coordinator_model.specification.config import HashMapKind
from coordinator_model.specification.consumer.topics import TopicId


def inserted(kind, keys):
    order = hash_maps.MapOrder(kind)
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
    assert hash_maps.string_hash("Aa") == hash_maps.string_hash("BB") == 2112
    assert hash_maps.MapOrder(HashMapKind.JAVA).keys(["Aa", "BB"]) == ["Aa", "BB"]
    assert hash_maps.MapOrder(HashMapKind.JAVA).keys(["BB", "Aa"]) == ["BB", "Aa"]


def test_java_buckets_ascend():
    # One-letter strings hash to their code: 'a' is 97, bucket 1; 'p' is 112, bucket 0.
    assert hash_maps.MapOrder(HashMapKind.JAVA).keys(["b", "a", "p"]) == ["p", "a", "b"]


def test_scala_2_11_puts_the_newest_in_front_of_its_bucket():
    assert inserted(HashMapKind.SCALA_2_11, ["Aa", "BB"]).keys(()) == ["BB", "Aa"]


def test_a_vote_that_is_not_tied_needs_no_order():
    for kind in HashMapKind:
        assert hash_maps.first_of_most({"range": 1, "rr": 2}, kind) == "rr"
        assert hash_maps.first_of_most({"range": 2, "rr": 1}, kind) == "range"


@pytest.mark.claims("B06")
def test_a_tied_vote():
    # As in scripted010/vote_tie: 0.10 takes range, 3.9.1 rr.
    assert hash_maps.first_of_most({"rr": 1, "range": 1}, HashMapKind.SCALA_2_11) == "range"
    assert hash_maps.first_of_most({"rr": 1, "range": 1}, HashMapKind.SCALA_2_13) == "rr"


@pytest.mark.parametrize(
    ("names", "first"),
    [
        ("a34 a82 a91 a37 a58 a89 a41 a63 a60 a14 a3 a39", "a3"),  # 12: as many as a table of 16 holds
        ("a28 a2 a50 a18 a4 a92 a20 a57 a90 a64 a86 a54 a69", "a54"),  # 13: the table has 32 places now
    ],
)
def test_a_tie_of_many_in_java(names, first):
    """What a JVM's HashMap yields first."""
    assert hash_maps.first_of_most(dict.fromkeys(names.split(), 1), HashMapKind.JAVA) == first


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
    assert hash_maps._improve_immutable(name) == scala_improve(hash_maps.string_hash(name)) % 2**32


def digits(name):
    """The hash as an immutable map of Scala 2.13 reads it: five bits at a time, from the lowest."""
    h = scala_improve(hash_maps.string_hash(name))
    return [h // 2**shift % 32 if shift < 30 else h % 2**32 // 2**30 for shift in range(0, 35, 5)]


ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky", *KEYS)


def test_a_tie_of_two():
    for names in itertools.permutations(ASSIGNORS, 2):
        votes = dict.fromkeys(names, 1)
        assert hash_maps.first_of_most(votes, HashMapKind.SCALA_2_13) == min(names, key=digits)
        for kind in (HashMapKind.JAVA, HashMapKind.SCALA_2_11):
            assert hash_maps.first_of_most(votes, kind) == inserted(kind, votes).first(votes)


def test_in_scala_2_13_names_that_share_a_place_come_after_all_others():
    assert [digits(name)[0] for name in ("range", "sticky", "default")] == [20, 20, 21]
    assert hash_maps.first_of_most({"range": 1, "sticky": 1, "default": 1}, HashMapKind.SCALA_2_13) == "default"
    assert hash_maps.first_of_most({"range": 2, "sticky": 1, "default": 1}, HashMapKind.SCALA_2_13) == "range"


def test_names_of_one_hash():
    for names in (("Aa", "BB"), ("BB", "Aa")):
        first, last = names
        votes = dict.fromkeys(names, 1)
        winners = [hash_maps.first_of_most(votes, kind) for kind in (HashMapKind.JAVA, HashMapKind.SCALA_2_13, HashMapKind.SCALA_2_11)]
        assert winners == [first, first, last]


def java_map(capacity=16, **entries):
    made = hash_maps.JavaHashMap(capacity)
    for key, value in entries.items():
        made.put(key, value)
    return made


def test_hash_codes_are_javas():
    assert hash_maps.java_hash("ab") == 97 * 31 + 98
    assert hash_maps.java_hash(7) == 7
    assert hash_maps.java_hash(TopicId(1 << 32, 5)) == 1 ^ 5
    assert hash_maps.java_hash(TopicId(-1, 0)) == 0


def test_capacities_are_powers_of_two():
    assert [hash_maps.table_size_for(size) for size in (0, 1, 2, 3, 4, 5, 16, 17)] == [1, 1, 2, 4, 4, 8, 16, 32]
    assert [hash_maps.capacity_of_copy(size) for size in (0, 1, 3, 12)] == [1, 2, 5, 17]


def test_buckets_come_in_order_and_grow_when_three_quarters_are_used():
    assert list(hash_maps.hash_set([17, 1, 2])) == [17, 1, 2]  # 17 and 1 share a bucket
    numbers = hash_maps.hash_set([17, *range(12)])  # the thirteenth makes it grow
    assert numbers.capacity == 32
    assert list(numbers) == [*range(12), 17]
    assert hash_maps.hash_set_of(range(12)).capacity == 32  # room for 12 / 0.75 + 1
    assert hash_maps.hash_set_of(range(11)).capacity == 16


def test_put_appends_to_a_bucket_and_compute_prepends():
    made = java_map(2, uniform=1)
    made.compute("range", lambda count: (count or 0) + 1)
    assert list(made) == ["range", "uniform"]
    made.compute("range", lambda count: count + 1)
    made.put("uniform", 3)
    assert list(made.items()) == [("range", 2), ("uniform", 3)]
    made.compute("uniform", lambda _: None)
    made.compute("absent", lambda _: None)
    assert list(made) == ["range"]
    assert "range" in made
    assert len(made) == 1
    assert list(java_map(2, uniform=1, range=1)) == ["uniform", "range"]


def test_a_key_that_was_taken_out_keeps_no_place():
    made = java_map(2, uniform=1)
    made.compute("range", lambda _: 1)
    made.remove("range")
    made.put("range", 1)
    assert list(made) == ["uniform", "range"]


def test_compute_grows_before_it_inserts():
    made = hash_maps.JavaHashMap(1)
    capacities = []
    for key in range(4):
        made.compute(key, lambda _: True)
        capacities.append(made.capacity)
    assert capacities == [1, 2, 4, 4]


def timeline(*keys):
    made = hash_maps.TimelineHashMap()
    for key in keys:
        made.put(key, key.upper())
    made.commit()
    return made


def test_a_timeline_map_gives_the_newest_of_a_bucket_first():
    made = timeline("a", "b", "c")
    assert made.capacity() == 2 * 2
    assert sorted(made) == ["a", "b", "c"]
    assert list(made.items()) == [(key, key.upper()) for key in made]
    assert list(made.values()) == [key.upper() for key in made]
    made = timeline(*"abcdefghij")
    assert made.capacity() == 8  # ten keys in eight buckets
    buckets = [key for key, _ in made.stored()]
    assert buckets != list(made)
    assert sorted(buckets) == sorted(made)


@pytest.mark.parametrize("keys", [(1_905_774_538, 28_190), (100_828, 683_008_263)])
def test_the_multiplier_of_hashes_is_exact_to_the_last_bit(keys):
    # Both keys are in one bucket. The large one is so near to its end that a multiplier that is off by one puts it into the next.
    made = hash_maps.TimelineHashMap.restored(1 << 16, [(key, "") for key in keys])
    assert list(made) == [*reversed(keys)]


def test_a_revert_brings_back_every_entry_and_keeps_the_size():
    made = timeline("a", "b")
    before = dict(made.items())
    for key in "cdefgh":
        made.put(key, "new")
    made.put("a", "changed")
    made.put("a", "changed twice")
    made.remove("b")
    made.remove("b")
    made.remove("c")
    assert "b" not in made
    grown = made.capacity()
    made.revert()
    assert dict(made.items()) == before
    assert len(made) == 2
    assert made.capacity() == grown > timeline("a", "b").capacity()
    made.revert()  # nothing was done since
    assert dict(made.items()) == before


def test_a_key_that_was_taken_out_needs_no_room():
    made = timeline("a", "b")
    made.remove("b")
    made.put("b", "B")
    assert made.capacity() == 2
    made.put("c", "C")
    assert made.capacity() == 4


def test_a_revert_moves_only_what_changed_since_the_one_before():
    made = timeline("Aa", "BB")  # of the same hash code
    assert list(made) == ["BB", "Aa"]
    for keys, order in (("Aa",), ["Aa", "BB"]), (("Aa", "BB"), ["BB", "Aa"]), (("Aa",), ["Aa", "BB"]):
        for key in keys:
            made.put(key, "new")
        made.revert()
        assert list(made) == order


def test_a_copy_of_a_timeline_map_is_independent_and_in_the_same_order():
    made = timeline(*"abcdefgh")
    other = made.copy()
    assert list(other) == list(made)
    other.put("z", "Z")
    other.commit()
    assert "z" not in made
    assert made["a"] == "A"
    assert made.get("z") is None


def test_a_copy_of_a_timeline_map_grows_when_the_map_does():
    made = timeline(*"abcde")
    other = made.copy()
    for key in "fghijklm":
        for one in (made, other):
            one.put(key, key)
            one.commit()
        assert other.capacity() == made.capacity()
        assert list(other) == list(made)
    assert made.capacity() > timeline(*"abcde").capacity()
