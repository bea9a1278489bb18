"""Finds the innermost reason of an error."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from jobs.common.errors import QueryFailedError, UserError
from jobs.common.text import printable

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
    return printable((errors or lines)[-1], 500)


def raise_failed(error: BaseException | None, stage: str, log: Path) -> None:
    """Raises the error that ended what works beside the queries, if one did. `log`: Spark's, which has more once there is one."""
    if isinstance(error, UserError):
        raise error
    if error is not None:
        raise QueryFailedError(stage, root_cause(error), log if log.exists() else None)
