"""Decides which parser reads which line: every raw record has a source, and every source has one parser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from coordinator_model.events import BROKER_SOURCE, CLIENT_SOURCE, CLIENTS, COORDINATOR_SOURCE, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.parsing import broker_log, client_log, coordinator_log, group_records, heartbeat_lines, request_log
from jobs.parsing.rows import COMMON, QUARANTINE, RAW_CHARACTERS, SKIPPED, UNKNOWN_SOURCE, parsed_columns
from schemas.names import CLOCK, LINE

Parser = Callable[[DataFrame], DataFrame]
"""Turns raw records with their source (`with_source`) into rows of PARSED."""

BEAT: Final = "beat"
"""Stands for the source of heartbeats that the log reader recognised by their shape."""
FAULTY: Final = "faulty"
"""Stands for the source of lines that the log reader found faulty: no parser looks into them."""


def with_source(raw: DataFrame) -> DataFrame:
    """Adds the column `source`, the kind of evidence that a record is. Records of files get a null `place`; `at` becomes `occurred_at`."""
    placed = raw if "place" in raw.columns else raw.withColumn("place", F.lit(None).cast("bigint"))
    text = F.coalesce("text", F.lit(""))
    source = (
        F.when(F.col("record") != LINE, CLOCK)
        .when(F.col("broker") == CLIENTS, CLIENT_SOURCE)
        .when(group_records.is_record_line(F.col("origin"), F.col("broker")), F.col("broker"))
        .when(request_log.is_request_line(text), REQUEST_SOURCE)
        .when(coordinator_log.is_coordinator_line(text), COORDINATOR_SOURCE)
        .when(broker_log.is_broker_line(text), BROKER_SOURCE)
        .otherwise(UNKNOWN_SOURCE)
    )
    return placed.withColumnRenamed("at", "occurred_at").withColumn("source", source)


def source_or_faulty() -> Column:
    """The key that selects the parser of a record: FAULTY if the record has a fault, BEAT if it was recognised, else its source."""
    return F.when(F.col("fault").isNotNull(), FAULTY).when(F.col("repeated").isNotNull(), BEAT).otherwise(F.col("source"))


def parse_with(records: DataFrame, parsers: Iterable[Parser]) -> DataFrame:
    """Unites the rows that several parsers make of the same records."""
    return reduce(DataFrame.unionByName, (parser(records) for parser in parsers))


def _parse_rest(records: DataFrame) -> DataFrame:
    """Rows of lines that concern no group, of faulty lines, and of clocks."""
    is_clock, is_faulty = F.col("source") == CLOCK, F.col("fault").isNotNull()
    return records.select(
        *parsed_columns(
            {name: F.col(name) for name in (*COMMON, "source")}
            | {
                "kind": F.when(is_clock, F.col("record")),
                "verdict": F.when(is_clock, CLOCK).when(is_faulty, QUARANTINE).otherwise(SKIPPED),
                "refusal": F.when(~is_clock, F.col("fault")),
                # A clock's text lists the seconds in which its log was written.
                "raw": F.when(is_clock, F.col("text")).when(is_faulty, F.substring("text", 1, RAW_CHARACTERS)),
            }
        )
    )


def _for_sources(sources: frozenset[str], parser: Parser) -> Parser:
    return lambda records: parser(records.filter(source_or_faulty().isin(*sorted(sources))))


PARSERS: Final[Mapping[frozenset[str], Parser]] = {
    sources: _for_sources(sources, parser)
    for sources, parser in {
        frozenset({BEAT}): heartbeat_lines.parse,
        frozenset({REQUEST_SOURCE}): request_log.parse,
        frozenset({COORDINATOR_SOURCE}): coordinator_log.parse,
        frozenset({BROKER_SOURCE}): broker_log.parse,
        frozenset({CLIENT_SOURCE}): client_log.parse,
        PSEUDO_BROKERS: group_records.parse,
        frozenset({CLOCK, UNKNOWN_SOURCE, FAULTY}): _parse_rest,
    }.items()
}
"""The parsers by the sources that each reads. A parser passes over records of other sources."""
