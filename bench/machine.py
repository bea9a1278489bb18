"""On what a benchmark ran: a figure without it says nothing."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import psutil

_PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "duckdb", "pyarrow", "pandas", "msgspec")


def machine() -> dict[str, Any]:
    """Processor, memory, load, system and versions."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 2**30, 1),
        "load_before": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "java": _first_line("java", "-version"),
        "commit": _first_line("git", "describe", "--always", "--dirty"),
        **{name: version(name) for name in _PACKAGES},
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    except OSError:
        return ""
    return done.stdout.partition("\n")[0]
