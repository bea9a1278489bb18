"""The list of docs/questions.md, and the answers in sql/examples.

An example is the command, after "$ ", what it prints when asked of the bundled recording, and a paragraph that says what that shows.
`rebalance ask QUESTION --help` ends with it.
"""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from jobs.answers import questions
from jobs.cli import entry
from scripts.docs.recorded import lakehouse


def part() -> str:
    """A row for each question: what it answers, and its options."""
    lines = ["| name | question | options |", "|---|---|---|"]
    for name in (*questions.FIFTEEN, *(name for name in questions.names() if name not in questions.FIFTEEN)):
        question = questions.load(name)
        flags = " ".join(f"`{parameter.flag}`" for parameter in question.parameters)
        lines.append(f"| `{name}` | {question.question} | {flags} |")
    return "\n".join(lines) + "\n"


def write_examples() -> None:
    """Writes the answer of today into each example."""
    with lakehouse() as folder:
        for name in questions.names():
            questions.example_file(name).write_text(example(name, folder), encoding="utf-8")


def example(name: str, folder: Path) -> str:
    """An example with what its command prints now. RuntimeError: it fails."""
    text = questions.example_file(name).read_text(encoding="utf-8")
    command, explanation = text.partition("\n")[0], text.rpartition("\n\n")[2]
    arguments = [str(folder) if word == "LAKE" else word for word in shlex.split(command)[2:]]
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = entry.main(arguments)
    if code:
        raise RuntimeError(f"{command}: {err.getvalue()}")
    answer = "".join(f"{line.rstrip()}\n" for line in out.getvalue().strip().splitlines())
    return f"{command}\n{answer}\n{explanation}"
