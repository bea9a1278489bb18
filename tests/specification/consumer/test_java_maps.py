"""The iteration orders of Java's and Kafka's hash maps. The recorded traces test them where they decide something."""

import pytest

from coordinator_model.specification.consumer.java_maps import (
    JavaHashMap,
    TimelineHashMap,
    capacity_of_copy,
    hash_set,
    hash_set_of,
    java_hash,
    table_size_for,
)
from coordinator_model.specification.consumer.topics import TopicId


def java_map(capacity=16, **entries):
    made = JavaHashMap(capacity)
    for key, value in entries.items():
        made.put(key, value)
    return made


def test_hash_codes_are_javas():
    assert java_hash("ab") == 97 * 31 + 98
    assert java_hash(7) == 7
    assert java_hash(TopicId(1 << 32, 5)) == 1 ^ 5
    assert java_hash(TopicId(-1, 0)) == 0


def test_capacities_are_powers_of_two():
    assert [table_size_for(size) for size in (0, 1, 2, 3, 4, 5, 16, 17)] == [1, 1, 2, 4, 4, 8, 16, 32]
    assert [capacity_of_copy(size) for size in (0, 1, 3, 12)] == [1, 2, 5, 17]


def test_buckets_come_in_order_and_grow_when_three_quarters_are_used():
    assert list(hash_set([17, 1, 2])) == [17, 1, 2]  # 17 and 1 share a bucket
    numbers = hash_set([17, *range(12)])  # the thirteenth makes it grow
    assert numbers.capacity == 32
    assert list(numbers) == [*range(12), 17]
    assert hash_set_of(range(12)).capacity == 32  # room for 12 / 0.75 + 1
    assert hash_set_of(range(11)).capacity == 16


def test_put_appends_to_a_bucket_and_compute_prepends():
    made = java_map(2, uniform=1)
    made.compute("range", lambda count: (count or 0) + 1)
    assert list(made) == ["range", "uniform"]
    made.compute("range", lambda count: count + 1)
    made.put("uniform", 3)
    assert made.items() == [("range", 2), ("uniform", 3)]
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
    made = JavaHashMap(1)
    capacities = []
    for key in range(4):
        made.compute(key, lambda _: True)
        capacities.append(made.capacity)
    assert capacities == [1, 2, 4, 4]


def timeline(*keys):
    made = TimelineHashMap()
    for key in keys:
        made.put(key, key.upper())
    made.commit()
    return made


def test_a_timeline_map_gives_the_newest_of_a_bucket_first():
    made = timeline("a", "b", "c")
    assert made.capacity() == 2 * 2
    assert sorted(made) == ["a", "b", "c"]
    assert made.items() == [(key, key.upper()) for key in made]
    assert made.values() == [key.upper() for key in made]
    made = timeline(*"abcdefghij")
    assert made.capacity() == 8  # ten keys in eight buckets
    buckets = [key for key, _ in made.stored()]
    assert buckets != list(made)
    assert sorted(buckets) == sorted(made)


@pytest.mark.parametrize("keys", [(1_905_774_538, 28_190), (100_828, 683_008_263)])
def test_the_multiplier_of_hashes_is_exact_to_the_last_bit(keys):
    # Both keys are in one bucket. The large one is so near to its end that a multiplier that is off by one puts it into the next.
    made = TimelineHashMap.restored(1 << 16, [(key, "") for key in keys])
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
