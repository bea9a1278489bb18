"""What a command refuses, or fails with, in one line: folders of others, a changed time zone, full disks."""

import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli import entry
from jobs.cli.run import run_and_account
from jobs.common import exit_codes
from jobs.common.disks import told_if_full
from jobs.common.errors import DiskFullError, QueryFailedError, UserError
from jobs.common.exit_codes import DISK_FULL, NOTHING_UNDERSTOOD, PARTLY_READ, UNUSABLE
from jobs.common.settings import Settings
from jobs.lakehouse.folder import Lakehouse, opened
from jobs.logs.spool import Spool, SpoolSettings
from jobs.pipeline import run as pipeline
from tests.cli.saying import lines_of_the_command
from tests.lakehouse.rows import empty_lakehouse, line, rebalance
from tests.lakehouse.rows import write as write_rows
from tests.logs.log_makers import other, write

COUNTS = {"lines_read": 0, "skipped": 0, "events": 0, "quarantined": 0, "rebalances": 0, "findings": 0}


@pytest.fixture
def logs(tmp_path):
    write(tmp_path / "logs" / "c" / "b1" / "server.log", [other(ms) for ms in range(100)])
    return tmp_path / "logs"


def ended(capsys, *arguments):
    """The exit code of a command, and its lines on stderr."""
    code = entry.main([str(argument) for argument in arguments])
    return code, [line.removeprefix("rebalance: ") for line in lines_of_the_command(capsys.readouterr().err)]


def content(folder):
    return sorted((str(path.relative_to(folder)), path.is_file() and path.read_bytes()) for path in folder.rglob("*"))


# Folders.


@pytest.mark.parametrize("holds", ["report.xlsx", "orders/_delta_log/00000000000000000000.json", "_checkpoints/other", "_logs/app.log"])
@pytest.mark.parametrize(
    "command",
    [
        ["run", "--once", "--input", "LOGS", "--lakehouse", "LAKE"],
        ["run", "--kafka", "127.0.0.1:1", "--lakehouse", "LAKE"],
        ["report", "--lakehouse", "LAKE"],
        ["watch", "--lakehouse", "LAKE"],
        ["ask", "why", "--lakehouse", "LAKE"],
        ["evidence", "f1", "--lakehouse", "LAKE"],
        ["check", "--lakehouse", "LAKE"],
        ["health", "--lakehouse", "LAKE"],
        ["maintain", "--lakehouse", "LAKE"],
        ["replay", "--from", "LAKE", "--lakehouse", "NEW"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_the_folder_of_another_tool_is_left_as_it_is(capsys, tmp_path, logs, holds, command):
    lake = tmp_path / "lake"
    (lake / holds).parent.mkdir(parents=True)
    (lake / holds).write_text("{}")
    before = content(lake)
    places = {"LOGS": str(logs), "LAKE": str(lake), "NEW": str(tmp_path / "new")}
    code, said = ended(capsys, *(places.get(word, word) for word in command))
    assert code == UNUSABLE
    assert len(said) == 1
    assert str(lake) in said[0]
    assert content(lake) == before
    assert not (tmp_path / "new").exists()


def test_an_empty_disk_is_no_folder_of_another_tool(tmp_path):
    (tmp_path / "lake" / "lost+found").mkdir(parents=True)
    (tmp_path / "lake" / ".snapshot").mkdir()
    with opened(tmp_path / "lake", Settings()):
        pass
    with opened(tmp_path / "lake", Settings()):  # now it is ours
        pass


def test_a_lakehouse_and_an_input_in_each_other(capsys, tmp_path, logs, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # it ends there
    lake = tmp_path / "lake"
    with opened(lake, Settings()):
        pass
    code, said = ended(capsys, "run", "--input", lake, "--lakehouse", tmp_path / "other")
    assert (code, said) == (UNUSABLE, [f"the input {lake} is a lakehouse, which holds no logs: give the folder of the logs"])
    code, said = ended(capsys, "run", "--input", logs, "--lakehouse", logs)
    assert (code, said) == (UNUSABLE, [f"--input and --lakehouse are the same folder {logs}: give another folder for the tables"])
    _, said = ended(capsys, "run", "--input", logs, "--lakehouse", logs / "lake")
    assert said[0] == f"the lakehouse {logs / 'lake'} lies inside the input {logs}: its own files are not read as logs"
    write(lake / "logs" / "server.log", [other(1)])
    _, said = ended(capsys, "run", "--input", lake / "logs", "--lakehouse", lake)
    assert said[0].startswith(f"the input {lake / 'logs'} lies inside the lakehouse {lake}: ")


# Time zones.


def test_a_run_in_another_time_zone_is_refused_and_changes_nothing(capsys, tmp_path, logs):
    with opened(tmp_path / "lake", Settings()) as house:
        for _ in Spool(logs, house.spool, settings=SpoolSettings(timezone="Europe/Berlin")).slices():
            pass
    before = content(house.spool)
    code, said = ended(capsys, "run", "--once", "--input", logs, "--lakehouse", tmp_path / "lake")
    assert code == UNUSABLE
    (line,) = said
    assert line.startswith("the logs of cluster c were read with time zone Europe/Berlin, not UTC, and their lines keep their times: ")
    assert "give --timezone Europe/Berlin as before; to read all lines again with UTC, give a new lakehouse" in line
    assert content(house.spool) == before


# Before Spark.


@pytest.fixture
def without_spark(monkeypatch):
    """A run that would start Spark fails."""
    monkeypatch.setattr(pipeline, "ensure_spark", lambda *_: None)
    monkeypatch.setattr(pipeline, "started_spark", None)


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize(
    "line",
    [
        b"127.0.0.1 - - [21/Nov/2026:06:00:00 +0000] GET / 200",
        b"06:00:00,000 INFO [GroupCoordinator 1]: Stabilized group g generation 2 (__consumer_offsets-3)",  # no date: it would be refused
        b'{"level": "info", "time": "2026-11-21T06:00:00Z", "msg": "hello"}',
    ],
)
def test_an_input_of_which_nothing_is_understood_starts_no_spark_and_leaves_no_folder(capsys, tmp_path, line):
    logs = tmp_path / "logs"
    write(logs / "app.log", [line] * 20)
    code, said = ended(capsys, "run", "--once", "--input", logs, "--lakehouse", tmp_path / "lake")
    assert code == NOTHING_UNDERSTOOD
    assert [text.partition(":")[0] for text in said] == [
        f"nothing in {logs} was understood",
        f"`rebalance inspect {logs}` shows what its lines are",
    ]
    assert not (tmp_path / "lake").exists()


@pytest.mark.usefixtures("without_spark")
def test_a_zone_of_nobody_is_refused_before_spark_and_leaves_no_folder(capsys, tmp_path, logs):
    code, said = ended(capsys, "run", "--once", "--input", logs, "--lakehouse", tmp_path / "lake", "--timezone", "b7=Asia/Tokyo")
    assert (code, said) == (UNUSABLE, ["--timezone b7=…: no log here is of b7, but of b1, c"])
    assert not (tmp_path / "lake").exists()
    for command in ("inspect", "explain"):
        code, said = ended(capsys, command, logs, "--timezone", "b7=Asia/Tokyo")
        assert (code, said) == (UNUSABLE, ["--timezone b7=…: no log here is of b7, but of b1, c"])


@pytest.mark.usefixtures("without_spark")
def test_a_lakehouse_that_was_there_stays(capsys, tmp_path):
    lake = tmp_path / "lake"
    with opened(lake, Settings()):
        pass
    write(tmp_path / "logs" / "app.log", [b"127.0.0.1 - - [21/Nov/2026:06:00:00 +0000] GET / 200"])
    assert ended(capsys, "run", "--once", "--input", tmp_path / "logs", "--lakehouse", lake)[0] == NOTHING_UNDERSTOOD
    assert (lake / "_checkpoints").is_dir()


@pytest.mark.usefixtures("without_spark")
def test_an_input_that_is_understood_starts_spark(capsys, tmp_path, logs):
    code, (said,) = ended(capsys, "run", "--once", "--input", logs, "--lakehouse", tmp_path / "lake")
    assert (code, said.partition(":")[0]) == (exit_codes.FAILED, "TypeError"), "there is none"


# Full disks: /dev/full refuses every write as a full disk does.


def test_a_full_disk_under_a_lakehouse(capsys, tmp_path, logs):
    house = Lakehouse(tmp_path / "lake")
    house.layout.parent.mkdir(parents=True)
    house.lock.touch()
    Path(f"{house.layout}.new").symlink_to("/dev/full")
    code, said = ended(capsys, "run", "--once", "--input", logs, "--lakehouse", house.folder)
    assert code == DISK_FULL
    place = f"{house.folder} or {tempfile.gettempdir()}"  # neither is full
    assert said == [f"the disk is full: {place}; make room there, then repeat the command: it goes on where it stopped"]


def test_a_full_disk_for_temporary_files(capsys, tmp_path, monkeypatch):
    """An archive is unpacked there."""
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.add(__file__, "server.log")
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: open("/dev/full", "wb", buffering=0))  # noqa: PTH123, SIM115
    assert ended(capsys, "inspect", tmp_path / "x.tar.gz") == (DISK_FULL, [f"{tempfile.gettempdir()}: No space left on device"])


def test_a_full_standard_output():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-m", "jobs.cli", "ask"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == DISK_FULL
    assert done.stderr == "rebalance: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize(
    "error",
    [
        OSError(28, "No space left on device"),
        OSError(122, "Disk quota exceeded"),
        QueryFailedError("track", "java.io.IOException: No space left on device", Path("log")),
    ],
)
def test_a_full_disk_is_recognised_behind_other_errors(tmp_path, error):
    wrapped = UserError("cannot write to the lakehouse")
    wrapped.__context__, wrapped.__suppress_context__ = error, True
    with pytest.raises(DiskFullError, match="make room there"), told_if_full(tmp_path):
        raise wrapped


def test_other_errors_are_not_taken_for_a_full_disk(tmp_path):
    with pytest.raises(UserError, match="a line says"), told_if_full(tmp_path):
        raise UserError("a line says: No space left on device")
    with pytest.raises(OSError, match="Permission"), told_if_full(tmp_path):
        raise OSError(13, "Permission denied")


# Other errors.


@pytest.mark.parametrize("command", [["explain", "/dev/zero"], ["inspect", "/dev/zero"], ["run", "--once", "--input", "/dev/zero"]])
def test_a_device_is_no_log(capsys, tmp_path, command):
    into = ["--lakehouse", tmp_path / "lake"] if command[0] == "run" else []
    code, (said,) = ended(capsys, *command, *into)
    assert (code, said.removeprefix("cannot read ")) == (UNUSABLE, "/dev/zero: it is a device, not a file")


@pytest.mark.parametrize("endpoint", ["127.0.0.1:9000", "http://", "http://127.0.0.1:99999", "http://127.0.0.1:port"])
def test_an_endpoint_that_is_no_url(capsys, monkeypatch, endpoint):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    code, said = ended(capsys, "report", "--lakehouse", "s3://lake/x")
    assert (code, said) == (UNUSABLE, ["AWS_ENDPOINT_URL: give a URL, such as http://127.0.0.1:9000"])


@pytest.mark.parametrize(("table", "remedy"), [("rebalances", "`rebalance replay`"), ("group_events", "a new lakehouse")])
def test_a_data_file_that_is_damaged(capsys, tmp_path, table, remedy):
    lake = empty_lakehouse(tmp_path / "lake")
    write_rows(lake, line(), rebalance())
    for path in (lake / table).glob("*.parquet"):
        path.write_bytes(path.read_bytes()[:100])
    code, (said,) = ended(capsys, "ask", "rebalances" if table == "rebalances" else "groups", "--lakehouse", lake)
    assert (code, f"/{table}/" in said, ".parquet is damaged, or gone (" in said, remedy in said) == (UNUSABLE, True, True, True)


@pytest.mark.parametrize("left", [b"{", None])
def test_a_log_of_a_table_that_is_damaged(capsys, tmp_path, left):
    lake = empty_lakehouse(tmp_path / "lake")
    write_rows(lake, line(), rebalance())
    log = lake / "rebalances" / "_delta_log"
    first = log / f"{0:020d}.json"
    first.unlink() if left is None else first.write_bytes(left)
    code, (said,) = ended(capsys, "ask", "rebalances", "--lakehouse", lake)
    assert (code, said.startswith(f"{log} is damaged, or gone ("), "`rebalance replay`" in said) == (UNUSABLE, True, True)


def test_an_error_that_nobody_expected_is_a_line_and_shows_where_it_arose_on_request(capsys, monkeypatch, tmp_path):
    def broken(*_, **__):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr("jobs.cli.inspect.load", broken)
    told = "ZeroDivisionError: division (set REBALANCE_TRACEBACK=1 to see where, and please report it)"
    assert ended(capsys, "inspect", tmp_path) == (exit_codes.FAILED, [told])
    monkeypatch.setenv("REBALANCE_TRACEBACK", "1")
    code, said = ended(capsys, "inspect", tmp_path)
    assert (code, said[-1], "in broken" in "".join(said)) == (exit_codes.FAILED, told, True)


# Exit codes.


@pytest.mark.parametrize("command", exit_codes.SPECIAL)
def test_help_names_the_codes_that_mean_something_else(command):
    shown = CliRunner().invoke(entry.cli, [command, "--help"], prog_name="rebalance").output
    assert exit_codes.line(command) in " ".join(shown.split())


@pytest.mark.parametrize(
    ("known", "code", "said"),
    [
        ({"understood": False}, NOTHING_UNDERSTOOD, "nothing in logs was understood"),
        ({"unread": 1, "troubles": ("1 file not read: Permission denied: a.log",)}, PARTLY_READ, "1 file not read"),
        ({}, 0, "The logs mention no consumer group"),
        ({"signal": 15}, 143, "stopped before the end of the input"),
    ],
)
def test_how_a_run_ends(capsys, monkeypatch, known, code, said):
    after = {**COUNTS, "lines_read": 7, "skipped": 7}
    monkeypatch.setattr(pipeline, "run", lambda *_, **__: pipeline.RunResult(COUNTS, after, 1.0, **known))
    assert run_and_account(Path("logs"), Path("lake"), Settings(), once=True) == code
    out, err = capsys.readouterr()
    assert said in out + err


def test_what_is_no_log_is_said_before_a_run(capsys, tmp_path, logs, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # it ends there
    (logs / "c" / "b1" / "graph.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert entry.main(["run", "--input", str(logs), "--lakehouse", str(tmp_path / "lake"), "--once"]) == UNUSABLE
    assert capsys.readouterr().out == "Left out 1: .png 1 (c/b1/graph.png)\n"
