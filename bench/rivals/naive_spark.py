"""A rival: the pipeline that one writes first. Spark parses each line with from_json, and a function of pandas counts sessions.

    python -m bench.rivals.naive_spark INPUT OUTPUT

A session of a member ends when nothing is heard of it for 45 s. `applyInPandasWithState` keeps the members of a group. There is no model of
the coordinator, no server.log, no evidence, no order of lines: a row for each member and micro-batch says how many sessions it has had.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Final

import pandas as pd
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from jobs.pipeline.session import spark_session

SESSION_SECONDS: Final = 45.0
REQUEST: Final = """
    requestHeader STRUCT<requestApiKeyName: STRING>, request STRUCT<groupId: STRING, memberId: STRING, generationId: INT>,
    response STRUCT<errorCode: INT>, connection STRING, totalTimeMs DOUBLE
"""
ROWS: Final = "group_id STRING, member_id STRING, sessions LONG, requests LONG, errors LONG, last_at DOUBLE"


def sessions(key: tuple[Any, ...], batches: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Counts the sessions of a group's members."""
    members = json.loads(state.get[0]) if state.exists else {}
    touched = set()
    for batch in batches:
        for member, of_member in batch.groupby("member_id"):
            times = of_member["at"].sort_values()
            count, requests, errors, last = members.get(member, (0, 0, 0, float("-inf")))
            gaps = times.diff()
            count += int(times.iloc[0] - last > SESSION_SECONDS) + int((gaps > SESSION_SECONDS).sum())
            errors += int((of_member["error_code"] != 0).sum())
            members[member] = (count, requests + len(times), errors, max(last, float(times.iloc[-1])))
            touched.add(member)
    state.update((json.dumps(members),))
    rows = [(key[0], member, *members[member]) for member in sorted(touched)]
    yield pd.DataFrame(rows, columns=["group_id", "member_id", "sessions", "requests", "errors", "last_at"])


def main(source: str, output: str) -> None:
    """Work through the request logs of a folder."""
    # As Spark comes: this project's own queries do without generated code.
    spark = spark_session("naive", conf={"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"})
    line = F.col("value")
    body = F.expr("substring(value, instr(value, '{'), length(value) - instr(value, '{') - 22)")
    parsed = (
        spark.readStream.text(f"{source}/*/*/kafka-request.log")
        .where(line.contains('_GROUP"') | line.contains('HEARTBEAT"') | line.contains('OFFSET_COMMIT"'))
        .select(F.to_timestamp(F.substring(line, 2, 23), "yyyy-MM-dd HH:mm:ss,SSS").alias("at"), F.from_json(body, REQUEST).alias("json"))
        .select(
            F.col("json.request.groupId").alias("group_id"),
            F.coalesce("json.request.memberId", F.lit("")).alias("member_id"),
            F.coalesce("json.response.errorCode", F.lit(0)).alias("error_code"),
            F.col("json.requestHeader.requestApiKeyName").alias("api"),
            F.col("json.request.generationId").alias("generation"),
            F.col("json.connection").alias("connection"),
            F.col("json.totalTimeMs").alias("total_ms"),
            F.col("at").cast("double").alias("at"),
        )
        .where("group_id IS NOT NULL")
    )
    rows = parsed.groupBy("group_id").applyInPandasWithState(sessions, ROWS, "members STRING", "append", GroupStateTimeout.NoTimeout)
    query = (
        rows.writeStream.format("delta")
        .outputMode("append")
        .option("checkpointLocation", f"{output}/_checkpoint")
        .trigger(availableNow=True)
        .start(f"{output}/sessions")
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
