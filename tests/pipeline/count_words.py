"""A streaming query with state for test_session_s3.py, in a process of its own: it has other JARs than the session of the tests.

python count_words.py FOLDER CHECKPOINT: counts the words of all files, and prints for each micro-batch the counts of its words.
"""

import json
import sys

import pandas as pd

from jobs.pipeline.session import spark_session


def count(key, frames, state):
    total = sum(map(len, frames)) + (state.get[0] if state.exists else 0)
    state.update((total,))
    yield pd.DataFrame({"word": [key[0]], "total": [total]})


def main(folder, checkpoint):
    spark = spark_session("count words", once=True, s3=True, conf={"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    words = spark.readStream.schema("value string").text(folder)
    totals = words.groupBy("value").applyInPandasWithState(count, "word string, total long", "total long", "append", "NoTimeout")
    found = {}
    query = (
        totals.writeStream.foreachBatch(lambda rows, batch: found.update({batch: {row.word: row.total for row in rows.collect()}}))
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    sys.stdout.write(json.dumps(found) + "\n")
    spark.stop()


main(*sys.argv[1:])
