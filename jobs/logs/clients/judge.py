"""Decides which lines of a client application's log are kept, and which group a line is of that names none.

An application writes whatever it likes. Sentences of a consumer that say why it rejoins or leaves are kept; other lines are counted.

librdkafka names the group in its debug lines only, and lines of other libraries about a poll timeout name none. Such a line belongs to the
group that its client names anywhere in the log, before or after, if it names only one (groups.py). The log is looked through for that
before its first line is judged; what is appended later counts from there on. Else the line belongs to the group that the log's folder is
named after (`clients/<group>/app.log`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from coordinator_model import events
from jobs.common.trouble import tells_of_trouble
from jobs.logs.bytes import LogBytes
from jobs.logs.clients import groups
from jobs.logs.clients.envelopes import SIGNED_WITHIN, client_line
from jobs.logs.clients.sentences import JAVA
from jobs.logs.faults import NO_TIMESTAMP
from jobs.logs.judge import LineJudge
from jobs.logs.mark import Mark
from jobs.sentences.client import CLIENTS, PREFIX

_FACILITIES: Final = re.compile(
    rb"\|(?:MAXPOLL|SESSTMOUT|JOINGROUP|REBALANCE|REJOIN|SUBSCRIBE|LEAVE|GRPSYNC|COMMITFAIL|FATAL)\|"
    rb"|\|HEARTBEAT\|.{1,999}?(?:heartbeat error response|ConsumerGroupHeartbeat failed)",
    re.DOTALL,
)
_UNSIGNED: Final = re.compile(rb"Application maximum poll interval|Consumer group session timed out|Offset commit \(")
"""Sentences of librdkafka that are kept where nothing tells the facility."""
_LOGGER: Final = re.compile(rb" \([\w$]+(?:\.[\w$]+)+(?::\d+)?\)\s*\Z")
_PREFIX_PARTS: Final = re.compile(PREFIX.encode() + rb"|\]|groupId=")


class ClientJudge(LineJudge):
    """Judges the lines of one client log. `group`: the group of lines that name none."""

    has_context = True
    bare = staticmethod(client_line)

    def __init__(self, mark: Mark, group: str = "") -> None:
        super().__init__(mark)
        self._group = group

    def begin(self, lines: Iterable[bytes], log: Callable[[], LogBytes]) -> None:  # noqa: ARG002
        """Looks through the whole log, as it is now, for the groups that clients name."""
        self.mark.groups.clear()
        groups.look_through(log, self.mark, self.bare)

    def timed(self, line: bytes, fault: str) -> str | None:
        """Keeps lines of consumers, and remembers which group a client names."""
        groups.remember(self.mark.groups, line)
        return fault if is_consumer_line(line) else None

    def untimed(self, line: bytes, fault: str) -> str:
        """Keeps lines of consumers."""
        groups.remember(self.mark.groups, line)
        signed = groups.signed_as(line)
        is_trace = signed is not None and signed[2] == JAVA  # of a stack, which names an exception
        return (fault or NO_TIMESTAMP) if is_consumer_line(line) and not is_trace else ""

    def concerns(self, line: bytes) -> bool:
        """Whether a line is a consumer's."""
        return is_consumer_line(line)

    def context(self, line: bytes) -> str:
        """The group of a line that does not name it."""
        return groups.group_of(self.mark.groups, line) or (self._group if groups.signed_as(line) is not None else "")


class LeftOut(ClientJudge):
    """Of a client whose time zone is not known: nothing is left of its lines."""

    bare = staticmethod(lambda line: line[:0] + b" ")


def is_consumer_line(line: bytes) -> bool:
    """Whether a consumer wrote a line that is kept: `[Consumer …groupId=…` and then a known sentence; or another client's (envelopes.py).

    An application may log any text of any length. This looks once from left to right; a single pattern would backtrack.
    """
    signed = groups.signed_as(line)
    if signed is not None and not signed[1]:
        return signed[3] is None or _UNSIGNED.search(line) is not None
    if signed is not None or line[:1] == b"%":
        return _FACILITIES.search(line, 0, SIGNED_WITHIN) is not None
    inside = False
    for part in _PREFIX_PARTS.finditer(line) if b"groupId=" in line else ():
        if inside and part[0] == b"groupId=":
            return _tells(line[part.end() :].partition(b"] ")[2])
        inside = part[0] not in (b"]", b"groupId=")
    return False


def _tells(sentence: bytes) -> bool:
    """Whether Java's client says something that is read, or has a word of trouble."""
    logger = sentence.rfind(b" (")
    if logger >= 0 and _LOGGER.match(sentence, logger) is not None:
        sentence = sentence[:logger]
    text = sentence.decode("utf-8", "replace").rstrip()
    return CLIENTS.may_read(text) or tells_of_trouble(text)


def group_folder(origin: str) -> str:
    """The group that a client log's folder is named after: the one below `clients`; empty if it lies in `clients` itself, or elsewhere."""
    _, clients, below = f"/{origin}".rpartition(f"/{events.CLIENTS}/")
    return below.rpartition("/")[0] if clients else ""
