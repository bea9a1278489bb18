"""Finds the innermost reason of an error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from jobs.common.errors import QueryFailedError, UserError
from jobs.common.text import printable
from schemas.names import GROUP_EVENTS

_DATA_FILE: Final = re.compile(r"""['"]([^'"]+\.parquet)['"]""")
_REMEDIES: Final = (
    (
        re.compile(r"FileNotFoundException: .*?([^\s:]+/_checkpoints/\S+)"),
        "{} is gone, which holds its state: put it back from a copy; else `rebalance replay` makes the tables anew",
    ),
    (
        re.compile("ExpiredToken|token has expired|S3Exception: Bad Request"),
        "the store refuses the credentials, which may have expired: with new ones the next run goes on where this one stopped",
    ),
)
"""What a person can do something about, by the words of Spark and its libraries."""
_OF_JAVA: Final = "py4j."
_CAUSED_BY: Final = "Caused by: "
_PYTHON_ERROR: Final = re.compile(r"^[\w.]+(Error|Exception|Interrupt|Exit)\b")


def root_cause(error: BaseException) -> str:
    """The innermost reason of an error, in one line: Java wraps Python's errors, Spark wraps Java's."""
    text = str(error)
    while (inner := error.__cause__) is not None:
        error, text = inner, f"{type(inner).__name__}: {inner}"
    java: Any = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    try:
        while java is not None:
            text = java.getMessage() or java.toString()
            java = java.getCause()
    except Exception:  # noqa: BLE001 - the JVM may be gone; what is known is in `text`
        java = None
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    if "Traceback (most recent call last):" not in text:
        return printable(lines[0], 500)
    errors = [line for line in lines if _PYTHON_ERROR.match(line)]  # the last traceback counts, which may be followed by Java's
    causes = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    if errors and errors[-1].startswith(_OF_JAVA) and causes:
        errors = causes
    return printable((errors or lines)[-1], 500)


def unreadable_file(error: BaseException) -> str:
    """What to do where an error says that a data file is damaged or gone; empty if it says something else."""
    reason = next(iter(str(error).splitlines()), "")
    if (found := _DATA_FILE.search(reason)) is None:
        return ""
    return damaged_text(found[1], reason.partition(found[0])[0])


def damaged_text(path: str, reason: str) -> str:
    """What to do about a part of a table that is damaged or gone."""
    remedy = "read the logs into a new lakehouse" if GROUP_EVENTS in path else "`rebalance replay` makes its table anew"
    return f"{path} is damaged, or gone ({printable(reason.strip(), 200)}): put it back from a copy; else {remedy}"


def failure(stage: str, error: BaseException, log: Path, cause: str | None = None) -> UserError | QueryFailedError:
    """What ended a stage, as the command line says it. `log`: Spark's, which has more once there is one. `cause`: where it is known."""
    if isinstance(error, UserError):
        return error
    cause = cause or root_cause(error)
    for sign, remedy in _REMEDIES:
        if (found := sign.search(cause)) is not None:
            return UserError(f"{stage} cannot go on: {remedy.format(*found.groups())}")
    return QueryFailedError(stage, cause, log if log.exists() else None)
