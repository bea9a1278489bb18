"""Shards on tasks: what Spark's hash makes of a key, and that a lakehouse keeps the number of its first start."""

from collections import Counter

import numpy as np
import pytest
from chispa import assert_df_equality
from pyspark.sql import functions as f

from coordinator_model.events import CLOCK
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, check_layout, fixed_tasks, opened
from jobs.pipeline.queries import finish
from jobs.pipeline.tracking.spread import PARTITIONS, Spread, hash_of_ints, hash_of_text, spread_of
from jobs.pipeline.tracking.track import start_track
from schemas.names import INGEST, TRACK
from tests.frames import expected
from tests.lakehouse.rows import DAY, empty_lakehouse, line, write

CLUSTERS = ("", "a", "ab", "abc", "abcd", "berlin-1", "straße", "\N{GRINNING FACE}!", "a name of some length, with blanks")
NUMBERS = (0, 1, 49, 50, 1_000_000, (1 << 31) - 1)
SPREADS = (Spread(50, 8), Spread(50, 50), Spread(7, 3), Spread(64, 32), Spread(1, 1), Spread(3, 5))


def in_order(spread: Spread) -> list[int]:
    return [spread.shard(spread.key("c", shard)) for shard in range(spread.shards)]


@pytest.mark.parametrize("spread", SPREADS)
def test_a_key_tells_its_shard(spread):
    assert in_order(spread) == list(range(spread.shards))


def test_a_key_is_the_same_in_every_process():
    """States lie under it: who changes what a key is has to raise MODEL_VERSION."""
    assert [Spread(50, 8).key("berlin-1", shard) for shard in (0, 1, 49)] == [950, 51, 549]


@pytest.mark.spark
def test_the_hashes_are_those_of_spark(spark):
    rows = spark.createDataFrame([(cluster, number) for cluster in CLUSTERS for number in NUMBERS], "cluster string, number int")
    found = rows.select(f.hash("cluster"), f.hash("cluster", "number"))
    own = [(hash_of_text(name), number) for name in CLUSTERS for number in hash_of_ints(np.array(NUMBERS), hash_of_text(name)).tolist()]
    assert_df_equality(found, expected(found, own))


@pytest.mark.spark
@pytest.mark.parametrize("spread", SPREADS)
def test_every_task_gets_as_many_shards_of_a_cluster_as_the_others(spark, spread):
    """Where Spark puts a group of rows, which is where its state lies."""
    keys = [(cluster, spread.key(cluster, shard)) for cluster in CLUSTERS for shard in range(spread.shards)]
    tasks = spark.createDataFrame(keys, "cluster string, key int").repartition(spread.tasks, "cluster", "key")
    found = [(row.cluster, row.task) for row in tasks.select("cluster", f.spark_partition_id().alias("task")).collect()]
    for cluster in CLUSTERS:
        counts = Counter(task for name, task in found if name == cluster)
        least = [counts[task] for task in range(spread.tasks)]
        assert max(least) - min(least) <= 1
    if spread == Spread(3, 5):  # clusters that have fewer shards than there are tasks do not all use the first ones
        assert len(Counter(task for _, task in found)) == spread.tasks


@pytest.mark.spark
def test_states_lie_evenly_and_stay_where_they_are_in_the_next_run(spark, tmp_path):
    lake = empty_lakehouse(tmp_path / "lake")
    for batch in range(2):
        second = 10 * (batch + 1)
        clock = line(None, second * 1_000, source="clock", kind=CLOCK, received_at=DAY, beats=[0, second])
        write(lake, clock, batch=batch, app=INGEST)
        checkpoint = lake / "_checkpoints" / "track"
        finish(start_track(spark, Lakehouse(lake), Settings(shards=10)))
        spark.conf.set(PARTITIONS, 7)  # as if the machine of the next run had other cores
        states = spark.read.format("statestore").load(str(checkpoint)).select("partition_id", "key.key").localCheckpoint()
        keys, counts = states.select("key"), states.groupBy("partition_id").count()
        assert_df_equality(keys, expected(keys, [(Spread(10, 2).key("c", shard),) for shard in range(10)]), ignore_row_order=True)
        assert_df_equality(counts, expected(counts, [(0, 5), (1, 5)]), ignore_row_order=True)


@pytest.fixture(autouse=True)
def _partitions(request):
    """Other tests of the session find the setting as it was."""
    yield
    if "spark" in request.fixturenames:
        spark = request.getfixturevalue("spark")
        spark.conf.set(PARTITIONS, spark.sparkContext.getConf().get(PARTITIONS))


def told(spark, lakehouse, **settings) -> tuple[Spread, list[str]]:
    notes: list[str] = []
    return spread_of(spark, Lakehouse(lakehouse), Settings(**settings), notes.append), notes


@pytest.mark.spark
def test_a_new_lakehouse_has_as_many_tasks_as_spark_is_asked_for_but_not_more_than_shards(spark, tmp_path):
    asked = int(spark.sparkContext.getConf().get(PARTITIONS))
    assert asked > 1
    assert told(spark, tmp_path / "many", shards=50)[0] == Spread(50, asked)
    assert told(spark, tmp_path / "few", shards=1)[0] == Spread(1, 1)
    assert spark.conf.get(PARTITIONS) == "1"


@pytest.mark.spark
def test_a_lakehouse_keeps_its_number_of_tasks_and_says_if_cores_are_idle(spark, tmp_path):
    cores = spark.sparkContext.defaultParallelism
    assert fixed_tasks(Lakehouse(tmp_path / "more"), cores + 3) == cores + 3
    assert told(spark, tmp_path / "more") == (Spread(50, cores + 3), [])
    assert spark.conf.get(PARTITIONS) == str(cores + 3)
    assert fixed_tasks(Lakehouse(tmp_path / "less"), cores - 1) == cores - 1
    spread, (note,) = told(spark, tmp_path / "less")
    assert spread == Spread(50, cores - 1)
    assert note == (
        f"track uses {cores - 1} of {cores} cores: {tmp_path / 'less'} was made for {cores - 1} tasks; make a new one of its events with "
        f"`rebalance replay --from {tmp_path / 'less'} --lakehouse NEW`"
    )
    assert "; with more `shards`, make" in told(spark, tmp_path / "few", shards=1)[1][0]


def test_a_query_of_ingest_that_starts_at_the_same_moment_leaves_the_number_as_it_is(tmp_path):
    with opened(tmp_path / "lake", Settings(), query=INGEST), opened(tmp_path / "lake", Settings(), query=TRACK) as house:
        assert fixed_tasks(house, 4) == 4
        house.layout.unlink()
        check_layout(house, Settings())  # by ingest, which had found no layout a moment before
        assert fixed_tasks(house, 16) == 4
