"""`rebalance ask`: the list of questions, the SQL of one, or its answer as table, CSV or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console

from jobs.answers import questions
from jobs.answers.questions import Question
from jobs.cli.output.columns import Columns
from jobs.cli.output.terminal import stdout, tell, write
from jobs.common import options
from jobs.common.errors import QuestionError
from jobs.common.stores import Place
from jobs.common.text import many

if TYPE_CHECKING:
    from jobs.answers.duckdb_views import Answer

_PARAMETERS: Final = options.SCOPE | {
    "client": ("NAME", "Only this client.id."),
    "member": ("NAME", "Only members whose member id contains this."),
    "at": ("TIME", "The time in question. [default: that of --until]"),
    "around": ("SPAN", "How far around --at."),
    "limit": ("N", "Rows at most."),
}
"""Parameters of questions that are options: metavar and help text."""
_TOLD_AT_MOST: Final = 3
"""Rebalances of the consumer protocol that `ask why` tells round by round."""


def _names(_: click.Context, __: click.Parameter, begun: str) -> list[str]:
    """The questions that a shell offers after `rebalance ask`."""
    return [name for name in questions.names() if name.startswith(begun)]


@options.command(
    "rebalance ask                                             lists the questions",
    "rebalance ask why --lakehouse lake/ --group payments",
    "rebalance ask worst --lakehouse lake/ --since 7d",
    "rebalance ask changes --lakehouse lake/ --at 2026-11-21T06:16 --around 5m",
    "rebalance ask deploys --lakehouse lake/ --set gap_ms=120000 --format json",
    "rebalance ask why --help                                  what a question answers and takes, and an example",
    "rebalance ask why --show                                  prints the SQL, for DuckDB and for Spark",
)
@click.argument("name", required=False, shell_complete=_names)
@options.lakehouse(required=False)
@options.texts(_PARAMETERS)
@click.option("--set", "others", metavar="NAME=VALUE", multiple=True, help="Another parameter of the question. Repeatable.")
@options.output_format("table", "csv", "json", text="For people, spreadsheets or programs.")
@click.option("--show", is_flag=True, help="Print the SQL of the question instead of the answer.")
@click.option("-h", "--help", "explain", is_flag=True, help="Show this message, or that of the question, and exit.")
@click.pass_context
def ask(
    context: click.Context,
    /,
    name: str | None,
    *,
    lakehouse: Place | None,
    others: Sequence[str],
    form: str,
    show: bool,
    explain: bool,
    **typed: str | None,
) -> int:
    """Answer a question from the tables, or list the questions.

    Every question is a file of SQL, which DuckDB and Spark both run. Times are UTC.
    """
    if explain:
        click.echo(context.get_help() if name is None else _help(questions.load(name), context))
        return 0
    if name is None:
        tell("without the NAME of a question", but={"name"})
        _list_questions(stdout())
        return 0
    question = questions.load(name)
    if show:
        tell("with --show", but={"name", "show"})
        click.echo(_sql(question), nl=False)
        return 0
    if lakehouse is None:
        raise QuestionError(f"give --lakehouse DIR to ask {name}, or --show to see its SQL")
    _answer(question, lakehouse, typed | _assignments(others), form)
    return 0


def _help(question: Question, context: click.Context) -> str:
    """What a question answers, its options, and an example."""
    formatter = context.make_formatter()
    formatter.write_usage(f"{context.command_path} {question.name}", "[OPTIONS]")
    for text in (question.question, question.answer):
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text)
    with formatter.section("Options"):
        defaults = {one: f" [default: {one.default}]" if one.default else "" for one in question.parameters}
        formatter.write_dl([(one.flag, one.meaning + default) for one, default in defaults.items()])
    example = questions.example_file(question.name).read_text(encoding="utf-8")
    return f"{formatter.getvalue()}\nExample, from a recording of Kafka 4.2.0:\n\n{example}".rstrip()


def _answer(question: Question, lakehouse: Place, given: Mapping[str, str | None], form: str) -> None:
    from jobs.answers.ask import BoundQuestion  # with DuckDB, which the list does not need
    from jobs.answers.formats import as_csv, as_json
    from jobs.cli.output import answer_text

    bound = BoundQuestion(lakehouse, question, given)
    answer = bound.answer()
    if form == "json":
        click.echo(as_json(answer.by_name()))
    elif form == "csv":
        click.echo(as_csv(answer), nl=False)
    elif answer.rows:
        answer_text.render(answer, stdout(), bound.fixed)
    if form == "table" and question.name == "why":
        _tell_rounds(lakehouse, answer)
    if not answer.rows:
        click.echo(f"Nothing found. {bound.why_nothing() or _not_judged(lakehouse, given)}".rstrip(), err=form != "table")
    elif bound.cut:
        click.echo(f"Only the first {len(answer.rows)}; --limit N shows more.", err=True)
    if count := bound.provisional():
        click.echo(f"Later lines may correct {many(count, 'rebalance')}: `rebalance ask rebalances` shows which.", err=True)


def _not_judged(lakehouse: Place, given: Mapping[str, str | None]) -> str:
    """That an answer without rows is no all-clear, if that is so."""
    from jobs.answers.report import Scope, read_overview

    gaps = read_overview(lakehouse, Scope(given.get("cluster"), given.get("group"))).judgement.gaps
    return "But not everything could be judged: `rebalance report` says what is missing." if gaps else ""


def _tell_rounds(lakehouse: Place, answer: Answer) -> None:
    """Tells the last rebalance of the first rows round by round, where they are of the consumer protocol."""
    from jobs.answers.rebalance_words import last_rounds, rounds_in_words

    for row_id, rounds in last_rounds(lakehouse, [row["last_id"] for row in answer.by_name()[:_TOLD_AT_MOST]]):
        write(stdout())
        write(stdout(), f"{row_id} round by round:")
        for sentence in rounds_in_words(rounds):
            write(stdout(), f"  {sentence}")


def _assignments(texts: Sequence[str]) -> dict[str, str]:
    """The values of `--set NAME=VALUE`, by name."""
    values = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not (name and separator):
            raise QuestionError(f"--set {text[:40]}: write NAME=VALUE")
        values[name] = value
    return values


def _list_questions(console: Console) -> None:
    """Names and questions: those for every day, then the fifteen that users ask most."""
    names = questions.names()
    everyday = [name for name in names if name not in questions.FIFTEEN]
    for title, block in (("Every day", everyday), ("What users ask most", names[len(everyday) :])):
        columns = Columns(("name", "~question"), console)
        for name in block:
            columns.add(name, questions.load(name).question)
        write(console, title, "bold")
        columns.write(indent="  ", names=False)
        write(console)
    write(console, "rebalance ask NAME --lakehouse DIR answers one; rebalance ask NAME --help shows its options and an example")


def _sql(question: Question) -> str:
    """The file of a question, and how to give the parameters that are not options."""
    others = [name for name in question.names if name not in _PARAMETERS]
    if not others:
        return question.text
    return f"{question.text}\n-- On the command line: {' '.join(f'--set {name}=...' for name in others)}\n"
