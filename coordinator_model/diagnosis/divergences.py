"""Findings about a broker whose answers differ from the specification's, or from those of any coordinator."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import catalogue
from coordinator_model.diagnosis.findings import emit, first_time
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.kafka_bytes import uuid_text
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeatAnswer
from coordinator_model.specification.consumer.topics import TopicId
from coordinator_model.specification.requests import Answer, JoinAnswer, LeaveAnswer
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

_IN_WORDS: Final = ("generation", "leader", "protocol", "entries", "epoch", "interval", "assignment")
_NAMES: Final = {int(error): error.name for error in Error}


def model_divergence(g: Emitter, event: Event, answer: Answer | None, release: str) -> None:
    """Reports an answer that the specification does not give to the same request. `answer`: the specification's, if it gives one."""
    _report(g, event, release, _observed(event), None if answer is None else _predicted(answer, event))


def consumer_divergence(g: Emitter, event: Event, answer: ConsumerGroupHeartbeatAnswer, release: str) -> None:
    """Reports an answer to a ConsumerGroupHeartbeat that the specification does not give to the same request."""
    assigned = next((one.partitions for one in event.assignments), None)
    observed = _consumer_answer(event.error_code, event.answer_generation, event.heartbeat_interval_ms, assigned)
    shares = answer.assignment
    texts = None if shares is None else [f"{_id(own)}-{number}" for own, numbers in shares.items() for number in numbers]
    _report(g, event, release, observed, _consumer_answer(answer.error, answer.epoch, answer.heartbeat_interval_ms, texts))


def _report(g: Emitter, event: Event, release: str, observed: dict[str, Any], predicted: dict[str, Any] | None) -> None:
    client = (event.member_id or event.answer_member_id, event.client_id, event.client_host)
    words = {"answer": _in_words(observed), "instead": "no answer at that time" if predicted is None else _in_words(predicted)}
    details: dict[str, Any] = {"api": event.kind, "release": release, "observed": observed, "predicted": predicted}
    emit(g, catalogue.MODEL_DIVERGENCE, event.at_ms, client, [ref(event)], words, **details)


def _consumer_answer(error: int, epoch: int, interval_ms: int, assigned: Collection[str] | None) -> dict[str, Any]:
    if error != Error.NONE:
        return {"error": _error_name(error)}
    told = {} if assigned is None else {"assignment": sorted(assigned)}
    return {"error": _error_name(error), "epoch": epoch, "interval": interval_ms, **told}


def _id(topic_id: TopicId) -> str:
    """A topic id as logs print it (`Uuid.toString`)."""
    return uuid_text(b"".join(half.to_bytes(8, "big", signed=True) for half in topic_id))


def not_the_coordinator(g: Emitter, suspect: Event, found: Event, again: Event) -> None:
    """Reports a broker that answered for a group which another broker coordinates (Kafka: NOT_COORDINATOR).

    `found`, `again`: answers to FIND_COORDINATOR before and after that name another node. `suspect` has that of its own broker.
    """
    if first_time(g, catalogue.MODEL_DIVERGENCE, suspect.broker, found.coordinator_id):
        client = (suspect.member_id, suspect.client_id, suspect.client_host)
        brokers = {"broker": suspect.broker, "node": suspect.coordinator_id, "coordinator": found.coordinator_id}
        answers = {"observed": {"error": _error_name(suspect.error_code)}, "predicted": {"error": Error.NOT_COORDINATOR.name}}
        signs = map(ref, (found, suspect, again))
        details: dict[str, Any] = {"api": suspect.kind} | brokers | answers
        emit(g, catalogue.NOT_THE_COORDINATOR, suspect.at_ms, client, signs, {}, **details)


def _observed(event: Event) -> dict[str, Any]:
    """The broker's answer."""
    members = [m.member_id for m in event.members]
    answer = _answer(event, event.error_code, event.answer_generation, event.leader_id, event.protocol, members)
    return answer | _entries([m.error_code for m in event.members])


def _predicted(answer: Answer, event: Event) -> dict[str, Any]:
    """The specification's answer."""
    if isinstance(answer, JoinAnswer):
        members = [m.member_id for m in answer.members]
        return _answer(event, answer.error, answer.generation, answer.leader, answer.protocol or "", members)
    entries = _entries([m.error for m in answer.members]) if isinstance(answer, LeaveAnswer) else {}
    return _answer(event, answer.error) | entries


def _error_name(code: int) -> str | int:
    """The name of an error code; the code itself where `Error` has no name for it."""
    return _NAMES.get(code, code)


def _in_words(answer: dict[str, Any]) -> str:
    """An answer in a sentence."""
    rest = ", ".join(f"{name} {value}" for name, value in answer.items() if name in _IN_WORDS)
    return f"{answer['error']} ({rest})" if rest else str(answer["error"])


def _answer(
    event: Event, error: int, generation: int = -1, leader: str = "", protocol: str = "", members: Sequence[str] = ()
) -> dict[str, Any]:
    if event.kind != kinds.JOIN_GROUP or error != Error.NONE:
        return {"error": _error_name(error)}
    listed = {"members": sorted(members)} if members else {}
    return {"error": _error_name(error), "generation": generation, "leader": leader, "protocol": protocol, **listed}


def _entries(codes: Sequence[int]) -> dict[str, Any]:
    """The errors of a LeaveGroup's entries; each entry has its own."""
    return {"entries": [_error_name(code) for code in codes]} if any(codes) else {}
