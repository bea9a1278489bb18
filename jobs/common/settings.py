"""Reads the settings of a run: defaults, then the TOML file of `--config`, then the command line. They are checked once, here.

[pipeline]
timezone = "UTC"          # for every cluster that is not listed below
lateness_ms = 5000
shards = 50
slice_lines = 1000000
stretch_bytes = 33554432
track_files = 64
kafka_version = ""        # release of brokers whose lines do not name it
log_format = "auto"       # pattern of the brokers' lines, by its name; auto: each line shows it

[timezones]               # by cluster, broker, folder or container; `clients` for all logs of applications
berlin = "Europe/Berlin"

[log_formats]             # patterns of a log4j PatternLayout, by names for them
ours = "%d{dd MMM yyyy HH:mm:ss.SSS} %p [%t] %c - %m%n"

[alerts]                  # jobs/common/alert_settings.py
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coordinator_model.specification.releases import release_numbers
from jobs.common.alert_settings import AlertSettings, add_receivers, alert_settings
from jobs.common.errors import SettingsError
from jobs.common.times import zone_named


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may set. `load` checks types and ranges."""

    timezone: str = "UTC"
    """Zone of the log timestamps, which carry no offset, of clusters that `timezones` does not name."""

    timezones: tuple[tuple[str, str], ...] = msgspec.field(name="[timezones]", default=())
    """(name, zone), sorted: hashable, and the same in every process. By cluster, broker, folder or container; `clients` for theirs."""

    zones_asked: tuple[str, ...] = msgspec.field(name="[asked]", default=())
    """The names that the command line gives, sorted: a log must have each."""

    half_lines: bool = msgspec.field(name="[half_lines]", default=False)
    """Whether a last line without its end is a line, for the logs do not grow. Else it waits for the next run."""

    client_group: str = msgspec.field(name="[client_group]", default="")
    """The group of clients' lines that no line and no folder names; empty: such a line is not understood."""

    lateness_ms: Annotated[int, Meta(ge=0, le=3_600_000)] = 5_000
    """How far lines of one broker may be out of order: between its files, topics and partitions."""

    not_read_ms: Annotated[int, Meta(ge=1_000, le=86_400_000)] = 60_000
    """How long the committed offset of a partition may stand while its log grows, before that is told."""

    shards: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """State keys per cluster: Kafka's default of offsets.topic.num.partitions. Fixed with a lakehouse's first run."""

    slice_lines: Annotated[int, Meta(ge=100, le=10_000_000)] = 1_000_000
    """Most input lines per micro-batch in a backfill, which bounds memory; eight times as many where tasks read them, or more."""

    stretch_bytes: Annotated[int, Meta(ge=65_536, le=1 << 30)] = 32 << 20
    """Least bytes of a plain log that are worth a task of their own. Less is read by the driver."""

    track_files: Annotated[int, Meta(ge=1, le=10_000)] = 64
    """Most files of group_events per micro-batch of track, where it is behind: a slice is a file, or several that tasks wrote."""

    interval_ms: Annotated[int, Meta(ge=100, le=60_000)] = 2_000
    """Time between two looks at the input, while the pipeline follows it. Each look with lines in it takes most of a second of CPU."""

    metric_groups: Annotated[int, Meta(ge=0, le=100_000)] = 1_000
    """How many groups have metrics of their own (`--metrics-port`). 0: nothing is counted by group or by cause."""

    kafka_version: str = ""
    """Release of the brokers, such as 3.9.1, whose rules their answers are compared with. Empty: the answers tell the release."""

    log_format: str = "auto"
    """Name of the pattern that is tried first on brokers' lines: a known one, or one of `log_formats`. auto: all of `log_formats`."""

    log_formats: tuple[tuple[str, str], ...] = msgspec.field(name="[log_formats]", default=())
    """(name, pattern), sorted. jobs/logs/envelopes/patterns.py reads them."""

    alerts: AlertSettings = msgspec.field(name="[alerts]", default=AlertSettings())

    def __post_init__(self) -> None:
        for name, zone in (("", self.timezone), *self.timezones):
            _check_zone(name, zone)
        try:
            if self.kafka_version:
                release_numbers(self.kafka_version)
        except ValueError:
            raise SettingsError(f"kafka_version: {self.kafka_version!r} is no release of Kafka (use one such as 3.9.1)") from None


class _File(msgspec.Struct, forbid_unknown_fields=True):
    pipeline: dict[str, Any] = msgspec.field(default_factory=dict)
    timezones: dict[str, Any] = msgspec.field(default_factory=dict)
    log_formats: dict[str, Any] = msgspec.field(default_factory=dict)
    alerts: dict[str, Any] = msgspec.field(default_factory=dict)


def load(
    path: Path | None = None,
    *,
    timezones: Sequence[str] = (),
    alerts: Sequence[str] = (),
    dashboard_url: str | None = None,
    **overrides: int | str | None,
) -> Settings:
    """Settings from a TOML file, overridden by the command line: zones as ZONE or NAME=ZONE,…, alerts as FORMAT=FILE, others."""
    file = _File()
    if path is not None:
        try:
            file = msgspec.toml.decode(path.read_bytes(), type=_File)
            _settings(file)
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror}") from None
        except SettingsError as error:
            raise SettingsError(f"{path}: {error}") from None
        except ValueError as error:  # not UTF-8, not TOML, or with other tables
            raise SettingsError(f"{path} is no TOML file of settings: {error}") from None
    file.pipeline |= {name: value for name, value in overrides.items() if value is not None}
    asked = set()
    for text in (part for option in timezones for part in option.split(",")):
        name, separator, zone = text.strip().rpartition("=")
        if separator and not name:
            raise SettingsError(f"--timezone {text}: write ZONE or NAME=ZONE")
        if separator:
            file.timezones[name] = zone
            asked.add(name)
        else:
            file.pipeline["timezone"] = zone
    add_receivers(file.alerts, alerts, dashboard_url)
    return msgspec.structs.replace(_settings(file), zones_asked=tuple(sorted(asked)))


def _settings(file: _File) -> Settings:
    for name, zone in file.timezones.items():
        _check_zone(name, zone)
    try:
        tables = {"[timezones]": sorted(file.timezones.items()), "[log_formats]": sorted(file.log_formats.items())}
        settings = msgspec.convert({**file.pipeline, **tables}, Settings)
    except msgspec.ValidationError as error:
        raise SettingsError(str(error).replace("`$.", "`")) from None
    return msgspec.structs.replace(settings, alerts=alert_settings(file.alerts))


def _check_zone(name: str, zone: object) -> None:
    where = f"timezone of {name}" if name else "timezone"
    try:
        zone_named(str(zone))
    except (ValueError, OSError, KeyError):  # not a name; the name of a folder of zones; not found
        raise SettingsError(f"{where}: unknown time zone {zone!r} (use a name such as Europe/Berlin)") from None
