"""Asks a question of a lakehouse, as `rebalance ask` does."""

from functools import lru_cache

from jobs.answers import ask, questions
from jobs.answers.duckdb_views import QuestionReader


@lru_cache(maxsize=1)
def _reader(lakehouse, _commits):
    return QuestionReader(lakehouse)


def reader_of(lakehouse):
    """A reader of a lakehouse as it is now: the same one until somebody writes."""
    return _reader(lakehouse, frozenset(lakehouse.glob("*/_delta_log/*.json")))


def asked(lakehouse, name, **given):
    """The rows of the answer, each by column name. `lakehouse`: or a reader of it."""
    reader = lakehouse if isinstance(lakehouse, QuestionReader) else reader_of(lakehouse)
    return ask.BoundQuestion(reader, questions.load(name), given).answer().by_name()
