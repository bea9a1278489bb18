"""Decides which lines of a client application's log are kept, and which group a line is of that names none.

An application writes whatever it likes. Sentences of a consumer that say why it rejoins or leaves are kept; other lines are counted.

librdkafka names the group in its debug lines only (`Group "orders": leave`), and lines of other libraries about a poll timeout name none.
Such a line belongs to the group that its client names anywhere in the log, before or after, if it names only one. Groups are named by these
lines, with or without a template, by sentences of other libraries (`(Re-)joining group orders`), by the prefix of Java's client, and by
settings that an application prints (`group.id = orders`). Lines of librdkafka have the name of their client; those of other libraries, and
of the application itself, are of nobody in particular. The log is looked through for that before its first line is judged; what is appended
later counts from there on. Else the line belongs to the group that the log's folder is named after (`clients/<group>/app.log`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

from coordinator_model import events
from jobs.common.trouble import tells_of_trouble
from jobs.logs.bytes import LogBytes
from jobs.logs.clients.envelopes import SIGNED, SIGNED_WITHIN, client_line
from jobs.logs.clients.sentences import JAVA, named_group
from jobs.logs.faults import NO_TIMESTAMP
from jobs.logs.judge import LineJudge
from jobs.logs.mark import Mark
from jobs.logs.survey.block_times import blocks_of, lines_with
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

_SEVERAL: Final = ""  # in the place of a group: the client names several
_NOBODY: Final = ""
_OF_ANY_JAVA: Final = "[]"
_UNNAMED: Final = "[?]"
_OTHERS: Final = "[...]"
"""In the place of a client: any of Java's, whose lines name their groups; one that its lines do not name; any of those that are too many to
be remembered."""

_LOOKED_THROUGH: Final = 64 << 20  # bytes of a log
_CLIENTS_KEPT: Final = 256  # of a log

_NAMING: Final = (b"roup", b"GROUP")
_OF_LIBRDKAFKA: Final = re.compile(rb'[Gg]roup "(.*?)"(?=[: ,.]|$)', re.DOTALL)
_OF_JAVA: Final = re.compile(PREFIX.encode() + rb"[^\]]{0,999}?groupId=([^\]]{1,512})\] ")
_OF_PYTHON: Final = re.compile(
    rb"(?:Group coordinator for|(?:assigned partitions .{0,4096}|heartbeat response) for group) ([^\s:]{1,255})(?: is Broker| on close|$)"
)
"""What kafka-python and aiokafka say besides (cluster.py, coordinator/base.py, coordinator/consumer.py, group_coordinator.py)."""
_SETTING: Final = re.compile(
    rb"(?:\bgroup\.id\b[\"']?\s{0,99}[:=]\s{0,9}[\"']?|\bconsumergroup/|\bcoordinator for consumergroup "
    rb"|\b(?:group_?id|consumer_?group)\b[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?P<any>))([^\s\"',;:()\[\]{}=]{1,255})",
    re.IGNORECASE,
)
_OF_KAFKA: Final = re.compile(rb"kafka|consumer", re.IGNORECASE)
"""What a line has that means a consumer's group by `groupId`, which others may use as well."""
_NO_GROUP: Final = frozenset({"null", "None", "nil", "undefined"})


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
        _look_through(log, self.mark, self.bare)

    def timed(self, line: bytes, fault: str) -> str | None:
        """Keeps lines of consumers, and remembers which group a client names."""
        _remember(self.mark.groups, line)
        return fault if is_consumer_line(line) else None

    def untimed(self, line: bytes, fault: str) -> str:
        """Keeps lines of consumers."""
        _remember(self.mark.groups, line)
        signed = _signed_as(line)
        is_trace = signed is not None and signed[2] == JAVA  # of a stack, which names an exception
        return (fault or NO_TIMESTAMP) if is_consumer_line(line) and not is_trace else ""

    def concerns(self, line: bytes) -> bool:
        """Whether a line is a consumer's."""
        return is_consumer_line(line)

    def context(self, line: bytes) -> str:
        """The group of a line that does not name it."""
        return _group_of(self.mark.groups, line) or (self._group if _signed_as(line) is not None else "")


class LeftOut(ClientJudge):
    """Of a client whose time zone is not known: nothing is left of its lines."""

    bare = staticmethod(lambda line: line[:0] + b" ")


def is_consumer_line(line: bytes) -> bool:
    """Whether a consumer wrote a line that is kept: `[Consumer …groupId=…` and then a known sentence; or another client's (envelopes.py).

    An application may log any text of any length. This looks once from left to right; a single pattern would backtrack.
    """
    signed = _signed_as(line)
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


def _look_through(log: Callable[[], LogBytes], mark: Mark, bare: Callable[[bytes], bytes]) -> None:
    """Notes the groups that the clients name in the first megabytes of a log, which begins at a mark. `bare`: that of the judge."""
    with log() as source:
        if not source.skip(mark.offset):
            return
        for offset, block in blocks_of(source):
            for line in lines_with(block, _NAMING):
                if not _remember(mark.groups, bare(line.removesuffix(b"\r"))):
                    _remember(mark.groups, line)  # such as a field of JSON beside the message
            if offset > _LOOKED_THROUGH:
                return


def _remember(groups: dict[str, str], line: bytes) -> bool:
    """Notes which group a line names, and whose; whether it names any."""
    if b"roup" not in line and b"GROUP" not in line:
        return False
    client, group = _named(line)
    if group in _NO_GROUP or not group:
        return False
    if client not in groups and len(groups) >= _CLIENTS_KEPT:
        client = _OTHERS
    groups[client] = group if groups.get(client, group) == group else _SEVERAL
    return True


def _group_of(groups: dict[str, str], line: bytes) -> str:
    """The group of a line that names none: the only one that its client names, or, where it has no name, all clients of the log."""
    signed = _signed_as(line)
    if signed is None:
        return _SEVERAL  # Java's lines name theirs
    client = _client(signed)
    if client == _NOBODY:
        named = {*groups.values()}
        return named.pop() if len(named) == 1 else _SEVERAL
    return groups.get(client, groups.get(_OTHERS, groups.get(_NOBODY, _SEVERAL)))


def _named(line: bytes) -> tuple[str, str]:
    signed = _signed_as(line)
    if signed is not None and signed[3] is not None:
        found = _OF_LIBRDKAFKA.search(line, signed.end(), SIGNED_WITHIN)
        return _client(signed) or _UNNAMED, _text(found)
    group = named_group(line[signed.end() :]) if signed is not None else ""
    if group:
        return _UNNAMED, group
    for client, pattern in ((_OF_ANY_JAVA, _OF_JAVA), (_UNNAMED, _OF_PYTHON)):
        if (found := pattern.search(line, 0, SIGNED_WITHIN)) is not None:
            return client, _text(found)
    found = _SETTING.search(line, 0, SIGNED_WITHIN)
    is_meant = found is not None and (found["any"] is None or _OF_KAFKA.search(line, 0, SIGNED_WITHIN) is not None)
    return _NOBODY, _text(found) if is_meant else ""


def _client(signed: re.Match[bytes]) -> str:
    """The name of librdkafka's client; other libraries write their own names."""
    return signed[2].decode("utf-8", "replace") if b"#" in signed[2] else _NOBODY


def _signed_as(line: bytes) -> re.Match[bytes] | None:
    """The beginning of a line in a form of librdkafka or another library, which has `%` within the length of a time."""
    return SIGNED.match(line, 0, SIGNED_WITHIN) if b"%" in line[:64] else None


def _text(found: re.Match[bytes] | None) -> str:
    return "" if found is None else found[found.re.groups].decode("utf-8", "replace")
