import fcntl
import json
import os
import re
import subprocess
import sys

import pytest
from click.testing import CliRunner

from jobs.cli import entry
from jobs.common.errors import QueryFailedError
from jobs.common.exit_codes import FAILED, UNUSABLE
from jobs.common.settings import Settings
from jobs.lakehouse import folder
from tests.cli.saying import lines_of_the_command


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs" / "c" / "b"
    folder.mkdir(parents=True)
    (folder / "server.log").write_text("[2026-11-21 01:00:00,000] INFO started (kafka.server.KafkaServer)\n")
    return tmp_path / "logs"


PROGRESS = re.compile(r" *(?:\d+ min )?\d+ s  ")
"""How a line begins that shows that a command goes on: one that takes more than two seconds prints some."""


def refused(capsys, *arguments):
    """The one line that a command which cannot work leaves on stderr."""
    assert entry.main([str(argument) for argument in arguments]) == UNUSABLE
    out, err = capsys.readouterr()
    assert [line for line in out.splitlines() if not PROGRESS.match(line)] == []
    said = lines_of_the_command(err)
    assert len(said) == 1
    return f"{said[0]}\n"


def test_help_shows_examples():
    for command in (["--help"], ["run", "--help"], ["report", "--help"], ["demo", "--help"]):
        shown = CliRunner().invoke(entry.cli, command, prog_name="rebalance")
        assert shown.exit_code == 0
        assert "rebalance" in shown.output
    assert "Europe/Berlin" in CliRunner().invoke(entry.cli, ["run", "--help"]).output


def test_the_help_of_a_question_is_its_own():
    shown = CliRunner().invoke(entry.cli, ["ask", "bill", "--help"], prog_name="rebalance").output
    for said in (
        "Usage: rebalance ask bill [OPTIONS]",
        "What did rebalances cost",
        "--set by=",
        "[default: 20]",
        "$ rebalance ask bill --",
    ):
        assert said in shown

    assert "NAME" in CliRunner().invoke(entry.cli, ["ask", "-h"], prog_name="rebalance").output


def test_version(capsys):
    assert entry.main(["--version"]) == 0
    assert "rebalance" in capsys.readouterr().out


def test_help_and_report_load_neither_spark_nor_pandas():
    script = (
        "import sys; from jobs import cli; cli.main(['--help']); cli.main(['report', '--lakehouse', 'nowhere']);"
        "print([name for name in ('pyspark', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")


def test_an_input_that_is_not_there(capsys, tmp_path):
    err = refused(capsys, "run", "--input", tmp_path / "nowhere", "--lakehouse", tmp_path / "lake", "--once")
    assert "no such file or folder" in err
    assert not (tmp_path / "lake").exists()


def test_an_input_without_logs(capsys, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.txt").write_text("x")
    err = refused(capsys, "run", "--input", tmp_path / "logs", "--lakehouse", tmp_path / "lake", "--once")
    assert "no log files" in err


def test_wrong_settings(capsys, tmp_path, logs):
    common = ("run", "--input", logs, "--lakehouse", tmp_path / "lake")
    assert "Mars" in refused(capsys, *common, "--timezone", "Mars")
    assert "lateness_ms" in refused(capsys, *common, "--lateness-ms", "-1")
    assert "nowhere.toml" in refused(capsys, *common, "--config", tmp_path / "nowhere.toml")


def test_a_lakehouse_that_cannot_be_written(capsys, tmp_path, logs):
    (tmp_path / "file").write_text("")
    err = refused(capsys, "run", "--input", logs, "--lakehouse", tmp_path / "file" / "lake", "--once")
    assert "cannot write to the lakehouse" in err


def test_a_lakehouse_that_another_process_holds(capsys, tmp_path, logs):
    (tmp_path / "lake").mkdir()
    held = os.open(tmp_path / "lake" / "_lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        err = refused(capsys, "run", "--input", logs, "--lakehouse", tmp_path / "lake", "--once")
        assert "another process" in err
    finally:
        os.close(held)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ({"shards": 50, "model": 99}, "model version 99"),
        ({"shards": 50, "model": 13}, "model version 13"),
        ({"shards": 8, "model": folder.MODEL_VERSION}, "shards = 8, not 50"),
        ({"shards": 50}, "damaged"),
        ("not json", "damaged"),
        (None, "has tables but not the checkpoints"),
    ],
)
def test_a_lakehouse_that_cannot_be_continued_says_that_replay_is_the_way(capsys, tmp_path, logs, layout, said):
    folder = tmp_path / "lake"
    (folder / "_checkpoints").mkdir(parents=True)
    (folder / "rebalances" / "_delta_log").mkdir(parents=True)
    if layout is not None:
        text = layout if isinstance(layout, str) else json.dumps(layout)
        (folder / "_checkpoints" / "layout.json").write_text(text)
    err = refused(capsys, "run", "--input", logs, "--lakehouse", folder, "--once")
    assert said in err
    assert f"`rebalance replay --from {folder} --lakehouse NEW`" in err


def test_a_new_lakehouse_remembers_what_it_was_made_with(tmp_path):
    with folder.opened(tmp_path, Settings(shards=8)):
        pass
    with folder.opened(tmp_path, Settings(shards=8)) as house:
        assert json.loads(house.layout.read_text())["shards"] == 8


def test_no_java_and_a_wrong_java(capsys, tmp_path, logs, monkeypatch):
    common = ("run", "--input", logs, "--lakehouse", tmp_path / "lake", "--once")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    assert "no Java found" in refused(capsys, *common)
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    java.chmod(0o755)
    assert "found Java 11" in refused(capsys, *common)


def test_a_report_without_a_lakehouse(capsys, tmp_path):
    assert "no lakehouse" in refused(capsys, "report", "--lakehouse", tmp_path)


def test_a_failed_stage_is_told_in_one_line_with_its_log(capsys, monkeypatch, tmp_path):
    from jobs.pipeline import run

    def fail(*_, **__):
        raise QueryFailedError("track", "TrackerError: cluster 'c', shard 3", tmp_path / "spark.log")

    monkeypatch.setattr(run, "run", fail)
    assert entry.main(["run", "--input", "x", "--lakehouse", "y"]) == FAILED
    err = capsys.readouterr().err
    assert err == f"rebalance: track failed: TrackerError: cluster 'c', shard 3 (more in {tmp_path / 'spark.log'})\n"


def test_a_wrong_option_is_exit_code_2(capsys):
    assert entry.main(["run", "--nonsense"]) == UNUSABLE
    assert "nonsense" in capsys.readouterr().err


@pytest.mark.parametrize("every", ["", "s", "1ms", "2h", "-1s", "61m", "never"])
def test_intervals_that_poll_refuses(capsys, tmp_path, every):
    assert "--every" in refused(capsys, "poll", "--bootstrap", "x:1", "--out", tmp_path, "--every", every)


@pytest.mark.parametrize("every", ["5s", "500ms", "1.5m", "7", "0.1", "60m"])
def test_intervals_that_poll_takes(capsys, tmp_path, every):
    assert "--cluster a/b" in refused(capsys, "poll", "--bootstrap", "x:1", "--out", tmp_path, "--every", every, "--cluster", "a/b")


def test_intervals_of_offsets(capsys, tmp_path):
    arguments = ("poll", "--bootstrap", "x:1", "--out", tmp_path, "--cluster", "a/b", "--every", "5s", "--offsets-every")
    assert "--cluster a/b" in refused(capsys, *arguments, "60s")
    assert "--offsets-every 2h: write" in refused(capsys, *arguments, "2h")
    assert "--offsets-every 1s: offsets are asked for with a poll, and polls are 5s apart" in refused(capsys, *arguments, "1s")


def test_commands_are_listed_by_use():
    lines = CliRunner().invoke(entry.cli, ["--help"]).output.partition("Commands:\n")[2].splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ") and not line.startswith("   ")]  # others go on
    assert names[:5] == ["explain", "run", "inspect", "report", "watch"]


@pytest.mark.parametrize("command", ["", *entry.cli.commands])
def test_no_line_of_a_help_is_cut(monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    shown = CliRunner().invoke(entry.cli, [*command.split(), "--help"]).output.replace("[ARGS]...", "")
    assert "…" not in shown
    assert not any(line.rstrip().endswith("...") for line in shown.splitlines())


@pytest.mark.parametrize("command", [("report",), ("ask", "why"), ("health",), ("check", "--all"), ("evidence", "f1")])
def test_a_folder_without_its_option_is_taken_for_the_lakehouse_that_was_meant(capsys, tmp_path, monkeypatch, command):
    monkeypatch.delenv("REBALANCE_LAKEHOUSE", raising=False)
    assert entry.main([*command, str(tmp_path)]) == UNUSABLE
    assert capsys.readouterr().err.splitlines()[-1] == f"rebalance: to name the lakehouse, write --lakehouse {tmp_path}"


@pytest.mark.parametrize("words", [("report", "--cluster", "HERE"), ("report", "--lakehouse", "HERE", "HERE"), ("report", "nowhere")])
def test_no_folder_is_suggested_that_was_not_given_for_it(capsys, tmp_path, monkeypatch, words):
    monkeypatch.delenv("REBALANCE_LAKEHOUSE", raising=False)
    assert entry.main([str(tmp_path) if word == "HERE" else word for word in words]) == UNUSABLE
    assert "to name the lakehouse" not in capsys.readouterr().err
