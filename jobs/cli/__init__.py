"""The command `rebalance`: a module for each command, or for a few that have much in common, and what they print."""

from jobs.cli.entry import main

__all__ = ["main"]
