"""Puts the JARs that Spark needs for Delta and Kafka into `.jars/`, with all they depend on; `kafka`: a broker's, into `.jars-kafka/`.

Spark's own resolver (Ivy) does the work, so nothing but Python and Java has to be there. Its cache is `.ivy/` in the
project: what other programs left in ~/.ivy2 or ~/.m2 does not decide what we run with. The stamp names the
coordinates, so a later start neither resolves nor asks the network.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyspark

PROJECT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))

from jobs.common.places import COORDINATES, KAFKA_COORDINATES, KAFKA_VERSION, OTHER_KAFKA, jar_dir, kafka_jar_dir  # noqa: E402 - a script: the project is not on the path before

SPARK_HOME: Final = Path(pyspark.__file__).parent
IVY_CACHE: Final = PROJECT / ".ivy"
LOG: Final = IVY_CACHE / "resolve.log"
ATTEMPTS: Final = 3
STAMP: Final = "resolved.txt"


class ResolveError(RuntimeError):
    """The JARs cannot be had. The message is what the user reads."""


def main(arguments: Sequence[str] = ()) -> int:
    """Resolves unless the stamp says that it was done. Arguments: spark (default), or kafka, and which release of it if it is another."""
    of_kafka = list(arguments[:1]) == ["kafka"]
    version = arguments[1] if len(arguments) > 1 else KAFKA_VERSION
    target, coordinates = (kafka_jar_dir(version), {**OTHER_KAFKA, KAFKA_VERSION: KAFKA_COORDINATES}[version])
    if not of_kafka:
        target, coordinates = jar_dir(), COORDINATES
    stamp = target / STAMP
    wanted = "\n".join(coordinates) + "\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        stamp.touch()  # newer than the files that make compares it with
        return 0
    name = "Kafka" if of_kafka else "Spark"
    say(f"resolving {len(coordinates)} {name} packages into {target.name}/ (about 1 minute the first time) ...")
    try:
        found = resolve(coordinates)
        copied = copy_kafka(found, target) if of_kafka else copy_needed(found, target)
    except ResolveError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    stamp.write_text(wanted)
    say(f"{len(copied)} JARs in {target.name}/")
    return 0


def resolve(coordinates: Sequence[str]) -> list[Path]:
    """Runs spark-submit on an empty program, which makes Ivy fetch the packages; returns the fetched JARs."""
    IVY_CACHE.mkdir(exist_ok=True)
    settings = Path(os.environ.get("REBALANCE_IVY_SETTINGS") or PROJECT / "conf" / "ivysettings.xml")
    retrieved = IVY_CACHE / "jars"
    for attempt in range(1, ATTEMPTS + 1):
        shutil.rmtree(retrieved, ignore_errors=True)  # an older version's JARs must not come along
        with tempfile.TemporaryDirectory() as folder, LOG.open("w") as log:
            program = Path(folder) / "nothing.py"
            program.touch()
            command = [
                str(SPARK_HOME / "bin" / "spark-submit"),
                *("--packages", ",".join(coordinates)),
                *("--conf", f"spark.jars.ivy={IVY_CACHE}"),
                *("--conf", f"spark.jars.ivySettings={settings.resolve().as_uri()}"),
                str(program),
            ]
            environment = os.environ | {"SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable}
            done = subprocess.run(command, check=False, stdout=log, stderr=subprocess.STDOUT, env=environment)
        jars = sorted(retrieved.glob("*.jar"))
        if done.returncode == 0 and jars:
            return jars
        if attempt < ATTEMPTS:
            say(f"attempt {attempt} of {ATTEMPTS} failed ({reason()}), trying again ...")
            time.sleep(5 * attempt)
    raise ResolveError(f"cannot resolve the packages ({reason()}). Is Maven Central reachable? Log: {LOG}")


def reason() -> str:
    """Why Ivy failed, in a few words of its log."""
    text = LOG.read_text(errors="replace")
    if "UnknownHostException" in text:
        return "host not found: no network?"
    found = re.search(
        r"Connection timed out|Connection refused|PKIX path|Permission denied|No space left|unresolved dependency: \S+",
        text,
    )
    return found.group() if found else "an unexpected error"


def copy_needed(jars: list[Path], target: Path) -> list[Path]:
    """Copies what Spark does not bring itself into `target`, which holds nothing else afterwards.

    Spark loads its own classes first, so a second Hadoop or Jackson would only be copied around at every start.
    """
    of_spark = {artifact(path.name) for path in (SPARK_HOME / "jars").glob("*.jar")}
    needed = {path.name.partition("_")[2]: path for path in jars}  # Ivy names them organisation_artifact-version.jar
    needed = {name: path for name, path in needed.items() if artifact(name) not in of_spark}
    if not any(name.startswith("delta-spark") for name in needed):
        raise ResolveError(f"Ivy found {len(jars)} JARs, but not Delta. Log: {LOG}")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    return [Path(shutil.copyfile(path, target / name)) for name, path in sorted(needed.items())]


def copy_kafka(jars: list[Path], target: Path) -> list[Path]:
    """Copies a broker's JARs into `target`, which holds nothing else afterwards.

    Ivy, as Spark sets it up, leaves Scala's library to Spark.
    """
    library = sorted((SPARK_HOME / "jars").glob("scala-library-2.13.*.jar"))
    if not library or not any(path.name.startswith("org.apache.kafka_kafka_2.13") for path in jars):
        raise ResolveError(f"found {len(jars)} JARs, but not Kafka and Scala. Log: {LOG}")
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    return [Path(shutil.copyfile(path, target / path.name)) for path in (*jars, library[-1])]


def artifact(name: str) -> str:
    """`delta-storage-4.4.0.jar` -> `delta-storage`."""
    return re.sub(r"-\d[^/]*\.jar$", "", name)


def say(text: str) -> None:
    """One line of progress."""
    print(text, flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
