"""The one way to a SparkSession, from the command line, from spark-submit and in tests.

conf/spark-defaults.conf has the settings and their reasons. spark-submit passes the file to the JVM itself. Without it,
this module reads the file and adds what depends on the machine: the places of the JARs and the number of cores.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from jobs.common import store_clients
from jobs.common.java import archive_options
from jobs.common.places import (
    COORDINATES,
    PROJECT,
    S3_COORDINATES,
    S3_WITHOUT,
    class_archive,
    data_folder,
    jar_dir,
    jar_paths,
    kept_folder,
    s3_jar_dir,
)

CONF: Final = data_folder("conf", "spark-defaults.conf")
"""The folder of the settings files."""

_LOG4J: Final = "-Dlog4j2.configurationFile="
_SPARE_SLOTS: Final = 2  # of a run that follows its input: ingest takes a slot for each core, and track would wait for them at every step
# The JVM only plans and moves bytes, so its second compiler does not pay: with 1,500,000 lines it took 38 of 93 s of the JVM, and half of
# its time in the third minute of a run that followed 75 lines per second. With this option the JVM keeps 48 MB of compiled code by
# default, which a dozen micro-batches fill; then it stops compiling for good and everything runs interpreted (7 s a batch instead of 2).
COMPILE_LESS: Final = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"
# With 2 GB a region has 1 MB by default. An array of half a region is on its own, and each starts to collect: live, 70 of 128 collections.
_ROOM_FOR_ARRAYS: Final = "-XX:G1HeapRegionSize=8m"

S3: Final = {
    # A file is there when its stream is closed. The manager of the file would write another one and copy it to its place.
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager",
    # Spark itself looks whether a file of a checkpoint is there. Without this, S3A looks once more: 45 requests for a micro-batch, not 36.
    "spark.hadoop.fs.s3a.performance.flags": "create",
    # S3A keeps what it is about to send on the disk, and takes no other class for it. By then spark-submit has one of the other class.
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
    "spark.hadoop.fs.file.impl.disable.cache": "true",
}
"""Settings for checkpoints on S3, which override those of the file."""
_CREDENTIALS: Final = {
    # AWS's own chain. That of S3A leaves out profiles and web identities (IRSA).
    "spark.hadoop.fs.s3a.aws.credentials.provider": "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
}


def spark_session(app_name: str, *, conf: Mapping[str, str] | None = None, once: bool = False, s3: bool = False) -> SparkSession:
    """The running session, or a new one with the project's defaults.

    Options of spark-submit override these defaults, and `conf`, which the caller needs, overrides both. `once`: the session
    ends with its input, so ingest and track need not run side by side at every moment. `s3`: its checkpoints are there, and a driver
    that is its own cluster gets the JARs for it.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit started the JVM, and then this process
        SparkContext._ensure_initialized()  # noqa: SLF001 - else SparkConf() lacks the settings of the JVM
        settings = _sql_defaults() | dict(SparkConf().getAll())
    else:
        settings = local_defaults(once=once, s3=s3)
        _start_installed_python()
    if s3:
        settings = _CREDENTIALS | settings | S3 | store_clients.spark_settings()
    if is_local(settings["spark.master"]):
        # Workers run the interpreter of this process, not the first python3 on the PATH. On another machine it may have another path.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    for key, value in (settings | dict(conf or {})).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    if not is_local(session.sparkContext.master):
        _tell_workers(session.sparkContext.environment)
    return session


def _start_installed_python() -> None:
    """Has the JVM that this process is about to start run Python without Spark's zips."""
    starter = CONF / "installed-python"
    if os.name == "posix" and os.access(starter, os.X_OK):  # not in a folder whose files must not run
        os.environ.setdefault("PYSPARK_PYTHON", str(starter))
        os.environ["REBALANCE_PYTHON"] = sys.executable


def _tell_workers(environment: dict[str, str]) -> None:
    """Adds to the environment of all Python that Spark starts for a cluster: where the store is, and where this machine has its packages.

    Spark plans the micro-batches of our sources in a process beside the driver, in its working directory, which has the executors'
    interpreter and not the driver's. Relative paths lead to these folders from there, and from no executor.
    """
    here = dict.fromkeys(os.path.relpath(path) for path in (PROJECT, sysconfig.get_path("purelib"), sysconfig.get_path("platlib")))
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [environment.get("PYTHONPATH"), *here]))
    environment.update(store_clients.whereabouts())


def _sql_defaults() -> dict[str, str]:
    """The settings of the file that a running JVM can still take: not its memory, class path or log."""
    settings = read_defaults(CONF / "spark-defaults.conf")
    return {key: value for key, value in settings.items() if key.startswith(("spark.sql.", "spark.databricks."))}


def local_defaults(*, once: bool = False, s3: bool = False) -> dict[str, str]:
    """Settings of the file for a driver that is its own cluster, with places and sizes filled in.

    Places are URIs, because Spark fails on a plain path with a blank in it.
    """
    settings = read_defaults(CONF / "spark-defaults.conf")
    # Spark repeats a task whose Python worker was killed before the query fails.
    settings["spark.master"] = "local[*, 3]"
    settings["spark.python.daemon.module"] = "jobs.pipeline.python_daemon"
    # The name of this host need not resolve, and no other host should reach the driver.
    settings["spark.driver.bindAddress"] = settings["spark.driver.host"] = "127.0.0.1"
    if not once:
        settings |= {"spark.master": f"local[{_cores() + _SPARE_SLOTS}, 3]", "spark.default.parallelism": str(_cores())}
    log4j = f"{_LOG4J}{(CONF / 'log4j2.properties').as_uri()}"
    options = [*settings["spark.driver.extraJavaOptions"].split(), COMPILE_LESS, _ROOM_FOR_ARRAYS, *archived_classes()]
    settings["spark.driver.extraJavaOptions"] = " ".join(log4j if text.startswith(_LOG4J) else text for text in options)
    del settings["spark.jars"]
    sets = [(COORDINATES, jar_dir()), *([(S3_COORDINATES, s3_jar_dir())] if s3 else [])]
    if jars := [path for _, folder in sets for path in jar_paths(folder)]:
        settings["spark.jars"] = ",".join(Path(path).as_uri() for path in jars)
    if missing := [one for coordinates, folder in sets if not jar_paths(folder) for one in coordinates]:
        settings["spark.jars.packages"] = ",".join(missing)
        settings["spark.jars.excludes"] = ",".join(S3_WITHOUT)
        settings["spark.jars.ivySettings"] = (CONF / "ivysettings.xml").as_uri()
        settings["spark.jars.ivy"] = str(kept_folder("ivy"))
    return settings


def archived_classes() -> list[str]:
    """Options of Spark's JVM, each in quotes, if the archive of its classes was made."""
    return [f'"{option}"' for option in archive_options(class_archive(jar_dir()))]


def _cores() -> int:
    """Cores that this process may use: a container's share, where the system reports it."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_defaults(path: Path) -> dict[str, str]:
    """A Spark properties file: `key value` lines, blank lines and # comments."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    pairs = (line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    return {key: value.strip() for key, value in pairs}


def is_local(master: str | None) -> bool:
    """Whether the driver is its own executor."""
    return master is not None and (master == "local" or master.startswith("local["))
