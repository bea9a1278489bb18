"""Downloads the JARs that Spark needs for Delta and Kafka, for S3, and those of a broker, where they are missing.

Spark's own resolver (Ivy) fetches them from Maven Central, so only Python and Java have to be there. REBALANCE_IVY_SETTINGS names another
settings file, such as one with a mirror. Ivy's cache is a folder of this project: what other programs left in ~/.ivy2 or ~/.m2 has no
influence. A stamp names the coordinates, so that a later start neither resolves nor asks the network.

`python -m jobs.common.jars` fetches those of Spark, `python -m jobs.common.jars s3` those for S3, and
`python -m jobs.common.jars kafka [VERSION]` those of a broker, `python -m jobs.common.jars clients` those of Kafka Streams and Connect: for
make, for images, and for tests.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from jobs.common import places
from jobs.common.errors import UserError
from jobs.common.java import check_java
from jobs.common.places import (
    CLIENTS_COORDINATES,
    CLIENTS_WITHOUT,
    COORDINATES,
    KAFKA_COORDINATES,
    KAFKA_VERSION,
    OTHER_KAFKA,
    S3_COORDINATES,
    S3_WITHOUT,
)

BROKERS: Final = {KAFKA_VERSION: KAFKA_COORDINATES, **OTHER_KAFKA}
"""The releases of Kafka whose brokers can be had."""
SUMS: Final = "jars.sha256"
ATTEMPTS: Final = 3
STAMP: Final = "resolved.txt"
_UNFINISHED: Final = "unfinished\n"
_TELL_SECONDS: Final = 15
_PROBLEMS: Final = (
    "Connection timed out",
    "Connection refused",
    "PKIX path",
    "Permission denied",
    "No space left",
    r"unresolved dependency: \S+",
)

Say = Callable[[str], None]
"""Gets a line of progress."""


@dataclass(frozen=True)
class JarSet:
    """JARs that belong together in one folder. `first`: how the name of one of them begins; the others are there if it is."""

    name: str
    folder: Path
    coordinates: Sequence[str]
    first: str
    without: Sequence[str] = ()  # what Ivy leaves out of what the coordinates need, as group:artifact, with * for any text
    beside_spark: bool = True  # Spark loads its own classes first: a second Hadoop or Jackson would only be copied around at every start

    def is_there(self) -> bool:
        """Whether the stamp says so, or somebody put JARs there by hand."""
        stamp = self.folder / STAMP
        if stamp.is_file():
            return stamp.read_text(encoding="utf-8") == self.stamp()
        return any(self.folder.glob(f"*{self.first}*.jar"))

    def stamp(self) -> str:
        """What the stamp says when all JARs are there."""
        return "\n".join([*self.coordinates, *(f"without {one}" for one in self.without)]) + "\n"

    def ensure(self, say: Say) -> Path:
        """Downloads them unless they are there; returns their folder. UserError: they cannot be had."""
        if self.is_there():
            return self.folder
        check_java()
        ivy = places.kept_folder("ivy")
        try:
            with _alone(ivy, say):
                if not self.is_there():
                    _download(self, ivy, say)
        except OSError as error:
            raise UserError(
                f"cannot keep the JARs of {self.name} in {self.folder}: {error.filename}: {error.strerror}; "
                "REBALANCE_JARS, REBALANCE_S3_JARS and REBALANCE_KAFKA_JARS name other folders, XDG_CACHE_HOME another cache"
            ) from None
        return self.folder

    def chosen(self, found: Sequence[Path], spark_jars: Path) -> dict[str, Path]:
        """Those that the folder gets, by file name. `found`: by Ivy. UserError: the first one is not among them."""
        by_name = {path.name.partition("_")[2]: path for path in sorted(found)}  # Ivy names them organisation_artifact-version.jar
        if not any(file_name.startswith(self.first) for file_name in by_name):
            raise UserError(f"found {len(found)} JARs, but not {self.name}")
        of_spark = {artifact(path.name): path for path in spark_jars.glob("*.jar")}
        if self.beside_spark:
            return {file_name: path for file_name, path in by_name.items() if artifact(file_name) not in of_spark}
        library = of_spark["scala-library"]  # Ivy, as Spark sets it up, leaves it to Spark
        return {**by_name, library.name: library}


def of_spark() -> JarSet:
    """Delta and Spark's Kafka connector."""
    return JarSet("Delta and Spark's Kafka connector", places.jar_dir(), COORDINATES, "delta-spark")


def of_s3() -> JarSet:
    """What Spark needs for S3."""
    return JarSet("Hadoop's client of S3", places.s3_jar_dir(), S3_COORDINATES, "hadoop-aws", S3_WITHOUT)


def of_broker(version: str = KAFKA_VERSION) -> JarSet:
    """A broker of this release. UserError: it is not known here."""
    if version not in BROKERS:
        raise UserError(f"Kafka {version} is not known here; there are {', '.join(BROKERS)}")
    return JarSet(f"Kafka {version}", places.kafka_jar_dir(version), BROKERS[version], "kafka_2.13-", beside_spark=False)


def of_clients() -> JarSet:
    """Kafka Streams and Connect, whose groups tests start."""
    folder = places.kafka_jar_dir("clients")
    return JarSet("Kafka Streams and Connect", folder, CLIENTS_COORDINATES, "kafka-streams", CLIENTS_WITHOUT, beside_spark=False)


@contextmanager
def _alone(folder: Path, say: Say) -> Iterator[None]:
    """While no other process downloads into the same cache."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another process that is downloading JARs ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(wanted: JarSet, ivy: Path, say: Say) -> None:
    say(f"downloading {wanted.name} from Maven Central into {wanted.folder} (once, about a minute) ...")
    target, stamp = wanted.folder, wanted.folder / STAMP
    target.mkdir(parents=True, exist_ok=True)
    # Before anything else: whether it can be written, and that the folder is not whole until the end. The folder itself stays, which
    # may be a mount.
    stamp.write_text(_UNFINISHED, encoding="utf-8")
    spark_jars = _spark_home() / "jars"
    jars = wanted.chosen(resolve(wanted.coordinates, ivy, say, wanted.without), spark_jars)
    check(path for path in jars.values() if path.parent != spark_jars)  # which came with the package of Spark
    for old in [*target.glob("*.jar"), *target.glob("classes.*")]:
        old.unlink()
    for file_name, path in jars.items():
        shutil.copyfile(path, target / file_name)
    stamp.write_text(wanted.stamp(), encoding="utf-8")
    if ivy.parent != places.PROJECT:  # of no use any more; a checkout keeps it, since its coordinates change
        shutil.rmtree(ivy / "cache", ignore_errors=True)
    shutil.rmtree(ivy / "jars", ignore_errors=True)
    say(f"{len(jars)} JARs in {target}, {_megabytes(target):.0f} MB")


def identity(path: Path) -> tuple[str, str]:
    """The file name and the SHA-256 of a JAR that Ivy found."""
    return path.name.partition("_")[2], sha256(path.read_bytes()).hexdigest()


def check(found: Iterable[Path]) -> None:
    """UserError: a file that Ivy found is not the one whose SHA-256 conf/jars.sha256 has."""
    lines = (places.data_folder("conf", SUMS) / SUMS).read_text(encoding="utf-8").splitlines()
    known = {name: digest for digest, name in (line.split() for line in lines)}
    for path in found:
        name, digest = identity(path)
        if known.get(name) != digest:
            raise UserError(
                f"{name} is not the file that this version knows: its SHA-256 is {digest}, not {known.get(name, 'among the known ones')}. "
                "Nothing was kept (docs/security.md)"
            )


def _spark_home() -> Path:
    spark = find_spec("pyspark")
    if spark is None or spark.origin is None:
        raise UserError("PySpark is not installed here: install the package with what it needs")
    return Path(spark.origin).parent


def resolve(coordinates: Sequence[str], ivy: Path, say: Say, without: Sequence[str] = ()) -> list[Path]:
    """Runs an empty program with spark-submit, which makes Ivy fetch the packages, `without` some; returns their JARs."""
    home, retrieved, log = _spark_home(), ivy / "jars", ivy / "resolve.log"
    settings = Path(os.environ.get("REBALANCE_IVY_SETTINGS") or places.data_folder("conf", "ivysettings.xml") / "ivysettings.xml")
    for attempt in range(1, ATTEMPTS + 1):
        shutil.rmtree(retrieved, ignore_errors=True)  # an older version's JARs must not come along
        with tempfile.TemporaryDirectory() as folder, log.open("w") as output:
            program = Path(folder) / "nothing.py"
            program.touch()
            command = [
                str(home / "bin" / "spark-submit"),
                *("--packages", ",".join(coordinates)),
                *(("--exclude-packages", ",".join(without)) if without else ()),
                *("--conf", f"spark.jars.ivy={ivy}"),
                *("--conf", f"spark.jars.ivySettings={settings.resolve().as_uri()}"),
                str(program),
            ]
            environment = os.environ | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)  # noqa: S603
            try:
                code = _wait(process, ivy / "cache", say)
            finally:
                process.kill()
                process.wait()
        jars = sorted(retrieved.glob("*.jar"))
        if code == 0 and jars:
            return jars
        if attempt < ATTEMPTS:
            say(f"attempt {attempt} of {ATTEMPTS} failed ({_reason(log)}), trying again ...")
            time.sleep(5 * attempt)
    raise UserError(
        f"cannot download {', '.join(coordinates)} ({_reason(log)}). Is Maven Central reachable? REBALANCE_IVY_SETTINGS names a file with "
        f"a mirror. Log: {log}"
    )


def _wait(process: subprocess.Popen[bytes], cache: Path, say: Say) -> int:
    """The exit code of Ivy. Tells now and then how much there is."""
    before = _files(cache), _megabytes(cache)
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_TELL_SECONDS)
        # First come the descriptions of all packages, then the JARs.
        say(f"{_files(cache) - before[0]} files, {_megabytes(cache) - before[1]:.0f} MB so far ...")


def _files(folder: Path) -> int:
    return sum(path.is_file() for path in folder.rglob("*"))


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*.jar")) / 1e6


def _reason(log: Path) -> str:
    """Why Ivy failed, according to its log."""
    text = log.read_text(errors="replace")
    if "UnknownHostException" in text:
        return "host not found: no network?"
    problem = re.search("|".join(_PROBLEMS), text)
    return problem.group() if problem else "an unexpected error"


def artifact(name: str) -> str:
    """`delta-storage-4.4.0.jar` -> `delta-storage`."""
    return re.sub(r"-\d[^/]*\.jar$", "", name)


def main(arguments: Sequence[str] = ()) -> int:
    """Arguments: none for Spark, `s3`, `clients`, or `kafka` and a release of it other than ours."""

    def say(text: str) -> None:
        print(text, flush=True)  # noqa: T201 - what make shows

    try:
        named = {"kafka": of_broker, "clients": of_clients, "s3": of_s3}
        folder = (named[arguments[0]](*arguments[1:]) if arguments else of_spark()).ensure(say)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 1
    if (folder / STAMP).is_file():
        (folder / STAMP).touch()  # newer than the files that make compares it with
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
