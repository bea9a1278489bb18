"""Completion in shells, and the lakehouse that the environment names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from jobs.cli import entry
from jobs.common.options import LAKEHOUSE

PROJECT = Path(__file__).parents[2]


def complete(monkeypatch, capsys, *words):
    """What bash would offer for the last word. Click ends the process with it."""
    monkeypatch.setenv("_REBALANCE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("rebalance", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    with pytest.raises(SystemExit):
        entry.main([])
    return [line.partition(",")[2] for line in capsys.readouterr().out.splitlines()]


def test_commands_options_values_and_questions_are_offered(monkeypatch, capsys):
    assert complete(monkeypatch, capsys, "re") == ["report", "replay"]
    assert "--lakehouse" in complete(monkeypatch, capsys, "run", "--")
    assert complete(monkeypatch, capsys, "report", "--format", "j") == ["json"]
    assert complete(monkeypatch, capsys, "ask", "wo") == ["worst"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_a_script_that_asks_the_command(shell):
    script = "from jobs.cli import main; main([])"
    environment = os.environ | {"_REBALANCE_COMPLETE": f"{shell}_source"}
    done = subprocess.run([sys.executable, "-c", script], cwd=PROJECT, env=environment, check=False, capture_output=True, text=True)
    assert f"_REBALANCE_COMPLETE={shell}_complete" in done.stdout, done.stderr


def test_the_environment_names_the_lakehouse(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(LAKEHOUSE, str(tmp_path / "lake"))
    for command in ("report", "health", "maintain", "check"):
        assert entry.main([command]) == 2
        assert str(tmp_path / "lake") in capsys.readouterr().err
    assert entry.main(["report", "--lakehouse", str(tmp_path / "other")]) == 2
    assert str(tmp_path / "other") in capsys.readouterr().err


def test_a_replay_takes_the_lakehouse_in_use_for_the_old_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(LAKEHOUSE, str(tmp_path / "lake"))
    assert entry.main(["replay"]) == 2
    assert "'--lakehouse'" in capsys.readouterr().err
    assert entry.main(["replay", "--lakehouse", str(tmp_path / "new")]) == 2
    assert f"no lakehouse at {tmp_path / 'lake'}" in capsys.readouterr().err


@pytest.mark.parametrize("command", [name for name, one in entry.cli.commands.items() if any(p.name == "lakehouse" for p in one.params)])
def test_help_names_the_variable(command):
    assert LAKEHOUSE in CliRunner().invoke(entry.cli, [command, "--help"]).output
