"""A session with the settings for S3 keeps checkpoints and state on a real object store."""

import re

import pandas as pd
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import StreamingQueryException

from tests.lab.local_store import BUCKET

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def test_a_query_goes_on_from_its_checkpoint_though_every_twentieth_request_fails(
    spark, store_proxy, checkpoints_in_store, store_prefix, tmp_path
):
    def count(key, frames, state):
        total = sum(map(len, frames)) + (state.get[0] if state.exists else 0)
        state.update((total,))
        yield pd.DataFrame({"word": [key[0]], "total": [total]})

    def counted():
        """For each micro-batch, how often its words have come so far."""
        found = {}
        words = spark.readStream.schema("value string").text(str(tmp_path / "in"))
        totals = words.groupBy("value").applyInPandasWithState(count, "word string, total long", "total long", "append", "NoTimeout")
        (
            totals.writeStream.foreachBatch(lambda rows, batch: found.update({batch: {row.word: row.total for row in rows.collect()}}))
            .option("checkpointLocation", f"s3a://{BUCKET}/{store_prefix}/checkpoint")
            .trigger(availableNow=True)
            .start()
            .awaitTermination()
        )
        return found

    def counted_at_last():
        """A file of Spark's whose answer was cut looks unfinished to it, or empty, or too short, which ends the query: it starts again."""
        try:
            return counted()
        except (StreamingQueryException, Py4JJavaError) as error:
            assert re.search("Incomplete log file|No content to map|java.io.EOFException", str(error))  # noqa: PT017 - any other one is a failure
            return counted()

    (tmp_path / "in").mkdir()
    with checkpoints_in_store(fail_every=20):
        (tmp_path / "in" / "1.txt").write_text("a\nb\na\n")
        first = {0: {"a": 2, "b": 1}}
        assert counted_at_last() == first
        (tmp_path / "in" / "2.txt").write_text("a\nc\n")
        assert first | counted_at_last() == first | {1: {"a": 3, "c": 1}}  # Spark may repeat a batch, but not make another of it
    assert {one.fault for one in store_proxy.requests()} > {None}
    written = {one.path.removeprefix(f"/{BUCKET}/{store_prefix}/checkpoint/") for one in store_proxy.requests() if one.kind == "PUT"}
    assert {"metadata", "offsets/0", "commits/0", "offsets/1", "commits/1", "state/0/0/1.changelog", "state/0/1/2.changelog"} <= written
