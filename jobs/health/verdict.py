"""Rules that decide whether the pipeline is well, from what it wrote about itself. Pure: no files and no clock; times are epoch ms.

Each rule is a function that yields problems, each with advice. The rules judge the process (does it run, does it write its status, does
input wait that it does not process) and the micro-batches of the last `window_ms`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from jobs.common.errors import LakehouseError
from jobs.common.text import many
from jobs.common.times import duration, instant
from jobs.health import status
from jobs.health.batch_health import BatchHealth
from jobs.health.status import Status

SILENT_MS: Final = 60_000
"""A process that writes no status for so long is not well: it writes one every 5 s."""

STATE_WINDOW_MS: Final = 86_400_000
"""The time over which the growth of the state is judged."""

_TREND: Final = 6  # micro-batches, from which on a trend is one
_LEAST_GROWTH: Final = 10_000  # rows
_LEAST_BAD: Final = 10  # lines or events, below which a share says nothing
_LEAST_STATE: Final = 64 << 20  # bytes


@dataclass(frozen=True)
class Limits:
    """Bounds of a pipeline that is well."""

    max_lag_ms: int = 60_000
    max_stall_ms: int = 300_000
    max_batch_ms: int = 60_000
    max_quarantined: float = 0.01  # share of lines
    max_late: float = 0.001  # share of events
    max_divergences: int = 0
    window_ms: int = 3_600_000
    process_only: bool = False  # judge nothing that a restart cannot mend


@dataclass(frozen=True)
class Problem:
    """A problem, and what to do about it."""

    code: str
    message: str
    advice: str
    query: str | None = None  # None: the process

    def text(self) -> str:
        """The problem in one line."""
        return f"{self.code}: {self.message}; {self.advice}"


@dataclass(frozen=True)
class Evidence:
    """The state of a pipeline at `now_ms`."""

    now_ms: int
    running: bool  # whether a process holds the lakehouse
    status: Status
    rows: Sequence[BatchHealth]  # of pipeline_health, in order of `at`, for STATE_WINDOW_MS
    log: str = "_logs/spark.log"

    @property
    def live(self) -> bool:
        """Whether the process follows an input without end."""
        return self.running and not self.status.once

    def recent(self, limits: Limits, query: str | None = None) -> list[BatchHealth]:
        """Micro-batches of the window, which ends now or, if no process runs, when the last one ended."""
        until = self.now_ms if self.running else self.status.at_ms
        return [row for row in self.rows if row.occurred_at > until - limits.window_ms and query in {None, row.query}]

    @property
    def queries(self) -> list[str]:
        """Names of the queries, in order."""
        return sorted({row.query for row in self.rows} | {query.query for query in self.status.queries})

    @property
    def input_waits(self) -> bool:
        """Whether there is input that was not processed."""
        return bool(self.status.lag_bytes) or any(query.lag_events for query in self.status.queries)


def problems(evidence: Evidence, limits: Limits) -> list[Problem]:
    """The problems, the gravest first. LakehouseError: another process holds the lakehouse, so they cannot be known."""
    if evidence.running and evidence.status.state != status.RUNNING:
        raise LakehouseError("a process other than `rebalance run` is using the lakehouse: ask again when it has ended")
    of_process = (_not_running, _silent, _away, _ended, _stalled)
    of_batches = (_lag, _growing_lag, _slow, _quarantined, _late, _divergences, _growing_state, _unwritten)
    mended = [rule for rule in of_process if rule is not _away]  # no restart brings a cluster back
    rules = mended if limits.process_only else [*of_process, *of_batches]
    return [problem for rule in rules for problem in rule(evidence, limits)]


def _not_running(evidence: Evidence, _: Limits) -> Iterator[Problem]:
    """No process holds the lakehouse."""
    last = evidence.status
    if evidence.running or last.state == status.FINISHED:
        return
    when = f"{instant(last.at_ms)[:19]} UTC"
    again = "the same `rebalance run` resumes where it stopped"
    if last.state == status.FAILED:
        yield Problem("FAILED", f"not running: {last.reason} ({when})", f"fix that ({evidence.log} has details), then start it: {again}")
    elif last.state == status.STOPPED:
        yield Problem("NOT_RUNNING", f"stopped by a signal at {when}", f"start it: {again}")
    else:
        killed = f"not running: process {last.pid} was last seen at {when} and left no reason"
        yield Problem("NOT_RUNNING", killed, f"it was killed, perhaps by the kernel for lack of memory (see dmesg); start it: {again}")


def _silent(evidence: Evidence, _: Limits) -> Iterator[Problem]:
    silence = evidence.now_ms - evidence.status.at_ms
    if evidence.running and silence > SILENT_MS:
        message = f"process {evidence.status.pid} holds the lakehouse but has reported nothing for {duration(silence)}"
        yield Problem("SILENT", message, "check whether it is frozen, or its disk is full or gone; otherwise restart it")


def _away(evidence: Evidence, _: Limits) -> Iterator[Problem]:
    if evidence.running and evidence.status.away is not None:
        message = f"the topic's cluster does not answer: {evidence.status.away}"
        yield Problem("AWAY", message, "check that its brokers run and are reachable; the pipeline waits and continues by itself")


def _ended(evidence: Evidence, _: Limits) -> Iterator[Problem]:
    """Judges queries that should still run: not with `--once`, and not after a signal."""
    for query in evidence.status.queries if evidence.live and not evidence.status.stopping else ():
        if not query.active and not (query.query == "ingest-topic" and evidence.status.away is not None):
            yield Problem("FAILED", f"{query.query} has ended, but its process has not", f"see {evidence.log}; restart it", query.query)


def _stalled(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    for query in evidence.status.queries if evidence.running else ():
        waiting = evidence.now_ms - query.waiting_since_ms if query.waiting_since_ms else 0
        if query.active and waiting > limits.max_stall_ms:
            rows = "" if query.lag_events is None else f", while {query.lag_events:,} rows wait"
            message = f"{query.query} has finished nothing for {duration(waiting)}{rows}"
            advice = f"see {evidence.log}; one giant micro-batch needs more time (--max-stall), a hung one a restart"
            yield Problem("STALLED", message, advice, query.query)


def _lag(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    """Judges the age of the newest event. Not with `--once`: a backfill is always behind."""
    rows = [row for row in evidence.recent(limits) if row.lag_ms is not None]
    lags = [row.lag_ms or 0 for row in rows]
    if not evidence.live or not rows:
        return
    if lags[-1] < -limits.max_lag_ms:
        message = f"events are {duration(-lags[-1])} ahead of this machine's clock"
        yield Problem("AHEAD", message, "correct --timezone (a new lakehouse), or the clocks (NTP)", rows[-1].query)
    elif lags[-1] > limits.max_lag_ms and evidence.input_waits:
        gained, passed = lags[0] - lags[-1], rows[-1].occurred_at - rows[0].occurred_at
        if gained > 0 and passed > 0:
            advice = f"it is catching up: at this pace in {duration(lags[-1] * passed // gained)}"
        else:
            advice = "it is not catching up: give it more cores, or fewer lines to read (docs/capture.md)"
        yield Problem("LAG", f"{rows[-1].query} is {duration(lags[-1])} behind, and input waits", advice, rows[-1].query)
    elif min(lags[-3:]) > limits.max_lag_ms and len(rows) >= 3 and evidence.now_ms - rows[-1].occurred_at <= limits.max_stall_ms:
        message = f"nothing waits, and yet events are {duration(lags[-1])} old when they come"
        advice = "see whether shippers lag, or --timezone is wrong; old logs that are worked through for the first time are no problem"
        yield Problem("LATE_INPUT", message, advice, rows[-1].query)


def _growing_lag(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    for query in evidence.queries if evidence.live else ():
        behind = [row.lag_events for row in evidence.recent(limits, query) if row.lag_events is not None]
        if len(behind) < _TREND:
            continue
        third = len(behind) // 3
        before, after = median(behind[:third]), median(behind[-third:])
        if after > 2 * before and after - before > _LEAST_GROWTH:
            message = f"what waits for {query} grew from {before:,.0f} to {after:,.0f} rows"
            yield Problem("LAG_GROWING", message, "give it more cores, or fewer lines to read (docs/capture.md)", query)


def _slow(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    """Compares with a limit, not with the trigger's interval: that bounds how often an idle query looks, and every batch takes longer."""
    for query in evidence.queries:
        took = [row.duration_ms for row in evidence.recent(limits, query)]
        if len(took) >= 3 and median(took) > limits.max_batch_ms:
            message = f"micro-batches of {query} take {duration(round(median(took)))}, the median of {len(took)}"
            yield Problem("SLOW", message, "make them smaller (--slice-lines), or give more cores", query)


def _quarantined(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    found = [(row.quarantined, row.input_rows) for row in evidence.recent(limits) if row.quarantined is not None]
    if share := _share(found, limits.max_quarantined, "lines could not be read"):
        yield Problem("QUARANTINE", share, "the table quarantine has them, each with its reason")


def _late(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    found = [(row.late_events, row.input_rows) for row in evidence.recent(limits) if row.late_events is not None]
    if share := _share(found, limits.max_late, "events came too late to be put in order"):
        yield Problem("LATE_EVENTS", share, "a greater --lateness-ms takes them in, or a log is shipped behind the others")


def _share(found: Sequence[tuple[int, int]], limit: float, what: str) -> str:
    """That too many of all rows are bad, by micro-batch; empty if they are not."""
    bad, rows = sum(bad for bad, _ in found), sum(rows for _, rows in found)
    return f"{bad:,} of {rows:,} {what} ({bad / max(rows, 1):.1%})" if bad >= _LEAST_BAD and bad > limit * rows else ""


def _divergences(evidence: Evidence, limits: Limits) -> Iterator[Problem]:
    found = sum(row.divergences or 0 for row in evidence.recent(limits))
    if found > limits.max_divergences:
        message = f"{many(found, 'broker answer')} {'does' if found == 1 else 'do'} not match Kafka's rules; the pipeline is fine"
        yield Problem("DIVERGENCE", message, "the MODEL_DIVERGENCE findings show both answers; kafka_version may name another release")


def _growing_state(evidence: Evidence, _: Limits) -> Iterator[Problem]:
    """Judges the state per group: more groups may have more state."""
    rows = [row for row in evidence.rows if row.state_bytes and row.groups]
    if not rows:
        return
    first, last = rows[0], rows[-1]
    before, after = (first.state_bytes or 0) / (first.groups or 1), (last.state_bytes or 0) / (last.groups or 1)
    if (last.state_bytes or 0) > _LEAST_STATE and after > 2 * before:
        message = f"the state grew from {before / 1024:,.0f} to {after / 1024:,.0f} KB a group since {instant(first.occurred_at)[:19]} UTC"
        advice = f"{last.held_events or 0:,} events wait for their broker's time: see whether one of its logs stopped"
        yield Problem("STATE_GROWING", message, advice, last.query)


def _unwritten(evidence: Evidence, _: Limits) -> Iterator[Problem]:
    if evidence.status.unwritten is not None:
        yield Problem("UNWRITTEN", f"pipeline_health cannot be written: {evidence.status.unwritten}", "fix that; the pipeline runs on")
