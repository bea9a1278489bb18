"""Tells apart who wrote the lines of one file: `docker compose logs`, `kubectl logs` of several pods, stern, a journal, `grep -r`.

What stands before a line names its container, pod, unit or file. Each is read as a log of its own, because containers are in order only
each by itself, may have clocks of different zones, and are brokers' or clients'. Where nothing stands before the lines, or a container has
lines of brokers and of clients, what a line says tells the two apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from jobs.common.expressions import expression
from jobs.logs.bytes import LogBytes, ShownBytes
from jobs.logs.content.verdict import is_of_broker, is_of_client, own_line
from jobs.logs.envelopes.instants import EXACT_TIME

_PROGRAM: Final = rb"[\w./@+-]{1,64}(?:\[[\w.-]+\])?:[ \t]+"
_OF_HOST: Final = rb" \S{1,255} " + _PROGRAM
_CLOCK: Final = rb"\d\d:\d\d:\d\d(?:\.\d+)?"
_PREFIXES: Final = (
    rb"[\w.@-]{1,128}[ \t]*\| |[a-z0-9][a-z0-9.-]{0,252}[ \t]+[a-z0-9][a-z0-9-]{0,62}[ \t]+(?=[\[\d{])",  # docker compose, service; stern
    rb"\[(?:pod/[\w.-]+/[\w.-]+\][ \t]+|(?!\d{4}-)[\w./ -]{1,512}\][ \t]+(?=\[?\d{4}[-/]\d\d[-/]\d\d[T ]|\{\\?\"))",  # kubectl; kubetail
    # journalctl and syslog
    rb"(?:[A-Z][a-z]{2} [ \d]\d " + _CLOCK + rb"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d " + _CLOCK + rb" [A-Z0-9+-]{1,6}|\d{10}\.\d{6})" + _OF_HOST,
    EXACT_TIME + rb"[ \t]+(?:\S{1,255}[ \t]+)?" + _PROGRAM,
    rb"<\d{1,3}>1 \S+ \S{1,255} \S{1,48} \S{1,128} (?:\S{1,32} (?:-|\[.*?\])|-) (?:\xef\xbb\xbf)?",  # RFC 5424
    rb"[^\s:{}\"]{1,512}\.(?:log|out|txt|jsonl?|csv)(?:\.[\w-]+)*(?::\d+)?:",  # grep -r, -rn
)
_NAMED: Final = expression(rb"(?:\x1b\[[0-9;]*m)*(?:\xef\xbb\xbf)?(?=[\w<\[\"{/.~-])(?:" + b"|".join(_PREFIXES) + rb")", re.DOTALL)
"""The prefixes that say who wrote a line."""
_POD: Final = expression(rb'"(?:pod|container)(?:_?[nN]ame)?\\*": ?(?:\{ ?\\*"name\\*": ?)?\\*"([\w.-]{1,253})\\*"')
"""Where collectors' JSON has it."""
_POD_WITHIN: Final = 64 << 10  # bytes
_NO_NAME: Final = expression(
    rb"\x1b\[[0-9;]*m|\xef\xbb\xbf|<\d{1,3}>1?|\[(?=pod/)|\Apod/|\[[\w.-]*\]:|[\[\]|]|:(?:\d+:)?\s*\Z"
    rb"|(?:[A-Z][a-z]{2} )?\d{4}-\d\d-\d\d[T ]\S+(?: [A-Z]{3,5}(?= ))?|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\A\d{10}\.\d{6}"
)
_LEVELS: Final = frozenset({"TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL"})
_WORDS: Final = 2  # of a name: host and program, pod and container
_MOST: Final = 256  # containers of a file: each is read by itself
_FIRST_LINES: Final = 8  # of a block
_SIGNS: Final = (
    b"groupId=", b"thrd:", b"oined group", b"Heartbeat", b"eaving ", b"; groupId: ", b"; group: ", b"consumergroup/", b"poll timeout",
)  # fmt: skip
"""What blocks with lines of clients have, beside brokers' lines: found much faster than the lines."""
_BROKER_SIGNS: Final = (b"kafka.", b"GroupCoordinator", b"GroupMetadataManager", b"Completed request:")
_TAB: Final = b"\t"
_ELSEWHERE: Final = expression(rb"\n\t+(?=\n)")
_HIDDEN: Final = bytes(10 if c == 10 else 9 for c in range(256))  # each character but a line end becomes a tab


def container_of(line: bytes) -> str:
    """Who wrote a line, by what stands before it; empty if nothing does."""
    match = _NAMED.match(line)
    if match is None:
        pod = _POD.search(line, 0, _POD_WITHIN) if line[:1] == b"{" else None
        return pod[1].decode() if pod is not None else ""
    before = match[0]
    if (before[:1] == b"[" and not before.startswith(b"[pod/")) or (before[:1].isdigit() and b"|" not in before and b"[" not in before):
        return ""  # what an application writes: a thread; a time and a logger, where a journal has the number of a process
    words = _NO_NAME.sub(b" ", before).decode("utf-8", "replace").split()[:_WORDS]
    return "" if _LEVELS & {word.upper() for word in words} else "/".join(words).removeprefix("pod/")


def behind_name(line: bytes) -> bytes:
    """A line without what says before it who wrote it."""
    match = _NAMED.match(line)
    return line if match is None or not container_of(line) else line[match.end() :]


class Share(NamedTuple):
    """The lines of a file that are one log: those of a container, or those that no known container wrote (empty)."""

    container: str = ""
    clients: bool | None = None  # whether clients' lines or the others; None: all
    known: tuple[str, ...] = ()  # all containers that have logs of their own

    @property
    def has_rest(self) -> bool:
        """Whether it accounts for lines that are nobody's."""
        return not self.container and not self.clients

    def has(self, line: bytes) -> bool:
        """Whether a line is of this log."""
        if not line.strip():
            return self.has_rest
        name = container_of(line) if self.known else ""
        is_own = (name if name in self.known else "") == self.container
        return is_own and (self.clients is None or is_of_client(line) == self.clients)

    def shown(self, line: bytes) -> bytes:
        """A line, or blanks in its place: tabs where another log has it, spaces where it is surely of no broker or client."""
        if not self.has(line):
            return _TAB * len(line)
        is_shown = not line.isspace()
        if self.clients is False:
            is_shown = is_of_broker(line)
        elif not self.container and self.clients is None:
            is_shown = is_shown and (not container_of(line) or is_of_client(line))
        return line if is_shown else b" " * len(line)

    def is_elsewhere(self, line: bytes) -> bool:
        """Whether another log accounts for a line, as it is shown."""
        return (line[:1] == _TAB and line.isspace()) or (not line and not self.has_rest)


def own_lines(block: bytes) -> bytes:
    """A block of a share without the lines of other logs."""
    return _ELSEWHERE.sub(b"", block)


class SharedBytes(ShownBytes):
    """A file of which only the lines of a share are shown: offsets and numbers of lines stay as they are."""

    def __init__(self, log: LogBytes, share: Share) -> None:
        super().__init__(log)
        self._share = share
        self._sign = share.container.rpartition("/")[2].encode()  # which all of its lines have
        self._rest = b""
        self._ended = False

    def read(self, size: int) -> bytes:
        """The next lines."""
        while not self._ended:
            data = self._log.read(size)
            self.damage, self._ended = self._log.damage if self._share.has_rest else "", not data  # it is told once
            whole, end, self._rest = (self._rest + data).rpartition(b"\n") if data else (self._rest, b"", b"")
            if whole or end:
                return self._shown(whole) + end
        return b""

    def _shown(self, text: bytes) -> bytes:
        if not self._sign:
            return b"\n".join(map(self._share.shown, text.split(b"\n")))
        parts: list[bytes] = []
        done, found = 0, text.find(self._sign)
        while found >= 0:
            start, end = text.rfind(b"\n", 0, found) + 1, text.find(b"\n", found)
            end = len(text) if end < 0 else end
            parts += text[done:start].translate(_HIDDEN), self._share.shown(text[start:end])
            done, found = end, text.find(self._sign, end)
        return b"".join((*parts, text[done:].translate(_HIDDEN)))

    def skip(self, size: int) -> bool:
        """Moves on to where a line begins."""
        return self._log.skip(size)


@dataclass
class Containers:
    """Finds out from the blocks of a file which logs are in it."""

    _names: set[str] = field(default_factory=set)
    _writers: set[tuple[str, bool]] = field(default_factory=set)  # whose lines about groups there are: container, whether a client

    def look_at(self, text: bytes, *, only_requests: bool = False) -> None:
        """Looks at a block of lines."""
        if len(self._names) > _MOST or (only_requests and ("", False) in self._writers):
            return
        is_named = any(map(container_of, text[1 : 1 << 16].split(b"\n", _FIRST_LINES)[:_FIRST_LINES]))
        has_clients = any(sign in text for sign in _SIGNS)
        if not is_named and not has_clients and ("", False) in self._writers:
            return
        for line in text.split(b"\n"):
            name = container_of(line) if is_named else ""
            self._names.add(name)
            if (name, False) not in self._writers and any(sign in line for sign in _BROKER_SIGNS) and own_line(line):
                self._writers.add((name, False))
            elif has_clients and (name, True) not in self._writers and is_of_client(line, kept=True):
                self._writers.add((name, True))

    def shares(self) -> list[tuple[Share, bool]]:
        """The logs in the file, each with whether it is one of clients, the rest last; none if it is one log, whoever wrote it."""
        if len(self._names) > _MOST:
            self._writers = {("", is_client) for _, is_client in self._writers}
        known = tuple(sorted({name for name, _ in self._writers} - {""}))
        if not self._writers or (len(self._writers) < 2 and len(self._names - {""}) < 2):
            return []
        of = {name: sorted(client for one, client in self._writers if one == name) for name in known}
        shares = [(Share(name, client if len(of[name]) > 1 else None, known), client) for name in known for client in of[name]]
        has_brokers = any(not client for _, client in self._writers)
        rest = ((True, True), (False, False)) if has_brokers else ((None, True),)
        return [*shares, *((Share("", clients, known), is_client) for clients, is_client in rest)]
