"""Spreads shards evenly over the tasks of the tracker.

Spark gives a group of rows to the task that the hash of its key names. Of 50 shards on 8 tasks one task got 13, another one 2. So the key
of a shard is chosen by what Spark's hash makes of it. It holds the shard's number, and a salt: the least one that leads to the wanted task.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import numpy.typing as npt

from jobs.lakehouse.folder import Lakehouse, fixed_tasks, replay_advice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.common.settings import Settings

PARTITIONS: Final = "spark.sql.shuffle.partitions"
"""The setting of Spark for the number of tasks. A query keeps that of its first start, since each task has a store of states."""
_TASKS_PER_CORE: Final = 2
_SEED: Final = 42
_WORD: Final = 4  # bytes
_FACTORS: Final = (np.uint32(0xCC9E2D51), np.uint32(0x1B873593))
_FINISH: Final = ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1))

Words = npt.NDArray[np.uint32]


class Spread(msgspec.Struct, frozen=True):
    """So many shards of each cluster on so many tasks."""

    shards: int
    tasks: int

    def key(self, cluster: str, shard: int) -> int:
        """What stands for a shard. The same in every run."""
        return _keys(self, cluster)[shard]

    def shard(self, key: int) -> int:
        """The shard for which a key stands."""
        return key % self.shards


def spread_of(spark: SparkSession, house: Lakehouse, settings: Settings, tell: Callable[[str], None]) -> Spread:
    """The spread of a lakehouse for a query that is started next in this session. `tell` gets a line if there are more cores than tasks."""
    cores, asked = spark.sparkContext.defaultParallelism, spark.sparkContext.getConf().get(PARTITIONS)
    wanted = min(settings.shards, int(asked) if asked is not None else _TASKS_PER_CORE * cores)
    tasks = fixed_tasks(house, wanted)
    spark.conf.set(PARTITIONS, tasks)
    if tasks < cores:
        more = "" if tasks < wanted else "with more `shards`, "
        tell(f"track uses {tasks} of {cores} cores: {house.folder} was made for {tasks} tasks; {more}{replay_advice(house.folder)}")
    return Spread(settings.shards, tasks)


@lru_cache(maxsize=1_000)
def _keys(spread: Spread, cluster: str) -> list[int]:
    """The keys of all shards of a cluster. Where the first one goes depends on the cluster: many small clusters use all tasks."""
    hashed = hash_of_text(cluster)
    left = np.arange(spread.shards)
    wanted = (left + hashed) % spread.tasks
    keys = np.empty(spread.shards, np.int64)
    salted = left
    while left.size:
        found = hash_of_ints(salted, hashed) % spread.tasks == wanted[left]
        keys[left[found]] = salted[found]
        left, salted = left[~found], salted[~found] + spread.shards
    return keys.tolist()


def hash_of_text(text: str) -> int:
    """What `hash(text)` is in Spark SQL, a signed number (Murmur3_x86_32.hashUnsafeBytes)."""
    data = text.encode()
    whole = len(data) // _WORD * _WORD
    mixed = np.array([_SEED], np.uint32)
    for word in (*np.frombuffer(data[:whole], "<i4"), *np.frombuffer(data[whole:], "i1")):
        mixed = _mixed(mixed, np.array([word], np.int32).view(np.uint32))
    return int(_finished(mixed, len(data))[0])


def hash_of_ints(numbers: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.int32]:
    """What `hash(text, number)` is in Spark SQL for each of these, if `hash(text)` is the seed."""
    seeds = np.full(len(numbers), seed, np.int32).view(np.uint32)
    return _finished(_mixed(seeds, numbers.astype(np.int32).view(np.uint32)), _WORD)


def _mixed(mixed: Words, words: Words) -> Words:
    mixed = mixed ^ _rotated(words * _FACTORS[0], 15) * _FACTORS[1]
    return _rotated(mixed, 13) * np.uint32(5) + np.uint32(0xE6546B64)


def _rotated(words: Words, bits: int) -> Words:
    return words << np.uint32(bits) | words >> np.uint32(32 - bits)


def _finished(mixed: Words, length: int) -> npt.NDArray[np.int32]:
    mixed = mixed ^ np.uint32(length)
    for bits, factor in _FINISH:
        mixed = (mixed ^ mixed >> np.uint32(bits)) * np.uint32(factor)
    return mixed.view(np.int32)
