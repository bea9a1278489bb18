"""What a command writes: text on standard output, one line for each warning or error on stderr."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Final

import click
from click.core import ParameterSource
from rich.console import Console
from rich.text import Text

from jobs.common.options import LINE_CHARS
from jobs.common.text import many, printable


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leaves it to the command line to end: Rich would end the process with 1."""
        raise  # noqa: PLE0704 - Rich calls this while it handles the error


def stdout() -> Console:
    """A console on the current standard output, which a test or a pipe may have replaced."""
    return _Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def stderr() -> Console:
    """The same of standard error, wherever that goes by then: Spark's has a place of its own (jobs/pipeline/jvm.py)."""
    return _Console(stderr=True, highlight=False, markup=False, emoji=False)


def write(console: Console, text: str | Text = "", style: str = "") -> None:
    """Writes one line unchanged: no markup, no wrapping."""
    console.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def say(text: str = "") -> None:
    """Writes one line to standard output. It may quote logs: everything in it is made printable."""
    write(stdout(), printable(text, LINE_CHARS))


NO_GROUPS: Final = (
    "The logs mention no consumer group: docs/capture.md says which logs of brokers and clients do. If an application's log does not, name"
    " its folder after the group (clients/<group>/app.log)."
)
NO_LINE: Final = "it has no line of a broker, a client or a record that can be read (docs/capture.md)"


def warn_nothing_understood(source: object, why: str = NO_LINE) -> None:
    """Says that no line of the input is read."""
    warn(f"nothing in {source} was understood: {why}")


def partly_read(files: int, source: str) -> str:
    """That some files of the input were not read, or not to their ends: those that lines before it name."""
    return f"{many(files, 'file')} of {source} could not be read, or not to the end: see above"


def warn(message: str) -> None:
    """Writes one line to stderr. It may name files, topics and settings, and quote a broker: everything in it is made printable."""
    click.echo(f"rebalance: {printable(message, LINE_CHARS)}", err=True)


def tell(why: str, *names: str, but: Collection[str] = ()) -> None:
    """Says which of these parameters of the current command were typed and have no effect: one that is ignored in silence misleads.

    `why`: what follows `has no effect`. `but`: all parameters other than these.
    """
    context = click.get_current_context()
    typed = [
        parameter.opts[0]
        for parameter in context.command.params
        if (parameter.name in names or (but and parameter.name not in but))
        and context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
    ]
    if typed:
        warn(f"{', '.join(typed)} {'has' if len(typed) == 1 else 'have'} no effect {why}")
