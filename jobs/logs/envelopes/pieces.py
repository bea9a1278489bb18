r"""Joins the pieces in which a container runtime stores a long line, and the two lines in which java.util.logging writes a short one.

Docker's json-file driver and the runtimes of Kubernetes cut a line that is longer than their buffer, 16 kB as shipped:

    2026-11-21T06:09:19.456789012Z stdout P [2026-11-21 06:09:19,456] DEBUG Completed request:{"isForwarded":…      (CRI; P: partial)
    2026-11-21T06:09:19.456801234Z stdout F …} (kafka.request.logger)                                              (F: full, the last one)
    {"log":"…","stream":"stdout","time":"2026-11-21T06:09:19.456789012Z"}            (json-file: only the last piece's text ends with \n)

The line stands in the place of its first piece, and those of the others are empty: a log has as many lines as before.
java.util.logging.SimpleFormatter ends its first line before the level. The second line gets the time of the first, which stays:

    Nov 21, 2026 6:09:19 AM org.apache.kafka.clients.consumer.internals.ConsumerCoordinator handlePollTimeoutExpiry
    WARNING: [Consumer clientId=…, groupId=…] consumer poll timeout has expired. …

CRI: kubernetes/kubernetes, pkg/kubelet/kuberuntime/logs. json-file: moby/moby, daemon/logger/copier.go and jsonfilelog.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from jobs.logs.envelopes.instants import leading_stamp
from jobs.logs.envelopes.layouts import LOGGER

_CRI: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S{1,32} (stdout|stderr) )([FP])(?::\S*)? ")
_DOCKER: Final = re.compile(rb'"(,"stream":"(stdout|stderr)"(?:,"attrs":\{[^{}]*\})?,"time":"[^"]{1,40}"\})\s*\Z')
_DOCKER_START: Final = b'{"log":"'
_DOCKER_TAIL_BYTES: Final = 1024
_DOCKER_PIECE_BYTES: Final = 16 << 10
_NEWLINE: Final = b"\\n"

_LEVEL: Final = re.compile(rb"(?<![\w.$-])(?=(?:SEVERE|WARNING|INFO|CONFIG|FINE|FINER|FINEST): )")
_LEVELS: Final = (b"SEVERE: ", b"WARNING: ", b"INFO: ")
_HEADER: Final = re.compile(rb"[ \t]" + LOGGER + rb"(?: [\w$<>]+)?\s*\Z")
_HEADER_BYTES: Final = 512


@dataclass
class _Line:
    """A line that is not whole yet."""

    first: int  # index of its first piece; -1 if that was read before
    texts: list[bytes]
    others: list[int] = field(default_factory=list)


def may_have_pieces(whole: bytes, lines: list[bytes], example: bytes) -> bool:
    """Whether some line may be a piece. `whole`: the lines as one text; `example`: one of them that is no broker's own line."""
    if not example:
        return False
    if any(level in whole for level in _LEVELS):
        return True
    if example.startswith(_DOCKER_START):
        return max(map(len, lines)) > _DOCKER_PIECE_BYTES
    return _CRI.match(example) is not None and (b"stdout P" in whole or b"stderr P" in whole)


def join_pieces(lines: list[bytes], streams: str, room: int) -> tuple[dict[int, str], bytes]:
    """Joins pieces in place. `streams`: as `Mark.inside_pieces` is before the first line.

    `room`: how many bytes at the end may wait for the rest of a line; 0 if no lines follow. Returns what `streams` is before each line that
    it is not empty before, and behind the last one, by index; and the bytes that wait, which are no lines any more.
    """
    names = streams.encode().split()
    time = next((name for name in names if name.startswith(b"[")), b"")
    unfinished = {name: _Line(-1, []) for name in names if name != time}
    whole: list[tuple[_Line, bytes]] = []
    timed, times = _with_times(lines, time)
    inside: dict[int, str] = {}
    for index, line in enumerate([*lines, b""]):
        if unfinished or index in times:
            inside[index] = " ".join(sorted(name.decode() for name in (*unfinished, times.get(index, b"")) if name))
        piece = _piece(line)
        if piece is None:
            continue
        stream, is_whole, start, text, end = piece
        if stream in unfinished:
            unfinished[stream].texts.append(text)
            unfinished[stream].others.append(index)
            if is_whole:
                whole.append((unfinished.pop(stream), end))
        elif not is_whole:
            unfinished[stream] = _Line(index, [start, text])
    end_index = _first_to_hold(lines, unfinished.values(), whole, room)
    held = b"".join(line + b"\n" for line in lines[end_index:])
    if not held:
        whole += [(own, b"") for own in unfinished.values()]
    del lines[end_index:]
    for index in filter(range(end_index).__contains__, timed):
        lines[index] = timed[index]
    for own, end in whole:
        if own.others and own.others[-1] < end_index:
            for index in own.others:
                lines[index] = b""
            if own.first >= 0:
                lines[own.first] = b"".join(own.texts) + end
    return {index: before for index, before in inside.items() if index <= end_index}, held


def _first_to_hold(lines: list[bytes], unfinished: Iterable[_Line], whole: Sequence[tuple[_Line, bytes]], room: int) -> int:
    """From where on lines have to wait, if any have to: no line is cut there."""
    waiting = [own.first for own in unfinished if own.first >= 0]
    if not waiting or not room:
        return len(lines)
    held = min(waiting)
    for own, _ in reversed(whole):
        if own.others[-1] >= held:
            held = min(held, own.first if own.first >= 0 else own.others[0])
    return held if sum(map(len, lines[held:])) + len(lines) - held <= room else len(lines)


def _with_times(lines: list[bytes], time: bytes) -> tuple[dict[int, bytes], dict[int, bytes]]:
    """By index: lines with the time that stands in the line before, and those times. `time`: that before the first line."""
    timed, times = {}, {0: time} if time else {}
    for index, line in enumerate(lines):
        level = _LEVEL.search(line) if index in times else None
        if level is not None:
            timed[index] = line[: level.start()] + times[index] + b" " + line[level.start() :]
        alone = _time_alone(line)
        if alone:
            times[index + 1] = alone
    return timed, times


def _time_alone(line: bytes) -> bytes:
    """The stamp, without blanks, of a line that has nothing but a time, a class and a method; empty for others."""
    header = _HEADER.search(line) if len(line) < _HEADER_BYTES else None
    stamp = None if header is None else leading_stamp(line[: header.start()])
    return b"" if stamp is None else stamp.strip().replace(b" ", b"T")


def _piece(line: bytes) -> tuple[bytes, bool, bytes, bytes, bytes] | None:
    """Stream, whether the line ends here, what stands before the text, the text, and what stands behind it; None: no line of a runtime."""
    cri = _CRI.match(line)
    if cri is not None:
        return cri[2], cri[3] == b"F", cri[1] + b"F ", line[cri.end() :], b""
    if not line.startswith(_DOCKER_START):
        return None
    tail = _DOCKER.search(line, max(0, len(line) - _DOCKER_TAIL_BYTES))
    if tail is None:
        return None
    text = line[len(_DOCKER_START) : tail.start()]
    return tail[2], len(text) < _DOCKER_PIECE_BYTES or text.endswith(_NEWLINE), _DOCKER_START, text, b'"' + tail[1]
