"""Options that have no effect are named, with the reason."""

import pytest

from jobs.cli import entry
from jobs.lakehouse.folder import Lakehouse
from tests.lakehouse.rows import empty_lakehouse


def said(capsys, *arguments):
    """The lines about options without effect that a command begins with."""
    entry.main([str(argument) for argument in arguments])
    lines = [line.removeprefix("rebalance: ") for line in capsys.readouterr().err.splitlines()]
    return [line for line in lines if "no effect" in line]


POLL = ("poll", "--bootstrap", "x:1", "--out", "o", "--cluster", "a/b")
RUN = ("run", "--lakehouse", "lake", "--once", "--input", "nowhere")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((*RUN, "--topic", "t", "--accept-loss"), "--topic, --accept-loss have no effect without --kafka"),
        ((*RUN, "--starting", "earliest"), "--starting has no effect without --kafka"),
        ((*RUN, "--max-offsets", "5", "--kafka-config", "x"), "--max-offsets, --kafka-config have no effect without --kafka"),
        ((*RUN, "--client-config", "x"), "--client-config has no effect without --offsets-from"),
        ((*RUN, "--offsets-cluster", "prod"), "--offsets-cluster has no effect without --offsets-from"),
        ((*RUN, "--offsets-commits"), "--offsets-commits has no effect without --offsets-from"),
        ((*RUN, "--metrics-host", "0.0.0.0"), "--metrics-host has no effect without --metrics-port"),
        (("ask", "--group", "g"), "--group has no effect without the NAME of a question"),
        (("ask", "--show"), "--show has no effect without the NAME of a question"),
        (("ask", "why", "--show", "--format", "csv"), "--format has no effect with --show"),
        ((*POLL, "--once", "--every", "5s"), "--every has no effect with --once"),
        ((*POLL, "--no-offsets", "--offsets-every", "9s"), "--offsets-every has no effect with --no-offsets"),
        (
            ("dump-offsets", "--bootstrap", "x", "--config", "none", "--all", "--commits"),
            "--commits has no effect with --all, which has them",
        ),
    ],
)
def test_an_option_without_effect(capsys, tmp_path, monkeypatch, arguments, line):
    monkeypatch.chdir(tmp_path)
    assert said(capsys, *arguments) == [line]


@pytest.mark.parametrize("arguments", [RUN, ("ask",), ("ask", "why", "--show")])
def test_defaults_are_not_mentioned(capsys, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    assert said(capsys, *arguments) == []


def test_options_that_json_makes_superfluous(capsys, tmp_path):
    lake = empty_lakehouse(tmp_path / "lake")
    assert said(capsys, "check", "--lakehouse", lake, "--format", "json", "--all") == [
        "--all has no effect with --format json, which has every row"
    ]


def test_where_to_begin_in_a_topic_that_was_read(capsys, tmp_path, monkeypatch):
    (Lakehouse(tmp_path / "lake").topic_checkpoint / "offsets").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # it ends there
    arguments = ("run", "--kafka", "x:1", "--lakehouse", tmp_path / "lake", "--slice-lines", "500", "--max-offsets", "5")
    arguments = (*arguments, "--log-format", "kafka")
    assert said(capsys, *arguments, "--starting", "latest", "--timezone", "UTC") == [
        f"--starting has no effect on {tmp_path / 'lake'}, which has read the topic: it goes on where it stopped",
        "--timezone has no effect without --input: lines of a topic have times (`rebalance ship` has this option)",
        "--log-format has no effect without --input: it is about the lines of log files",
        "--slice-lines has no effect beside --max-offsets",
    ]
