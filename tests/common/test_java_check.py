"""`python -m jobs.common.java`: silence for a Java that Spark runs on, one line for anything else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]

OPENJDK = 'openjdk version "{0}" 2025-04-15\nOpenJDK Runtime Environment (build {0}+6)'
ORACLE_8 = 'java version "1.8.0_392"\nJava(TM) SE Runtime Environment (build 1.8.0_392-b08)'
MACOS_STUB = "The operation couldn't be completed. Unable to locate a Java Runtime."


def fake_java(folder: Path, prints: str, exit_code: int = 0) -> Path:
    """A `java` in `folder` that answers -version, as the real one does, on stderr."""
    folder.mkdir(parents=True, exist_ok=True)
    java = folder / "java"
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{prints}\nEND\nexit {exit_code}\n")
    java.chmod(0o755)
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH with what `fake_java` itself needs, and no Java."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "cat"):
        found = next(path for part in os.defpath.split(":") if (path := Path(part) / name).exists())
        (folder / name).symlink_to(found)
    return folder


def check(*path: Path, java_home: Path | None = None) -> tuple[int, str]:
    environment = {"PATH": ":".join(map(str, path))}
    if java_home:
        environment["JAVA_HOME"] = str(java_home)
    command = [sys.executable, "-m", "jobs.common.java"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, cwd=PROJECT)
    assert done.stdout == ""
    return done.returncode, done.stderr


@pytest.mark.parametrize("before", ["", "Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n"])
@pytest.mark.parametrize("version", ["17", "21.0.7", "21-ea"])
def test_silent_for_a_java_that_spark_runs_on(tools: Path, tmp_path: Path, version: str, before: str) -> None:
    assert check(fake_java(tmp_path / "bin", before + OPENJDK.format(version)), tools) == (0, "")


@pytest.mark.parametrize(
    ("prints", "exit_code", "told"),
    [
        (OPENJDK.format("11.0.22"), 0, "found Java 11.0.22"),
        (OPENJDK.format("25"), 0, "found Java 25"),
        (ORACLE_8, 0, "found Java 1.8.0_392"),
        (MACOS_STUB, 1, "does not start"),
        ("something else", 0, "does not print its version"),
    ],
)
def test_one_line_for_any_other(tools: Path, tmp_path: Path, prints: str, exit_code: int, told: str) -> None:
    code, text = check(fake_java(tmp_path / "bin", prints, exit_code), tools)
    assert code == 1
    assert text.count("\n") == 1
    assert told in text
    assert "install a Java 17 or 21" in text


def test_one_line_without_java(tools: Path) -> None:
    code, text = check(tools)
    assert code == 1
    assert text.count("\n") == 1
    assert "no Java found" in text
    assert "install a Java 17 or 21" in text


def test_java_home_goes_before_the_path(tools: Path, tmp_path: Path) -> None:
    good = fake_java(tmp_path / "bin", OPENJDK.format("17.0.15"))
    old = tmp_path / "old"
    fake_java(old / "bin", OPENJDK.format("11.0.22"))
    code, text = check(good, tools, java_home=old)
    assert code == 1
    assert f"found Java 11.0.22 (in JAVA_HOME={old})" in text
    assert str(tmp_path / "gone") in check(good, tools, java_home=tmp_path / "gone")[1]


def test_make_asks_for_java_before_anything_slow(tmp_path: Path) -> None:
    old = fake_java(tmp_path / "bin", OPENJDK.format("11.0.22"))
    for target in ("demo", "test"):
        done = subprocess.run(
            ["make", "--silent", target],
            check=False,
            capture_output=True,
            text=True,
            cwd=PROJECT,
            env={"PATH": f"{old}:{os.environ['PATH']}"},  # and no JAVA_HOME
        )
        assert done.returncode != 0
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1
        assert "found Java 11.0.22" in done.stderr
