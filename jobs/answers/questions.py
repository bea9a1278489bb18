"""Reads the named questions of sql/: what each asks, which parameters it takes, and its text for DuckDB and for Spark.

A file begins with comment lines: the question, what the answer holds, and the parameters, one a line:

    -- Which groups cost most?
    --
    -- One row per group, the costliest first.
    --
    -- :cluster :group
    -- :since  rebalances from this time on
    -- :limit = 20

A parameter that has its usual meaning needs no words, and several of these stand in a line. The text names parameters as Spark does,
`:group`. DuckDB writes `$group`: the declared names are rewritten. Values are always bound, never pasted into the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, Final

from jobs.common.errors import QuestionError
from jobs.common.places import SQL, sql_text

FIFTEEN: Final = (
    "why",
    "failed-commits",
    "poll-timeouts",
    "heartbeat-errors",
    "session-timeouts",
    "deploys",
    "storms",
    "stuck",
    "fenced",
    "cooperative",
    "subscriptions",
    "coordinators",
    "first-join",
    "zombies",
    "consumer-protocol",
)
"""What users ask most, in that order. All other questions are listed before them as `Every day`."""

TEXTS: Final = frozenset({"cluster", "group", "member", "client", "code", "cause", "text"})
TIMES: Final = frozenset({"since", "until", "at"})
SPANS: Final = frozenset({"around", "step"})  # durations, passed as whole milliseconds

OPTIONS: Final = ("cluster", "group", "since", "until", "client", "member", "at", "around", "limit")
"""The parameters that `rebalance ask` has an option for; others are given with --set NAME=VALUE."""

_LOWER_BOUNDS: Final = "`at_least` names the sums that are lower bounds: of some of what they add up no line shows the cost."
_USUAL: Final = {
    "cluster": "only this cluster",
    "group": "only this consumer group",
    "client": "only this client.id",
    "member": "only members whose id contains this",
    "since": "from this time on",
    "until": "up to this time",
    "limit": "rows at most",
}
_PARAMETER: Final = re.compile(r":([a-z_]+)(?: = (\S+))?(?:  +(\S.*))?")


@dataclass(frozen=True)
class Parameter:
    """One parameter. The default of a time may be a duration: that long before `until`."""

    name: str
    default: str | None
    meaning: str

    @property
    def choices(self) -> list[str]:
        """The values of one that takes no others: its meaning ends with them."""
        return re.findall(r"(\w+)(?:, | or |$)", self.meaning.partition(": ")[2])

    @property
    def flag(self) -> str:
        """How `rebalance ask` takes it."""
        return f"--{self.name}" if self.name in OPTIONS else f"--set {self.name}="


@dataclass(frozen=True)
class Question:
    """One file of sql/."""

    name: str
    question: str
    answer: str
    parameters: tuple[Parameter, ...]
    text: str

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(parameter.name for parameter in self.parameters)

    def for_duckdb(self) -> str:
        """The text with `$name` for the declared `:name`s."""
        if not self.parameters:
            return self.text
        return re.sub(rf"(?<![:\w]):({'|'.join(self.names)})\b", r"$\1", self.text)


def names() -> list[str]:
    """All questions: the everyday ones by name, then the fifteen in their order."""
    present = {path.stem for path in SQL.glob("*.sql")}
    return [*sorted(present - set(FIFTEEN)), *(name for name in FIFTEEN if name in present)]


@cache
def load(name: str) -> Question:
    """One question. QuestionError: there is none of that name; the message suggests similar ones."""
    known = names()
    if name not in known:
        close = get_close_matches(name.lower(), known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else "`rebalance ask` lists them"
        raise QuestionError(f"no question named {name!r}: {hint}")
    return parse(name, sql_text(SQL / f"{name}.sql"))


def parse(name: str, text: str) -> Question:
    """A question from the text of its file. ValueError: the comment lines of the file are incomplete."""
    comment, _, body = text.partition("\n\n")
    head = comment.splitlines()
    found = (match.groups() for line in head if line.startswith("-- :") for match in _PARAMETER.finditer(line))
    parameters = tuple(Parameter(one, default, meaning or _USUAL.get(one, "")) for one, default, meaning in found)
    prose = [line.removeprefix("--").strip() for line in head if not line.startswith("-- :")]
    question, _, answer = "\n".join(prose).strip().partition("\n\n")
    if not question.endswith("?") or not answer:
        raise ValueError(f"{name}: begins without a question and what answers it")
    unknown = set(re.findall(r"(?<![:\w]):([a-z_]+)\b", body)) ^ {parameter.name for parameter in parameters}
    if unknown:
        raise ValueError(f"{name}: parameters declared and not used, or used and not declared: {', '.join(sorted(unknown))}")
    told = [*answer.split(), *(_LOWER_BOUNDS.split() if "AS at_least" in body else ())]
    return Question(name, " ".join(question.split()), " ".join(told), parameters, text)


def example_file(name: str) -> Path:
    """A command that asks this question, what it printed, and what that shows."""
    return SQL / "examples" / f"{name}.txt"


@cache
def views() -> Mapping[str, str]:
    """The views that questions use, by name: each the text of a SELECT. A view comes after those that it is made of."""
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted((SQL / "views").glob("*.sql"))}
    return {name: texts[name] for name in sorted(texts, key=lambda name: len(_made_of(name, texts)))}


def views_of(text: str, known: Mapping[str, str]) -> list[str]:
    """The views that a text mentions and those that they are made of, in the order in which they can be created."""
    wanted = set().union(*(_made_of(name, known) for name in tables_of(text, known)))
    return [name for name in known if name in wanted]


def _made_of(name: str, known: Mapping[str, str]) -> set[str]:
    return {name}.union(*(_made_of(other, known) for other in tables_of(known[name], known) - {name}))


def tables_of(text: str, known: Mapping[str, Any] | tuple[str, ...]) -> set[str]:
    """Which of the known names a text mentions."""
    return set(re.findall(r"[a-z_]+", text)) & set(known)
