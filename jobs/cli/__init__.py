"""The command `rebalance`: one module for each command, and what it prints."""

from jobs.cli.entry import main

__all__ = ["main"]
