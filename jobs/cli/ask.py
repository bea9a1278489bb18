"""`rebalance ask`: the list of questions, the SQL of one, or its answer in the form that was wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.text import Text

from jobs.answers import questions
from jobs.answers.questions import Question
from jobs.cli.columns import Columns
from jobs.common.errors import QuestionError

_OPTIONS: Final = ("cluster", "group", "client", "member", "since", "until", "at", "around", "limit")


def run(
    name: str | None,
    lakehouse: Path | None,
    given: Mapping[str, str],
    others: Sequence[str],
    form: str,
    console: Console,
    *,
    show: bool,
) -> int:
    """Returns the exit code."""
    if name is None:
        _list(console)
        return 0
    question = questions.load(name)
    if show:
        click.echo(_text(question), nl=False)
        return 0
    if lakehouse is None:
        raise QuestionError(f"give --lakehouse DIR to ask {name}, or --show to see its SQL")
    return _answer(question, lakehouse, {**given, **_assignments(others)}, form, console)


def _answer(question: Question, lakehouse: Path, given: Mapping[str, str], form: str, console: Console) -> int:
    from jobs.answers.ask import BoundQuestion  # with DuckDB: the list does without
    from jobs.cli import answer_text

    bound = BoundQuestion(lakehouse, question, given)
    answer = bound.answer()
    if form == "json":
        click.echo(answer_text.to_json(answer))
    elif form == "csv":
        click.echo(answer_text.to_csv(answer), nl=False)
    elif answer.rows:
        answer_text.render(answer, console)
    if not answer.rows:
        why = bound.why_nothing()
        click.echo(f"Nothing found. {why}".rstrip(), err=form != "table")
    elif bound.cut:
        click.echo(f"Only the first {len(answer.rows)}; --limit N shows more.", err=True)
    return 0


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    """`--set NAME=VALUE`, by name."""
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise QuestionError(f"--set {text[:40]}: write NAME=VALUE")
        found[name] = value
    return found


def _list(console: Console) -> None:
    """Names and questions: those of every day, then the fifteen."""

    def block(title: str, names: Sequence[str]) -> None:
        columns = Columns(("name", "~question"), console.width if console.is_terminal else None)
        for name in names:
            columns.add(name, questions.load(name).question)
        console.print(Text(title, style="bold"))
        for line in list(columns.lines())[1:]:
            console.print(Text("  ").append(line), soft_wrap=True)
        console.print()

    known = questions.names()
    block("Every day", [name for name in known if name not in questions.FIFTEEN])
    block("What users ask most", [name for name in known if name in questions.FIFTEEN])
    console.print(Text("rebalance ask NAME --lakehouse DIR; rebalance ask NAME --show has its SQL and parameters"), soft_wrap=True)


def _text(question: Question) -> str:
    """The file, with how parameters of its own are given."""
    own = [name for name in question.names if name not in _OPTIONS]
    if not own:
        return question.text
    return f"{question.text}\n-- On the command line: {' '.join(f'--set {name}=...' for name in own)}\n"
