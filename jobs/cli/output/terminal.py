"""What a command writes: text on standard output, one line for each warning or error on stderr."""

from __future__ import annotations

import sys

import click
from rich.console import Console
from rich.text import Text

from jobs.common.options import LINE_CHARS
from jobs.common.text import printable


def stdout() -> Console:
    """A console on the current standard output, which a test or a pipe may have replaced."""
    return Console(file=sys.stdout, highlight=False, markup=False, emoji=False)


def write(console: Console, text: str | Text = "", style: str = "") -> None:
    """Writes one line unchanged: no markup, no wrapping."""
    console.print(Text(text, style=style) if isinstance(text, str) else text, soft_wrap=True)


def warn(message: str) -> None:
    """Writes one line to stderr. It may name files, topics and settings, and quote a broker: everything in it is made printable."""
    click.echo(f"rebalance: {printable(message, LINE_CHARS)}", err=True)
