"""What the jobs that spark-submit starts say of themselves. Spark is a stand-in here; tests/cluster has the real one."""

from functools import partial
from types import SimpleNamespace

import pytest

from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, check_layout, working
from jobs.pipeline import alone
from schemas.names import INGEST, TRACK
from tests.lakehouse.rows import empty_lakehouse, line, rebalance, write
from tests.logs.log_makers import write as write_log


@pytest.fixture
def lake(tmp_path, monkeypatch):
    """A lakehouse to which each query adds an event and a rebalance."""
    folder = empty_lakehouse(tmp_path / "lake")
    check_layout(Lakehouse(folder), Settings())
    query = SimpleNamespace(processAllAvailable=lambda: None, stop=lambda: None, exception=lambda: None)

    def start(*_, **__):
        write(folder, line(), rebalance(), batch=7)
        query.awaitTermination = lambda: None
        return query

    monkeypatch.setattr(alone, "spark_session", lambda *_, **__: None)
    monkeypatch.setattr(alone, "check_executors", lambda *_, **__: None)
    monkeypatch.setattr(alone, "tasks_as_workers", lambda *_, **__: None)
    monkeypatch.setattr(alone, "start_ingest", start)
    monkeypatch.setattr(alone, "start_track", start)
    return folder


@pytest.mark.parametrize(("once", "until"), [(True, ""), (False, ", until it is stopped")])
def test_a_job_says_what_it_does_and_what_became_of_it(lake, capsys, once, until):
    alone.track(lake, settings=Settings(), once=once)
    doing = f"tracking the events of {lake} into {lake}"
    assert capsys.readouterr().out.splitlines() == [f"rebalance: {doing}{until}", f"rebalance: done {doing}: 1 rebalances"]


def test_two_jobs_of_a_kind_are_refused_and_others_go_on(lake, tmp_path):
    logs = tmp_path / "logs"
    write_log(logs / "app.log", [b"127.0.0.1 - - [21/Nov/2026:06:00:00 +0000] GET / 200"])
    ingest = partial(alone.ingest_files, logs, lake, settings=Settings(), once=True)
    track = partial(alone.track, lake, settings=Settings(), once=True)
    for query, refused, other in ((INGEST, ingest, track), (TRACK, track, ingest)):
        with working(Lakehouse(lake), query):
            with pytest.raises(UserError, match="another process is working"):
                refused()
            other()


def test_an_input_of_which_nothing_is_understood_is_named(lake, capsys, tmp_path):
    logs = tmp_path / "logs"
    write_log(logs / "app.log", [b"127.0.0.1 - - [21/Nov/2026:06:00:00 +0000] GET / 200"])
    alone.ingest_files(logs, lake, settings=Settings(), once=True)
    first, said, last = capsys.readouterr().out.splitlines()
    assert first == f"rebalance: reading {logs} into {lake}"
    assert said == f"rebalance: nothing in {logs} was understood: `rebalance inspect {logs}` shows what its lines are"
    assert last.startswith(f"rebalance: done reading {logs} into {lake}: ")
