"""Plain heartbeats of a calm group wait as numbers, and are the same heartbeats afterwards."""

from typing import Any

import pytest

from coordinator_model.events import Event
from coordinator_model.tracker import codec
from coordinator_model.tracker.quiet import calm
from coordinator_model.tracker.quiet.numbers import Numbers, runs_of
from coordinator_model.tracker.shard import Shard
from tests.tracker.batching import batches as cut
from tests.tracker.quiet.test_calm import BATCH_MS, batches, group, stored
from tests.tracker.simulated.test_simulated import act_out
from tests.tracker.story import GROUP, Story, as_numbers


def calm_group() -> Shard:
    """A shard whose group has been calm for some batches."""
    shard = Shard()
    for batch in batches(group(), 33_000):
        shard.observe(*as_numbers(batch))
        shard = Shard.decode(shard.encode())
    return shard


def beats(shard: Shard) -> list[tuple[Any, ...]]:
    """Each heartbeat that waits."""
    signs = calm.waiting(codec.decode_calm(stored(shard).calm[GROUP]))
    places = [(sign, beat, position) for sign in signs for beat, position in zip(sign.beats, sign.positions, strict=True)]
    return sorted((sign.member_id, sign.received_ms + beat, position, sign.connection, sign.origin) for sign, beat, position in places)


def numbers(shard: Shard) -> int:
    """How many heartbeats wait as numbers."""
    return sum(len(run.arrivals) for run in runs_of(codec.decode_calm(stored(shard).calm[GROUP])))


def heartbeat(**changed: Any) -> Event:
    """Of a member of the group, after the others."""
    (event,) = Story().at(34_000).heartbeat("a-1", 1).events
    return event._replace(**{"position": 1_000, "positions": (1_000,), **changed})


@pytest.mark.parametrize("changed", [{}, {"origin": "another file"}, {"beats": (0, 100), "positions": (1_000, 1_001)}])
def test_plain_heartbeats_wait_as_numbers(changed: dict[str, Any]) -> None:
    shard, event = calm_group(), heartbeat(**changed)
    before, waited = beats(shard), numbers(shard)
    shard.observe(*as_numbers([event, *Story().heard(34_000 + BATCH_MS)]))
    own = [("a-1", event.received_ms + beat, place, "", event.origin) for beat, place in zip(event.beats, event.positions, strict=True)]
    assert beats(shard) == sorted([*before, *own])
    assert numbers(shard) == waited + len(event.beats)


@pytest.mark.parametrize(
    "changed", [{"connection": "another"}, {"client_id": "another"}, {"position": 5_000_000_000, "positions": (5_000_000_000,)}]
)
def test_others_are_handled_with_those_that_wait(changed: dict[str, Any]) -> None:
    shard, event = calm_group(), heartbeat(**changed)
    before = stored(shard).known(GROUP).view
    shard.observe(*as_numbers([event, *group().heard(34_000 + 2 * BATCH_MS)]))
    assert stored(shard).known(GROUP).view != before
    assert not numbers(shard)


def test_members_that_are_heard_renew_their_sessions_while_their_group_is_calm() -> None:
    shard, views = Shard(), []
    for batch in batches(group(60_000), 42_000):  # their sessions last 21 s
        shard.observe(*as_numbers(batch))
        views.append(stored(shard).known(GROUP).view)
        if stored(shard).calm:
            assert views[-1] == views[4]
    assert len(views) == 14


@pytest.mark.slow
def test_many_heartbeats_of_the_simulated_scripts_are_heard_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, offered = [], 0
    take = Numbers.take
    monkeypatch.setattr(Numbers, "take", lambda self, run: (taken := take(self, run), heard.append(len(run.arrivals) * taken))[0])
    for seed in range(6):
        shard = Shard()
        for batch in cut(act_out(seed).events, 40):
            events, plain = as_numbers(batch)
            offered += sum(len(group.arrivals) for group in plain)
            shard.observe(events, plain)
    assert sum(heard) > offered / 10


def test_who_names_another_instance_than_its_member_is_told_as_a_heartbeat_by_itself_would_be() -> None:
    (event,) = Story().at(12_500).heartbeat("a-1", 1, instance_id="i-1").events
    event, told = event._replace(position=1_000, positions=(1_000,)), []
    for split in (as_numbers, lambda batch: (list(batch), [])):
        shard = Shard()
        rows = [row for batch in batches(group(), 15_000) for row in shard.observe(*split(batch))]
        shard = Shard.decode(shard.encode())
        rows += shard.observe(*split([event, *Story().heard(17_000)]))
        left = Story().at(20_000).leave("b-1")
        rows += shard.observe([*left.events, *left.heard(90_000)])
        told.append(sorted(f"{row.table} {row.values}" for row in rows))
    assert told[0] == told[1]
    assert any("MEMBER_LEFT" in row for row in told[0])
