"""Names of the tables and of the kinds of raw records, for readers that do without PySpark: importing it takes a second."""

from __future__ import annotations

from typing import Final

GROUP_EVENTS: Final = "group_events"
QUARANTINE: Final = "quarantine"
INPUT_LINES: Final = "input_lines"

GROUP_TRANSITIONS: Final = "group_transitions"
REBALANCES: Final = "rebalances"
REBALANCES_PROVISIONAL: Final = "rebalances_provisional"
REBALANCE_ROUNDS: Final = "rebalance_rounds"
REBALANCE_OFFSETS: Final = "rebalance_offsets"
MEMBER_SESSIONS: Final = "member_sessions"
FINDINGS: Final = "findings"
INCIDENTS: Final = "incidents"

PIPELINE_HEALTH: Final = "pipeline_health"

INGESTED: Final = (GROUP_EVENTS, QUARANTINE, INPUT_LINES)
TRACKED: Final = (GROUP_TRANSITIONS, REBALANCES, REBALANCE_ROUNDS, REBALANCE_OFFSETS, MEMBER_SESSIONS, FINDINGS)
TABLES: Final = (*INGESTED, *TRACKED)
"""The tables that follow from the logs: written by ingest, then by track."""
READABLE: Final = (*TABLES, REBALANCES_PROVISIONAL, INCIDENTS)
"""The tables that questions read."""

# Applications: who writes tables. Data files and Delta's transactions have these names.
INGEST: Final = "rebalance-ingest"
INGEST_TOPIC: Final = "rebalance-ingest-topic"
TRACK: Final = "rebalance-track"
REPLAY: Final = "rebalance-replay"
TRACK_AT_END: Final = "rebalance-track-at-end"
"""Of the micro-batch of TRACK that wrote rows with AT_END into a table. They stand until its next one."""

TIME: Final = "occurred_at"
"""The column with the time of a row of `group_events`."""
TIMES: Final = ("ended_at", TIME)
"""The column that says how old a row is: the first of these that a table has."""
AT_END: Final = "at_end"
"""The column of track's tables that says whether a row stands only until more of the logs is read."""
REPEATED: Final = "repeated"
"""The column of `input_lines` with lines of a topic that came before."""

RAW_LINES: Final = "raw_lines"
"""The records that a source gives to ingest: no table."""
# Column `record` of raw_lines. What is no line keeps its kind in group_events, where coordinator_model/events.py knows it.
LINE: Final = "line"  # one log line
PART: Final = "part"  # more lines of a log, in the file that `text` names; their positions count from `position`
FETCHES: Final = "fetches"  # FETCH requests of a log, as numbers (jobs/logs/fetches)
HEARTBEATS: Final = "heartbeats"  # a bundle of many lines of heartbeats, from a topic
CLOCK: Final = "clock"  # "this broker's logs were read up to `at`, and it wrote in these seconds"; counts skipped lines
END: Final = "end"  # "the input ends here": what only waits for lateness may be decided
