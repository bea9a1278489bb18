"""Keeps the classes of Spark as the JVM holds them in memory, in `.jars/classes.jsa`: a run then starts in half the time.

The JVM writes the archive (class data sharing, JEP 350) at the end of a short run of the pipeline. It maps it into memory at later starts,
if Java and Spark are still the same, and ignores it otherwise. Without the archive everything works, and starts more slowly.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1" / "broker-2"


def main() -> int:
    """Makes the archive in a process of its own. A failure is told, and is no error: only the start is slower."""
    from jobs.common.places import class_archive

    archive = class_archive()
    archive.unlink(missing_ok=True)
    print("archiving the classes of Spark (about 30 seconds, once) ...", flush=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "scripts.build.archive_classes", "run"]
    ended = subprocess.run(command, cwd=PROJECT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode == 0 and archive.is_file():
        print(f"{archive.stat().st_size >> 20} MB in {archive} after {time.monotonic() - started:.0f} s")
    else:
        print("this Java keeps no archive of classes; Spark will take some seconds more to start", file=sys.stderr)
    return 0


def run_pipeline() -> None:
    """A run with the logs of one broker. The JVM writes the archive as it ends."""
    from pyspark import SparkContext

    from jobs.common.places import class_archive
    from jobs.common.settings import Settings
    from jobs.pipeline.run import run
    from jobs.pipeline.session import local_defaults, spark_session

    options = local_defaults(once=True)["spark.driver.extraJavaOptions"]
    archiving = {"spark.driver.extraJavaOptions": f'{options} "-XX:ArchiveClassesAtExit={class_archive()}"'}
    spark = spark_session("archive", conf=archiving, once=True)
    with tempfile.TemporaryDirectory() as folder:
        run(RECORDING, Path(folder) / "lakehouse", settings=Settings(shards=2), once=True, spark=spark)
    spark.stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - the JVM writes after Spark has stopped, when its standard input ends
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


if __name__ == "__main__":
    sys.path.insert(0, str(PROJECT))
    if sys.argv[1:] == ["run"]:
        run_pipeline()
    else:
        sys.exit(main())
