"""What a command says while it works."""

import io
import sys

import pytest
from rich.console import Console

from jobs.cli.output import progress, terminal
from jobs.pipeline.run_progress import RunProgress
from tests.waiting import wait_until


@pytest.mark.parametrize("terminal_or_not", [True, False])
def test_a_stage_that_takes_long_says_how_far_it_is_without_being_asked(monkeypatch, terminal_or_not):
    for name in ("_TICK_SECONDS", "_QUIET_SECONDS", "_PLAIN_SECONDS"):
        monkeypatch.setattr(progress, name, 0.01)
    out, shares = io.StringIO(), iter([0.1, 0.5])
    with progress.Progress(Console(file=out, force_terminal=terminal_or_not, width=80)) as shown:
        shown.show(RunProgress("reading", share=lambda: next(shares, 0.9)))
        wait_until(lambda: "reading  90% of the input" in out.getvalue())
    assert ("reading  50% of the input\n" in out.getvalue()) is not terminal_or_not


def test_who_waits_for_less_than_two_seconds_is_not_told():
    out = io.StringIO()
    with progress.Progress(Console(file=out)) as shown:
        shown.show(RunProgress("reading"))
    assert out.getvalue() == ""


def test_progress_goes_where_standard_error_goes_by_then(monkeypatch):
    """Spark gets a standard error of its own, and Python another one, while a console is there."""
    console = terminal.stderr()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    terminal.write(console, "reading")
    assert sys.stderr.getvalue() == "reading\n"


def test_nobody_reads_the_progress_any_more(monkeypatch):
    class Closed(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

    for name in ("_TICK_SECONDS", "_QUIET_SECONDS"):
        monkeypatch.setattr(progress, name, 0.0)
    with pytest.raises(BrokenPipeError), progress.Progress(terminal._Console(file=Closed())) as shown:
        wait_until(lambda: shown.show(RunProgress("reading")))
