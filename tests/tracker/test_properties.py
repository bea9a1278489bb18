"""The laws of the tracker, over streams that no broker would write.

Any event in any state is taken without an exception. The same events give the same rows however they are cut into
batches, in any order within the lateness, and with the state written and read back after every batch.
"""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import events as kinds
from coordinator_model.events import Assignment, Event, MemberEntry, Protocol
from coordinator_model.specification.transitions import TRANSITIONS
from coordinator_model.states import State
from coordinator_model.tracker.consumer.migrations import TO_CLASSIC, TO_CONSUMER
from coordinator_model.tracker.lines.coordinator_lines import HANDLERS as LINES
from coordinator_model.tracker.lines.stored import HANDLERS as STORED
from coordinator_model.view.rows import Row
from coordinator_model.view.settings import TrackerSettings
from tests.specification.choices import chosen
from tests.tracker.batching import batches, clocks, followed
from tests.tracker.quiet.test_calm import batches as in_steps
from tests.tracker.story import START_MS, Story, play

pytestmark = pytest.mark.slow

REQUESTS = [
    "JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT", "OFFSET_FETCH",
    "DELETE_GROUPS", "FIND_COORDINATOR", "CONSUMER_GROUP_HEARTBEAT",
]  # fmt: skip
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
KINDS = [*REQUESTS, *sorted(LINES), kinds.COORDINATOR_NOTE]
TOLD_KINDS = [kinds.GROUP_STORED, kinds.GROUP_STORED, *sorted(STORED)]
ENTRIES = chosen(
    lambda member, instance, error, reason: MemberEntry(member, instance, error, reason, None),
    member=MEMBERS,
    instance=["", "i"],
    error=[0, 0, 25],
    reason=REASONS,
)
TOLD_ENTRIES = chosen(
    lambda member, instance, topics, partitions: (MemberEntry(member, instance, 0, "", topics), Assignment(member, partitions, "x")),
    member=MEMBERS,
    instance=["", "i"],
    topics=[None, ("t",), ("u",)],
    partitions=[None, (), ("t-0",), ("t-0", "t-1")],
)
MEANWHILE_MS = st.integers(0, 120_000)
PLACES = st.integers(1, 10**6)


def events(brokers: tuple[str, ...] = ("b1",)) -> st.SearchStrategy[Event]:
    """Any request or coordinator line about one of two groups, within two minutes."""

    def event(kind: str, handled_ms: int, group_id: str, error_code: int, **fields: Any) -> Event:
        request = kind in REQUESTS
        return Event(
            source="request" if request else "coordinator",
            origin="file",
            position=0,
            at_ms=0,
            received_ms=-(handled_ms if request and kind != kinds.HEARTBEAT else 0),
            kind=kind,
            group_id="" if kind == kinds.INSTANCE_FENCED else group_id,
            error_code=error_code if request else 0,
            protocol="range",
            rebalance_timeout_ms=30_000,
            beats=(0,) if kind == kinds.HEARTBEAT else (),
            positions=(1,) if kind == kinds.HEARTBEAT else (),
            **fields,
        )

    fields = chosen(
        event,
        broker=brokers,
        kind=KINDS,
        handled_ms=[0, 1, 5, 3_000, 40_000],
        group_id=["g", "g", "h"],
        member_id=MEMBERS,
        instance_id=["", "", "i"],
        generation=range(-1, 5),
        error_code=ERRORS,
        coordinator_id=range(-1, 4),
        answer_member_id=MEMBERS,
        answer_generation=range(-1, 5),
        leader_id=MEMBERS,
        session_timeout_ms=[-1, 6_000, 10_000, 45_000],
        reason=REASONS,
        state=["", "Empty", "Stable", "PreparingRebalance", "consumer", "classic"],
        member_count=range(-1, 4),
        protocols=[(), (Protocol("range", ("t",), ("t-0",), "x"),), (Protocol("range", None, (), "y"),)],
        assignments=[(), (Assignment("a-1", ("t-0", "t-1"), "x"),), (Assignment("b-1", None, "y"),)],
    )
    return st.builds(_placed, fields, MEANWHILE_MS, PLACES, PLACES, st.lists(ENTRIES, max_size=3))


def _placed(event: Event, after_ms: int, position: int, correlation_id: int, entries: list[MemberEntry]) -> Event:
    at_ms = START_MS + after_ms
    received_ms = at_ms + event.received_ms
    return event._replace(at_ms=at_ms, received_ms=received_ms, position=position, correlation_id=correlation_id, members=tuple(entries))


def told() -> st.SearchStrategy[Event]:
    """Any record or answer to a poll about one of the groups."""

    def event(source: str, handled_ms: int, **fields: Any) -> Event:
        return Event(broker=source, source=source, origin="file", position=0, at_ms=0, received_ms=-handled_ms, **fields)

    fields = chosen(
        event,
        source=sorted(kinds.PSEUDO_BROKERS),
        kind=TOLD_KINDS,
        handled_ms=[0, 5, 700],
        group_id=["g", "h"],
        member_id=MEMBERS,
        client_id=["", "app"],
        generation=range(-1, 5),
        leader_id=MEMBERS,
        protocol=["", "range", "cooperative-sticky"],
        session_timeout_ms=[-1, 6_000],
        state=[state.value for state in State],
    )
    return st.builds(_told, fields, MEANWHILE_MS, PLACES, st.lists(TOLD_ENTRIES, max_size=3))


def _told(event: Event, after_ms: int, position: int, entries: list[tuple[MemberEntry, Assignment]]) -> Event:
    return _placed(event, after_ms, position, event.correlation_id, [entry for entry, _ in entries])._replace(
        member_count=len(entries), assignments=tuple(assignment for _, assignment in entries)
    )


def of_events(max_size: int, brokers: tuple[str, ...] = ("b1",)) -> st.SearchStrategy[list[Event]]:
    """Streams in which no two lines stand at one place: what stands there twice is a line delivered twice."""
    return st.lists(events(brokers), max_size=max_size, unique_by=lambda event: event.position)


streams = of_events(60)
mixed_streams = st.lists(st.one_of(events(), told(), told()), max_size=60, unique_by=lambda event: event.position)


def as_set(rows: list[Row]) -> Counter[str]:
    """Rows as a set, whatever their order."""
    return Counter(json.dumps([row.table, row.values], sort_keys=True) for row in rows)


def is_a_change(before: str, after: str) -> bool:
    """Whether a group can change so: by the specification of classic groups, or between Reconciling and another state."""
    if "Reconciling" in (before, after):
        return before != after and (after == "Reconciling" or after in ("Stable", "Empty"))
    return State(after) in {State.DEAD, *TRANSITIONS[State(before)].values()}


def check_rows(rows: list[Row]) -> None:
    """A rebalance is over after it began, nobody joins and leaves in one, and groups change as they can."""
    for row in rows:
        if row.table == "rebalances":
            assert row.values["started_at"] <= (row.values["joined_at"] or row.values["ended_at"]) <= row.values["ended_at"]
            assert len({*row.values["joined"], *row.values["left"]}) == len(row.values["joined"]) + len(row.values["left"])
        if row.table == "group_transitions" and row.values["trigger"] not in {"GROUP_LOADED", "LINES_MISSING", TO_CONSUMER, TO_CLASSIC}:
            assert is_a_change(row.values["from_state"], row.values["to_state"])


@given(of_events(80, ("b1", "b2", "b3")))
def test_any_event_is_taken_in_any_state(stream: list[Event]) -> None:
    rows = play([[*stream, *clocks(stream)]])
    check_rows(rows)
    assert all(json.loads(row.values["evidence"]) for row in rows), "a claim without evidence"


def test_a_rebalance_that_a_move_cuts_off_ends_after_its_join_phase_whenever_the_new_coordinator_was_asked() -> None:
    """The request that shows the move had waited for 40 s."""

    def event(broker: str, source: str, kind: str, ms: int, took: int = 0, **fields: Any) -> Event:
        return Event(broker, source, "file", ms + 1, START_MS + ms, START_MS + ms - took, kind, group_id="g", **fields)

    joins = [event("b1", "request", kinds.JOIN_GROUP, ms, protocol="range") for ms in (0, 2)]
    moves = event("b2", "request", kinds.JOIN_GROUP, 5_000, 40_000, protocol="range")
    stream = [*joins, event("b1", "coordinator", kinds.PREPARING_REBALANCE, 1, generation=1), moves]
    *_, row = (row.values for row in play([[*stream, *clocks(stream)]]) if row.table == "rebalances")
    assert (row["joined_at"], row["ended_at"]) == (START_MS + 2, START_MS + 2)


@pytest.mark.parametrize("all_streams", [streams, mixed_streams], ids=["lines", "lines and records"])
@given(st.data(), st.integers(1, 30), st.integers(0, 4_900), st.integers(0, 3))
def test_any_batching_and_any_order_within_the_lateness_give_the_same_rows(
    all_streams: st.SearchStrategy[list[Event]], data: st.DataObject, count: int, shuffle_ms: int, seed: int
) -> None:
    stream = data.draw(all_streams)
    whole = play([[*stream, *clocks(stream)]])
    cut = batches(stream, count, shuffle_ms=shuffle_ms, seed=seed)
    assert as_set(play(cut, TrackerSettings(), snapshot=True)) == as_set(whole)


@given(mixed_streams)
def test_any_record_is_taken_in_any_state(stream: list[Event]) -> None:
    check_rows(play([[*stream, *clocks(stream)]]))


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

    def joins(ms: int, member: str, generation: int) -> Event:
        answer = {"answer_member_id": member, "answer_generation": generation, "leader_id": member, "error_code": 0}
        return event("b1", "request", kinds.JOIN_GROUP, ms, member_id=member, client_id="a", **answer)

    story = [
        event("b2", "coordinator", kinds.ASSIGNMENT_RECEIVED, 0, generation=1, leader_id="a-1", member_count=1),
        joins(5_000, "a-1", 2),
        event("b1", "coordinator", kinds.MEMBER_FAILED, 60_000, member_id="a-1"),
        joins(63_000, "a-2", 3),
    ]
    whole, stepwise = (play(followed(story, step_ms, START_MS + 250_000, {})) for step_ms in (250_000, 300))
    assert as_set(stepwise) == as_set(whole)
    assert [row.values["code"] for row in whole if row.table == "findings"] == ["COORDINATOR_MOVED"]


def test_a_long_silence_is_told_in_the_same_way_whenever_anybody_looks() -> None:
    """The broker accepts a heartbeat of a session that ended two minutes before: no broker does so, but a damaged log may say it."""
    story = Story().at(3_000)
    for member, entries in (("a-1", ("a-1", "b-1")), ("b-1", ())):
        story.join(member, 1, "a-1", entries, waited=2_900, session_timeout_ms=45_000)
    story.at(3_010).sync("a-1", 1, {"a-1": ("t-0",), "b-1": ("t-1",)}).beats(["a-1", "b-1"], 1, 20_000, 23_000)
    story.at(68_000).heartbeat("a-1", 1).at(73_000).heartbeat("b-1", 1, error=27).beats(["a-1"], 1, 235_000, 241_000)
    one, minutes, whole = (as_set(play(in_steps(story, 360_000, step_ms))) for step_ms in (1_000, 60_000, 360_000))
    assert one == minutes == whole


def test_a_timeout_that_no_line_says_has_not_passed() -> None:
    """The only member that the answer names is static, and nobody said how long the group waits for it."""
    named = (MemberEntry("a-1", "i", 0, "", None),)
    stream = [Event("b1", "request", "file", 1, START_MS, START_MS, "JOIN_GROUP", "g", answer_generation=0, members=named)]
    for kind, after_ms in (("ASSIGNMENT_RECEIVED", 2_075), ("JOIN_GROUP", 7_076), ("JOIN_GROUP", 14_161)):
        at_ms, source = START_MS + after_ms, "request" if kind in REQUESTS else "coordinator"
        stream.append(Event("b1", source, "file", after_ms, at_ms, at_ms, kind, "g"))
    for count in (1, 2):
        assert {row.values["slowest_member_id"] for row in play(batches(stream, count)) if row.table == "rebalances"} == {None}


def test_a_fencing_line_is_about_the_same_group_in_any_batches() -> None:
    """It names no group, but members: one that was only given its id, and one that uses the instance later."""
    stream = []
    for kind, member, after_ms in (
        (kinds.JOIN_GROUP, "a-1", 0),
        (kinds.MEMBER_ID_ISSUED, "b-1", 1_000),
        (kinds.INSTANCE_FENCED, "b-1", 30_000),
        (kinds.INSTANCE_FENCED, "c-1", 40_000),
        (kinds.JOIN_GROUP, "c-1", 80_000),
    ):
        at_ms, source, group = START_MS + after_ms, "request" if kind in REQUESTS else "coordinator", "g" * (kind != kinds.INSTANCE_FENCED)
        stream.append(Event("b1", source, "file", after_ms + 1, at_ms, at_ms, kind, group, member_id=member, instance_id="i", error_code=0))
    whole, *cut = (as_set(play(batches(stream, count), snapshot=True)) for count in (1, 2, 80))
    assert cut == [whole, whole]
    fenced = [row.values["member_id"] for row in play(batches(stream, 1)) if row.values.get("code") == "FENCED_INSTANCE"]
    assert fenced == ["b-1"]
