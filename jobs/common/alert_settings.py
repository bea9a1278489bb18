"""Settings of alerts: who gets which findings, in which form. They stand in the file of `--config`.

[alerts]
dashboard_url = "http://dashboard:8080"
max_age_ms = 3600000

[alerts.receivers.oncall]
format = "slack"
url_file = "/etc/rebalance/oncall.url"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from jobs.common.errors import SettingsError
from jobs.common.stores import is_web_address

FORMATS: Final = ("slack", "alertmanager", "json")
SEVERITIES: Final = ("INFO", "WARNING", "ERROR")
"""Of findings, in ascending order."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class ReceiverSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One receiver of alerts. URL and token are secrets: the settings name the files that hold them."""

    name: str
    format: Literal["slack", "alertmanager", "json"]
    url_file: Annotated[str, Meta(min_length=1)]
    token_file: str = ""
    """Sent as `Authorization: Bearer`."""

    severity: Literal["INFO", "WARNING", "ERROR"] = "ERROR"
    """The least severity that is posted."""

    clusters: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)
    codes: tuple[str, ...] = ("*",)
    """Shell patterns: a finding is posted if one of each list matches."""

    timeout_ms: Annotated[int, Meta(ge=100, le=300_000)] = 10_000
    """How long the receiver may take to accept a connection, and to answer."""

    resolve_after_ms: Annotated[int, Meta(ge=60_000, le=604_800_000)] = 900_000
    """Alertmanager: how long after its newest finding an alert counts as resolved."""


class AlertSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a user may set about alerts."""

    dashboard_url: str = ""
    """Where `rebalance dashboard` is seen by people. Empty: alerts have no link."""

    max_age_ms: Annotated[int, Meta(ge=0, le=31_536_000_000)] = 3_600_000
    """A finding that was found later than this after it happened is not posted: a backfill tells of the past."""

    receivers: tuple[ReceiverSettings, ...] = ()


def add_receivers(table: dict[str, Any], given: Sequence[str], dashboard_url: str | None) -> None:
    """Adds to the TOML table [alerts] what the command line gives: receivers as FORMAT=FILE, named like their format."""
    for text in given:
        form, separator, file = text.partition("=")
        receivers = table.setdefault("receivers", {})
        if not separator or not file or form not in FORMATS:
            raise SettingsError(f"--alert {text}: write FORMAT=FILE with one of the formats {', '.join(FORMATS)}")
        if form in receivers:
            raise SettingsError(f"--alert {text}: there is a receiver {form} already; name more of them in --config")
        receivers[form] = {"format": form, "url_file": file}
    if dashboard_url is not None:
        table["dashboard_url"] = dashboard_url


def alert_settings(table: Mapping[str, Any]) -> AlertSettings:
    """The settings of the TOML table [alerts]. SettingsError: they cannot be used."""
    receivers = table.get("receivers", {})
    if not isinstance(receivers, Mapping) or not all(isinstance(entry, Mapping) for entry in receivers.values()):
        raise SettingsError("[alerts] receivers: write a table [alerts.receivers.NAME] for each")
    entries = []
    for name, entry in sorted(receivers.items()):
        if not _NAME.fullmatch(name):
            raise SettingsError(f"[alerts.receivers]: {name!r} is no name: use letters, digits, - and _")
        try:
            entries.append(msgspec.convert({**entry, "name": name}, ReceiverSettings))
        except msgspec.ValidationError as error:
            raise SettingsError(f"[alerts.receivers.{name}]: {str(error).replace('`$.', '`')}") from None
    try:
        settings = msgspec.convert({**table, "receivers": ()}, AlertSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"[alerts]: {str(error).replace('`$.', '`')}") from None
    if settings.dashboard_url and not is_web_address(settings.dashboard_url):
        raise SettingsError("[alerts] dashboard_url: write http://HOST:PORT or https://HOST")
    return msgspec.structs.replace(settings, receivers=tuple(entries))
