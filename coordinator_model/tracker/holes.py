"""Lines that are missing, as the numbers of generations prove.

A coordinator numbers the generations of a group one after the other, and logs each (ClassicGroup.initNextGeneration; "Stabilized group …",
"Group … is now empty"). So a line that names a later one than the next proves that lines are missing: the log has a hole, or another broker
coordinated the group meanwhile, whose log is not here. What the group did in the hole is not known: how its rebalances ended, who came
and went, who has which partitions.

No hole is told

* before the first line about a group: a log may begin late;
* where a number is lower: a group that was removed begins anew, and a new coordinator uses the number again of a generation that was not
  stored;
* where one number is missing and requests alone show that: no request shows that a group was empty, which makes a generation. Neither
  does one show that those who asked for an id have gone before they joined;
* between records, which compaction removes, polls, which have no generations, and clients, each of which knows only its own.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import troubles
from coordinator_model.errors import Error
from coordinator_model.events import COORDINATOR_SOURCE, Event
from coordinator_model.states import State
from coordinator_model.tracker import phases, prediction
from coordinator_model.tracker.hindsight import HANDLED_MS
from coordinator_model.view.emit import Emitter
from coordinator_model.view.outcomes import EMPTIED
from coordinator_model.view.rebalance import Aftermath
from coordinator_model.view.rows import ref
from coordinator_model.view.view import View

LONG_MS: Final = 60_000
"""Without a line for so long, nothing shows when a rebalance ended that another broker's first line finds ended."""

_MAKES: Final = frozenset({kinds.STABILIZED, kinds.ASSIGNMENT_RECEIVED, kinds.GROUP_EMPTY})
_FINDS: Final = frozenset({kinds.PREPARING_REBALANCE, kinds.GROUP_LOADED, kinds.GROUP_UNLOADED})
"""Lines about a generation that they make, and about one that they find made."""


def note(g: Emitter, event: Event, *, moved: bool = False) -> bool:
    """Takes the generation that a line names, before anything else that the line says. True: there is a hole before it.

    `moved`: another broker wrote the line than the one before.
    """
    view, made = g.view, _last_before(event)
    if made < 0:
        return False
    running = view.open
    known = view.generation + (running is not None and running.joined_ms < 0)  # that which it makes
    is_logged = event.source == COORDINATOR_SOURCE
    is_hole = view.generation >= 0 and known < made and (is_logged or (made > known + 1 and not view.pending))
    if is_hole:
        signs = [*([view.line] if view.line is not None else []), ref(event)]
        troubles.missing_lines(g, "Generation", view.generation, (known + 1, made), (_last_ms(view), event.received_ms), signs)
        _lose_sight(g, event, made)
    elif moved and is_logged and event.kind != kinds.GROUP_LOADED and event.at_ms > _last_ms(view) + LONG_MS:
        _end_unseen(g)  # before the group moved
    view.note_line(event.at_ms, ref(event))
    return is_hole


def _last_before(event: Event) -> int:
    """The last generation that was made before a line; of which one that finds it made may be the first. -1: the line names none."""
    if event.source == COORDINATOR_SOURCE:
        return event.generation - 1 if event.kind in _MAKES else event.generation if event.kind in _FINDS else -1
    if event.error_code not in (Error.NONE, Error.REBALANCE_IN_PROGRESS):
        return -1
    return event.answer_generation - 1 if event.kind == kinds.JOIN_GROUP else event.generation - 1


def _last_ms(view: View) -> int:
    """The time of the last line about the group that is known to be before the hole."""
    return max([view.line_ms, view.last_ok_ms, *(at_ms for at_ms, _ in view.made[-1:])])


def _lose_sight(g: Emitter, event: Event, generation: int) -> None:
    """Forgets who is a member and who has what. Who was seen in the moments before the line belongs to what the line tells."""
    view, since_ms, running = g.view, event.received_ms - HANDLED_MS, g.view.open
    _end_unseen(g)
    if running is not None and running.outcome != EMPTIED:
        phases.end_unseen(g, running, State.STABLE)
        view.state = State.STABLE
    phases.change_state(g, event.received_ms, State.STABLE, phases.LINES_MISSING, [ref(event)])
    view.lose_sight(since_ms)
    for silence in view.silences:
        if silence.at_ms >= since_ms:
            silence.generation = generation
    view.leader_id, view.aftermath = "", Aftermath(owners_lost=True)
    view.make_generation(event.received_ms, generation)
    prediction.drop(g, event.received_ms)


def _end_unseen(g: Emitter) -> None:
    """Ends the rebalance that runs with its last line: when it ended, no line shows."""
    running = g.view.open
    if running is not None:
        running.end_seen = False
        g.view.store(None)
        phases.abandon(g, running.joined_ms)
