"""jobs/common/places.py: where a checkout and an installed wheel keep things."""

import site
import sys
from pathlib import Path

import pytest

from jobs.common import places


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No checkout: packages in site-packages of an environment whose user has a cache."""
    for name in ("REBALANCE_JARS", "REBALANCE_S3_JARS", "REBALANCE_KAFKA_JARS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(places, "PROJECT", tmp_path / "lib" / "site-packages")
    monkeypatch.setattr(places, "version", lambda: "1.2.3")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_jar_paths_are_those_of_the_folder_sorted(tmp_path: Path) -> None:
    for name in ("b-1.jar", "a-1.jar", "resolved.txt"):
        (tmp_path / name).touch()
    assert places.jar_paths(tmp_path) == [str(tmp_path / "a-1.jar"), str(tmp_path / "b-1.jar")]
    assert places.jar_paths(tmp_path / "none") == []


def test_a_checkout_keeps_everything_in_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("REBALANCE_JARS", "REBALANCE_S3_JARS", "REBALANCE_KAFKA_JARS"):
        monkeypatch.delenv(name, raising=False)
    assert places.jar_dir() == places.PROJECT / ".jars"
    assert places.s3_jar_dir() == places.PROJECT / ".jars-s3"
    assert places.kafka_jar_dir() == places.PROJECT / ".jars-kafka"
    assert places.kafka_jar_dir("3.9.1") == places.PROJECT / ".jars-kafka-3.9.1"
    assert places.kept_folder("demo") == places.PROJECT / ".demo"


def test_an_installed_wheel_keeps_things_in_the_users_cache_by_version(installed: Path) -> None:
    cache = installed / "cache" / "kafka-rebalance" / "1.2.3"
    assert places.jar_dir() == cache / "jars"
    assert places.s3_jar_dir() == cache / "jars-s3"
    assert places.kafka_jar_dir() == cache / "jars-kafka"
    assert places.kafka_jar_dir("3.9.1") == cache / "jars-kafka-3.9.1"
    assert places.kept_folder("demo") == cache / "demo"


def test_data_of_an_installed_wheel_are_found_in_each_scheme_of_pip(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = installed / "user"
    monkeypatch.setattr(site, "getuserbase", lambda: str(user))
    missing = places.data_folder("sql", "why.sql")
    assert missing == places.PROJECT / "sql"
    for base in (places.PROJECT, user, installed):  # --target, --user, a virtual environment, which goes first
        folder = base / "share" / "kafka-rebalance" / "sql"
        folder.mkdir(parents=True)
        (folder / "why.sql").touch()
        assert places.data_folder("sql", "why.sql") == folder
