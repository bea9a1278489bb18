"""The exit codes of all commands: the only place that numbers them. docs/exit-codes.md says what each means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

DONE: Final = 0
FAILED: Final = 1
UNUSABLE: Final = 2
NOTHING_UNDERSTOOD: Final = 3
PARTLY_READ: Final = 4
DISK_FULL: Final = 5
NEEDS_ATTENTION: Final = 6
NOT_JUDGED: Final = 7
ENDED_BY_SIGNAL: Final = 128
"""Added to the number of the signal."""

SPECIAL: Final[Mapping[str, Mapping[int, str]]] = {
    "run": {
        NOTHING_UNDERSTOOD: "with --once, no line of the input was understood",
        PARTLY_READ: "with --once, some files could not be read, or not to their ends",
    },
    "explain": {
        DONE: "the report is complete",
        NOTHING_UNDERSTOOD: "no line of the input was understood, or none names a group",
        PARTLY_READ: "some files could not be read, or not to their ends",
        NEEDS_ATTENTION: "with --fail-on, an entry has that severity or a higher one",
        NOT_JUDGED: "with --fail-on, no entry has it, but not everything could be judged",
    },
    "report": {
        DONE: "the report is complete",
        NEEDS_ATTENTION: "with --fail-on, an entry has that severity or a higher one",
        NOT_JUDGED: "with --fail-on, no entry has it, but not everything could be judged",
    },
    "inspect": {
        DONE: "some line was understood",
        NOTHING_UNDERSTOOD: "none was",
        PARTLY_READ: "some files could not be read, or not to their ends",
    },
    "evidence": {DONE: "all lines were found", UNUSABLE: "a line was not found, or there is no such row"},
    "check": {
        DONE: "every law holds",
        FAILED: "a law is broken",
        UNUSABLE: "there is no lakehouse",
        PARTLY_READ: "no law is broken, but lines of evidence were not found",
    },
    "generate": {DISK_FULL: "a disk is full: the lines written so far stay in the logs"},
    "alert": {DONE: "done, or stopped by a signal", FAILED: "with --test, a receiver did not take the sample"},
    "health": {DONE: "all is well", FAILED: "something is wrong", UNUSABLE: "there is nothing to judge by"},
}
"""By command, what codes mean to it alone."""


def line(command: str) -> str:
    """The codes of a command that are special, as its help shows them."""
    return f"Exit codes: {', '.join(f'{code} {meaning}' for code, meaning in SPECIAL[command].items())} (docs/exit-codes.md)."
