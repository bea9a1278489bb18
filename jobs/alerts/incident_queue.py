"""What a receiver has not got yet of incidents of which no finding tells: a crash that the broker's own log alone shows.

The table of incidents is written as a whole, so its rows have no place: those that need not be sent any more are known by what they are.
A crash waits until what it did to groups is known: what findings tell of it by then is sent instead, so no crash is told twice.
"""

from __future__ import annotations

import time
from typing import Final

import msgspec

from coordinator_model.diagnosis.incidents import OVER_MS
from jobs.alerts.finding import Finding, of_incidents, wanted_by
from jobs.alerts.queue import Position
from jobs.common.alert_settings import ReceiverSettings
from jobs.common.errors import LakehouseError
from jobs.common.files import write_whole
from jobs.common.stores import Place
from jobs.lakehouse import opening
from jobs.lakehouse.delta_files import data_files
from schemas.names import INCIDENTS

_KEPT: Final = 10_000
_HELD_MS: Final = OVER_MS + 30_000  # groups tell of a broker's trouble once it is over for them, and the pipeline is some seconds behind
_NO_PLACE: Final = Position(0)


class IncidentQueue:
    """What waits in `incidents` for one receiver: a queue as jobs/alerts/queue.py has it."""

    def __init__(self, lakehouse: Place, notes: Place, receiver: ReceiverSettings, max_age_ms: int) -> None:
        self.old = 0  # those that are left out because they were too old when they were found
        self._lakehouse, self._file = lakehouse, notes / f"{receiver.name}.json"
        self._receiver, self._max_age_ms = receiver, max_age_ms
        self._done: dict[str, None] = {}  # by key: what was sent, or need not be
        self._found: list[Finding] = []  # of the table at the last look: what is to be sent, now or later
        self._found_ms = 0  # when that was written
        self._left: list[Finding] = []  # what is to be sent now
        self._log: tuple[str, int] | None = None  # of the table at the last look

    @property
    def waiting(self) -> int:
        """Findings that the receiver has not got yet."""
        return len(self._left)

    def start(self) -> None:
        """Notes what is there, where nobody sent before. LakehouseError: the note of an earlier process is damaged."""
        try:
            self._done = dict.fromkeys(msgspec.json.decode(self._file.read_bytes(), type=list[str]))
        except FileNotFoundError:
            self._note(of_incidents(self._lakehouse))
        except (OSError, msgspec.MsgspecError):
            raise LakehouseError(f"{self._file} is damaged: delete it; alerts then begin with the next incident") from None

    def look(self) -> None:
        """Counts what came."""
        log = opening.version_of(self._lakehouse / INCIDENTS)
        if log is not None and log != self._log:
            self._found = [one for one in of_incidents(self._lakehouse) if wanted_by(self._receiver, one)]
            self._found_ms = max((file.written_ms for file in data_files(opening.opened(self._lakehouse / INCIDENTS))), default=0)
            self._log = log
        until_ms = time.time_ns() // 1_000_000 - _HELD_MS
        self._left = [one for one in self._found if one.key not in self._done and min(one.occurred_ms, self._found_ms) <= until_ms]
        if old := [one for one in self._left if one.occurred_ms < self._found_ms - self._max_age_ms]:
            self.old += len(old)
            self._note(old)

    def take(self, most: int) -> list[tuple[Position, Finding]]:
        """What the next message tells."""
        return [(_NO_PLACE, one) for one in self._left[:most]]

    def done(self, batch: list[tuple[Position, Finding]]) -> None:
        """They were sent, or are given up."""
        self._note([one for _, one in batch])

    def pass_over(self, *, at_once: bool = False) -> None:
        """What is not wanted needs no note."""

    def _note(self, done: list[Finding]) -> None:
        self._done = dict.fromkeys([*self._done, *(one.key for one in done)][-_KEPT:])
        self._left = [one for one in self._left if one.key not in self._done]
        write_whole(self._file, msgspec.json.encode([*self._done]))
