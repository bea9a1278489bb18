"""Builds what a Spark cluster needs of this project into dist/: `make package`.

    kafka_rebalance-VERSION-py3-none-any.whl    the project, to be installed: in an image, or where a driver runs
    kafka-rebalance-VERSION.zip                 the same for --py-files, where every node has the packages of EXECUTORS_IMPORT
    kafka-rebalance-VERSION-PLATFORM.tar.gz     the project and all that executors import, for --archives: nodes need nothing but Python

The archive holds packages, not an interpreter, as they are installed here: for this minor version of Python and this platform. Built from
copies of the sources, so that no earlier build leaves anything in it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final

PROJECT: Final = Path(__file__).resolve().parents[2]
RECORDING: Final = "tests/data/recordings/kafka-3.9.1"
"""What `rebalance demo` reads."""
SOURCES: Final = ("coordinator_model", "jobs", "schemas", "conf", "sql", "pyproject.toml", "README.md", "LICENSE", "NOTICE", RECORDING)
EXECUTORS_IMPORT: Final = ("fsspec", "msgspec", "obstore", "pandas", "pyarrow")
"""Distributions, each with what it needs itself. PySpark is not among them: a node's Spark brings its own."""
_LEFT_OUT: Final = ("pandas/tests/", "pyarrow/tests/", "pyarrow/include/")  # never imported


def main(target: Path = PROJECT / "dist") -> list[Path]:
    """Builds all three into a folder; returns them."""
    target.mkdir(parents=True, exist_ok=True)
    wheel = build_wheel(target)
    version = wheel.name.split("-")[1]
    sources = Path(shutil.copyfile(wheel, target / f"kafka-rebalance-{version}.zip"))
    tag = f"cp{sys.version_info.major}{sys.version_info.minor}-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"
    return [wheel, sources, build_archive(wheel, target / f"kafka-rebalance-{version}-{tag}.tar.gz")]


def build_wheel(target: Path) -> Path:
    """The project's wheel, made with the build tool that is installed: nothing is fetched."""
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "project"
        copy.mkdir()
        for source in SOURCES:
            path = PROJECT / source
            if path.is_dir():
                shutil.copytree(path, copy / source, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copyfile(path, copy / source)
        built = Path(name) / "built"
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
        subprocess.run([*command, "--wheel-dir", str(built), str(copy)], check=True)
        (wheel,) = built.glob("*.whl")
        return Path(shutil.copyfile(wheel, target / wheel.name))


def build_archive(wheel: Path, archive: Path) -> Path:
    """The wheel's packages and the installed ones that executors import, in one folder to be put on PYTHONPATH."""
    with tempfile.TemporaryDirectory() as name, tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        shutil.unpack_archive(wheel, name, "zip")
        for path in sorted(Path(name).iterdir()):
            if path.suffix != ".data":  # what the driver alone reads
                tar.add(path, path.name)
        for distribution in needed(EXECUTORS_IMPORT):
            for file in distribution.files or ():
                path = Path(str(file.locate()))
                if ".." not in file.parts and not str(file).startswith(_LEFT_OUT) and path.suffix != ".pyc" and path.is_file():
                    tar.add(path, str(file))
    return archive


def needed(names: tuple[str, ...]) -> Iterator[metadata.Distribution]:
    """The distributions of these names and of all that they need, each once."""
    from packaging.requirements import Requirement

    waiting, known = list(names), set[str]()
    while waiting:
        name = waiting.pop(0)
        if (key := re.sub(r"[-_.]+", "-", name).lower()) in known:
            continue
        known.add(key)
        distribution = metadata.distribution(name)
        yield distribution
        for text in distribution.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)


if __name__ == "__main__":
    for made in main():
        print(f"{made.stat().st_size / 1e6:6.1f} MB  {made.relative_to(PROJECT)}")
