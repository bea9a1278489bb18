"""The laws of the tracker, over streams that no broker would write.

Any event in any state is taken without an exception. The same events give the same rows however they are cut into
batches, in any order within the lateness, and with the state written and read back after every batch.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as kinds
from coordinator_model.events import Assignment, Event, MemberEntry, Protocol
from coordinator_model.specification.transitions import TRANSITIONS
from coordinator_model.states import State
from coordinator_model.tracker.lines.coordinator_lines import HANDLERS as LINES
from coordinator_model.tracker.lines.stored import HANDLERS as STORED
from coordinator_model.view.rows import Row
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.batching import batches, clocks, followed
from tests.tracker.story import START_MS, play

REQUESTS = [
    "JOIN_GROUP",
    "SYNC_GROUP",
    "HEARTBEAT",
    "LEAVE_GROUP",
    "OFFSET_COMMIT",
    "TXN_OFFSET_COMMIT",
    "OFFSET_FETCH",
    "DELETE_GROUPS",
    "FIND_COORDINATOR",
    "CONSUMER_GROUP_HEARTBEAT",
]
MEMBERS = ["", "a-1", "a-2", "b-1", "c-1"]
ERRORS = [0, 0, 0, 0, 27, 22, 25, 79, 82, 81, 16, 14]
REASONS = [
    "",
    "the consumer is being closed",
    "consumer poll timeout has expired.",
    "Adding new member a-1 with group instance id null; client reason: not provided",
    "removing member b-1 on heartbeat expiration",
    "explicit `LeaveGroup` request for (c-1) members.",
    "Removing [a-1] on pending sync request expiration",
    "Leader a-1 re-joining group during Stable; client reason: need to revoke partitions and re-join",
    "something no broker has said yet",
]
members = st.sampled_from(MEMBERS)
entries = st.lists(
    st.builds(MemberEntry, members, st.sampled_from(["", "i"]), st.sampled_from([0, 0, 25]), st.sampled_from(REASONS), st.none()),
    max_size=3,
).map(tuple)


@st.composite
def events(draw: st.DrawFn, brokers: tuple[str, ...] = ("b1",)) -> Event:
    """Any request or coordinator line about one of two groups, within two minutes."""
    at_ms = START_MS + draw(st.integers(0, 120_000))
    kind = draw(st.sampled_from([*REQUESTS, *sorted(LINES), kinds.COORDINATOR_NOTE]))
    request = kind in REQUESTS
    member = draw(members)
    return Event(
        draw(st.sampled_from(brokers)),
        "request" if request else "coordinator",
        "file",
        draw(st.integers(1, 10**6)),
        at_ms,
        at_ms - (draw(st.sampled_from([0, 1, 5, 3_000, 40_000])) if request and kind != kinds.HEARTBEAT else 0),
        kind,
        group_id="" if kind == kinds.INSTANCE_FENCED else draw(st.sampled_from(["g", "g", "h"])),
        correlation_id=draw(st.integers(0, 10**6)),
        member_id=member,
        instance_id=draw(st.sampled_from(["", "", "i"])),
        generation=draw(st.integers(-1, 4)),
        error_code=draw(st.sampled_from(ERRORS)) if request else 0,
        coordinator_id=draw(st.integers(-1, 3)),
        answer_member_id=draw(members),
        answer_generation=draw(st.integers(-1, 4)),
        leader_id=draw(members),
        protocol="range",
        session_timeout_ms=draw(st.sampled_from([-1, 6_000, 10_000, 45_000])),
        rebalance_timeout_ms=30_000,
        reason=draw(st.sampled_from(REASONS)),
        state=draw(st.sampled_from(["", "Empty", "Stable", "PreparingRebalance", "consumer", "classic"])),
        member_count=draw(st.integers(-1, 3)),
        protocols=draw(st.sampled_from([(), (Protocol("range", ("t",), ("t-0",), "x"),), (Protocol("range", None, (), "y"),)])),
        members=draw(entries),
        assignments=draw(st.sampled_from([(), (Assignment("a-1", ("t-0", "t-1"), "x"),), (Assignment("b-1", None, "y"),)])),
        beats=(0,) if kind == kinds.HEARTBEAT else (),
        positions=(1,) if kind == kinds.HEARTBEAT else (),
    )


@st.composite
def told(draw: st.DrawFn) -> Event:
    """Any record or answer to a poll about one of the groups."""
    at_ms = START_MS + draw(st.integers(0, 120_000))
    kind = draw(st.sampled_from([kinds.GROUP_STORED, kinds.GROUP_STORED, *sorted(STORED)]))
    source = draw(st.sampled_from(sorted(kinds.PSEUDO_BROKERS)))
    ids = draw(st.lists(members, max_size=3))
    return Event(
        source,
        source,
        "file",
        draw(st.integers(1, 10**6)),
        at_ms,
        at_ms - draw(st.sampled_from([0, 5, 700])),
        kind,
        group_id=draw(st.sampled_from(["g", "h"])),
        member_id=draw(members),
        client_id=draw(st.sampled_from(["", "app"])),
        generation=draw(st.integers(-1, 4)),
        leader_id=draw(members),
        protocol=draw(st.sampled_from(["", "range", "cooperative-sticky"])),
        session_timeout_ms=draw(st.sampled_from([-1, 6_000])),
        state=draw(st.sampled_from([state.value for state in State])),
        member_count=len(ids),
        members=tuple(MemberEntry(m, draw(st.sampled_from(["", "i"])), 0, "", draw(st.sampled_from([None, ("t",), ("u",)]))) for m in ids),
        assignments=tuple(Assignment(m, draw(st.sampled_from([None, (), ("t-0",), ("t-0", "t-1")])), "x") for m in ids),
    )


def of_events(max_size: int, brokers: tuple[str, ...] = ("b1",)) -> st.SearchStrategy[list[Event]]:
    """Streams in which no two lines stand at one place: what stands there twice is a line delivered twice."""
    return st.lists(events(brokers), max_size=max_size, unique_by=lambda event: event.position)


streams = of_events(60)
mixed_streams = st.lists(st.one_of(events(), told(), told()), max_size=60, unique_by=lambda event: event.position)


def as_set(rows: list[Row]) -> Counter[str]:
    """Rows as a set, whatever their order."""
    return Counter(json.dumps([row.table, row.values], sort_keys=True) for row in rows)


@given(of_events(80, ("b1", "b2", "b3")))
def test_any_event_is_taken_in_any_state(stream: list[Event]) -> None:
    for row in play([[*stream, *clocks(stream)]]):
        assert json.loads(row.values["evidence"]), "a claim without evidence"
        if row.table == "rebalances":
            assert row.values["started_at"] <= (row.values["joined_at"] or row.values["ended_at"]) <= row.values["ended_at"]
            assert len({*row.values["joined"], *row.values["left"]}) == len(row.values["joined"]) + len(row.values["left"])
        if row.table == "group_transitions" and row.values["trigger"] != "GROUP_LOADED":
            assert State(row.values["to_state"]) in {State.DEAD, *TRANSITIONS[State(row.values["from_state"])].values()}


@given(streams, st.integers(1, 30), st.integers(0, 4_900), st.integers(0, 3))
def test_any_batching_and_any_order_within_the_lateness_give_the_same_rows(
    stream: list[Event], count: int, shuffle_ms: int, seed: int
) -> None:
    whole = play([[*stream, *clocks(stream)]])
    cut = batches(stream, count, shuffle_ms=shuffle_ms, seed=seed)
    assert as_set(play(cut, TrackerSettings(), snapshot=True)) == as_set(whole)


@given(mixed_streams)
def test_any_record_is_taken_in_any_state(stream: list[Event]) -> None:
    for row in play([[*stream, *clocks(stream)]]):
        if row.table == "rebalances":
            assert row.values["started_at"] <= (row.values["joined_at"] or row.values["ended_at"]) <= row.values["ended_at"]
            assert len({*row.values["joined"], *row.values["left"]}) == len(row.values["joined"]) + len(row.values["left"])
        if row.table == "group_transitions" and row.values["trigger"] != "GROUP_LOADED":
            assert State(row.values["to_state"]) in {State.DEAD, *TRANSITIONS[State(row.values["from_state"])].values()}


@given(mixed_streams, st.integers(1, 30), st.integers(0, 4_900), st.integers(0, 3))
def test_any_batching_of_records_gives_the_same_rows(stream: list[Event], count: int, shuffle_ms: int, seed: int) -> None:
    whole = play([[*stream, *clocks(stream)]])
    cut = batches(stream, count, shuffle_ms=shuffle_ms, seed=seed)
    assert as_set(play(cut, TrackerSettings(), snapshot=True)) == as_set(whole)


@given(streams, st.integers(1, 30))
def test_a_line_delivered_twice_counts_once(stream: list[Event], count: int) -> None:
    doubled = [e for event in stream for e in (event, event)]
    assert as_set(play(batches(doubled, count))) == as_set(play([[*stream, *clocks(stream)]]))


@given(of_events(60, ("b1", "b2")), st.integers(1, 20))
def test_a_group_that_one_broker_coordinates_does_not_mind_when_another_comes_late(stream: list[Event], count: int) -> None:
    """Each broker has a group of its own; the second one's log arrives a minute after the first one's."""
    own = [e._replace(group_id=f"group of {e.broker}") for e in stream]
    assert as_set(play(batches(own, count, delays={"b2": 60_000}))) == as_set(play([[*own, *clocks(own)]]))


@given(
    of_events(60, ("b1", "b2", "b3")),
    st.sampled_from([300, 2_000, 9_000]),
    st.dictionaries(st.sampled_from(["b1", "b2", "b3"]), st.tuples(st.integers(0, 120_000), st.integers(0, 45_000))),
)
def test_shippers_that_were_away_for_less_than_a_minute_change_nothing(
    stream: list[Event], step_ms: int, away: dict[str, tuple[int, int]]
) -> None:
    """The brokers speak of the same groups. Before its first word a broker is not known, and nobody waits for it."""
    first = [event._replace(broker=broker, at_ms=START_MS, received_ms=START_MS) for broker in ("b1", "b2", "b3") for event in stream[:1]]
    known = [event._replace(position=-number) for number, event in enumerate(first, 1)]
    absences = {broker: (START_MS + 1 + start, START_MS + 1 + start + length) for broker, (start, length) in away.items()}
    story = [*known, *stream]
    until_ms = START_MS + 250_000
    whole = play(followed(story, 250_000, until_ms, {}))
    assert as_set(play(followed(story, step_ms, until_ms, absences), snapshot=True)) == as_set(whole)


def test_a_session_that_ends_a_minute_after_a_move_is_told_in_the_same_way_whenever_anybody_looks() -> None:
    """The group moves at 5 s, so its trouble may end sessions until 65 s; whether it ended the one of 60 s is decided at 70 s."""

    def event(broker: str, source: str, kind: str, ms: int, **fields: Any) -> Event:
        return Event(broker, source, "file", ms + 1, START_MS + ms, START_MS + ms, kind, group_id="h", **fields)

    story = [
        event("b2", "coordinator", kinds.ASSIGNMENT_RECEIVED, 0, generation=1, leader_id="a-1", member_count=1),
        event(
            "b1",
            "request",
            kinds.JOIN_GROUP,
            5_000,
            member_id="a-1",
            answer_member_id="a-1",
            answer_generation=2,
            leader_id="a-1",
            error_code=0,
        ),
        event("b1", "coordinator", kinds.MEMBER_FAILED, 60_000, member_id="a-1"),
    ]
    whole, stepwise = (play(followed(story, step_ms, START_MS + 250_000, {})) for step_ms in (250_000, 300))
    assert as_set(stepwise) == as_set(whole)
    assert [row.values["code"] for row in whole if row.table == "findings"] == ["COORDINATOR_MOVED"]
