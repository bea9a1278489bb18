"""The finding that lines of a group are missing."""

from __future__ import annotations

from coordinator_model.diagnosis import catalogue
from coordinator_model.diagnosis.findings import NOBODY, emit, seconds
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref


def report(g: Emitter, what: str, known: int, missing: tuple[int, int], times_ms: tuple[int, int], signs: list[Ref]) -> None:
    """Reports numbers that no line has. `known`: the last one before. `times_ms`: of the last line before them, and the first after."""
    (first, last), (since_ms, until_ms) = missing, times_ms
    numbers = f"{what}s {first} to {last} are" if first < last else f"{what} {first} is"
    words = {"numbers": numbers, "hole": seconds(until_ms - since_ms)}
    details = {"first": first, "last": last, "hole_ms": until_ms - since_ms}
    emit(g, catalogue.LINES_MISSING, since_ms, NOBODY, signs, words, generation=known, **details)
