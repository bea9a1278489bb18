"""A Spark standalone cluster of processes on this machine: a master and workers, whose executors know nothing of this project.

Every worker has a core, a folder of its own, an environment of its own, and a Python that sees no installed package but Spark's library. It
would have that from archives, too, and compile it at each start: a busy machine takes longer for that than Spark waits, which is 10 s.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import psutil
import pyspark

from jobs.pipeline.session import COMPILE_LESS, archived_classes
from tests.waiting import wait_until

if TYPE_CHECKING:
    from typing_extensions import Self

PROJECT = Path(__file__).resolve().parents[2]
SPARK_HOME = Path(pyspark.__file__).parent
_NOTHING: Mapping[str, str] = MappingProxyType({})


def kill(process: subprocess.Popen) -> None:
    """kill -9 of a process and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Cluster:
    """A master and as many workers as were started. A context: everything ends with it."""

    def __init__(self, folder: Path, shipped: Path, store: Mapping[str, str] = _NOTHING, credentials: Mapping[str, str] = _NOTHING) -> None:
        """`shipped`: the archive with the packages of the executors. `store`: what the driver's machine knows of an object store.

        `credentials`: what the machines of the workers know of it, as instances with a role have.
        """
        self.folder = folder
        self.store = store
        self.credentials = credentials
        self.shipped = shipped
        library = folder / "spark-library"
        library.mkdir()
        for name in ("pyspark", "py4j"):
            (library / name).symlink_to(SPARK_HOME.parent / name)
        self.bare_python = folder / "bare-python"
        interpreter = Path(sys._base_executable).resolve()
        self.bare_python.write_text(f'#!/bin/sh\nPYTHONPATH="{library}:$PYTHONPATH" exec "{interpreter}" -S "$@"\n')  # -S: no site-packages
        self.bare_python.chmod(0o755)
        self._processes: list[subprocess.Popen] = []
        self._master = self._daemon("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.url = wait_until(lambda: self._said("master", r"Starting Spark master at (spark://\S+)")).group(1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            if process.poll() is None:
                kill(process)

    @property
    def environment(self) -> dict[str, str]:
        """What master, workers and executors know: nothing of Python's paths, nor of this project's."""
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME", "HOME") if name in os.environ}
        daemons = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": _quick_start()}
        return kept | daemons | {"SPARK_HOME": str(SPARK_HOME), "SPARK_LOCAL_IP": "127.0.0.1"}

    def start_worker(self, name: str) -> subprocess.Popen:
        """A worker with one core, known to the master. Its executors are in its process group."""
        folder = self.folder / name
        arguments = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0", "--cores", "1", "--memory", "1g", "--work-dir", str(folder))
        worker = self._daemon(name, "worker.Worker", *arguments, self.url, known=self.credentials)
        wait_until(lambda: self._said(name, "Successfully registered with master"))
        return worker

    def kill_executors(self) -> None:
        """kill -9 of the executors that run. Their workers start others."""
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                    process.kill()

    def submit(self, name: str, *arguments: object, ship: tuple[str, ...] | None = None) -> subprocess.Popen:
        """`spark-submit` from the project's folder. `name`: of its log, and of the log of its events."""
        events = self.folder / name
        events.mkdir(exist_ok=True)
        log = f"-Dlog4j2.configurationFile=conf/log4j2.properties -Drebalance.log={events}.spark.log"
        quick = _quick_start()
        settings = {
            "spark.executor.memory": "1g",
            "spark.driver.memory": "1g",
            "spark.executor.extraJavaOptions": quick,
            "spark.driver.extraJavaOptions": f"{quick} {log}",
            "spark.pyspark.driver.python": sys.executable,
            "spark.pyspark.python": str(self.bare_python),
            "spark.sql.shuffle.partitions": "4",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": events.as_uri(),
            "spark.eventLog.compress": "false",
            "spark.eventLog.rolling.enabled": "false",
            "spark.eventLog.buffer.kb": "1k",
        }
        if ship is None:
            ship = ("--archives", f"{self.shipped}#packages", "--conf", "spark.executorEnv.PYTHONPATH=packages")
        if any(str(argument).startswith("s3://") for argument in arguments):
            settings["spark.jars"] = ".jars/*.jar,.jars-s3/*.jar"
        command = [SPARK_HOME / "bin" / "spark-submit", "--properties-file", "conf/spark-defaults.conf", "--master", self.url, *ship]
        for key, value in settings.items():
            command += ["--conf", f"{key}={value}"]
        return self._start(name, [*command, *arguments], PROJECT, self.store)

    def output(self, name: str) -> str:
        """What a process said."""
        return (self.folder / f"{name}.log").read_text()

    def events(self, name: str) -> Iterator[dict[str, Any]]:
        """Spark's own account of an application: its event log, as far as it is written."""
        for path in (self.folder / name).iterdir():
            whole, _, _ = path.read_text().rpartition("\n")  # that of a killed driver may end anywhere
            for line in whole.splitlines():
                yield json.loads(line)

    def _said(self, name: str, pattern: str) -> re.Match[str] | None:
        return re.search(pattern, self.output(name))

    def _daemon(self, name: str, java_class: str, *arguments: str, known: Mapping[str, str] = _NOTHING) -> subprocess.Popen:
        command = [SPARK_HOME / "bin" / "spark-class", f"org.apache.spark.deploy.{java_class}", *arguments]
        return self._start(name, command, self.folder, known)

    def _start(self, name: str, command: list[object], folder: Path, known: Mapping[str, str]) -> subprocess.Popen:
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(
                list(map(str, command)), stdout=log, stderr=log, cwd=folder, env={**self.environment, **known}, start_new_session=True
            )
        self._processes.append(process)
        return process


def _quick_start() -> str:
    """Options of JVMs that live for a minute."""
    return " ".join([COMPILE_LESS, "-XX:+UseSerialGC", *archived_classes()])


def plain_logs(recording: Path, target: Path) -> Path:
    """One broker's logs as a cluster of their own."""
    shutil.copytree(recording / "broker-2", target / "c" / "broker-2")
    return target
