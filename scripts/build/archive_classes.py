"""Keeps the classes of Spark, or of a Kafka broker, as the JVM holds them in memory: its next start takes half the time.

The JVM writes the archive (class data sharing, JEP 350) beside the JARs, `classes.jsa`, at the end of a short run. It maps it into
memory at later starts, if Java and the JARs are still the same, and ignores it otherwise. Without the archive everything works, and starts
more slowly.

`python -m scripts.build.archive_classes` for Spark, `python -m scripts.build.archive_classes kafka` for the broker.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1" / "broker-2"


def main(arguments: Sequence[str]) -> int:
    """Makes the archive in a process of its own. A failure is told, and is no error: only the start is slower."""
    from jobs.common.places import class_archive, jar_dir, kafka_jar_dir

    program, jars, seconds = ("kafka", kafka_jar_dir(), 10) if arguments[:1] == ["kafka"] else ("spark", jar_dir(), 30)
    archive = class_archive(jars)
    archive.unlink(missing_ok=True)
    print(f"archiving the classes of {program.capitalize()} (about {seconds} seconds, once) ...", flush=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "scripts.build.archive_classes", "run", program, str(archive)]
    ended = subprocess.run(command, cwd=PROJECT, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode == 0 and archive.is_file():
        print(f"{archive.stat().st_size >> 20} MB in {archive} after {time.monotonic() - started:.0f} s")
    else:
        print(f"this Java keeps no archive of classes; {program.capitalize()} will take some seconds more to start", file=sys.stderr)
    return 0


def run_pipeline(archive: str) -> None:
    """A run with the logs of one broker. The JVM writes the archive as it ends."""
    from pyspark import SparkContext

    from jobs.common.settings import Settings
    from jobs.pipeline.run import run
    from jobs.pipeline.session import local_defaults, spark_session

    options = local_defaults(once=True)["spark.driver.extraJavaOptions"]
    archiving = {"spark.driver.extraJavaOptions": f'{options} "-XX:ArchiveClassesAtExit={archive}"'}
    spark = spark_session("archive", conf=archiving, once=True)
    with tempfile.TemporaryDirectory() as folder:
        run(RECORDING, Path(folder) / "lakehouse", settings=Settings(shards=2), once=True, spark=spark)
    spark.stop()
    gateway = SparkContext._gateway  # noqa: SLF001 - the JVM writes after Spark has stopped, when its standard input ends
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def run_broker(archive: str) -> None:
    """A broker that takes a record and lets a group of each protocol read it. The JVM writes the archive as it ends."""
    from confluent_kafka import Consumer, Producer

    from jobs.demo.local_broker import LocalBroker

    with tempfile.TemporaryDirectory() as folder, LocalBroker(Path(folder), java_options=[f"-XX:ArchiveClassesAtExit={archive}"]) as broker:
        broker.create_topic("t", partitions=1)
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce("t", b"a record")
        producer.flush()
        del producer  # or it complains that the broker goes away
        for protocol in ("classic", "consumer"):
            group = {"group.id": protocol, "group.protocol": protocol, "auto.offset.reset": "earliest"}
            consumer = Consumer({"bootstrap.servers": broker.bootstrap, **group})
            consumer.subscribe(["t"])
            while (message := consumer.poll()) is None or message.error():
                pass
            consumer.commit(message, asynchronous=False)
            consumer.close()


if __name__ == "__main__":
    sys.path.insert(0, str(PROJECT))
    if sys.argv[1:2] == ["run"]:
        {"spark": run_pipeline, "kafka": run_broker}[sys.argv[2]](sys.argv[3])
    else:
        sys.exit(main(sys.argv[1:]))
