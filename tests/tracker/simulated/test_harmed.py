"""Scripts whose logs are harmed, as logs are: whatever is missing or wrong in them, the tables say nothing that is not true.

What no line shows is null, UNKNOWN or not seen. `SCRIPTS=100000` tries so many (1,000 by default), one harm each.
"""

import os
import random
from collections.abc import Callable
from typing import Any, Final

import pytest

from coordinator_model import events as kinds
from coordinator_model.diagnosis.incidents import HINDSIGHT_MS
from coordinator_model.events import Event
from tests.effort import every
from tests.tracker.simulated.acted_out import BROKER, OTHER, Broker, TrueRebalance
from tests.tracker.simulated.scripts import LENGTH_MS, script
from tests.tracker.simulated.test_simulated import BOTH, COORDINATOR_LOG, END_MS, REQUEST_LOG, act_out, undecided
from tests.tracker.story import START_MS, play

SCRIPTS = int(os.environ.get("SCRIPTS") or 1_000)
SLICES = 20
UNPROVEN_MS = 10_000
"""So long a leader may take to send its assignment: if a line is missing for longer, one was lost."""

CAUSES: Final = {
    "new_member": {"MEMBER_JOINED", "COORDINATOR_MOVED"},  # a member comes back that the new coordinator did not hear in time
    "leave": {"MEMBER_LEFT", "POLL_TIMEOUT"},
    "session_expired": {"SESSION_TIMEOUT", "POLL_TIMEOUT", "COORDINATOR_MOVED"},
    "assignment_append_failed": {"ASSIGNMENT_NOT_STORED"},
}
"""What may be said of a rebalance that began so. Other triggers have several names."""

SIGNS_MS: Final = 60
"""Where the coordinator's line is lost, the answers to other members show within this time that a rebalance began."""

Rows = dict[str, list[dict[str, Any]]]


def tables(events: list[Event]) -> Rows:
    heard = [Event(b, "clock", "", 0, START_MS + END_MS, START_MS, kinds.CLOCK, beats=(0, END_MS // 1_000)) for b in (BROKER, OTHER)]
    found: Rows = {}
    for row in play([[*events, *heard]]):
        found.setdefault(row.table, []).append(row.values)
    return found


def falsehoods(rows: Rows, broker: Broker) -> list[str]:
    """What the rows say of rebalances that is not true."""
    true: dict[int | None, list[TrueRebalance]] = {}
    for one in broker.rebalances:
        if one.outcome:
            true.setdefault(one.generation, []).append(one)
    found = []
    for row in rows.get("rebalances", []):
        if row["generation"] is None:
            continue
        told_ms = (row["joined_at"] or row["ended_at"]) - START_MS
        real = min(true.get(row["generation"], []), key=lambda one: abs((one.joined_ms or one.ended_ms) - told_ms), default=None)
        if real is None:
            found.append(f"generation {row['generation']}: there was none")
            continue
        started_ms = row["started_at"] - START_MS if row["start_seen"] else real.started_ms
        if not 0 <= started_ms - real.started_ms <= SIGNS_MS:
            found.append(f"generation {row['generation']}: started at {started_ms} and not {real.started_ms}")
        said = {
            "joined_at": (row["joined_at"] and row["joined_at"] - START_MS, real.joined_ms),
            "ended_at": (row["ended_at"] - START_MS if row["end_seen"] else None, real.ended_ms),
            "outcome": (row["outcome"] if row["end_seen"] else None, real.outcome),
            "members_before": (row["members_before"], real.before),
            "members_after": (row["members_after"], real.after),
        }
        wrong = {name: pair for name, pair in said.items() if pair[0] not in (None, pair[1])}
        found += [f"generation {row['generation']}: {name} {value} and not {is_so}" for name, (value, is_so) in wrong.items()]
        if row["cause"] not in {"UNKNOWN", *CAUSES.get(real.trigger, {row["cause"]})}:
            found.append(f"generation {row['generation']}: cause {row['cause']} of {real.trigger}")
    return found


def seen(broker: Broker, sources: tuple[str, ...]) -> list[Event]:
    return [event for event in broker.events if event.source in sources]


def lost(seed: int) -> list[str]:
    """One line is lost, of any kind but a heartbeat."""
    broker, chance = act_out(seed), random.Random(seed)
    events = seen(broker, chance.choice((COORDINATOR_LOG, BOTH, BOTH)))
    without = [number for number, event in enumerate(events) if event.kind != kinds.HEARTBEAT]
    if undecided(broker) or not without:
        return []
    gone = chance.choice(without)
    if _looks_superseded(events, events[gone]):
        return []
    return falsehoods(tables(events[:gone] + events[gone + 1 :]), broker)


def _looks_superseded(events: list[Event], gone: Event) -> bool:
    """Whether a rebalance without its line about the assignment looks like one that another one superseded, or that a move ended."""
    if gone.kind != kinds.ASSIGNMENT_RECEIVED or any(event.source == "request" for event in events):
        return False
    ends = {kinds.PREPARING_REBALANCE, kinds.GROUP_UNLOADED}
    return any(event.kind in ends and gone.at_ms <= event.at_ms <= gone.at_ms + UNPROVEN_MS for event in events)


def begins_late(seed: int) -> list[str]:
    """The log begins in the middle of what happens."""
    broker, chance = act_out(seed), random.Random(seed)
    if undecided(broker):
        return []
    events = seen(broker, chance.choice((COORDINATOR_LOG, BOTH)))
    since_ms = START_MS + chance.randrange(LENGTH_MS)
    rows = tables([event for event in events if event.at_ms >= since_ms])
    known = {event.member_id or event.answer_member_id for event in events if event.at_ms >= since_ms}
    owners = [row for row in rows.get("rebalances", []) if row["partitions_moved"] is not None and not {*row["left"]} <= known]
    return falsehoods(rows, broker) + [f"generation {row['generation']}: partitions moved from members nobody saw" for row in owners]


def doubled(seed: int) -> list[str]:
    """Lines are delivered twice."""
    broker, chance = act_out(seed), random.Random(seed)
    events = seen(broker, chance.choice((COORDINATOR_LOG, REQUEST_LOG, BOTH)))
    again = [event for event in events if chance.random() < 0.05]
    return ["other rows"] if tables(events) != tables([*events, *again]) else []


def swapped(seed: int) -> list[str]:
    """Lines of one millisecond stand in another order."""
    broker, chance = act_out(seed), random.Random(seed)
    events = seen(broker, chance.choice((COORDINATOR_LOG, REQUEST_LOG, BOTH)))
    mixed = sorted(events, key=lambda event: (event.at_ms, chance.random()))
    moved = [event._replace(position=number, positions=(number,) if event.positions else ()) for number, event in enumerate(mixed, 1)]
    facts = [[row | {"evidence": ""} for row in tables(lines).get("rebalances", [])] for lines in (events, moved)]
    return ["other rebalances"] if facts[0] != facts[1] else []


def hangs(seed: int) -> list[str]:
    """The coordinator handles no request for a while: those that came in time are not called silent, and no answer is called wrong."""
    played, chance = script(seed), random.Random(seed)
    begins_ms, takes_ms = chance.randrange(10_000, LENGTH_MS), chance.choice((1_500, 4_000, 7_000, 12_000))
    broker = Broker(played.release, played.applications, append_errors=played.append_errors, hangs=[(begins_ms, begins_ms + takes_ms)])
    if chance.random() < 0.5:
        broker.move_coordinator(begins_ms + takes_ms + chance.choice((0, 5, 500)), chance.randrange(10, 8_000))
    broker.run_until(END_MS)
    sources = chance.choice((COORDINATOR_LOG, BOTH, REQUEST_LOG))
    rows = tables(seen(broker, sources))
    found = [] if sources == REQUEST_LOG or undecided(broker) else falsehoods(rows, broker)
    asked = [event for event in broker.events if event.source == "request" and event.kind != kinds.JOIN_GROUP]
    for finding in rows.get("findings", []):
        at_ms, member_id = finding["occurred_at"], finding["member_id"]
        if finding["code"] == "MODEL_DIVERGENCE":
            found.append(finding["message"])
        elif finding["code"] in ("SESSION_TIMEOUT", "HEARTBEAT_NEAR_MISS") and sources != COORDINATOR_LOG:
            waited = [e for e in asked if e.member_id == member_id and e.received_ms <= at_ms < e.at_ms]
            found += [f"{finding['code']} of {member_id}, whose {event.kind} waited" for event in waited[:1]]
    return found


def two_runs(seed: int) -> list[str]:
    """The first half of a log is read to its end, then the second: but for findings the tables are those of one run.

    Like a finding, the cause of a rebalance waits for a client whose session ended after a move: the first half may end before it is back.
    """
    broker, chance = act_out(seed), random.Random(seed)
    events = seen(broker, chance.choice((COORDINATOR_LOG, REQUEST_LOG, BOTH)))
    cut_ms = START_MS + chance.randrange(5_000, LENGTH_MS)
    first = [event for event in events if event.at_ms < cut_ms]
    brokers = sorted({event.broker for event in first})
    expired = [START_MS + one.started_ms for one in broker.rebalances if one.trigger == "session_expired"]
    if len(brokers) > 1 and any(at_ms < cut_ms <= at_ms + HINDSIGHT_MS for at_ms in expired):
        return []
    heard = [Event(b, "clock", "", 0, cut_ms - 1, START_MS, kinds.CLOCK, beats=(0, (cut_ms - START_MS) // 1_000)) for b in brokers]
    ends = [Event(b, "clock", "", 0, cut_ms - 1, cut_ms - 1, kinds.END) for b in brokers]
    rest = [Event(b, "clock", "", 0, START_MS + END_MS, START_MS, kinds.CLOCK, beats=(0, END_MS // 1_000)) for b in (BROKER, OTHER)]
    halves = play([[*first, *heard, *ends], [*(event for event in events if event.at_ms >= cut_ms), *rest]], snapshot=True)
    one = {name: sorted(map(repr, rows)) for name, rows in tables(events).items() if name != "findings"}
    two: dict[str, list[str]] = {}
    for row in halves:
        if row.table != "findings":
            two.setdefault(row.table, []).append(repr(row.values))
    return [name for name in sorted(one | two) if one.get(name, []) != sorted(two.get(name, []))]


HARMS: tuple[Callable[[int], list[str]], ...] = (lost, begins_late, doubled, swapped, hangs, two_runs)


@pytest.mark.slow
@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
@pytest.mark.parametrize("number", every(SLICES, range(SLICES)))
def test_nothing_is_said_that_is_not_true(harm: Callable[[int], list[str]], number: int) -> None:
    each = SCRIPTS // len(HARMS)
    for seed in range(each * number // SLICES, each * (number + 1) // SLICES):
        assert harm(seed) == [], f"seed {seed}"


def test_a_transition_is_written_when_its_cause_is_decided_whatever_its_rebalance_still_waits_for() -> None:
    """15 s after a session ended that a move might have ended, the join phase still runs, and the first half of the log is over."""
    assert two_runs(817) == []
