"""The parsers read from generated lines what was acted out: the same groups are written as text and as events."""

import random
from datetime import datetime, timedelta, timezone

import pytest

from coordinator_model import events as kinds
from coordinator_model.specification.partition import coordinator_partition
from jobs.generate.book import Book
from jobs.generate.episode import Episode
from jobs.generate.groups import Group, Member, assigned
from tests.parsing.reading import read_lines
from tests.tracker.simulated.acted_out import GROUP, EventPen, FailingWrites
from tests.tracker.simulated.scripts import LENGTH_MS, script
from tests.tracker.story import START_MS

pytestmark = pytest.mark.slow

SEEDS = 8
NOT_AT_INFO = {"3.9.1": {kinds.MEMBER_ADDED, kinds.MEMBERS_NOT_SYNCED}, "4.2.0": {kinds.MEMBERS_NOT_SYNCED}}
ONLY_IN_TEXT = {kinds.FIND_COORDINATOR, kinds.OFFSET_FETCH, kinds.STATIC_MEMBER_KEPT}
TEXTS = ("group_id", "client_id", "member_id", "instance_id", "answer_member_id", "leader_id", "protocol_type", "protocol", "reason")
NUMBERS = ("generation", "answer_generation", "session_timeout_ms", "rebalance_timeout_ms", "member_count")
MEMBER = ("client_id", "session_timeout_ms", "rebalance_timeout_ms")
"""Scala prints the whole member that left; the events of the tests do not have that."""


class TwiceWritten(FailingWrites, Episode):
    """Writes the same as events, too."""

    def __init__(self, told, *arguments, **settings):
        self._told = told
        super().__init__(*arguments, **settings)

    def say(self, said):
        self._told.say(said)
        super().say(said)

    def answer(self, answered):
        self._told.answer(answered)
        super().answer(answered)

    def meet(self, connection):
        self._told.meet(connection)
        super().meet(connection)

    def moves(self):
        super().moves()
        self._told.move()


def acted(seed):
    """The release of a script, what both brokers wrote of it as text, and as events."""
    played = script(seed)
    applications = played.applications
    book = Book(2, START_MS, played.release, random.Random(seed))
    group = Group(GROUP, coordinator_partition(GROUP), 0, 0, 0, commits=False, partitions=6)
    cast = [Member(one.config.client_id, one.config.group_instance_id, book.new_host()) for one in applications]
    told = EventPen(played.release, applications, lambda digest: tuple(f"t-{number}" for number in assigned(bytes.fromhex(digest))))
    simulation = TwiceWritten(told, book, group, cast, applications)
    simulation.append_errors = played.append_errors
    for number, (at_ms, away_ms) in enumerate(played.moves, 1):
        simulation.move_to(number % 2, at_ms, away_ms)
    simulation.run_until(LENGTH_MS)
    for at_ms in sorted(book.later):
        book.write(at_ms)
    assert book.rebalances == sum(event.kind == kinds.PREPARING_REBALANCE for event in told.events)
    return played.release, book.take(), told.events


def expected(release, events):
    """The events as rows of the parsers: by broker and source, in order of time."""
    found = {}
    for event in sorted(events, key=lambda event: event.at_ms):
        if event.source == "request" or event.kind not in NOT_AT_INFO[release] or (event.kind == kinds.MEMBER_ADDED and event.instance_id):
            found.setdefault((event.broker, event.source), []).append(
                (event.kind, event.at_ms, *(getattr(event, name) for name in (*TEXTS, *NUMBERS)), event.error_code)
            )
    return found


def test_the_parsers_read_what_was_acted_out():
    raw, wanted = [], {}
    for seed in range(SEEDS):
        release, taken, events = acted(seed)
        wanted |= {(seed, *place): of_log for place, of_log in expected(release, events).items()}
        for is_request, broker, lines in taken:
            origin = "request" if is_request else "coordinator"
            for number, line in enumerate(lines, 1):
                at = datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)
                raw.append((f"{seed}", f"broker-{broker + 1}", "line", origin, number, at, line.rstrip("\n"), None, 1, None, None))
    rows = read_lines(raw).to_pylist()
    assert {row["refusal"] for row in rows} == {None}
    found: dict = {}
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    for row in sorted(rows, key=lambda row: row["position"]):
        if row["kind"] not in ONLY_IN_TEXT:
            at_ms = (row["occurred_at"] - epoch) // timedelta(milliseconds=1)
            unsaid = MEMBER if row["kind"] == kinds.MEMBER_LEFT else ()
            texts = ["" if name in unsaid else row[name] or "" for name in TEXTS]
            numbers = [-1 if row[name] is None or name in unsaid else row[name] for name in NUMBERS]
            place = int(row["cluster"]), row["broker"], row["origin"]
            found.setdefault(place, []).append((row["kind"], at_ms, *texts, *numbers, row["error_code"] or 0))
    assert found.keys() == wanted.keys()
    for place, of_log in wanted.items():
        assert found[place] == of_log, place
