"""Writes rows of `findings`. The texts are in catalogue.py; the other modules of this room decide what to report."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from coordinator_model.diagnosis.catalogue import Text
from coordinator_model.events import TIMES_FROM_MS
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import FINDINGS, Ref, evidence_json, or_none

Client = tuple[str, str, str]
"""Member id, client id and host: the client that a finding is about."""

Values = dict[str, Any]

NOBODY: Final = ("", "", "")
FIGURES: Final = {
    "SESSION_TIMEOUT": "silent_ms",
    "NO_HEARTBEAT_RESPONSE": "silent_ms",
    "POLL_TIMEOUT": "poll_gap_ms",
    "SLOW_JOINER": "join_ms",
    "STUCK_RECONCILING": "waited_ms",
    "GROUP_TOO_LARGE": "wanted",
    "HEARTBEAT_NEAR_MISS": "silent_ms",
    "UNKNOWN_MEMBER": "silent_ms",
    "ZOMBIE_COMMIT": "silent_ms",
    "IDLE_MEMBERS": "members",
    "REBALANCE_STORM": "total_ms",
    "ASSIGNMENT_NOT_STORED": "total_ms",
    "ROLLING_RESTART": "total_ms",
    "PARTITION_NOT_READ": "came",
    "COMMITS_STOPPED": "came",
    "OPEN_TRANSACTION": "came",
    "OFFSET_RESET": "skipped_max",
    "OFFSET_REWOUND": "reread",
    "OFFSET_SET_FORWARD": "skipped",
    "READ_AGAIN": "reread_max",
    "NOTHING_COMMITTED": "reread_max",
    "COMMIT_BEHIND": "reread_max",
}
"""The figure in the details, by code, that says which of several findings is the gravest: its advice holds for all."""
FACTS_KEPT: Final = 4_096  # against repeats: all members of a large group may be refused at once, and ask again


def emit(
    g: Emitter,
    text: Text,
    at_ms: int,
    client: Client,
    signs: Iterable[Ref],
    words: Values,
    /,
    generation: int | None = None,
    **details: Any,
) -> None:
    """Writes a finding. `words` and `details` fill the templates of `text`. `generation`: that of `at_ms`, if forgotten."""
    known = or_none(g.view.generation_at(at_ms) if generation is None else generation)
    g.emit(FINDINGS, **values(text, at_ms, client, signs, {"type": g.view.group_type} | words, known, details))


def values(
    text: Text, at_ms: int, client: Client, signs: Iterable[Ref], words: Values, generation: int | None, details: Values
) -> dict[str, Any]:
    """A row of `findings`. `words` and `details` fill the templates of `text`."""
    member_id, client_id, client_host = client
    filled = details | words
    return {
        "occurred_at": at_ms,
        "code": text.code,
        "severity": text.severity,
        "member_id": member_id or None,
        "client_id": client_id or None,
        "client_host": client_host or None,
        "generation": generation,
        "message": text.message.format(**filled),
        "advice": text.advice.format(**filled),
        "evidence": evidence_json(signs),
        "details": details_json(details),
    }


def details_json(details: Values) -> str:
    """The `details` column."""
    return json.dumps(details, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def first_time(g: Emitter, text: Text, member_id: str, generation: int) -> bool:
    """Whether this finding is new for the member and generation: a client repeats its requests, the fact stays one."""
    return is_new(g.view.flagged, (text.code, member_id, generation))


def is_new(kept: list[Any], one: object) -> bool:
    """Whether this is none of those that are kept. It is one from now on."""
    if one in kept:
        return False
    kept.append(one)
    del kept[:-FACTS_KEPT]
    return True


def seconds(ms: int) -> str:
    """A duration for people: 15 ms, 8 s, 38.4 s, 1 min 16 s, 30 h 51 min. `details` has the exact one."""
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 59_950:
        return f"{round(ms / 1000, 1):g} s"
    if ms < 3_600_000:
        minutes, rest = divmod(round(ms / 1000), 60)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(round(ms / 60_000), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def current(ms: int) -> str:
    """The present value of a setting, to stand after its name; empty where it is unknown."""
    return f" (now {seconds(ms)})" if ms >= 0 else ""


def since(ms: int) -> str:
    """From when on to look, to stand after the place; empty where lines have no times."""
    return f" from {_clock(ms)} UTC on" if ms >= TIMES_FROM_MS else ""


def before(ms: int) -> str:
    """Like `since`, where what went on for an unknown time was over then."""
    return f" before {_clock(ms)} UTC" if ms >= TIMES_FROM_MS else ""


def _clock(ms: int) -> str:
    minutes, second = divmod(ms // 1_000, 60)
    return f"{minutes // 60 % 24:02}:{minutes % 60:02}:{second:02}"


def above(ms: int) -> str:
    """A value that a setting has to exceed, for people: rounded up, so that what they read is never too low."""
    step = 100 if ms < 59_950 else 1_000 if ms < 3_600_000 else 60_000
    return seconds(-(-ms // step) * step)


def broker_name(broker: str) -> str:
    """A broker in a sentence: most are called broker-1 or kafka-1 anyway. Several, as those that were restarted, are counted."""
    return f"{broker.count(', ') + 1} brokers" if ", " in broker else broker if broker[:1].isalpha() else f"broker {broker}"
