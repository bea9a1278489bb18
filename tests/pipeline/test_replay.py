"""Copying events into a new lakehouse, and letting two lakehouses change places: without Spark."""

import os
import shutil
import subprocess
import sys
import time
from contextlib import nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from deltalake import DeltaTable

from jobs.answers.report import read_report
from jobs.cli import entry
from jobs.common.errors import UserError
from jobs.common.exit_codes import UNUSABLE
from jobs.common.settings import Settings
from jobs.lakehouse import event_copy, locks, opening, swap, tables
from jobs.lakehouse import folder as lakehouses
from jobs.lakehouse.event_copy import EventCopy
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.followers import files_after
from jobs.lakehouse.maintain import Policy, maintain
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import replay as replaying
from jobs.pipeline.replay import replay
from jobs.pipeline.tracking import track
from schemas.names import GROUP_EVENTS
from schemas.tables import TABLES, TRACK_TABLES
from tests.effort import long
from tests.lakehouse.rows import DAY, empty_lakehouse, line, new_lakehouse, rebalance, row, track_is_at, write

pytestmark = pytest.mark.slow

NOW = datetime.fromtimestamp(DAY / 1_000, timezone.utc) + timedelta(days=1)
SHIPPED = "server@0123456789ab.log"


def append(lake, batch, *events, app="rebalance-ingest"):
    tables.append(lake / GROUP_EVENTS, track.to_arrow(list(events), TABLES[GROUP_EVENTS], batch), app, batch)


@pytest.fixture(scope="module")
def maintained(tmp_path_factory):
    """Thirty batches of seven groups, each with its clock, of which no file has only one batch."""
    lake = tmp_path_factory.mktemp("maintained") / "lake"
    empty_lakehouse(lake)
    for batch in range(30):
        append(lake, batch, *batch_of(batch))
    track_is_at(lake, 29)
    work(lake)
    assert len(DeltaTable(str(lake / GROUP_EVENTS)).file_uris()) == 1
    return lake


@pytest.fixture
def lake(maintained, tmp_path):
    """A copy of it."""
    return shutil.copytree(maintained, tmp_path / "lake")


def work(lake, **policy):
    for _ in maintain(lake, Policy(**policy), now=NOW):
        pass


def batch_of(batch, origin="server.log"):
    events = [line(group=f"group-{(batch + number) % 7}", at=batch * 1_000 + number, position=number, origin=origin) for number in range(5)]
    return [*events, line(group=None, at=batch * 1_000 + 999, kind="clock", origin=origin)]


@pytest.fixture(autouse=True)
def in_small_parts(monkeypatch):
    monkeypatch.setattr(event_copy, "CHUNK_ROWS", 20)
    monkeypatch.setattr(event_copy, "RANGE_ROWS", 50)


def copy_of(lake, folder):
    new = tables.ensure_table(folder, GROUP_EVENTS, TABLES[GROUP_EVENTS])
    return EventCopy(lake / GROUP_EVENTS, new, folder / "_spill"), new


def copied(table):
    """(batch, position or None for a clock) of the rows, file by file as they were written."""
    columns = ["batch_id", "kind", "position", "origin"]
    new = files_after(opening.opened(table), {})
    return [event_copy.pa.parquet.read_table(table / one.path).select(columns).to_pylist() for one in new]


def content(table):
    return sorted(map(repr, table_rows(table)))


def test_batches_come_out_whole_and_in_order_of_files_that_mix_them(lake, tmp_path):
    copy, new = copy_of(lake, tmp_path / "new")
    assert [done for done, _ in copy.run()][-1] == 180
    assert content(new) == content(lake / GROUP_EVENTS)
    files = [{row["batch_id"] for row in file} for file in copied(new)]
    assert len(files) > 5
    assert sum(map(len, files)) == 30, "no batch lies in two files"
    assert [batch for file in files for batch in sorted(file)] == list(range(30))


def test_a_copy_goes_on_where_it_was_and_takes_up_what_came_since(lake, tmp_path):
    ended, _ = next(iter(copy_of(lake, tmp_path / "new")[0].run()))  # and no further
    assert 0 < ended < 180
    append(lake, 30, *batch_of(30))
    work(lake)  # puts them in order
    append(lake, 31, *batch_of(31))
    copy, new = copy_of(lake, tmp_path / "new")
    assert next(iter(copy.run()))[0] > ended
    for _ in copy_of(lake, tmp_path / "new")[0].run():
        pass
    batches = [batch for file in copied(new) for batch in sorted({row["batch_id"] for row in file})]
    assert batches == list(range(32))
    assert DeltaTable(str(new)).count() == 32 * 6
    assert opening.opened(new).transaction_version("rebalance-ingest") == 31
    before = copied(new)
    assert list(copy_of(lake, tmp_path / "new")[0].run()) == []
    assert copied(new) == before


def test_a_copy_begins_anew_where_events_were_deleted_meanwhile(lake, tmp_path):
    next(iter(copy_of(lake, tmp_path / "new")[0].run()))  # and no further
    work(lake, keep=timedelta(seconds=5))
    with pytest.raises(UserError, match="begin again in a new folder"):
        copy_of(lake, tmp_path / "new")
    assert [done for done, _ in copy_of(lake, tmp_path / "newer")[0].run()][-1] == opening.opened(lake / GROUP_EVENTS).count()


@pytest.mark.slow
@pytest.mark.parametrize("commits", [(36,), long((1, 17, 36))])
def test_a_copy_that_is_killed_again_and_again_has_every_event_once(lake, tmp_path, commits):
    for batch in range(30, 40):  # commits of their own
        append(lake, batch, *batch_of(batch))
    script = (
        "import sys; from pathlib import Path; from jobs.lakehouse import event_copy, tables; from schemas.tables import TABLES;"
        "event_copy.CHUNK_ROWS = 1;"
        "old, new = map(Path, sys.argv[1:]); table = tables.ensure_table(new, 'group_events', TABLES['group_events']);"
        "[None for _ in event_copy.EventCopy(old / 'group_events', table, new / '_spill').run()]"
    )
    command = [sys.executable, "-c", script, str(lake), str(tmp_path / "new")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    log = tmp_path / "new" / GROUP_EVENTS / "_delta_log"
    for reached in commits:  # of the copy's 42, the last ten follow those of the old table
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
            while not (log / f"{reached:020}.json").exists():
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
    subprocess.run(command, env=environment, check=True)
    assert content(tmp_path / "new" / GROUP_EVENTS) == content(lake / GROUP_EVENTS)
    batches = [batch for file in copied(tmp_path / "new" / GROUP_EVENTS) for batch in sorted({row["batch_id"] for row in file})]
    assert batches == list(range(40))


def test_two_ingest_queries_with_the_same_numbers_are_told_apart(tmp_path, monkeypatch):
    lake = empty_lakehouse(tmp_path / "lake")
    for batch in range(5):
        append(lake, batch, *batch_of(batch))
    for batch in range(5):  # later lines, from a topic
        shifted = [{**event, "occurred_at": DAY + 100_000 + batch} for event in batch_of(batch, SHIPPED)]
        append(lake, batch, *shifted, app="rebalance-ingest-topic")
    work(lake)
    monkeypatch.setattr(event_copy, "CHUNK_ROWS", 1)
    copy, new = copy_of(lake, tmp_path / "new")
    for _ in copy.run():
        pass
    told = [(row["origin"], row["batch_id"]) for file in copied(new) for row in file]
    assert list(dict.fromkeys(told)) == [("server.log", n) for n in range(5)] + [(SHIPPED, n) for n in range(5)]
    assert opening.opened(new).transaction_version("rebalance-ingest-topic") == 4


def test_events_of_another_lakehouse_are_not_mixed_in(lake, tmp_path):
    other = new_lakehouse(tmp_path / "other")
    append(other, 0, *batch_of(0))
    with pytest.raises(UserError, match="has events that are not from"):
        copy_of(lake, other)


def two_lakehouses(folder):
    """An old one that was at work, and one that replay has made of it."""
    old, new = Lakehouse(empty_lakehouse(folder / "lake")), Lakehouse(folder / "new")
    write(old.folder, rebalance())
    for checkpoint in ("ingest/offsets/0", "ingest-topic/offsets/7", "track/offsets/0"):
        path = old.folder / "_checkpoints" / checkpoint
        path.parent.mkdir(parents=True)
        path.write_text("old")
    (old.spool / "slices").mkdir(parents=True)
    (old.spool / "state.json").write_text("spool")
    old.layout.write_text("{}")
    with lakehouses.opened(new.folder, Settings(), replaying=True):
        swap.Marker(str(old.folder.resolve())).write(new)
    (new.track_checkpoint / "offsets").mkdir(parents=True)
    for name in (GROUP_EVENTS, *TRACK_TABLES):
        tables.ensure_table(new.folder, name, TABLES[name])
    for _ in range(2):  # as after a kill
        swap.carry_over(old, new, {GROUP_EVENTS, *TRACK_TABLES})
    return old, new


def is_new(folder):
    assert DeltaTable(str(folder / "rebalances")).count() == 0
    with lakehouses.opened(folder, Settings()) as house:
        assert not list((house.track_checkpoint / "offsets").iterdir())
        assert (house.ingest_checkpoint / "offsets" / "0").read_text() == "old"
        assert (folder / "_checkpoints" / "ingest-topic" / "offsets" / "7").read_text() == "old"
        assert (house.spool / "state.json").read_text() == "spool"
    assert {name for name in TABLES if DeltaTable.is_deltatable(str(folder / name))} == set(TABLES)
    return True


def is_old(folder):
    return DeltaTable(str(folder / "rebalances")).count() == 1


def test_a_replayed_lakehouse_has_the_account_of_all_lines(lake, tmp_path, monkeypatch):
    """Without a swap too: a report that lacks it would not say which lines were not understood."""
    monkeypatch.setattr(replaying, "started_spark", lambda *_, **__: nullcontext())
    monkeypatch.setattr(replaying, "_track", lambda *_: None)
    account = {"cluster": "c", "broker": "b1", "origin": "server.log", "lines_read": 9, "skipped": 2, "events": 6, "quarantined": 1}
    refused = {"cluster": "c", "broker": "b1", "origin": "server.log", "position": 9, "reason": "TRUNCATED", "raw": "Group"}
    write(lake, row("input_lines", **account), row("quarantine", **refused), batch=50)
    old, new = Lakehouse(lake), tmp_path / "new"
    old.inputs.parent.mkdir(exist_ok=True)
    lakehouses.remember_input(old, tmp_path)
    for _ in range(2):  # another time it reads what was added since
        replay(lake, new, settings=Settings(), spark=object())
        for name in ("input_lines", "quarantine"):
            assert content(new / name) == content(lake / name) != []
        assert [cluster["lines"] for cluster in read_report(new).clusters] == [cluster["lines"] for cluster in read_report(lake).clusters]
        assert lakehouses.known_inputs(new) == [tmp_path]
        write(lake, row("input_lines", **account), batch=51)
    assert not (new / "pipeline_health").exists()


def test_a_replay_is_the_remedy_for_tables_that_are_damaged(lake, tmp_path, monkeypatch):
    monkeypatch.setattr(replaying, "started_spark", lambda *_, **__: nullcontext())
    monkeypatch.setattr(replaying, "_track", lambda *_: None)
    write(lake, rebalance())
    for damaged in (*(lake / "rebalances").glob("*.parquet"), lake / "rebalances" / "_delta_log" / f"{0:020d}.json"):
        damaged.write_bytes(damaged.read_bytes()[:50])
        assert replay(lake, tmp_path / "new", settings=Settings(), spark=object()).without_events == 0


@pytest.mark.parametrize("at_once", [True, False])
def test_a_swap(tmp_path, monkeypatch, at_once):
    old, new = two_lakehouses(tmp_path)
    if not at_once:
        monkeypatch.setattr(swap, "exchange", lambda *_: False)
    before = swap.swap(old.folder, new.folder)
    assert is_new(old.folder)
    assert is_old(before)
    assert not new.folder.exists()
    assert before.name == f"lake.before-model-{lakehouses.MODEL_VERSION}"


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("steps", range(3))
def test_a_swap_that_was_killed_is_finished_by_the_same_command(tmp_path, monkeypatch, at_once, steps):
    """`steps`: how many of the changes to folders and marker were done."""
    if at_once and not swap.exchange(*exchangeable(tmp_path)):
        pytest.skip("this system cannot exchange folders")
    old, new = two_lakehouses(tmp_path)
    with monkeypatch.context() as patch:
        if not at_once:
            patch.setattr(swap, "exchange", lambda *_: False)
        killed_after(patch, steps, at_once=at_once)
        with pytest.raises(KeyboardInterrupt):
            swap.swap(old.folder, new.folder)
    run_on = lakehouses.opened(old.folder if steps else new.folder, Settings())
    with pytest.raises(UserError, match="rebalance replay"), run_on:
        pass
    if swap.resume(old.folder, new.folder) is None:
        swap.swap(old.folder, new.folder)
    assert is_new(old.folder)
    assert is_old(swap.before_of(old.folder))
    assert not new.folder.exists()
    assert swap.resume(old.folder, new.folder) is None


def test_the_command_finishes_a_swap_and_says_where_the_old_lakehouse_is(tmp_path, monkeypatch, capsys):
    old, new = two_lakehouses(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(swap, "exchange", lambda *_: False)
        killed_after(patch, 1, at_once=False)
        with pytest.raises(KeyboardInterrupt):
            swap.swap(old.folder, new.folder)
    command = ["replay", "--from", str(old.folder), "--lakehouse", str(new.folder), "--swap"]
    assert entry.main(command) == 0
    assert f"The old one is {swap.before_of(old.folder)}" in capsys.readouterr().out
    assert is_new(old.folder)
    assert entry.main(["replay", "--from", str(tmp_path / "nowhere"), "--lakehouse", str(tmp_path / "new")]) == UNUSABLE
    assert "no lakehouse at" in capsys.readouterr().err


def exchangeable(folder):
    for name in ("one", "other"):
        (folder / name).mkdir()
    return folder / "one", folder / "other"


def killed_after(patch, steps, *, at_once):
    """Lets so many changes of names happen, and then what a kill does: nothing more."""
    left = [steps]

    def counted(change):
        def changed(*arguments):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            return change(*arguments)

        return changed

    patch.setattr(Path, "rename", counted(Path.rename))
    patch.setattr(Path, "unlink", counted(Path.unlink))
    if at_once:
        patch.setattr(swap, "exchange", counted(swap.exchange))


def test_what_cannot_be_swapped(tmp_path):
    old, new = two_lakehouses(tmp_path)
    (tmp_path / "link").symlink_to(old.folder)
    with pytest.raises(UserError, match="symbolic links"):
        swap.check(tmp_path / "link", new.folder)
    swap.before_of(old.folder).mkdir()
    with pytest.raises(UserError, match="from an earlier swap"):
        swap.check(old.folder, new.folder)


@pytest.mark.parametrize("swapped", [True, False])
def test_what_cannot_be_replayed(lake, tmp_path, swapped):
    def refused(old, new):
        with pytest.raises(UserError) as refusal:
            replay(old, new, settings=Settings(), swap_them=swapped, spark=object())
        assert "\n" not in str(refusal.value)
        return str(refusal.value)

    assert "no lakehouse" in refused(tmp_path / "nowhere", tmp_path / "new")
    assert "another folder" in refused(lake, lake)
    assert "already holds another lakehouse" in refused(lake, empty_lakehouse(tmp_path / "other"))
    house = Lakehouse(tmp_path / "begun")
    house.replay.parent.mkdir(parents=True)
    swap.Marker("/another/lake").write(house)
    assert "events of /another/lake" in refused(lake, house.folder)
    with locks.held(Lakehouse(lake).maintain_lock, ""):
        assert "is being maintained" in refused(lake, tmp_path / "new")
    if swapped:
        with locks.held(Lakehouse(lake).lock, ""):
            assert "wait for it or stop it" in refused(lake, tmp_path / "new")


def test_a_jvm_that_outlived_its_pipeline_holds_the_swap_off(lake, tmp_path):
    """Another process holds the lock as Java does: fcntl's, not flock's."""
    script = (
        "import fcntl, sys; file = open(sys.argv[1], 'a'); fcntl.lockf(file, fcntl.LOCK_EX); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(Lakehouse(lake).lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        with pytest.raises(UserError, match="stop it first"):
            replay(lake, tmp_path / "new", settings=Settings(), swap_them=True, spark=object())
        process.stdin.close()
