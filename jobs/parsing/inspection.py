"""What is in a folder of logs, without Spark and without tables: files, brokers, times, kinds of lines, and what is not understood.

It reads the files as a run does and looks at every line that a run would keep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_model.events import BROKER_SOURCE, CLIENT_SOURCE, PSEUDO_BROKERS, REQUEST_SOURCE
from jobs.answers.coverage import BROKER_SOURCES, missing
from jobs.logs.faults import shown
from jobs.logs.fetches.rows import Fetches
from jobs.logs.files import LogFile, discover
from jobs.logs.mark import KeptLines
from jobs.logs.slices import Slice, SlicerSettings
from jobs.logs.streams import Stream
from jobs.logs.survey.surveyed import SurveyedSlicer
from jobs.logs.times import NEVER
from jobs.parsing.broker_log import is_api_versions
from jobs.parsing.kinds import row_of, source_of
from jobs.parsing.rows import SKIPPED, UNKNOWN_SOURCE

_SAMPLES: Final = 3  # of each reason
_SAMPLE_CHARACTERS: Final = 300
_API: Final = re.compile(r'(?a)"requestApiKeyName":"([A-Z_]+)"|RequestHeader\(apiKey=([A-Z_0-9]+)')


@dataclass
class SeenLog:
    """One log."""

    cluster: str
    brokers: list[str]  # who wrote it
    origin: str
    first_line: int  # 1, unless the file holds several logs
    size: int  # bytes of the file on disk
    container: str = ""  # that wrote it, in a file that has lines of several
    lines: int = 0
    first_ms: int | None = None
    last_ms: int | None = None
    understood: bool = False  # some line is one of a broker, a client or a record
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)  # source and kind of kept lines
    unknown: Counter[str] = field(default_factory=Counter)  # lines that are not understood, by reason

    @property
    def about_groups(self) -> int:
        """Lines about groups that are understood."""
        return sum(count for (source, _), count in self.kinds.items() if source != BROKER_SOURCE)

    @property
    def sources(self) -> set[str]:
        """The kinds of evidence in it."""
        return {source for source, _ in self.kinds}


@dataclass(frozen=True)
class Sample:
    """A line that is not understood."""

    reason: str
    origin: str
    line: int
    text: str


@dataclass
class Inspection:
    """A folder of logs."""

    logs: list[SeenLog] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    zones: list[str] = field(default_factory=list)  # that lines show, as `--timezone` would name them
    copies: list[str] = field(default_factory=list)  # files that are skipped because another has the same content
    releases: dict[str, list[str]] = field(default_factory=dict)  # of Kafka, by cluster, as starting brokers log it
    clients: Counter[str] = field(default_factory=Counter)  # requests by name and version of the client's software
    unseen: dict[str, list[int]] = field(default_factory=dict)  # by cluster: coordinators that answers name, whose logs are not here
    samples: list[Sample] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)  # lines about files that were not read, or not to their ends
    unread: int = 0  # how many these are
    complete: bool = True  # every line was read

    @property
    def about_groups(self) -> int:
        """Lines about groups that are understood."""
        return sum(log.about_groups for log in self.logs)

    @property
    def not_understood(self) -> int:
        """Lines that a run would put into quarantine."""
        return sum(count for log in self.logs for count in log.unknown.values())

    def evidence(self, cluster: str) -> dict[str, set[str]]:
        """The sources of each broker of a cluster; of clients and of captures too."""
        found: dict[str, set[str]] = {}
        for log in self.logs:
            if log.cluster == cluster:
                for broker in log.brokers:
                    found.setdefault(broker, set()).update(log.sources)
        return found

    def missing(self, cluster: str) -> list[str]:
        """What a run could not answer for lack of evidence, a sentence each."""
        begins: dict[str, int] = {}
        for log in self.logs:
            if log.cluster == cluster and log.first_ms is not None and log.sources & BROKER_SOURCES:
                begins.update({broker: min(begins.get(broker, log.first_ms), log.first_ms) for broker in log.brokers})
        return missing(self.evidence(cluster), begins, self.unseen.get(cluster, ()))


class Inspector(SurveyedSlicer):
    """Reads logs and counts what is in them."""

    def __init__(self, source: Path, settings: SlicerSettings, find: Callable[[Path], list[LogFile]] = discover) -> None:
        super().__init__(lambda: find(source), settings)
        self.result = Inspection()
        self._logs: dict[int, SeenLog] = {}  # by the identity of their stream
        self._sampled: Counter[str] = Counter()

    def work(self, most_lines: int) -> Iterator[int]:
        """Reads at most about so many lines; yields the number of lines read now and then."""
        self.scan()
        result = self.result
        result.copies = [file.origin for file in self.duplicates]
        self._take_signs()
        for stream in self.streams:
            first_line = stream.section.line + 1
            log = SeenLog(stream.cluster, stream.brokers, stream.origin, first_line, stream.signature.size, stream.view.container)
            log.first_ms = stream.due_ms if stream.has_more and stream.due_ms != NEVER else None
            self._logs[id(stream)] = log
            result.logs.append(log)
        lines = 0
        while lines < most_lines:
            slice_ = Slice(KeptLines(fetches=Fetches()))
            self.fill(slice_)
            if not slice_.parts:
                break
            self._count(slice_)
            lines += slice_.lines_read
            yield lines
        result.complete = not any(stream.has_more for stream in self.streams)
        result.notes, result.zones = list(self.notes), list(self.zones)
        result.troubles, result.unread = self.troubles.summary(), len(self.troubles)
        for stream in self.streams:
            log = self._logs[id(stream)]
            log.understood = stream.understood
            log.lines = stream.reached.own_lines - stream.section.line
            log.last_ms = stream.newest_ms if stream.newest_ms != NEVER else None
            if stream.is_empty and not log.lines:
                result.logs.remove(log)
            if stream.reader is not None:
                stream.reader.close()

    def _take_signs(self) -> None:
        for cluster, signs in sorted(self.signs.items()):
            self.result.releases[cluster] = sorted({release for one in signs for release in one.releases})
            seen = {*self.known[cluster].names, *(node for one in signs for node in one.nodes)}
            named = {node for one in signs for nodes in one.coordinators.values() for node in nodes}
            self.result.unseen[cluster] = sorted(named - seen)

    def _count(self, slice_: Slice) -> None:
        kept, row = slice_.kept, 0
        for stream, broker, rows in slice_.parts:
            log = self._logs[id(stream)]
            for index in range(row, row + rows):
                self._look_into(log, stream, broker, kept, index)
            row += rows
        for stream in slice_.skipped:
            fetched = kept.fetches.of(stream.reader) if kept.fetches is not None else None
            for api, lines in fetched.lines.items() if fetched is not None else ():
                self._logs[id(stream)].kinds[REQUEST_SOURCE, api] += lines

    def _look_into(self, log: SeenLog, stream: Stream, broker: str, kept: KeptLines, index: int) -> None:
        text = kept.texts[index].decode("utf-8", "replace")
        unknown = kept.faults.get(index, "")
        if not unknown:
            found = recognise(text, broker, kept.contexts.get(index, ""))
            unknown = found.unknown
            if found.source and not unknown:
                log.kinds[found.source, found.kind] += 1
                self.result.clients[found.client] += bool(found.client)
        if unknown:
            log.unknown[unknown] += 1
            self._sampled[unknown] += 1
            if self._sampled[unknown] <= _SAMPLES:
                told = shown(text, kept.around.get(index, b"").decode())
                self.result.samples.append(Sample(unknown, stream.origin, kept.positions[index], told[:_SAMPLE_CHARACTERS]))


class Recognised(NamedTuple):
    """What a line is."""

    source: str  # of evidence, as in group_events; empty if the line is of no known kind
    kind: str = ""  # as in group_events, or the name of the request's API; empty if it concerns no group
    unknown: str = ""  # why the line is not understood
    client: str = ""  # name and version of the client's software


def recognise(line: str, broker: str, context: str = "") -> Recognised:
    """What a kept line without a fault is. `broker`: whose log it is in. `context`: what earlier lines say about it."""
    if broker in PSEUDO_BROKERS:
        return Recognised(broker, broker)
    source = source_of(broker, line)
    row = row_of(source, line, 0, context)
    source, refusal = row["source"], (row.get("refusal") or "").partition(":")[0]
    if row["verdict"] == SKIPPED and (source in (BROKER_SOURCE, UNKNOWN_SOURCE) or is_api_versions(line)):
        return Recognised("")
    api = _API.search(line) if source == REQUEST_SOURCE else None
    kind = CLIENT_SOURCE if source == CLIENT_SOURCE else row.get("kind") or ("" if api is None else api[api.lastindex or 0])
    return Recognised(source, kind, refusal, (row.get("software") or "") if source == REQUEST_SOURCE else "")
