"""Decides which lines of a client application's log are kept, and which group a line is of that names none.

An application writes whatever it likes. Sentences of a consumer that say why it rejoins or leaves are kept; other lines are counted.

librdkafka names the group in its debug lines only, and lines of other libraries about a poll timeout name none. Such a line belongs to the
group that the same client named before in the same log, if it named only one. A client is what its lines are signed with: librdkafka's
name, or the library where it writes no name. Else the line belongs to the group that the log's folder is named after
(`clients/<group>/app.log`).
"""

from __future__ import annotations

import re
from typing import Final

from jobs.logs.clients.envelopes import SIGNED, SIGNED_WITHIN, client_line
from jobs.logs.clients.sentences import named_group
from jobs.logs.faults import NO_TIMESTAMP
from jobs.logs.judge import LineJudge
from jobs.logs.mark import Mark

_FACILITIES: Final = re.compile(rb"\|(?:MAXPOLL|SESSTMOUT|JOINGROUP|REBALANCE|REJOIN|SUBSCRIBE)\|")
_UNSIGNED: Final = (b"Application maximum poll interval", b"Consumer group session timed out")
"""Sentences of librdkafka that are kept where nothing tells the facility."""
_SENTENCES: Final = (
    b"poll timeout has expired",
    b"Time between subsequent calls to poll() was longer",
    b"sending LeaveGroup request",
    b"Sending LeaveGroup request",
    b"and leave group",
    b"Request joining group due to",
    b"Successfully joined group with generation",
)
_PREFIX_PARTS: Final = re.compile(rb"\[(?:Consumer|Worker) |\]|groupId=")
_GROUP: Final = re.compile(rb'(?:\S+: )?Group "(.*?)"(?=[: ])', re.DOTALL)
_CLIENTS_KEPT: Final = 256  # of one log, whose groups are remembered
_SEVERAL: Final = ""
"""In the place of a group: the client named several."""


class ClientJudge(LineJudge):
    """Judges the lines of one client log. `group`: the group of lines that name none."""

    has_context = True
    bare = staticmethod(client_line)

    def __init__(self, mark: Mark, group: str = "") -> None:
        super().__init__(mark)
        self._group = group

    def timed(self, line: bytes, fault: str) -> str | None:
        """Keeps lines of consumers, and remembers which group a client names."""
        signed = _signed(line)
        if signed is not None:
            self._remember(line, signed)
        return fault if is_consumer_line(line) else None

    def untimed(self, line: bytes, fault: str) -> str:
        """Keeps lines of consumers."""
        return (fault or NO_TIMESTAMP) if is_consumer_line(line) else ""

    def concerns(self, line: bytes) -> bool:
        """Whether a line is a consumer's."""
        return is_consumer_line(line)

    def context(self, line: bytes) -> str:
        """The group of a line that does not name it."""
        signed = _signed(line)
        return (self.mark.groups.get(_text(signed[2])) if signed is not None else None) or self._group

    def _remember(self, line: bytes, signed: re.Match[bytes]) -> None:
        if signed[3] is not None:
            named = _GROUP.match(line, signed.end(), SIGNED_WITHIN)
            group = "" if named is None else _text(named[1])
        else:
            group = named_group(line[signed.end() :])
        if not group:
            return
        groups, client = self.mark.groups, _text(signed[2])
        groups[client] = group if groups.get(client, group) == group else _SEVERAL
        if len(groups) > _CLIENTS_KEPT:
            del groups[next(iter(groups))]


class LeftOut(ClientJudge):
    """Of a client whose time zone is not known: nothing is left of its lines."""

    bare = staticmethod(lambda line: line[:0] + b" ")


def is_consumer_line(line: bytes) -> bool:
    """Whether a consumer wrote a line that is kept: `[Consumer …groupId=…` and then a known sentence; or another client's (envelopes.py).

    An application may log any text of any length. This looks once from left to right; a single pattern would backtrack.
    """
    signed = _signed(line)
    if signed is not None and not signed[1]:
        return signed[3] is None or any(sentence in line for sentence in _UNSIGNED)
    if signed is not None or line[:1] == b"%":
        return _FACILITIES.search(line, 0, SIGNED_WITHIN) is not None
    if b"groupId=" not in line:
        return False
    last = max(map(line.rfind, _SENTENCES))
    inside = False
    for part in _PREFIX_PARTS.finditer(line, 0, max(last, 0)):
        if inside and part[0] == b"groupId=":
            return True
        inside = part[0] not in (b"]", b"groupId=")
    return False


def _signed(line: bytes) -> re.Match[bytes] | None:
    """The beginning of a line in a form of librdkafka or another library, which has `%` within the length of a time."""
    return SIGNED.match(line, 0, SIGNED_WITHIN) if b"%" in line[:64] else None


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
