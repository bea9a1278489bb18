"""Commands of `rebalance` as child processes, and the rows that they write as they come."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from jobs.common.places import PROJECT
from jobs.demo.bound import bound

if TYPE_CHECKING:
    from typing_extensions import Self

STOP_SECONDS: Final = 60


class Command:
    """`rebalance run`, `ship` and others: started, stopped as by systemd. Use it as a context: it is killed if nobody stopped it."""

    def __init__(self, *arguments: str, log: Path) -> None:
        """`log`: a file for what it says."""
        self.name = arguments[0]
        self.log = log
        self.stopped = False
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as said:
            self._process = subprocess.Popen(  # noqa: S603
                bound(sys.executable, "-m", "jobs.cli", *arguments),
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                cwd=PROJECT,
                start_new_session=True,  # Ctrl-C is for us
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.kill()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        self.stopped = True
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """SIGKILL, unless it has ended."""
        self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """The last line that it wrote."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").replace("\r", "\n").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")


class NewRows:
    """The rows that were added to a table since the last look. It need not be there yet; nobody may put its files together meanwhile."""

    def __init__(self, lakehouse: Path, table: str) -> None:
        self._folder = lakehouse / table
        self._known: set[str] = set()

    def take(self) -> list[dict[str, Any]]:
        """Those that came, each once."""
        try:
            names = {uri.rpartition("/")[2] for uri in DeltaTable(str(self._folder)).file_uris()}
        except TableNotFoundError:
            return []
        new = sorted(names - self._known)
        self._known |= names
        return [row for name in new for row in pq.read_table(self._folder / name).to_pylist()]
