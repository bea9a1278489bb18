"""Finds the log lines that prove a row: `rebalance evidence ID`.

An id is a hash of a row's content (sql/views); its first letter names the table. A row's evidence names lines by file and number. Logs
rotate: a file that was renamed or compressed still has the line under its number. So all files of that log are searched, and a line
counts only if it has the time that ingest read from it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from coordinator_model.events import PROMPT_MS
from jobs.answers.attention import attention
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.formats import as_json
from jobs.answers.incidents.bills import RebalanceTimes
from jobs.answers.rebalance_words import rounds_of
from jobs.answers.report import Scope, Scoped, read_incidents
from jobs.common.errors import EvidenceError
from jobs.common.places import own_query
from jobs.common.stores import Place, is_store
from jobs.logs.clients.envelopes import client_line
from jobs.logs.envelopes import unwrapped
from jobs.logs.faults import shown
from jobs.logs.files import LogFile, discover
from jobs.logs.lines import numbered_lines
from jobs.logs.record_judge import record_time
from jobs.logs.survey.views import AS_IT_IS, View, is_undated
from jobs.logs.times import LocalTimes

KINDS: Final = {
    "f": ("finding", "findings_with_id", "{severity} {code}"),
    "i": ("incident", "incidents", "{severity} {cause}"),
    "r": ("rebalance", "rebalances_with_culprit", "rebalance {blamed}"),
    "s": ("membership", "member_sessions_with_id", "membership ended {end_kind}"),
    "t": ("transition", "group_transitions_with_id", "{from_state} > {to_state}"),
}
"""What sort of row an id is of, its view, and what a row is called, by the first letter of the id."""

_MINUTE_MS: Final = 60_000
_TIMES: Final = LocalTimes("UTC")  # reads those of brokers, too
_SECONDS: Final = re.compile(rb":(\d\d)[.,](\d{3})")
_TIME_WITHIN: Final = 512  # bytes of a line
_ID: Final = re.compile(r"[first][0-9a-f]{3,11}")


@dataclass(frozen=True)
class Line:
    """A line that a row's evidence names."""

    source: str
    origin: str
    position: int
    file: Place | None  # in which the line was found
    text: str | None


@dataclass(frozen=True)
class ProvenRow:
    """A row with the lines that prove it."""

    id: str
    row: dict[str, Any]
    lines: list[Line]
    rounds: Sequence[Row] = ()
    """Of a rebalance of the consumer protocol: the rows of `rebalance_rounds`."""

    @property
    def kind(self) -> str:
        """What sort of row it is."""
        return KINDS[self.id[0]][0]


def prove(lakehouse: Place, row_id: str, inputs: Sequence[Path], *, entry: bool = False) -> list[ProvenRow]:
    """The rows of an id, which may be shortened, with their lines. `inputs`: where logs were read from.

    Rows with the same content have the same id. `entry`: all of the report's entry that a finding or an incident belongs to, in the order
    of time. EvidenceError: no row has the id, the short id is ambiguous, or there are no logs.
    """
    reader = QuestionReader(lakehouse)
    rows = _rows(reader, row_id)
    if entry:
        rows = _rows_of_entry(reader, rows[0])
    return prove_rows(reader, rows, inputs)


def prove_rows(lakehouse: Place | QuestionReader, rows: Sequence[Row], inputs: Sequence[Path]) -> list[ProvenRow]:
    """Rows that have an id and evidence, each with its lines: each log is read once. EvidenceError: there are no logs."""
    if not rows:
        return []
    reader = lakehouse if isinstance(lakehouse, QuestionReader) else QuestionReader(lakehouse, keeps=is_store(lakehouse))
    files = files_of(inputs)
    if not inputs:
        raise EvidenceError("the lakehouse does not record where its logs are: give --input DIR, the input of `rebalance run`")
    if not files:
        raise EvidenceError(f"no log files in {', '.join(map(str, inputs))}: give --input DIR with the logs that were read")
    refs_of = [[(ref["source"], ref["origin"], int(ref["position"])) for ref in json.loads(row["evidence"])] for row in rows]
    places = places_of(reader, {(origin, position) for refs in refs_of for _, origin, position in refs}, files)
    proofs = []
    for row, refs in zip(rows, refs_of, strict=True):
        lines = []
        for source, origin, position in refs:
            file, text = places.get((origin, position), (None, None))
            lines.append(Line(source, origin, position, file, None if text is None else shown(text.decode("utf-8", "replace"), None)))
        proofs.append(ProvenRow(row["id"], row, lines, rounds_of(reader, row) if "group_protocol" in row else ()))
    return proofs


def others_of_entry(lakehouse: Place, proven: ProvenRow) -> int:
    """How many other findings the entry of the report has to which a finding belongs; 0 for a row of another kind."""
    return len(_rows_of_entry(QuestionReader(lakehouse), proven.row)) - 1 if proven.id[0] == "f" else 0


def _rows_of_entry(reader: QuestionReader, row: Row) -> list[Row]:
    if row["id"][0] not in "fi":
        raise EvidenceError(f"{row['id']} is neither a finding nor an incident: entries of the report consist of these")
    findings, incidents = Scoped(reader, Scope(cluster=row["cluster"])).rows("findings"), read_incidents(reader)
    entries = attention(findings, RebalanceTimes(()), incidents=incidents)
    one = next(iter(row.get("findings") or ()), row["id"])
    ids = next(entry.ids for entry in entries if one in entry.ids)
    own = (*incidents, *(found for found in findings if found["id"][0] == "f"))  # a crash of which no finding tells is both
    return [found for found in own if found["cluster"] == row["cluster"] and found["id"] in ids]


def places_of(
    reader: QuestionReader, refs: Iterable[tuple[str, int]], files: Sequence[LogFile]
) -> dict[tuple[str, int], tuple[Path, bytes]]:
    """Where lines are now, and what they say, by origin and number. Lines that are gone are left out."""
    places: dict[tuple[str, int], tuple[Path, bytes]] = {}
    for origin, wanted in groupby(sorted(set(refs)), key=itemgetter(0)):
        times = line_times(reader, origin)
        found = find_lines(origin, {position: times.get(position) for _, position in wanted}, files)
        places |= {(origin, number): place for number, place in found.items()}
    return places


def _rows(reader: QuestionReader, row_id: str) -> list[Row]:
    if not _ID.fullmatch(row_id):
        raise EvidenceError(f"{row_id[:40]!r} is not an id: see `rebalance ask findings` and `rebalance ask rebalances` (f3a91c0d27be)")
    kind, view, _ = KINDS[row_id[0]]
    text = f"SELECT * FROM {view} AS v WHERE v.id LIKE $id || '%' ORDER BY v.id"  # noqa: S608 - a name from above
    rows = reader.ask(text, {"id": row_id}).by_name()
    if not rows:
        raise EvidenceError(f"no {kind} has the id {row_id} in {reader.folder}")
    if len({row["id"] for row in rows}) > 1:
        others = ", ".join(sorted({row["id"] for row in rows})[:5])
        raise EvidenceError(f"{row_id} begins several ids: {others}")
    return rows


@dataclass(frozen=True)
class LineTime:
    """When a line was written: ms into the minute, which do not depend on the time zone."""

    ms: int
    later_ms: int = 0  # the line may have been written so much later

    def fits(self, line: bytes) -> bool:
        """Whether a line of a broker's log, a client's log or a record has that time."""
        return any((line_ms - self.ms) % _MINUTE_MS <= self.later_ms for line_ms in _times_of(line))


def _times_of(line: bytes) -> Iterator[int]:
    """The times that ingest may have read from a line, ms: what stands around it is taken off by the kind of its log."""
    at_ms = record_time(line)
    if at_ms is not None:
        yield at_ms
    for bare in (unwrapped(line), client_line(line)):
        at_ms = _TIMES.read(bare, 0)
        if at_ms is not None:
            yield at_ms
    for second, millis in _SECONDS.findall(line, 0, _TIME_WITHIN):  # of a pattern that the user named
        yield int(second) * 1_000 + int(millis)


def line_times(reader: QuestionReader, origin: str) -> dict[int, LineTime]:
    """The times of all lines of a log that became events, by number."""
    rows = reader.ask(own_query("line_times"), {"origin": origin, "later_ms": PROMPT_MS + 1}).rows
    return {int(position): LineTime(int(ms) % _MINUTE_MS, later_ms) for position, ms, later_ms, _ in rows}


def files_of(inputs: Sequence[Path]) -> list[LogFile]:
    """All logs of all inputs that can be read, the first input first."""
    files: list[LogFile] = []
    for folder in inputs:
        with suppress(OSError):
            files += discover(folder)
    return files


def find_lines(origin: str, wanted: dict[int, LineTime | None], files: Sequence[LogFile]) -> dict[int, tuple[Path, bytes]]:
    """The wanted lines of one log, from the file of that name or a rotated one.

    `wanted`: the time that each line must have, by number. A line without a known time is taken only from the file of that name.
    """
    folder, stem = _place(origin)
    same = [file for file in files if file.origin == origin]
    moved = [file for file in files if file.origin != origin and _place(file.origin) == (folder, stem)]
    places: dict[int, tuple[Path, bytes]] = {}
    as_they_are = [(file, AS_IT_IS) for file in (*same, *moved)]
    for file, view in (*as_they_are, *((file, View(newest_first=True)) for file in same)):
        left = {number: clock for number, clock in wanted.items() if number not in places}
        if not left:
            break
        for number, text in numbered_lines(file.path, left, view=view):
            clock = left[number]
            as_it_was = file.origin == origin and view == AS_IT_IS
            if clock.fits(text) or (as_it_was and is_undated(text)) if clock is not None else as_it_was:
                places[number] = (file.path, text)
    return places


def _place(origin: str) -> tuple[str, str]:
    """The folder of a log, and its name without what rotation adds: `server` for server.log.2026-03-01-10.gz."""
    folder, _, name = origin.rpartition("/")
    return folder, re.split(r"\.log|-\d+\.log|\.jsonl", name, maxsplit=1)[0]


def to_json(rows: Sequence[ProvenRow]) -> str:
    """For programs: each row, with its lines in the place of `evidence`."""
    shown = []
    for proven in rows:
        row = _without(proven.row, {"evidence", "batch_id", "step"})
        if "details" in row:
            row["details"] = json.loads(row["details"] or "{}")
        if proven.rounds:
            of_both = {"cluster", "group_id", "generation"}
            rounds = [_without(one, of_both) | {"revocations": json.loads(one.get("revocations") or "[]")} for one in proven.rounds]
            row["rounds"] = rounds
        shown.append({**row, "lines": [asdict(line) for line in proven.lines]})
    return as_json(shown)


def _without(row: Row, names: set[str]) -> Row:
    return {name: value for name, value in row.items() if name not in names}
