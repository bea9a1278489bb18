"""Finds the log files that a shipper follows: those of one broker, or those of the pods of a Kubernetes node that run brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.common.errors import UserError
from jobs.kafka.ship_state import ShipTarget
from jobs.logs.bytes import LogBytes, open_log
from jobs.logs.content.tree import look_through
from jobs.logs.content.verdict import Writer
from jobs.logs.files import LogFile, file_name_text, head_of, is_log_name
from jobs.logs.record_judge import is_record_file, record_source

_POD_PARTS: Final = 3


@dataclass(frozen=True)
class Pods:
    """The containers of a Kubernetes node that run brokers. Each part may have the wildcards of a shell.

    The kubelet keeps their logs in `<namespace>_<pod>_<uid>/<container>/N.log`. No name of the first three can contain `_`.
    """

    namespace: str
    pod: str
    container: str

    @classmethod
    def parse(cls, text: str) -> Pods:
        """`kafka/production-kafka-*`, or with a container `kafka/production-kafka-*/kafka`. UserError: neither of these."""
        parts = text.split("/")
        if not 2 <= len(parts) <= _POD_PARTS or not all(parts) or "_" in text:
            raise UserError(f"--pods {text}: write NAMESPACE/POD or NAMESPACE/POD/CONTAINER, such as kafka/production-kafka-*")
        return cls(*parts, *["*"] * (_POD_PARTS - len(parts)))

    def __str__(self) -> str:
        return f"{self.namespace}/{self.pod}/{self.container}"

    def pod_of(self, folder: str) -> str | None:
        """The name of the pod that this folder is of; None if it is of no broker."""
        parts = folder.split("_")
        if len(parts) != _POD_PARTS or not fnmatchcase(parts[0], self.namespace) or not fnmatchcase(parts[1], self.pod):
            return None
        return parts[1]


@dataclass
class Finder:
    """Lists the logs of one broker: those in folders, and files that were named together with their rotated ones.

    With `pods` the folders are those of a kubelet, and each pod is a broker of its name.
    """

    inputs: Sequence[Path]
    target: ShipTarget
    complain: Callable[[str], None]
    pods: Pods | None = None
    open_file: Callable[[Path], LogBytes] = open_log

    def __post_init__(self) -> None:
        self._unreadable: set[Path] = set()
        for path in self.inputs:
            if not path.exists():
                raise UserError(f"--input {path}: no such file or folder")
            if self.pods is not None and not path.is_dir():
                raise UserError(f"--input {path}: no folder; with --pods give the kubelet's, /var/log/pods")

    def __call__(self) -> list[LogFile]:
        """All files that can be read now, each once, in a fixed order."""
        files: dict[Path, LogFile] = {}
        for root in self.inputs:
            for file in self._in_folder(root) if root.is_dir() else self._beside(root):
                if self._readable(file.path):
                    files.setdefault(file.path.resolve(), file)
        return sorted(files.values())

    def _in_folder(self, root: Path) -> list[LogFile]:
        if self.pods is not None:
            return list(self._of_pods(root, self.pods))
        return [self._log(root.joinpath(*found.parts), found.parts, found.writer) for found in look_through(root).logs]

    def _of_pods(self, root: Path, pods: Pods) -> Iterator[LogFile]:
        """The logs of all containers of brokers. A pod that starts anew has another folder, and is the same broker."""
        for folder in sorted(root.iterdir()):
            pod = pods.pod_of(folder.name)
            if pod is None:
                continue
            for parts in sorted(found.parts for found in look_through(folder).logs):
                if len(parts) > 1 and fnmatchcase(parts[0], pods.container):
                    yield LogFile(self.target.cluster, pod, file_name_text("/".join(parts)), folder.joinpath(*parts))

    def _beside(self, path: Path) -> list[LogFile]:
        """A file that was named, and the rotated files of this log: server.log.1, server.log.2026-11-21-06.gz."""
        try:
            names = sorted(other.name for other in path.parent.iterdir())
        except OSError:
            return []
        rotated = [n for n in names if n == path.name or (n.startswith((f"{path.name}.", f"{path.name}-")) and is_log_name(n))]
        return [self._log(path.with_name(name), (name,)) for name in rotated if path.with_name(name).is_file()]

    def _log(self, path: Path, parts: tuple[str, ...], writer: Writer = Writer.UNKNOWN) -> LogFile:
        broker, origin = self.target.broker, file_name_text("/".join(parts))
        if writer is Writer.CLIENT and broker != CLIENTS:
            broker = CLIENTS
        elif is_record_file(path.name) and writer is Writer.UNKNOWN:
            broker = parts[-2] if len(parts) > 1 else _record_source(path)
        elif CLIENTS in parts[:-1]:
            broker = CLIENTS
        elif broker == CLIENTS:
            origin = f"{CLIENTS}/{origin}"
        return LogFile(self.target.cluster, broker, origin, path)

    def _readable(self, path: Path) -> bool:
        """Whether a file can be read; complains once if not."""
        try:
            self.open_file(path).close()
        except FileNotFoundError:
            return False  # rotated away since it was listed
        except OSError as error:
            if path not in self._unreadable:
                self._unreadable.add(path)
                self.complain(f"{path}: cannot be read: {error.strerror}")
            return False
        self._unreadable.discard(path)
        return True


def _record_source(path: Path) -> str:
    try:
        return record_source(head_of(path))
    except OSError:  # who opens it next says so
        return record_source(b"")
