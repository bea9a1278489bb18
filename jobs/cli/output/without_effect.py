"""Says which options of a call have no effect, and why: one that is ignored in silence misleads."""

from __future__ import annotations

import click
from click.core import ParameterSource

from jobs.cli.output.terminal import warn


def tell(why: str, *names: str) -> None:
    """Says which of these parameters of the current command were typed. `why`: what follows `has no effect`."""
    context = click.get_current_context()
    typed = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if typed:
        warn(f"{', '.join(typed)} {'has' if len(typed) == 1 else 'have'} no effect {why}")
