"""Findings about troubles of a group that the coordinator's lines say outright, and about lines that are missing."""

from __future__ import annotations

import re
from typing import Final

from coordinator_model.diagnosis import catalogue, consumer_catalogue
from coordinator_model.diagnosis.findings import NOBODY, Client, emit, first_time, seconds
from coordinator_model.events import FENCED, NO_MEMBER_REJOINED, TROUBLE, Event
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref, ref

_NUMBERED: Final = re.compile(r"\S*\d\S*")
_SOURCE_TOPICS: Final = re.compile("Source topics .* are missing")
_NO_MEMBER_REJOINED: Final = "the join phase ended, and no member had rejoined: the group waits for its static members once more"


def note(g: Emitter, event: Event) -> None:
    """Takes an error or a warning of the coordinator about the group; the same words are told once. Other lines say nothing here."""
    words = _NO_MEMBER_REJOINED if event.kind == NO_MEMBER_REJOINED else event.reason if event.state == TROUBLE else ""
    if words and first_time(g, catalogue.COORDINATOR_ERROR, _NUMBERED.sub("", words.replace(event.member_id or "\n", "")), -1):
        client: Client = (event.member_id, *g.view.identity(event.member_id)[1:])
        text = catalogue.TOPICS_MISSING if _SOURCE_TOPICS.search(words) else catalogue.COORDINATOR_ERROR
        emit(g, text, event.at_ms, client, [ref(event)], {"words": words.rstrip(".")})


def over_capacity(g: Emitter, event: Event) -> None:
    """A coordinator has read the group back, and it has more members than it may have (onGroupLoaded, onLoadClassicGroup)."""
    emit(g, catalogue.GROUP_OVER_CAPACITY, event.at_ms, NOBODY, [ref(event)], {}, generation=event.generation)


def instance_taken(g: Emitter, event: Event) -> None:
    """A static member of the consumer protocol is refused: another one has its group.instance.id. Requests name its client, too."""
    view = g.view.consumer
    text = catalogue.FENCED_INSTANCE if event.state == FENCED else consumer_catalogue.UNRELEASED_INSTANCE_ID
    if view is None or view.heard or not first_time(g, text, event.member_id, view.epoch):
        return
    owner = view.members.get(event.answer_member_id)
    words = {"owner": f" ({(owner.client_id if owner is not None else '') or event.answer_member_id})"}
    emit(g, text, event.at_ms, (event.member_id, "", ""), [ref(event)], words, generation=view.epoch, instance_id=event.instance_id)


def session_timeout(g: Emitter, event: Event) -> None:
    """Takes the line about a rebalance that the thread wrote on which sessions expire. It names no member, and no other line does."""
    emit(g, catalogue.SESSION_TIMEOUT_OF_A_MEMBER, event.at_ms, NOBODY, [ref(event)], {}, generation=event.generation)


def missing_lines(g: Emitter, what: str, known: int, missing: tuple[int, int], times_ms: tuple[int, int], signs: list[Ref]) -> None:
    """Reports numbers that no line has. `known`: the last one before. `times_ms`: of the last line before them, and the first after."""
    (first, last), (since_ms, until_ms) = missing, times_ms
    numbers = f"{what}s {first} to {last} are" if first < last else f"{what} {first} is"
    words = {"numbers": numbers, "hole": seconds(until_ms - since_ms)}
    details = {"first": first, "last": last, "hole_ms": until_ms - since_ms}
    emit(g, catalogue.LINES_MISSING, since_ms, NOBODY, signs, words, generation=known, **details)
