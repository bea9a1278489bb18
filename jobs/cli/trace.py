"""`rebalance trace`: the executable specification as a filter."""

from __future__ import annotations

import sys

import click


@click.command(
    epilog="""\b
Example:
  rebalance trace < traces.jsonl > answers.jsonl
"""
)
@click.option("--kafka", metavar="VERSION", help="Follow this Kafka release, not the trace's own: 4.2.0, 3.9.1, 0.10.2.2, 0.10.0.1.")
def trace(*, kafka: str | None) -> int:
    """Answer recorded requests with the executable specification.

    Reads one trace or case (JSON, the format of tests/data/traces/FORMAT.md) per line from standard input and writes the same
    object with the outcome of every step replaced by the model's own.
    """
    from coordinator_model.specification.trace import run_lines

    run_lines(sys.stdin, sys.stdout, kafka)
    return 0
