"""Heartbeats of quiet times lose what no answer needs, and replay goes on without it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pytest
from deltalake import DeltaTable

from coordinator_model.events import HEARTBEAT, Event
from jobs.answers.ask import values
from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.evidence import line_times
from jobs.answers.questions import load
from jobs.lakehouse import thinning
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import table_rows
from jobs.lakehouse.restored_beats import gap_counts
from jobs.pipeline.tracking import packets
from jobs.pipeline.tracking.spread import Spread
from schemas.names import GROUP_EVENTS, INGEST
from tests.lakehouse.rows import empty_lakehouse, finding, row, track_is_at, write
from tests.pipeline.tracking.packed_events import events_in
from tests.tracker.story import GROUP, START_MS, Story, play

pytestmark = pytest.mark.slow

MINUTE = 60_000
END = 40 * MINUTE
REBALANCE = 20 * MINUTE
SILENCE = END - MINUTE
MEMBERS = ("a-1", "b-1")
THIN = Policy(thin_after=timedelta(0), grace=timedelta(0))


def told() -> Story:
    """Two members for forty minutes, with a rebalance in between. At last one of them goes silent."""
    story, chance = Story(), random.Random(1)
    story.at(0).join("a-1", 1, "a-1", MEMBERS, waited=3_000).join("b-1", 1, "a-1", waited=2_000)
    story.at(5).sync("a-1", 1, {"a-1": ("orders-0",), "b-1": ("orders-1",)}).sync("b-1", 1, {"b-1": ("orders-1",)})
    due = sorted((at + chance.randrange(200) + 1_000 * (member == "b-1"), member) for at in range(1_000, END, 3_000) for member in MEMBERS)
    for at, member in due:
        if REBALANCE < at <= REBALANCE + 3_000 and member == "b-1":
            story.at(at).heartbeat(member, 1, error=27)
        elif member == "a-1" and at > SILENCE + 13_000:
            story.at(at).heartbeat(member, 2 if at < SILENCE + 16_000 else 3, error=27 if at < SILENCE + 16_000 else 0)
        elif not REBALANCE - 3_000 < at <= REBALANCE + 6_000 and not (member == "b-1" and at > SILENCE):
            story.at(at).heartbeat(member, 1 if at < REBALANCE else 2)
    story.at(REBALANCE + 4_000).join("a-1", 2, "a-1", MEMBERS, waited=4_000).join("b-1", 2, "a-1", waited=500)
    story.at(REBALANCE + 4_005).sync("a-1", 2, {"a-1": ("orders-1",), "b-1": ("orders-0",)}).sync("b-1", 2, {"b-1": ("orders-0",)})
    story.at(SILENCE + 16_000).join("a-1", 3, "a-1", ("a-1",), waited=200).sync("a-1", 3, {"a-1": ("orders-0", "orders-1")})
    story.events.sort(key=lambda event: event.at_ms)
    placed = enumerate(story.events, 1)
    story.events = [event._replace(position=place, positions=(place,) if event.positions else ()) for place, event in placed]
    return story


def rows_of(story: Story, step_ms: int) -> list[tuple[int, dict[str, object]]]:
    """Rows of group_events, with their batch: one for each slice. Accepted heartbeats of a member and a slice share a row."""
    runs: dict[tuple[object, ...], list[Event]] = {}
    for event in story.events:
        batch = (event.at_ms - START_MS) // step_ms
        key = (batch, event.member_id, event.generation) if event.kind == HEARTBEAT and not event.error_code else (batch, event.position)
        runs.setdefault(key, []).append(event)
    made = []
    for (batch, *_), events in runs.items():
        first, last = events[0], events[-1]
        values = {packets.COLUMN_OF.get(name, name): value for name, value in first._asdict().items()}
        for name in ("protocols", "members", "assignments"):
            values[name] = [one._asdict() for one in values[name]]
        if first.kind == HEARTBEAT:
            beats = [event.received_ms - first.received_ms for event in events]
            gaps = np.diff(beats)
            values |= {"beats": beats, "positions": [event.position for event in events], "beat_count": len(beats)}
            values |= {"last_at": last.received_ms, "longest_gap_ms": int(gaps.max()) if len(gaps) else None}
        made.append((batch, row("group_events", **values | {"lines": len(events)})))
    return made


def lakehouse(folder: Path, story: Story, step_ms: int) -> Path:
    """A lakehouse that track has read. A commit has the rows of five minutes, or of a slice if that is longer."""
    empty_lakehouse(folder)
    batches: dict[int, list[dict[str, object]]] = {}
    for batch, made in rows_of(story, step_ms):
        batches.setdefault(batch * step_ms // (5 * MINUTE), []).append(made)
    for batch, rows in batches.items():
        write(folder, *rows, batch=batch, app=INGEST)
    track_is_at(folder, max(batches))
    return folder


def thin(folder: Path, policy: Policy = THIN, **options):
    now = datetime.now(timezone.utc) + timedelta(days=3_650)
    return next(done for done in maintain(folder, policy, now=now, **options) if done.table == GROUP_EVENTS).thinned


def beats_of(folder: Path) -> list[dict[str, object]]:
    """Rows of accepted heartbeats, by time."""
    rows = [one for one in table_rows(folder / GROUP_EVENTS) if one["kind"] == HEARTBEAT and one["error_code"] == 0]
    return sorted(rows, key=lambda one: (one["member_id"], one["received_at"]))


def events_of(folder: Path) -> list[Event]:
    """What a replay gives to the tracker."""
    table = DeltaTable(str(folder / GROUP_EVENTS)).to_pyarrow_table()
    found = []
    for batch in table.to_batches():
        for packet in packets.packed(Spread(1, 1), [batch], ""):
            found += events_in(packet.to_pandas())
    return found


def tables_of(story: Story, events: list[Event]) -> list[tuple[str, dict[str, object]]]:
    """What the tracker makes of events, with how far the story's log was read."""
    return [(one.table, one.values) for one in play([[*events, *story.heard(END + MINUTE)]])]


@pytest.fixture(scope="module")
def story() -> Story:
    return told()


@pytest.fixture(scope="module")
def thinned(story, tmp_path_factory) -> tuple[Path, list[dict[str, object]], object]:
    """A lakehouse after it was thinned, its rows of heartbeats before, and what was done."""
    folder = lakehouse(tmp_path_factory.mktemp("thinned") / "lake", story, MINUTE)
    before = beats_of(folder)
    return folder, before, thin(folder)


def test_rows_are_merged_and_keep_what_answers_need(thinned):
    folder, before, done = thinned
    after = beats_of(folder)
    assert done.rows == len(before) - len(after) > 60
    assert done.beats == sum(one["beat_count"] - len(one["beats"]) for one in after) > 1_000
    for name in ("beat_count", "lines"):
        assert sum(one[name] for one in after) == sum(one[name] for one in before)
    for pick, name in ((min, "received_at"), (max, "last_at"), (max, "longest_gap_ms")):
        for member in MEMBERS:
            assert pick(one[name] for one in after if one["member_id"] == member) == pick(
                one[name] for one in before if one["member_id"] == member
            )
    for one in after:
        assert len(one["beats"]) == len(one["positions"])
        assert one["last_at"] - one["received_at"] <= thinning.WINDOW + timedelta(minutes=1)


def test_heartbeats_near_anything_unusual_are_all_kept(thinned, story):
    folder, _, _ = thinned
    kept = {position for one in beats_of(folder) for position in one["positions"]}
    margin = thinning.MARGIN // timedelta(milliseconds=1)
    unusual = [event.at_ms for event in story.events if event.kind != HEARTBEAT or event.error_code]
    near = {
        e.position for e in story.events if e.kind == HEARTBEAT and not e.error_code and min(abs(e.at_ms - at) for at in unusual) <= margin
    }
    assert near
    assert near <= kept


@pytest.mark.parametrize("step_ms", [3_000, MINUTE, 30 * MINUTE])
def test_a_replay_of_thinned_events_makes_the_same_rows(story, tmp_path, step_ms):
    folder = lakehouse(tmp_path / "lake", story, step_ms)
    before = tables_of(story, events_of(folder))
    assert {"rebalances", "member_sessions"} <= {name for name, _ in before}
    assert thin(folder).beats > 1_000
    assert tables_of(story, events_of(folder)) == before == tables_of(story, story.events)


def test_questions_count_the_same_heartbeats(story, tmp_path):
    folder = lakehouse(tmp_path / "lake", story, MINUTE)
    question = load("heartbeats")
    given = values(question, {}, datetime.fromtimestamp((START_MS + END) / 1_000, timezone.utc))
    before = QuestionReader(folder).ask(question.for_duckdb(), given).by_name()
    thin(folder)
    assert QuestionReader(folder).ask(question.for_duckdb(), given).by_name() == before
    assert sum(one["heartbeats"] for one in before) == sum(event.kind == HEARTBEAT for event in story.events)


def test_lines_that_are_evidence_keep_their_time(story, tmp_path):
    folder = lakehouse(tmp_path / "lake", story, MINUTE)
    beats = [event for event in story.events if event.kind == HEARTBEAT and 10 * MINUTE < event.at_ms - START_MS < 11 * MINUTE]
    named = beats[7]
    evidence = f'[{{"source":"request","origin":"{named.origin}","position":{named.position}}}]'
    write(folder, finding(group_id=GROUP, occurred_at=named.at_ms, evidence=evidence), batch=10_000)
    times = line_times(QuestionReader(folder), [named.origin])
    thin(folder)
    left = line_times(QuestionReader(folder), [named.origin])
    assert left.keys() <= times.keys()
    assert (named.origin, named.position) in left
    assert sum((event.origin, event.position) in left for event in beats) < 10


def test_what_track_has_not_read_and_what_is_young_stays(story, tmp_path):
    folder = lakehouse(tmp_path / "lake", story, MINUTE)
    track_is_at(folder, 2)
    policy = Policy(thin_after=timedelta(minutes=5), grace=timedelta(0))
    thin(folder, policy)
    newest = max(one["last_at"] for one in beats_of(folder))
    whole = [one for one in beats_of(folder) if one["beat_count"] == len(one["beats"])]
    start = datetime.fromtimestamp(START_MS / 1_000, timezone.utc)
    assert all(one in whole for one in beats_of(folder) if one["received_at"] > start + timedelta(minutes=15))
    track_is_at(folder, 1_000)
    thin(folder, policy)
    young = [one for one in beats_of(folder) if one["last_at"] > newest - timedelta(minutes=5)]
    assert len(young) > 4
    assert all(one["beat_count"] == len(one["beats"]) for one in young)


def test_another_call_reads_nothing_again(story, tmp_path):
    folder = lakehouse(tmp_path / "lake", story, MINUTE)
    told_before = thin(folder, dry_run=True)
    assert thin(folder) == told_before
    assert thin(folder) == thinning.Thinned()  # the merged file is read once more
    version, after = DeltaTable(str(folder / GROUP_EVENTS)).version(), beats_of(folder)
    assert thin(folder) == thinning.Thinned()
    assert DeltaTable(str(folder / GROUP_EVENTS)).version() == version
    assert beats_of(folder) == after


def test_rows_without_a_rhythm_stay_as_they_are(tmp_path):
    story = Story()
    at = 0
    for gap in [3_000, 9_000, 1_000, 3_100] * 20:
        at += gap
        story.at(at).heartbeat("a-1", 1)
    folder = lakehouse(tmp_path / "lake", story, MINUTE)
    before = beats_of(folder)
    thin(folder)
    assert [(one["beats"], one["positions"]) for one in beats_of(folder)] == [(one["beats"], one["positions"]) for one in before]


@pytest.mark.parametrize("point", range(3))
def test_a_killed_call_leaves_a_sound_table(story, tmp_path, point):
    folder = lakehouse(tmp_path / "lake", story, MINUTE)
    before = beats_of(folder)
    where = ("jobs.lakehouse.delta_files.sync", "jobs.lakehouse.delta_files.replace", "jobs.lakehouse.delta_files.mark")[point]
    module, _, name = where.rpartition(".")
    script = (
        f"import os, signal, {module} as m\n"
        f"m.{name} = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from datetime import datetime, timedelta, timezone\nfrom pathlib import Path\n"
        "from jobs.lakehouse.maintain import Policy, maintain\n"
        f"list(maintain(Path({str(folder)!r}), Policy(thin_after=timedelta(0)), now=datetime(2100, 1, 1, tzinfo=timezone.utc)))"
    )
    ended = subprocess.run([sys.executable, "-c", script], check=False, env=os.environ | {"PYTHONPATH": str(Path.cwd())})
    assert ended.returncode == -signal.SIGKILL
    assert sum(one["beat_count"] for one in beats_of(folder)) == sum(one["beat_count"] for one in before)
    if point < 2:
        assert beats_of(folder) == before
    thin(folder)
    assert sum(one["beat_count"] for one in beats_of(folder)) == sum(one["beat_count"] for one in before)
    assert len(beats_of(folder)) < 20


def test_every_count_of_gaps_adds_up():
    chance = random.Random(2)
    for _ in range(300):
        gaps = [chance.randrange(2_001, 4_000) for _ in range(chance.randrange(1, 40))]
        beats = np.append(0, np.cumsum(gaps))
        kept = sorted({0, len(gaps), *chance.sample(range(len(beats)), chance.randrange(len(beats)))})
        counts = gap_counts(np.diff(beats[kept]), len(gaps), max(gaps))
        assert counts.sum() == len(gaps)
        assert (np.diff(beats[kept]) <= counts * max(gaps)).all()
