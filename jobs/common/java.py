"""Finds the Java that starts Spark and Kafka, and checks that Spark supports its version.

`python -m jobs.common.java` prints a line if there is no such Java. make runs it before anything is installed, so this module needs
nothing but Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from jobs.common.errors import UserError

_VERSION: Final = re.compile(r'version "((?:1\.)?(\d+)[^"]*)"')  # 17.0.15; Java 8 says 1.8.0_392
_ADVICE: Final = (
    "install a Java 17 or 21 runtime (Debian, Ubuntu: openjdk-17-jre-headless, macOS: brew install openjdk@17) or point JAVA_HOME at one"
)


def java_program() -> str:
    """The `java` of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def check_java() -> None:
    """UserError: there is no Java that Spark runs on. Spark itself would print a page."""
    home, java = os.environ.get("JAVA_HOME"), java_program()
    where = f"JAVA_HOME={home}" if home else "PATH"
    if shutil.which(java) is None:
        raise UserError(f"no Java found (looked in {where}); {_ADVICE}")
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    if answer.returncode:  # macOS has a java that only says where to get one
        raise UserError(f"the java in {where} does not start; {_ADVICE}")
    version = _VERSION.search(answer.stderr + answer.stdout)
    if version is None:
        raise UserError(f"the java in {where} does not print its version; {_ADVICE}")
    if version[2] not in {"17", "21"}:
        raise UserError(f"found Java {version[1]} (in {where}), which Spark 4.0 does not run on; {_ADVICE}")


def archive_options(archive: Path) -> list[str]:
    """Options of a JVM that starts in half the time, if the archive of its classes was made.

    A JVM that cannot use the archive ignores it without a word.
    """
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off"] if archive.is_file() else []


if __name__ == "__main__":
    try:
        check_java()
    except UserError as error:
        sys.exit(str(error))
