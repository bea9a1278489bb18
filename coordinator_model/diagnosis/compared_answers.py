"""The answers of the broker and of the specification, as a finding shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.requests import Answer, JoinAnswer, LeaveAnswer

_NAMES: Final = {int(error): error.name for error in Error}


def observed(event: Event) -> dict[str, Any]:
    """The broker's answer."""
    members = [m.member_id for m in event.members]
    answer = _answer(event, event.error_code, event.answer_generation, event.leader_id, event.protocol, members)
    return answer | _entries([m.error_code for m in event.members])


def predicted(answer: Answer, event: Event) -> dict[str, Any]:
    """The specification's answer."""
    if isinstance(answer, JoinAnswer):
        members = [m.member_id for m in answer.members]
        return _answer(event, answer.error, answer.generation, answer.leader, answer.protocol or "", members)
    entries = _entries([m.error for m in answer.members]) if isinstance(answer, LeaveAnswer) else {}
    return _answer(event, answer.error) | entries


def error_name(code: int) -> str | int:
    """The name of an error code; the code itself where `Error` has no name for it."""
    return _NAMES.get(code, code)


def in_words(answer: dict[str, Any]) -> str:
    """An answer in a sentence."""
    rest = ", ".join(f"{name} {value}" for name, value in answer.items() if name in ("generation", "leader", "protocol", "entries"))
    return f"{answer['error']} ({rest})" if rest else str(answer["error"])


def _answer(
    event: Event, error: int, generation: int = -1, leader: str = "", protocol: str = "", members: Sequence[str] = ()
) -> dict[str, Any]:
    if event.kind != kinds.JOIN_GROUP or error != Error.NONE:
        return {"error": error_name(error)}
    listed = {"members": sorted(members)} if members else {}
    return {"error": error_name(error), "generation": generation, "leader": leader, "protocol": protocol, **listed}


def _entries(codes: Sequence[int]) -> dict[str, Any]:
    """The errors of a LeaveGroup's entries; each entry has its own."""
    return {"entries": [error_name(code) for code in codes]} if any(codes) else {}
