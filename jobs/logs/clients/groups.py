"""Which group the clients of an application log are in: what the lines of the log name, with or without a template.

A group is named by librdkafka's debug lines (`Group "orders": leave`), by sentences of other libraries (`(Re-)joining group orders`), by
the prefix of Java's client, and by settings that an application prints (`group.id = orders`). Lines of librdkafka have the name of their
client; those of other libraries, and of the application itself, are of nobody in particular.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from jobs.logs.bytes import LogBytes
from jobs.logs.clients.envelopes import SIGNED, SIGNED_WITHIN
from jobs.logs.clients.sentences import named_group
from jobs.logs.mark import Mark
from jobs.logs.survey.block_times import blocks_of, lines_with
from jobs.sentences.client import PREFIX

SEVERAL: Final = ""  # in the place of a group: the client names several
_NOBODY: Final = ""
_JAVA: Final = "[]"
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
    rb"(?:\bgroup\.id\b[\"']?\s{0,99}[:=]\s{0,9}[\"']?|\bconsumergroup/|\b(?:group_?id|consumer_?group)\b[\"']?\s{0,9}[:=]\s{0,9}[\"']?(?P<any>))"
    rb"([^\s\"',;:()\[\]{}=]{1,255})",
    re.IGNORECASE,
)
_OF_KAFKA: Final = re.compile(rb"kafka|consumer", re.IGNORECASE)
"""What a line has that means a consumer's group by `groupId`, which others may use as well."""
_NO_GROUP: Final = frozenset({"null", "None", "nil", "undefined"})


def look_through(log: Callable[[], LogBytes], mark: Mark, bare: Callable[[bytes], bytes]) -> None:
    """Notes the groups that the clients name in the first megabytes of a log, which begins at a mark. `bare`: that of the judge."""
    with log() as source:
        if not source.skip(mark.offset):
            return
        for offset, block in blocks_of(source):
            for line in lines_with(block, _NAMING):
                if not remember(mark.groups, bare(line.removesuffix(b"\r"))):
                    remember(mark.groups, line)  # such as a field of JSON beside the message
            if offset > _LOOKED_THROUGH:
                return


def remember(groups: dict[str, str], line: bytes) -> bool:
    """Notes which group a line names, and whose; whether it names any."""
    if b"roup" not in line and b"GROUP" not in line:
        return False
    client, group = _named(line)
    if group in _NO_GROUP or not group:
        return False
    if client not in groups and len(groups) >= _CLIENTS_KEPT:
        client = _OTHERS
    groups[client] = group if groups.get(client, group) == group else SEVERAL
    return True


def group_of(groups: dict[str, str], line: bytes) -> str:
    """The group of a line that names none: the only one that its client names, or, where it has no name, all clients of the log."""
    signed = signed_as(line)
    if signed is None:
        return SEVERAL  # Java's lines name theirs
    client = _client(signed)
    if client == _NOBODY:
        named = {*groups.values()}
        return named.pop() if len(named) == 1 else SEVERAL
    return groups.get(client, groups.get(_OTHERS, groups.get(_NOBODY, SEVERAL)))


def _named(line: bytes) -> tuple[str, str]:
    signed = signed_as(line)
    if signed is not None and signed[3] is not None:
        found = _OF_LIBRDKAFKA.search(line, signed.end(), SIGNED_WITHIN)
        return _client(signed) or _UNNAMED, _text(found)
    group = named_group(line[signed.end() :]) if signed is not None else ""
    if group:
        return _UNNAMED, group
    for client, pattern in ((_JAVA, _OF_JAVA), (_UNNAMED, _OF_PYTHON)):
        if (found := pattern.search(line, 0, SIGNED_WITHIN)) is not None:
            return client, _text(found)
    found = _SETTING.search(line, 0, SIGNED_WITHIN)
    is_meant = found is not None and (found["any"] is None or _OF_KAFKA.search(line, 0, SIGNED_WITHIN) is not None)
    return _NOBODY, _text(found) if is_meant else ""


def _client(signed: re.Match[bytes]) -> str:
    """The name of librdkafka's client; other libraries write their own names."""
    return signed[2].decode("utf-8", "replace") if b"#" in signed[2] else _NOBODY


def signed_as(line: bytes) -> re.Match[bytes] | None:
    """The beginning of a line in a form of librdkafka or another library, which has `%` within the length of a time."""
    return SIGNED.match(line, 0, SIGNED_WITHIN) if b"%" in line[:64] else None


def _text(found: re.Match[bytes] | None) -> str:
    return "" if found is None else found[found.re.groups].decode("utf-8", "replace")
