"""The command `rebalance`.

jobs/common/exit_codes.py has the exit codes.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click

from jobs.cli.output.terminal import warn
from jobs.common import exit_codes
from jobs.common.disks import is_full
from jobs.common.errors import DiskFullError, QueryFailedError, UserError
from jobs.common.options import CONTEXT
from jobs.common.places import PACKAGE

_MODULES = (
    *("explain", "run", "inspect", "report", "watch", "dashboard", "ask", "evidence", "health", "alert", "upkeep", "capture", "demo"),
    "generate",
)
"""Those of the commands, in the order of their list. They import Spark and DuckDB only when a command runs: help comes at once."""
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
    cls=_Commands,
    context_settings=CONTEXT,
    epilog="Start with `rebalance explain LOG`, or with `rebalance demo`, which needs no log.",
)
@click.version_option(package_name=PACKAGE, prog_name="rebalance")
def cli() -> None:
    """Explains why a Kafka consumer group rebalanced, which client caused it and what it cost.

    Reads the logs that brokers write anyway, and writes what happened to every consumer group into Delta tables.
    """


for _module in _MODULES:
    for _member in vars(import_module(f"jobs.cli.{_module}")).values():
        if isinstance(_member, click.Command):
            cli.add_command(_member)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit code, and explains it in one line on stderr if it is not 0."""
    try:
        result = cli.main(arguments, prog_name="rebalance", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:  # a wrong option: Click says it best
        error.show()
        if folder := _folder_given(error, sys.argv[1:] if arguments is None else arguments):
            warn(f"to name the lakehouse, write --lakehouse {folder}")
        return exit_codes.UNUSABLE
    except (click.Abort, KeyboardInterrupt):
        return exit_codes.ENDED_BY_SIGNAL + signal.SIGINT
    except (UserError, DiskFullError) as error:
        warn(str(error))
        return exit_codes.DISK_FULL if isinstance(error, DiskFullError) else exit_codes.UNUSABLE
    except QueryFailedError as error:
        warn(str(error) if error.log is None else f"{error} (more in {error.log})")
        return exit_codes.FAILED
    except OSError as error:
        return _no_output(error)
    return result if isinstance(result, int) else exit_codes.DONE


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


def _no_output(error: OSError) -> int:
    """The exit code where standard output takes no more. Raises any other error again."""
    if not (isinstance(error, BrokenPipeError) or is_full(error)):
        raise error
    # What is left of the output goes nowhere, else Python would complain about it at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # `rebalance report | head`
        return exit_codes.DONE
    warn(f"standard output cannot be written: {error.strerror}")
    return exit_codes.DISK_FULL
