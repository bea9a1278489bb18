"""`rebalance trace`: the executable specification as a filter."""

from __future__ import annotations

import sys

import click

from jobs.common.errors import UserError


@click.command(
    epilog="""\b
Example:
  rebalance trace < traces.jsonl > answers.jsonl
"""
)
@click.option("--kafka", metavar="VERSION", help="Follow this Kafka release, not the trace's own: 4.2.0, 3.9.1, 0.10.2.2, 0.10.0.1.")
@click.option("--episodes", is_flag=True, help="Only tell the rebalances of consumer groups: rounds, causes, and who held partitions.")
def trace(*, kafka: str | None, episodes: bool) -> int:
    """Answer recorded requests with the executable specification.

    Reads one trace or case (JSON) per line from standard input and writes the same object with the outcome of every step replaced
    by the model's own. Classic groups: the format of tests/data/traces/FORMAT.md. Consumer groups (KIP-848, as in Kafka 4.2.0):
    "format": "consumer-group-case/1", see tests/data/traces-consumer/FORMAT.md.
    """
    from coordinator_model.specification.trace import run_lines

    try:
        run_lines(sys.stdin, sys.stdout, kafka, episodes=episodes)
    except ValueError as error:
        raise UserError(f"This is not a trace that the specification can follow: {error}") from error
    return 0
