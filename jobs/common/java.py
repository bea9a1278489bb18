"""Which Java starts Spark and Kafka, and whether it is a version that Spark supports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from jobs.common.errors import UserError

_JAVA_VERSION: Final = re.compile(r'version "(?:1\.)?(\d+)')


_ADVICE: Final = "install a Java 17 or 21 runtime, or point JAVA_HOME at one"


def java_program() -> str:
    """The `java` to start: that of JAVA_HOME, else the one on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def check_java() -> None:
    """Refuses a missing or wrong Java in one line; Spark would take a page."""
    home, java = os.environ.get("JAVA_HOME"), java_program()
    where = f"JAVA_HOME={home}" if home else "PATH"
    if shutil.which(java) is None:
        raise UserError(f"no Java found (looked in {where}); {_ADVICE}")
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)  # noqa: S603
    version = _JAVA_VERSION.search(said.stderr + said.stdout)
    if said.returncode or version is None or version.group(1) not in {"17", "21"}:
        found = f"Java {version.group(1)}" if version else "a java that does not start"
        raise UserError(f"found {found} (in {where}), which Spark 4.0 does not run on; {_ADVICE}")
