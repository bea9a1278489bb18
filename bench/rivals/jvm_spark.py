"""A rival: Sessions.java, compiled against the Spark of this project and run in a JVM of its own.

python bench/rivals/jvm_spark.py INPUT OUTPUT
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pyspark

OPENED = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.io", "java.net", "java.nio", "java.util", "java.util.concurrent",
          "java.util.concurrent.atomic")  # fmt: skip
INTERNAL = ("sun.nio.ch", "sun.nio.cs", "sun.security.action", "sun.util.calendar")


def main(source: str, output: str) -> int:
    """The exit code of the JVM."""
    home = os.environ.get("JAVA_HOME")
    tools = f"{home}/bin/" if home else ""
    jars = f"{Path(pyspark.__file__).parent}/jars/*"
    with tempfile.TemporaryDirectory() as classes:
        code = Path(__file__).with_name("Sessions.java")
        subprocess.run([f"{tools}javac", "-nowarn", "-Xlint:none", "-cp", jars, "-d", classes, code], check=True)
        opens = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in (*OPENED, *INTERNAL)]
        partitions = str(2 * len(os.sched_getaffinity(0)))
        log = f"-Dlog4j2.configurationFile={Path(__file__).parents[2] / 'conf' / 'log4j2.properties'}"
        command = [f"{tools}java", "-Xmx2g", log, *opens, "-cp", f"{classes}:{jars}", "Sessions", source, output, partitions]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
