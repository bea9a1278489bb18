"""Reads the log of a client application: which of its lines are Kafka's, of which consumer group, and when.

An application writes whatever it likes. Kept are the sentences of a consumer that say why it rejoins or leaves; all else is
counted. Patterns differ from application to application: a time may stand in brackets or not, with or without an offset;
librdkafka writes epoch seconds.

librdkafka names the group in its debug lines only. A line without it belongs to the group that the same client named last in
the same log, else to the one that the log's folder is named after (`clients/<group>/app.log`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from jobs.logs.bytes import LogBytes
from jobs.logs.reader import NO_TIMESTAMP, TIMESTAMP_OUTLIER, Kept, LogReader, Mark, Settle, Verdict
from jobs.logs.times import LocalTimes

_LIBRDKAFKA: Final = re.compile(rb"\|(?:MAXPOLL|SESSTMOUT|JOINGROUP|REBALANCE|REJOIN|SUBSCRIBE)\|")
_SENTENCES: Final = (
    b"poll timeout has expired",
    b"sending LeaveGroup request",
    b"Request joining group due to",
    b"Successfully joined group with generation",
)
_PREFIX_PARTS: Final = re.compile(rb"\[(?:Consumer|Worker) |\]|groupId=")
_NAMES_WITHIN: Final = 8_192  # bytes of a line that are looked through for its client and group
_NAMED: Final = re.compile(rb'%\d\|[\d.]+\|[A-Z_]+\|(.*?)\| \[thrd:[^\]]*\]: (?:\S+: )?Group "(.*?)"(?=[: ])', re.DOTALL)
_CLIENT: Final = re.compile(rb"%\d\|[\d.]+\|[A-Z_]+\|(.*?)\| \[thrd:", re.DOTALL)
_EPOCH: Final = re.compile(rb"%\d\|(\d{1,11})\.(\d{3})\|")
_ISO: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(:\d\d)[.,](\d{3})(?:Z|([+-])(\d\d):?(\d\d))?")
_CLIENTS_KEPT: Final = 256  # of one log, whose groups are remembered


class ClientTimes(LocalTimes):
    """The times of client logs: librdkafka's epoch seconds, or local ones of the zone unless they tell their offset."""

    def read(self, line: bytes, near_ms: int) -> int | None:
        """The time of a line, epoch ms; None if it has none."""
        epoch = _EPOCH.match(line)
        if epoch is not None:
            return int(epoch[1]) * 1_000 + int(epoch[2])
        iso = _ISO.match(line)
        if iso is None:
            return None
        date, minute, second, millis, sign, hours, minutes = iso.groups()
        local = b"[" + date + b" " + minute + second + b"," + millis + b"]"
        told = iso[0].endswith(b"Z") or sign is not None
        if not told:
            return super().read(local, near_ms)
        at = _UTC.read(local, near_ms)
        if at is None or sign is None:
            return at
        offset = (int(hours) * 60 + int(minutes)) * 60_000
        return at - offset if sign == b"+" else at + offset


_UTC: Final = LocalTimes("UTC")


class ClientLogReader(LogReader):
    """Reads one client log from a mark on, as LogReader reads a broker's. `group`: of lines that name none."""

    def __init__(
        self,
        open_bytes: Callable[[], LogBytes],
        times: ClientTimes,
        mark: Mark | None = None,
        *,
        group: str = "",
        final: bool = True,
        tolerance_ms: int = 60_000,
        believable_ms: int = 3_600_000,
    ) -> None:
        super().__init__(open_bytes, times, mark, final=final, tolerance_ms=tolerance_ms, believable_ms=believable_ms)
        self.mark.groups = dict(self.mark.groups)
        self._group = group

    def _read_block(self, kept: Kept, end: int, until: int, settle: Settle, witness: int) -> bool:
        start, mark = self._next, self.mark
        number = mark.line - start + 1  # of the line at index 0
        newest, first_kept, reached = mark.newest_ms, len(kept), end
        for index in range(start, end):
            raw = self._lines[index]
            line, fault = self._inspect(index, raw) if self._odd else (raw, "")
            ours = _is_ours(line)
            at = self._times.read(line, newest)
            if at is None:
                if ours:
                    kept.add(number + index, None, line, fault or NO_TIMESTAMP)
                continue
            if at > min(until, newest + self._tolerance):
                verdict = self._judge(index, at, settle if at <= until else Settle.HOLD, witness, newest)
                if verdict is Verdict.OUTLIER:
                    if ours:
                        kept.add(number + index, None, line, fault or TIMESTAMP_OUTLIER)
                    continue
                if verdict is Verdict.OPEN or at > until:
                    reached = index
                    break
            self._heard.append(at // 1_000)
            newest = max(newest, at)
            self._note_group(line)
            if ours:
                kept.add(number + index, at, line, fault, context=self._group_of(line))
        mark.newest_ms = newest
        kept.size += sum(map(len, kept.texts[first_kept:]))
        self._advance(reached - start)
        return reached < end

    def _note_group(self, line: bytes) -> None:
        named = _NAMED.match(line, 0, _NAMES_WITHIN) if line.startswith(b"%") else None
        if named is None:
            return
        groups = self.mark.groups
        client = named[1].decode("utf-8", "replace")
        groups[client] = named[2].decode("utf-8", "replace")
        if len(groups) > _CLIENTS_KEPT:
            del groups[next(iter(groups))]

    def _group_of(self, line: bytes) -> str:
        client = _CLIENT.match(line, 0, _NAMES_WITHIN)
        return self._group if client is None else self.mark.groups.get(client[1].decode("utf-8", "replace"), self._group)


def _is_ours(line: bytes) -> bool:
    """Whether a line is a consumer's, and of those that are kept: `[Consumer …groupId=…` and then a sentence; or librdkafka's.

    An application may log any text, at any length: one look from left to right, where one pattern for all would go back and forth.
    """
    if _LIBRDKAFKA.search(line) is not None:
        return True
    last = max(map(line.rfind, _SENTENCES))
    inside = False
    for part in _PREFIX_PARTS.finditer(line, 0, max(last, 0)):
        if inside and part[0] == b"groupId=":
            return True
        inside = part[0] not in (b"]", b"groupId=")
    return False
