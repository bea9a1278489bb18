"""Heartbeats of a group that stays calm are counted. Whatever happens afterwards finds the group as if each had been handled."""

import random
from collections.abc import Callable

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker import codec
from coordinator_model.tracker.quiet import calm
from coordinator_model.tracker.shard import Shard
from tests.effort import every
from tests.tracker.quiet.test_calm import batches, group, stored
from tests.tracker.story import GROUP, START_MS, Story, as_numbers, play, table

HOUR_MS = 3_600_000


def found(shard: Shard) -> codec.Calm:
    """The calm group of a shard."""
    return codec.decode_calm(stored(shard).calm[GROUP])


def test_a_group_that_is_calm_for_an_hour_is_not_unpacked_and_takes_no_more_room() -> None:
    story, shard, rows = group(HOUR_MS), Shard(), []
    views, sizes = [], []
    for batch in batches(story, HOUR_MS):
        rows += shard.observe(*as_numbers(batch))
        shard = Shard.decode(shard.encode())
        if GROUP in stored(shard).calm:
            views.append(stored(shard).groups[GROUP].view)
            sizes.append(len(stored(shard).calm[GROUP]))
    assert len(views) > HOUR_MS / 3_000 - 10
    assert len(set(views[30:])) == 1  # it was judged whether its first rebalance begins a burst
    assert max(sizes[-100:]) < 1.1 * max(sizes[:100])
    story.at(HOUR_MS).leave("b-1", reason="the consumer is being closed").at(HOUR_MS + 5_000).heartbeat("a-1", 1, error=27)
    ending = [*story.events[-2:], *story.heard(HOUR_MS + 60_000)]
    sessions = table([*rows, *play([ending], shard=shard)], "member_sessions")
    assert sessions == table(story.rows(HOUR_MS + 60_000), "member_sessions")
    assert sessions[0]["heartbeats"] == (HOUR_MS - 4_000) // 3_000 + 1


def test_the_sources_of_counted_heartbeats_are_few_however_often_the_log_changes_its_name() -> None:
    shard = Shard()
    for batch in batches(group(HOUR_MS), HOUR_MS):
        lines = [event._replace(origin=f"log-{(event.at_ms - START_MS) // 60_000}") for event in batch if event.kind == kinds.HEARTBEAT]
        shard.observe(*as_numbers([*lines, *(event for event in batch if event.kind != kinds.HEARTBEAT)]))
        if GROUP in stored(shard).calm:
            assert len(found(shard).sources) <= 3


def test_a_commit_is_handled_with_what_was_counted_before() -> None:
    story = group(200_000).at(140_000).commit("b-1", 1)
    rows = play([[*events] for events in batches(story, 200_000)], snapshot=True)
    assert rows == story.rows(200_000)


def test_numbers_are_counted_when_it_is_time_though_no_sign_comes_in_that_batch() -> None:
    story, shard, views = group(600_000), Shard(), set()
    for second, batch in enumerate(batches(story, 600_000, 1_000)):
        shard.observe(*as_numbers(batch))
        if second > 90:
            views.add(stored(shard).groups[GROUP].view)
    assert len(views) == 1


@pytest.mark.parametrize("pause_ms", [18_000, 24_000, 30_000])
def test_a_follower_may_name_another_session_timeout_than_the_one_it_has(pause_ms: int) -> None:
    """It joins the Stable group again, and Kafka keeps the 21 s that it had: the pauses are too long for them."""
    story = group(30_000).at(30_500).join("b-1", 1, "a-1", session_timeout_ms=45_000, waited=1).at(30_510).sync("b-1", 1)
    story.beats(["a-1", "b-1"], 1, 31_000, 100_000)
    for ms in range(100_000, 300_000, 3_000):
        story.at(ms).heartbeat("a-1", 1)
        if (ms - 100_000) % pause_ms == 0:
            story.at(ms + 500).heartbeat("b-1", 1)
    story.at(310_000).heartbeat("a-1", 1, error=27)
    assert sorted(map(repr, play(batches(story, 400_000), snapshot=True))) == sorted(map(repr, story.rows(400_000)))


@pytest.mark.parametrize("pause_ms", [20_000, 30_000])
def test_a_session_begins_with_the_arrival_of_a_commit_that_took_long(pause_ms: int) -> None:
    story = group(40_000).at(55_000).commit("b-1", 1, took=14_000).beats(["a-1"], 1, 40_000, 200_000)
    story.events.sort(key=lambda event: event.at_ms)
    story.beats(["b-1"], 1, 41_000 + pause_ms, 200_000).at(210_000).heartbeat("a-1", 1, error=27)
    assert sorted(map(repr, play(batches(story, 400_000), snapshot=True))) == sorted(map(repr, story.rows(400_000)))


def steady_story(seed: int) -> tuple[list[Event], int]:
    """Minutes of a group whose members heartbeat in time for the most part, and when it ends.

    Now and then one of them changes its connection, commits, comes late or too late, or falls silent; in the end the group may rebalance.
    """
    chance, story = random.Random(seed), Story()
    members = [f"m{number}-1" for number in range(chance.choice((1, 2, 3, 5)))]
    static = {member: f"i-{member}" for member in members if chance.random() < 0.3}
    session_ms, end_ms = chance.choice((10_000, 45_000, 1_800_000)), chance.choice((200_000, 400_000))

    def like(member: str, connection: str = "") -> dict[str, str]:
        return {"connection": connection or f"c-{member}", "instance_id": static.get(member, "")}

    for member in members:
        entries = members if member == members[0] else ()
        story.at(3_000).join(member, 1, members[0], entries, waited=2_900, session_timeout_ms=session_ms, **like(member))
    for member in members:
        story.at(3_010).sync(member, 1, {one: (f"t-{one}",) for one in members} if member == members[0] else None, **like(member))
    commits, noise = chance.random() < 0.3, chance.choice((0, 0.002, 0.02))
    told: list[tuple[int, Callable[[], object]]] = []
    for member in members:
        ms, connection, step_ms = 4_000 + chance.randrange(3_000), "", chance.choice((1_000, 3_000, 5_000))
        until_ms = end_ms if chance.random() < 0.7 else chance.randrange(50_000, end_ms)
        while ms < until_ms:
            connection = f"x-{member}-{ms}" if chance.random() < noise / 3 else connection
            kind = story.commit if chance.random() < (0.1 if commits else noise) else story.heartbeat
            told.append((ms, lambda ms=ms, kind=kind, who=member, of=connection: (story.at(ms), kind(who, 1, **like(who, of)))))
            usual = chance.random() > noise
            ms += (
                step_ms + chance.randrange(-20, 20) if usual else int(min(session_ms, 60_000) * chance.choice((0.1, 0.5, 0.85, 0.95, 1.3)))
            )
    for _, tell in sorted(told, key=lambda one: one[0]):
        tell()
    story.at(chance.randrange(60_000, end_ms))
    match chance.randrange(4):
        case 0:
            story.leave(members[0], **like(members[0]))
        case 1:
            story.heartbeat(members[-1], 1, error=27, **like(members[-1]))
        case 2:
            story.join("z-1", 2, members[0], waited=900, session_timeout_ms=session_ms, connection="c-z")
    halfway_ms = START_MS + end_ms // 2
    renamed = chance.random() < 0.3
    return [e._replace(origin="later") if renamed and e.at_ms > halfway_ms else e for e in story.events], end_ms + 100_000


def rows_of(events: list[Event], end_ms: int, step_ms: int, seed: int, *, numbers: bool) -> list[str]:
    """In batches of so many ms, the lines up to 4 s late."""
    chance = random.Random(seed)
    arrivals = sorted((event.at_ms - START_MS + chance.randrange(4_000), number) for number, event in enumerate(events))
    cut: list[list[Event]] = []
    for until_ms in (*range(step_ms, end_ms, step_ms), end_ms):
        seconds = Event("broker-1", "clock", "", 0, START_MS + until_ms, START_MS, kinds.CLOCK, beats=(0, until_ms // 1_000))
        from_ms = (until_ms - 1) // step_ms * step_ms
        cut.append([*(events[number] for at_ms, number in arrivals if from_ms <= at_ms < until_ms), seconds])
    return sorted(map(repr, play(cut, snapshot=numbers)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", every(10, range(60)))
def test_counted_or_handled_one_by_one_the_rows_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    events, end_ms = steady_story(seed)
    made = [rows_of(events, end_ms, step_ms, seed, numbers=True) for step_ms in (1_000, 9_000, 45_000, 90_000)]
    monkeypatch.setattr(calm, "calm", lambda _: None)
    handled = rows_of(events, end_ms, 3_000, seed, numbers=False)
    assert all(rows == handled for rows in made)
