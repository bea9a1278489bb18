"""`rebalance inspect` as text and as JSON."""

from __future__ import annotations

import shlex
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.filesize import decimal

from coordinator_model.events import CLIENTS, PSEUDO_BROKERS, TIMES_FROM_MS
from jobs.answers.formats import as_json
from jobs.cli.output.not_understood import next_step
from jobs.cli.output.terminal import say
from jobs.common.options import LINE_CHARS
from jobs.common.text import many, printable
from jobs.common.times import instant, to_second
from jobs.parsing.inspection import Inspection, SeenLog

_FILES_SHOWN: Final = 40
_KINDS_SHOWN: Final = 12
_SOURCES: Final = {
    "coordinator": "group coordinator",
    "request": "requests about groups",
    "broker": "broker starts and stops, compacted topics",
    "client": "application logs",
}
_WIDTH: Final = 120


def render(result: Inspection, path: str, zone: str) -> None:
    """Prints an inspection."""
    logs = result.logs
    lines, size = sum(log.lines for log in logs), sum({log.origin: log.size for log in logs}.values())
    read = f"{lines:,} lines" if result.complete else f"the first {lines:,} lines"
    say(f"{path}: {many(len({log.origin for log in logs}), 'file')}, {decimal(size)}, {read}, {_span(logs)}")
    if logs:
        say(f"Times without an offset are read as {zone} (change with --timezone).")
    for cluster in sorted({log.cluster for log in logs}):
        say()
        _cluster(result, cluster)
    notes = [*result.notes, *(f"{copy} is a copy of another file and is read once" for copy in result.copies)]
    if notes:
        say()
        say("Notes")
        for note in notes[:_FILES_SHOWN]:
            say(f"  {note}")
        if len(notes) > _FILES_SHOWN:
            say(f"  … and {len(notes) - _FILES_SHOWN} more (--format json lists all)")
    for text in result.troubles:
        say()
        say(text)
    _unknown(result)


def command_line(path: Path, given: Sequence[tuple[str, str]]) -> str:
    """How to run it. `given`: options and their values, empty where one is not needed."""
    words = ["rebalance", "run", "--input", str(path), "--lakehouse", "LAKE", "--once"]
    words += [word for option, value in given if value for word in (option, value)]
    return f"To read it: {shlex.join(words)}"


def _cluster(result: Inspection, cluster: str) -> None:
    release = ", ".join(result.releases.get(cluster, ()))
    say(f"Cluster {cluster}" + (f", Kafka {release}" if release else ""))
    logs = [log for log in result.logs if log.cluster == cluster]
    apart = [log for log in logs if log.brokers == [CLIENTS]]
    others = [log for log in logs if log.brokers != [CLIENTS]]
    shown = others[:_FILES_SHOWN]
    width = max((len(log.origin) for log in shown), default=0)
    for log in shown:
        part = f" ({log.container})" if log.container else f" from line {log.first_line:,}" if log.first_line > 1 else ""
        place = f"{log.origin + part:{min(width, 50)}}"
        say(f"  {place}  {', '.join(log.brokers)}: {_lines([log])}")
    if len(others) > len(shown):
        say(f"  … and {len(others) - len(shown)} more files (--format json lists all)")
    if apart:
        say(f"  {many(len(apart), 'application log')}: {_lines(apart)}")
    kinds: dict[str, Counter[str]] = {}
    for log in logs:
        for (source, kind), count in log.kinds.items():
            kinds.setdefault(source, Counter())[kind] += count
    for source, counted in sorted(kinds.items()):
        named = [f"{kind} {count:,}" for kind, count in counted.most_common() if kind and kind != source]
        more = f", {len(named) - _KINDS_SHOWN} other kinds" if len(named) > _KINDS_SHOWN else ""
        kinds_text = f": {', '.join(named[:_KINDS_SHOWN])}{more}" if named else ""
        _wrapped(f"{_SOURCES.get(source, source)}: {counted.total():,} lines{kinds_text}")
    if clients := sorted(client for client in result.clients if client):
        _wrapped(f"clients: {', '.join(clients)}")
    for text in result.missing(cluster):
        _wrapped(f"missing: {text}")
    if result.missing(cluster):
        say("  docs/capture.md explains how to get what is missing.")


def _wrapped(text: str) -> None:
    for part in textwrap.wrap(printable(text, 4 * LINE_CHARS), _WIDTH, initial_indent="  ", subsequent_indent="    "):
        say(part)


def _unknown(result: Inspection) -> None:
    if not result.not_understood:
        return
    reasons = sum((log.unknown for log in result.logs), Counter[str]())
    share = result.not_understood / (result.about_groups + result.not_understood)
    say()
    say(f"Not understood: {many(result.not_understood, 'line')}, {share:.2%} of those that may be about groups")
    for reason, count in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        say(f"  {reason} {count:,}: {next_step(reason)}")
        for sample in (one for one in result.samples if one.reason == reason):
            say(f"    {sample.origin}:{sample.line}: {sample.text}")


def _lines(logs: list[SeenLog]) -> str:
    return f"{sum(log.lines for log in logs):,} lines, {sum(log.about_groups for log in logs):,} about groups, {_span(logs)}"


def _span(logs: list[SeenLog]) -> str:
    first = min((log.first_ms for log in logs if log.first_ms is not None), default=None)
    last = max((log.last_ms for log in logs if log.last_ms is not None), default=None)
    if first is None or last is None or first < TIMES_FROM_MS:
        return "no times"
    start, end = to_second(instant(first)), to_second(instant(last))
    return f"{start} to {end[11:] if start[:10] == end[:10] else end} UTC"


def to_json(result: Inspection, left_out: Mapping[str, int]) -> str:
    """An inspection as one JSON object; times are epoch ms, UTC. `left_out`: files that are no logs, by kind."""
    clusters = sorted({log.cluster for log in result.logs})
    bare = {CLIENTS, *PSEUDO_BROKERS}  # of which there may be no evidence
    evidence = {cluster: sorted(result.evidence(cluster).items()) for cluster in clusters}
    return as_json(
        {
            "complete": result.complete,
            "about_groups": result.about_groups,
            "not_understood": result.not_understood,
            "logs": [_log(log) for log in result.logs],
            "releases": {cluster: result.releases.get(cluster, []) for cluster in clusters},
            "clients": {client: count for client, count in sorted(result.clients.items()) if client},
            "evidence": {
                cluster: {broker: sorted(sources) for broker, sources in of_brokers if sources or broker in bare}
                for cluster, of_brokers in evidence.items()
            },
            "zones": result.zones,
            "missing": {cluster: result.missing(cluster) for cluster in clusters},
            "notes": result.notes,
            "not_read": result.troubles,
            "copies": result.copies,
            "left_out": left_out,
            "samples": [vars(sample) for sample in result.samples],
        }
    )


def _log(log: SeenLog) -> dict[str, Any]:
    names = ("cluster", "brokers", "origin", "first_line", "lines", "understood", "first_ms", "last_ms")
    kinds = [{"source": source, "kind": kind, "lines": count} for (source, kind), count in sorted(log.kinds.items())]
    return {name: getattr(log, name) for name in names} | {"bytes": log.size, "kinds": kinds, "not_understood": log.unknown}
