"""Puts the JARs that Spark needs for Delta and Kafka, and their dependencies, into `.jars/`; with `kafka`, a broker's into `.jars-kafka/`.

Spark's own resolver (Ivy) finds them, so only Python and Java have to be there. Its cache is `.ivy/` in the project: what other programs
left in ~/.ivy2 or ~/.m2 has no influence. A stamp names the coordinates, so that a later start neither resolves nor asks the network.
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
    """The JARs cannot be resolved. The message is for the user."""


def main(arguments: Sequence[str] = ()) -> int:
    """Resolves unless the stamp says that it was done. Arguments: none for Spark, or `kafka` and a release of it other than ours."""
    if arguments[:1] == ["kafka"]:
        version = arguments[1] if len(arguments) > 1 else KAFKA_VERSION
        name, target, chosen = "Kafka", kafka_jar_dir(version), broker_jars
        coordinates = {**OTHER_KAFKA, KAFKA_VERSION: KAFKA_COORDINATES}[version]
    else:
        name, target, chosen, coordinates = "Spark", jar_dir(), delta_jars, COORDINATES
    stamp = target / STAMP
    wanted = "\n".join(coordinates) + "\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        stamp.touch()  # newer than the files that make compares it with
        return 0
    say(f"resolving {len(coordinates)} {name} packages into {target.name}/ (about 1 minute the first time) ...")
    try:
        jars = chosen(resolve(coordinates), SPARK_HOME / "jars")
    except ResolveError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for file_name, path in jars.items():
        shutil.copyfile(path, target / file_name)
    stamp.write_text(wanted)
    say(f"{len(jars)} JARs in {target.name}/")
    return 0


def resolve(coordinates: Sequence[str]) -> list[Path]:
    """Runs an empty program with spark-submit, which makes Ivy fetch the packages; returns their JARs."""
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
    """Why Ivy failed, according to its log."""
    text = LOG.read_text(errors="replace")
    if "UnknownHostException" in text:
        return "host not found: no network?"
    problem = re.search(
        r"Connection timed out|Connection refused|PKIX path|Permission denied|No space left|unresolved dependency: \S+",
        text,
    )
    return problem.group() if problem else "an unexpected error"


def delta_jars(jars: Sequence[Path], spark_jars: Path) -> dict[str, Path]:
    """The JARs that Spark lacks, by file name.

    Spark loads its own classes first, so a second Hadoop or Jackson would only be copied around at every start.
    """
    of_spark = {artifact(path.name) for path in spark_jars.glob("*.jar")}
    by_name = {path.name.partition("_")[2]: path for path in jars}  # Ivy names them organisation_artifact-version.jar
    lacking = {name: path for name, path in sorted(by_name.items()) if artifact(name) not in of_spark}
    if not any(name.startswith("delta-spark") for name in lacking):
        raise ResolveError(f"Ivy found {len(jars)} JARs, but not Delta. Log: {LOG}")
    return lacking


def broker_jars(jars: Sequence[Path], spark_jars: Path) -> dict[str, Path]:
    """The JARs of a broker, by file name. Ivy, as Spark sets it up, leaves Scala's library to Spark."""
    library = sorted(spark_jars.glob("scala-library-2.13.*.jar"))
    if not library or not any(path.name.startswith("org.apache.kafka_kafka_2.13") for path in jars):
        raise ResolveError(f"found {len(jars)} JARs, but not Kafka and Scala. Log: {LOG}")
    return {path.name: path for path in (*jars, library[-1])}


def artifact(name: str) -> str:
    """`delta-storage-4.4.0.jar` -> `delta-storage`."""
    return re.sub(r"-\d[^/]*\.jar$", "", name)


def say(text: str) -> None:
    """One line of progress."""
    print(text, flush=True)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
