"""The command `rebalance`: one module a command, and what a person sees."""

from jobs.cli.entry import main

__all__ = ["main"]
