"""Errors that a user can do something about. The command line shows each in one line."""

from __future__ import annotations

from pathlib import Path


class UserError(Exception):
    """The command cannot work as it was called. The message is one line for the user; exit code UNUSABLE."""


class SettingsError(UserError, ValueError):
    """A setting that cannot be used."""


class LakehouseError(UserError):
    """The lakehouse does not exist or cannot be read."""


class StoreError(UserError, OSError):
    """An object store does not do what it was asked for."""

    def __str__(self) -> str:
        return str(self.strerror)


class MissingTableError(LakehouseError):
    """The lakehouse has no such table yet."""


class QuestionError(UserError):
    """There is no such question, or it has no such parameter or value."""


class EvidenceError(UserError):
    """The lines that prove a row cannot be shown."""


class DiskFullError(Exception):
    """A disk or a quota is full; exit code DISK_FULL. The message is one line for the user."""


class QueryFailedError(Exception):
    """A stage failed while it worked; exit code FAILED. The message is its root cause in one line, `log` has the rest, if there is one."""

    def __init__(self, stage: str, cause: str, log: Path | None = None) -> None:
        super().__init__(f"{stage} failed: {cause}")
        self.log = log
