r"""A line whose message is known by its beginning, whatever stands around it, as Kafka's own configuration writes it.

    [INFO] 2026-11-21 06:09:19,456 [event-processor-1] o.a.k.c.group.GroupMetadataManager prepare - server=1 - [GroupCoordinator id=1 …] …
    │ 812- 2026-11-21 07:10:00 [2026-11-21 06:09:19,456] INFO [GroupCoordinator 1]: Stabilized group … (kafka.coordinator.group…)     │

The time of a line is the last date with a time before its message: what a container or a copy from Docker Desktop adds stands before that.
If none is there, that of the envelope counts, else the one behind the message. Level and logger may stand anywhere. So no layout has to be
known. A time without a date says nothing. A message that is not known begins behind its level; of such lines no more than the time and the
logger matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from jobs.common.expressions import expression
from jobs.logs.envelopes.instants import EPOCH, TIME, has_millis, last_time, stamp_of_value
from jobs.logs.envelopes.layouts import (
    ANY_TIME_SIGN,
    LEVEL,
    LEVELS,
    LOGGER,
    NUMBERED,
    REQUEST,
    SHORT,
    guessed_logger,
    is_java,
    is_known_logger,
    rebuilt,
    with_thread,
)
from jobs.sentences.broker import BROKER
from jobs.sentences.coordinator import PREFIXES, UNPREFIXED

_OPENINGS: Final = (
    r"Completed request:(?:\{|\\{0,3}\"|RequestHeader\(|Name:)",
    *(rf"\[{prefix}\d" for prefix in PREFIXES),
    *(template.opening for template in (*BROKER, *UNPREFIXED)),
)


def _any_of(openings: Iterable[str]) -> re.Pattern[bytes]:
    """An expression for any of these. A set of first characters is found many times as fast as a choice of beginnings."""
    by_first: dict[str, dict[str, None]] = {}
    for opening in openings:
        first = opening[: 2 if opening[0] == "\\" else 1]
        by_first.setdefault(first, {})[opening.removeprefix(first)] = None
    choices = "|".join(f"(?<={first})(?:{'|'.join(others)})" for first, others in by_first.items())
    return expression(f"[{''.join(by_first)}](?:{choices})".encode(), re.DOTALL)


ANCHOR: Final = _any_of(_OPENINGS)
"""How messages begin that a broker writes and nobody else does."""

_HEAD_BYTES: Final = 1_024  # before a message, in which its time, level and logger are looked for
_TAIL_BYTES: Final = 512
_TIME_BYTES: Final = 40
_COLUMN_ENDS: Final = frozenset((b",", b";", b"\t"))
_TIME_ENDS: Final = frozenset(bytes((c,)) for c in b"0123456789ZCTM")
"""What times end with: a number, Z, UTC, GMT, AM, PM."""
_ENDS: Final = frozenset(bytes((c,)) for c in b" \t,;\r\n")
_LEVEL: Final = expression(rb"(?<![\w.$-])(?:" + b"|".join(LEVELS) + rb")(?![\w.$-])", re.IGNORECASE)
_NAME: Final = expression(rb"(?<![\w.$])(?:" + LOGGER + rb"|" + SHORT + rb"|" + NUMBERED + rb")(?![\w.$])")
_LAST: Final = expression(rb"[ \t](?:\((" + LOGGER + rb"|" + SHORT + rb")(?::[\d?]+)?\)|\[(org\.apache\.kafka\.[\w.$]+)\])")
_BEHIND: Final = expression(rb"\s*(?:\[[^\[\]]*\]|(?:</\w+>)+)?")  # behind the logger: the thread, or tags of HTML
_FIRST_LEVEL: Final = expression(rb"(?:(?<![\w.$-])|(?<=\\[tn]))" + LEVEL + rb"(?![\w.$])")
_TIME_NEXT: Final = expression(rb"[ \t]{0,16}\]?[:|-]?[ \t]{0,16}(\[)?(" + TIME + rb"|" + EPOCH + rb")(?(1)\])(?=[ \t\[])")
_BRACKETS: Final = rb"\[(?!\d{4}-)[^\[\]]*\]"
_NEAR: Final = expression(rb"\]?[ \t:|,;-]*(?:std(?:out|err) [FP] )?(?:" + _BRACKETS + rb"[ \t]*)*[\[<(]?")
"""What stands between a time and the level of a line."""
_QUOTED: Final = expression(rb"[\"'(]\[?\d{4}[-/]")  # code, or prose
_SEPARATOR: Final = expression(rb"[ \t]{0,16}[\])>]?:?[ \t]{0,16}(?:[-|][ \t]+)?")
_THREAD: Final = expression(_BRACKETS + rb"[ \t]+(?=[^ \t])")
_FIRST: Final = rb"(" + LOGGER + rb"|" + NUMBERED + rb"|" + SHORT + rb")(?::[\d?]+)?[ \t]*"
_LOGGER_FIRST: Final = expression(
    rb"(?:" + _BRACKETS + rb"[ \t]*(?:-[ \t]+)?)?(?:\[" + _FIRST + rb"\]|" + _FIRST + rb"(?=[-:|\[]))"
    rb"(?:[ \t]*" + _BRACKETS + rb")?[ \t]*[-:|]?[ \t]+"
)
_KAFKAS: Final = expression(rb"(?<![\w.$])(?:kafka|org\.apache\.kafka)\.[\w.$]*[\w$]")
_NAME_BYTES: Final = 200
_RUN: Final = expression(rb"[ \t]{2,}|\t")
_PADDED: Final = expression(rb"   |\t|  .*[^ ]  ", re.DOTALL)
_MARK: Final = expression(rb"[|*`~\"']|\xe2[\x94-\x96][\x80-\xbf]")
"""What people put around a line that they copy, such as the frame of k9s."""


def has_place(text: bytes) -> bool:
    """Whether a known message or a level stands anywhere in a text, such as an entry of JSON."""
    return _FIRST_LEVEL.search(text) is not None or ANCHOR.search(text) is not None


def place_of(text: bytes) -> int:
    """Where a message begins that is known, else the first level; -1 if there is neither."""
    found = ANCHOR.search(text) or _FIRST_LEVEL.search(text, 0, _HEAD_BYTES)
    return -1 if found is None else found.start()


def line_at(text: bytes, start: int, moment: Any) -> bytes | None:
    """The line whose `place_of` is `start`; None if it has no time. `moment`: the time of what stands around the text."""
    level = _FIRST_LEVEL.match(text, start)
    if level is not None:
        return _of_unknown_message(text, level, moment)
    head, message, logger, behind = parts(text, start)
    time, known = last_time(head), level_in(head)
    if not logger:
        names = _NAME.findall(head)
        logger = next((name for name in reversed(names) if is_known_logger(name)), names[-1] if names and is_java(message) else b"")
        if not logger and (known is None or time is None):
            logger = guessed_logger(message)
    time = time or (None if moment is not None else last_time(behind))
    return line_of(moment if time is None else time[0], known, with_thread(message, text), logger)


def line_of(at: Any, level: bytes | None, message: bytes, logger: bytes) -> bytes | None:
    """The line of these parts; None if it has no time.

    A request whose time has whole seconds is none that is read, either: the order of it and of what it caused is lost then.
    """
    stamp = stamp_of_value(at)
    is_coarse = message.startswith(REQUEST) and not has_millis(at)
    return None if stamp is None or is_coarse else rebuilt(stamp, level, message, logger)


def _of_unknown_message(text: bytes, level: re.Match[bytes], moment: Any) -> bytes | None:
    """The line of a message that is not known. Its time, or its beginning, stands beside the level; else its logger shows what it is."""
    head, place = text[: level.start()], level.end()
    if _QUOTED.search(head) is not None:
        return None
    time, after = last_time(head), _TIME_NEXT.match(text, place)
    is_near = after is not None or _NEAR.fullmatch(head, 0 if time is None else time[1]) is not None
    at = moment if time is None else time[0]
    if after is not None:
        at, place = after[2], after.end()
    begin = _SEPARATOR.match(text, place)
    _, message, logger, _ = parts(text, place if begin is None else begin.end())
    if not logger and (first := _LOGGER_FIRST.match(message)) is not None:
        message, logger = message[first.end() :], first[1] or first[2]
    elif logger and (thread := _THREAD.match(message)) is not None and is_known_logger(logger):
        message = message[thread.end() :]
    if not (is_near or logger):
        return None
    return line_of(at, level[0], message, logger or next(iter(_KAFKAS.findall(head + message[:_NAME_BYTES])), b""))


def evened(text: bytes) -> bytes:
    """A text in which each run of blanks or tabs, as a viewer makes them, is one blank. A single pair of blanks may be of a name."""
    may_be_padded = b"  " in text or b"\t" in text
    return _RUN.sub(b" ", text) if may_be_padded and _PADDED.search(text) is not None else text


def level_in(head: bytes) -> bytes | None:
    """The last level that stands before a message."""
    levels = _LEVEL.findall(head)
    return LEVELS[levels[-1].upper()] if levels else None


def is_alone(message: bytes) -> bool:
    """Whether nothing can stand behind a message before which nothing stands: `parts` would find the message alone."""
    end = message[-_TIME_BYTES:]
    return (
        end[-1:] not in _ENDS
        and end[-14:-13] != b"\t"
        and not (end[-1:] in _TIME_ENDS and ANY_TIME_SIGN.search(end) is not None)
        and ((b"(" not in message and b"[org." not in message) or _LAST.search(message, max(0, len(message) - _TAIL_BYTES)) is None)
    )


def parts(text: bytes, start: int) -> tuple[bytes, bytes, bytes, bytes]:
    """What stands before a message, the message, its logger if that is behind it, and what stands behind that."""
    head, message, logger, behind = text[max(0, start - _HEAD_BYTES) : start], text[start:].rstrip(b"\r\n"), b"", b""
    for last in _LAST.finditer(message, max(0, len(message) - _TAIL_BYTES)):
        rest = message[last.end() :]
        left = _BEHIND.sub(b"", rest, count=1)
        time = last_time(left)
        if left[:1] in (b",", b"\t") or re.search(rb"\w", left.replace(time[0], b"") if time else left) is None:
            return head, message[: last.start()], last[1] or last[2], left
    time = last_time(message[-_TIME_BYTES:]) if message[-1:] in _TIME_ENDS else None
    if time is not None and message.endswith(time[0]):
        rest = message.removesuffix(time[0])
        if ANY_TIME_SIGN.search(head) is None or rest[-1:] in _COLUMN_ENDS:
            message, behind = rest.rstrip(b",;\t"), time[0]
    return head, unmarked(head, message), logger, behind


def unmarked(head: bytes, message: bytes) -> bytes:
    """A message without what people put behind a line that they copy. `head`: what stands before it, where the same marks have to be."""
    marks = [mark for mark in sorted(set(_MARK.findall(head))) if mark not in b"\"'" or head.count(mark) % 2]
    while (end := message.rstrip(b" \t,;")) != (bare := _without_mark(end, marks)):
        message = bare.rstrip(b" \t")
    return message


def _without_mark(text: bytes, marks: list[bytes]) -> bytes:
    if text[-14:-13] == b"\t" and text[-13:].isdigit():  # the time behind a line of `aws logs get-log-events --output text`
        return text[:-14]
    return next((text.removesuffix(mark) for mark in marks if text.endswith(mark)), text)
