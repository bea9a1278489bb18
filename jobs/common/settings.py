"""Settings of a run: defaults, then the TOML file of `--config`, then the command line. Parsed and checked once, here.

[pipeline]
timezone = "UTC"          # of every cluster that is not named below
lateness_ms = 5000
shards = 50
slice_lines = 100000
kafka_version = ""        # release of the brokers; empty: as their answers tell

[timezones]               # by cluster
berlin = "Europe/Berlin"
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from coordinator_model.specification.releases import release_numbers
from jobs.common.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Settings:
    """What a user may set, valid by construction."""

    timezone: str = "UTC"
    """Zone of the log timestamps, which carry no offset, of clusters that `timezones` does not name."""

    timezones: tuple[tuple[str, str], ...] = ()
    """(cluster, zone), sorted: hashable, and the same in every process."""

    lateness_ms: int = 5_000
    """How far lines of one broker may be out of order: between its files, topics and partitions."""

    shards: int = 50
    """State keys per cluster: Kafka's default of offsets.topic.num.partitions. Fixed with a lakehouse's first run."""

    slice_lines: int = 100_000
    """Input lines per micro-batch in a backfill, which is what bounds memory."""

    kafka_version: str = ""
    """Release of the brokers, such as 3.9.1, whose rules their answers are compared with. Empty: as the answers tell."""

    def __post_init__(self) -> None:
        for cluster, zone in (("", self.timezone), *self.timezones):
            _check_zone(cluster, zone)
        if len({cluster for cluster, _ in self.timezones}) != len(self.timezones):
            raise SettingsError("timezones: a cluster is named twice")
        _check_range("lateness_ms", self.lateness_ms, 0, 3_600_000)
        _check_range("shards", self.shards, 1, 10_000)
        _check_range("slice_lines", self.slice_lines, 100, 10_000_000)
        _check_release(self.kafka_version)

    def timezone_of(self, cluster: str) -> str:
        """The zone of a cluster's log timestamps."""
        return dict(self.timezones).get(cluster, self.timezone)


_PIPELINE_KEYS: Final = tuple(field.name for field in fields(Settings) if field.name != "timezones")


def load(path: Path | None = None, *, timezones: Sequence[str] = (), **overrides: int | None) -> Settings:
    """Settings from a TOML file, overridden by what the command line gives: zones as ZONE or cluster=ZONE, numbers."""
    settings = Settings() if path is None else _from_toml(path)
    given: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    zones = dict(settings.timezones)
    for text in timezones:
        cluster, separator, zone = text.rpartition("=")
        if separator and cluster:
            zones[cluster] = zone
        elif separator:
            raise SettingsError(f"--timezone {text}: write ZONE or cluster=ZONE")
        else:
            given["timezone"] = zone
    return replace(settings, timezones=tuple(sorted(zones.items())), **given)


def _from_toml(path: Path) -> Settings:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    try:
        _check_keys("", document, ("pipeline", "timezones"))
        pipeline = _table(document, "pipeline")
        _check_keys("pipeline.", pipeline, _PIPELINE_KEYS)
        zones = _table(document, "timezones")
        return Settings(timezones=tuple(sorted(zones.items())), **pipeline)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None


def _table(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = document.get(name, {})
    if not isinstance(value, dict):
        raise SettingsError(f"[{name}] must be a table")
    return value


def _check_keys(prefix: str, table: Mapping[str, Any], known: Sequence[str]) -> None:
    for key in table:
        if key not in known:
            raise SettingsError(f"unknown setting {prefix}{key} (known: {', '.join(known)})")


def _check_release(name: object) -> None:
    if not isinstance(name, str):
        raise SettingsError('kafka_version: must be a text, such as "3.9.1"')
    try:
        if name:
            release_numbers(name)
    except ValueError:
        raise SettingsError(f"kafka_version: {name!r} is no release of Kafka (use one such as 3.9.1)") from None


def _check_zone(cluster: str, zone: object) -> None:
    where = f"timezone of cluster {cluster}" if cluster else "timezone"
    if not isinstance(zone, str):
        raise SettingsError(f"{where}: must be the name of a time zone")
    try:
        ZoneInfo(zone)
    except (KeyError, ValueError, OSError):  # not found; not a name; the name of a folder of zones
        raise SettingsError(f"{where}: unknown time zone {zone!r} (use a name such as Europe/Berlin)") from None


def _check_range(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise SettingsError(f"{name}: must be a whole number from {low} to {high}, not {value!r}")
