"""Asks a question of a lakehouse, as `rebalance ask` does."""

from __future__ import annotations

from jobs.answers import ask, questions


def asked(lakehouse, name, **given):
    """The rows of the answer, each by column name."""
    return ask.BoundQuestion(lakehouse, questions.load(name), given).answer().by_name()
