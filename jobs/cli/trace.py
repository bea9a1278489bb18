"""`rebalance trace`: the executable specification as a filter."""

from __future__ import annotations

import sys

import click

from jobs.cli.output.terminal import warn
from jobs.common.errors import UserError


@click.command(
    epilog="""\b
Example:
  rebalance trace < traces.jsonl > answers.jsonl
"""
)
@click.option("--kafka", metavar="VERSION", help="Follow this Kafka release, such as 4.4.0 or 3.9.1, not the trace's own.")
@click.option("--episodes", is_flag=True, help="Only tell the rebalances of consumer groups: rounds, causes, and who held partitions.")
def trace(*, kafka: str | None, episodes: bool) -> int:
    """Answer recorded requests with the executable specification.

    Reads one trace or case (JSON) per line from standard input and writes the same object with the outcome of every step replaced
    by the model's own, by the rules of the release in "measured_on". Classic groups: the format of tests/data/traces/FORMAT.md.
    Consumer groups (KIP-848, Kafka 4.2 and later): "format": "consumer-group-case/1", see tests/data/traces-consumer/FORMAT.md.
    """
    from coordinator_model.specification.releases import NEWEST
    from coordinator_model.specification.trace import run_lines

    newest = ".".join(map(str, NEWEST))

    def newer(release: str) -> None:
        warn(f"The rules of Kafka {release} are not known yet: its traces are answered by those of {newest}.")

    try:
        run_lines(sys.stdin, sys.stdout, kafka, newer, episodes=episodes)
    except ValueError as error:
        raise UserError(f"This is not a trace that the specification can follow: {error}") from error
    return 0
