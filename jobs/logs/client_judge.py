"""Decides which lines of a client application's log are kept, and reads their times and groups.

An application writes whatever it likes. Sentences of a consumer that say why it rejoins or leaves are kept; other lines are counted.
Patterns differ from application to application: a time may stand in brackets or not, with or without an offset; librdkafka writes epoch
seconds.

librdkafka names the group in its debug lines only. A line without it belongs to the group that the same client named last in
the same log, else to the one that the log's folder is named after (`clients/<group>/app.log`).
"""

from __future__ import annotations

import re
from typing import Final

from jobs.logs.faults import NO_TIMESTAMP
from jobs.logs.judge import LineJudge
from jobs.logs.mark import Mark
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
    """The times of client logs: librdkafka's epoch seconds, times with an offset, or local times of the zone."""

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
        if sign is None and not iso[0].endswith(b"Z"):
            return super().read(local, near_ms)
        at = _UTC.read(local, near_ms)
        if at is None or sign is None:
            return at
        offset = (int(hours) * 60 + int(minutes)) * 60_000
        return at - offset if sign == b"+" else at + offset


_UTC: Final = LocalTimes("UTC")


class ClientJudge(LineJudge):
    """Judges the lines of one client log. `group`: the group of lines that name none."""

    has_context = True

    def __init__(self, mark: Mark, group: str = "") -> None:
        super().__init__(mark)
        self._group = group

    def timed(self, line: bytes, fault: str) -> str | None:
        """Keeps lines of consumers, and remembers which group a librdkafka client names."""
        named = _NAMED.match(line, 0, _NAMES_WITHIN) if line.startswith(b"%") else None
        if named is not None:
            groups = self.mark.groups
            groups[named[1].decode("utf-8", "replace")] = named[2].decode("utf-8", "replace")
            if len(groups) > _CLIENTS_KEPT:
                del groups[next(iter(groups))]
        return fault if is_consumer_line(line) else None

    def untimed(self, line: bytes, fault: str) -> str:
        """Keeps lines of consumers."""
        return (fault or NO_TIMESTAMP) if is_consumer_line(line) else ""

    def concerns(self, line: bytes) -> bool:
        """Whether a line is a consumer's."""
        return is_consumer_line(line)

    def context(self, line: bytes) -> str:
        """The group of a line that does not name it."""
        client = _CLIENT.match(line, 0, _NAMES_WITHIN)
        return self._group if client is None else self.mark.groups.get(client[1].decode("utf-8", "replace"), self._group)


def is_consumer_line(line: bytes) -> bool:
    """Whether a consumer wrote a line that is kept: `[Consumer …groupId=…` and then a known sentence; or librdkafka's.

    An application may log any text of any length. This looks once from left to right; a single pattern would backtrack.
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
