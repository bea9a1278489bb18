"""jobs/pipeline/stages.py without a JVM: what is said if Spark ends while the queries start."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.common import exit_codes
from jobs.common.errors import QueryFailedError
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline import stages
from jobs.pipeline.stages import Inputs, Stages
from tests.cli.saying import lines_of_the_command

LOG = Path(__file__).parents[1] / "data/recordings/kafka-3.9.1/broker-1/server.log.gz"


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


def test_a_signal_that_ends_the_jvm_first_is_told_as_what_it_is(tmp_path):
    """Whoever ends a group of processes ends both, and the JVM is often gone first."""
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\n[ $1 = -version ] && echo 'openjdk version \"17.0.15\"' >&2 && exit\nkill -TERM $COMMAND\nexit 143\n")
    java.chmod(0o755)
    code = "import sys; from jobs.pipeline import at_once; from jobs.cli import main; at_once.MOST_LINES = 3; sys.exit(main(sys.argv[1:]))"
    command = ["sh", "-c", 'COMMAND=$$ exec "$0" -c "$@"', sys.executable, code, "explain", str(LOG)]
    ended = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"JAVA_HOME": str(java.parents[1])}, check=False)
    assert ended.returncode == exit_codes.ENDED_BY_SIGNAL + signal.SIGTERM
    assert "rebalance: stopped before the end of the input" in lines_of_the_command(ended.stderr)
