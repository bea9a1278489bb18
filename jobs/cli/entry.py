"""The command `rebalance`.

jobs/common/exit_codes.py has the exit codes.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click

from jobs.cli.output.terminal import warn
from jobs.common import exit_codes
from jobs.common.disks import is_full
from jobs.common.errors import DiskFullError, QueryFailedError, UserError
from jobs.common.failures import root_cause, unreadable_file
from jobs.common.options import CONTEXT
from jobs.common.places import PACKAGE

_MODULES = (
    *("explain", "run", "inspect", "report", "watch", "ask", "evidence", "health", "alert", "upkeep", "capture", "demo"),
    "generate",
)
"""Those of the commands, in the order of their list. They import Spark and DuckDB only when a command runs: help comes at once."""
TRACEBACK = "REBALANCE_TRACEBACK"
"""An environment variable: whether an error that nobody expected shows where it arose."""
_GC_AFTER = 100_000
"""Objects after which Python looks for cycles, of which there are hardly any. At its own 700 a tenth of a short command goes into that."""
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
"""What NumPy's library for matrices reads when it is loaded. No command has a matrix, and its threads take as long to start as NumPy."""
_UNCUT = 1_000
"""Characters of what a command does, in the list of commands."""


class _Commands(click.Group):
    """Lists its commands in the order in which they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - Click's signature
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - Click's signature
        """Writes the list of commands. Click's own cuts what they do at the end of the line."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.get_short_help_str(_UNCUT)) for name, command in self.commands.items()])

    def invoke(self, ctx: click.Context) -> object:
        """The exit code where the reader of a pipe has ended: Click's own would be 1."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            return _no_output(error)


@click.group(
    cls=_Commands, context_settings=CONTEXT, epilog="Start with `rebalance explain LOG`, or with `rebalance demo`, which needs no log."
)
@click.version_option(package_name=PACKAGE, prog_name="rebalance")
def cli() -> None:
    """Explains why a Kafka consumer group rebalanced, which client caused it and what it cost.

    Reads the logs that brokers write anyway, and writes what happened to every consumer group into Delta tables.
    """


gc.set_threshold(_GC_AFTER)
atexit.register(gc.freeze)  # Python looks for cycles at its end, too: another tenth
for _module in _MODULES:
    for _member in vars(import_module(f"jobs.cli.{_module}")).values():
        if isinstance(_member, click.Command):
            cli.add_command(_member)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code, and explains it in one line on stderr if it is not 0."""
    os.environ.setdefault(*_ONE_THREAD)
    try:
        result = cli.main(arguments, prog_name="rebalance", standalone_mode=False)
        sys.stdout.flush()
    except (SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - a panic of a library is no Exception
        return _told(error, sys.argv[1:] if arguments is None else arguments)
    return result if isinstance(result, int) else exit_codes.DONE


def _told(error: BaseException, arguments: Sequence[str]) -> int:
    """The exit code of what ended a command."""
    if isinstance(error, click.ClickException):  # a wrong option: Click says it best
        error.show()
        if folder := _folder_given(error, arguments):
            warn(f"to name the lakehouse, write --lakehouse {folder}")
        return exit_codes.UNUSABLE
    if isinstance(error, (click.Abort, KeyboardInterrupt)):
        return exit_codes.ENDED_BY_SIGNAL + signal.SIGINT
    if isinstance(error, (UserError, DiskFullError)):
        warn(str(error))
        return exit_codes.DISK_FULL if isinstance(error, DiskFullError) else exit_codes.UNUSABLE
    if isinstance(error, QueryFailedError):
        warn(str(error) if error.log is None else f"{error} (more in {error.log})")
        return exit_codes.FAILED
    if isinstance(error, BrokenPipeError) or (isinstance(error, OSError) and error.filename is None and is_full(error)):
        return _no_output(error)
    return _unexpected(error)


def _folder_given(error: click.ClickException, words: Sequence[str]) -> str | None:
    """A folder that was given without an option, to a command that takes `--lakehouse`."""
    if not (isinstance(error, click.UsageError) and error.ctx is not None):
        return None
    options = [option for option in error.ctx.command.params if isinstance(option, click.Option)]
    if "lakehouse" not in {option.name for option in options} or any(word.startswith("--lakehouse") for word in words):
        return None
    with_value = {name for option in options if not option.is_flag for name in option.opts}
    bare = (word for before, word in pairwise(words) if not (word.startswith("-") or before in with_value))
    return next((word for word in bare if Path(word).is_dir()), None)


def _unexpected(error: BaseException) -> int:
    """The exit code where nothing better says what went wrong."""
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    if told := unreadable_file(error):
        warn(told)
        return exit_codes.UNUSABLE
    if isinstance(error, OSError) and error.filename is not None:
        warn(f"{error.filename}: {error.strerror}")
        return exit_codes.DISK_FULL if is_full(error) else exit_codes.UNUSABLE
    warn(f"{type(error).__name__}: {root_cause(error)} (set {TRACEBACK}=1 to see where, and please report it)")
    return exit_codes.FAILED


def _no_output(error: OSError) -> int:
    """The exit code where standard output takes no more."""
    # What is left of the output goes nowhere, else Python would complain about it at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # `rebalance report | head`
        return exit_codes.DONE
    warn(f"standard output cannot be written: {error.strerror}")
    return exit_codes.DISK_FULL
