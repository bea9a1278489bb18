"""jobs/pipeline/stages.py without a JVM: what is said if Spark ends while the queries start."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from jobs.common.errors import QueryFailedError
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline import stages
from jobs.pipeline.stages import Inputs, Stages


def session_of(process):
    """As much of a SparkSession as tells which process its JVM is."""
    return SimpleNamespace(sparkContext=SimpleNamespace(_gateway=SimpleNamespace(proc=process)))


@pytest.fixture
def killed():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process.kill()
    yield process
    process.communicate()


def start(session, folder, monkeypatch, error):
    errors = error if isinstance(error, list) else [error]

    def fail(*_, **__):
        raise errors.pop(0)

    monkeypatch.setattr(stages, "start_track", fail)
    Stages(session, Lakehouse(folder), Settings(), Inputs(), once=True, watch=SimpleNamespace(tracked=None))


def test_a_jvm_that_is_killed_while_the_queries_start_is_told_in_one_line(killed, tmp_path, monkeypatch):
    with pytest.raises(QueryFailedError, match="Spark failed: its JVM was killed"):
        start(session_of(killed), tmp_path, monkeypatch, ConnectionRefusedError())


def test_a_query_is_started_again_where_the_store_cut_a_file_of_its_checkpoint(tmp_path, monkeypatch):
    errors = [RuntimeError("MismatchedInputException: No content to map due to end-of-input"), ValueError("a bug")]
    with pytest.raises(ValueError, match="a bug"):
        start(session_of(None), tmp_path, monkeypatch, errors)
    assert errors == []


def test_another_error_stays_what_it_is(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="a bug"):
        start(session_of(None), tmp_path, monkeypatch, ValueError("a bug"))
