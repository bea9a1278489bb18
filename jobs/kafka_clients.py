"""Clients of a cluster, for what reads from one or writes to one: `rebalance dump-offsets`, `rebalance poll`, `rebalance ship`."""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from jobs.errors import UserError

CONNECT_SECONDS: Final = 15.0

_OWN: Final = frozenset({"group.id", "enable.auto.commit", "enable.partition.eof"})
_SECRET: Final = re.compile(r"password|secret|\.key$|\.key\.pem$|jaas|oauthbearer\.config")


def read_config(path: Path | None) -> dict[str, str]:
    """Settings of librdkafka from a file of `name=value` lines, as kcat takes it: security.protocol, sasl.username and the like."""
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"cannot read {path}: {error.strerror if isinstance(error, OSError) else 'it is not UTF-8'}") from None
    settings: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith(("#", "!")):
            continue
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise UserError(f"{path}, line {number}: write name=value")
        if name.strip() not in _OWN:
            settings[name.strip()] = value.strip()
    secret = next((name for name in settings if _SECRET.search(name)), None)
    if secret is not None and os.name == "posix" and path.stat().st_mode & stat.S_IROTH:
        raise UserError(f"{path} holds {secret} and can be read by everybody on this machine: chmod 600 {path}")
    return settings


def check_cluster_name(option: str, name: str) -> None:
    """Refuses a name that cannot be the name of a folder which is read."""
    if not name or "/" in name or name == "clients" or name.startswith((".", "_")):
        raise UserError(f"{option} {name}: this becomes the name of a folder, and must be one that is read")


class Cluster:
    """One cluster, and what its clients last complained of."""

    def __init__(self, bootstrap: str, config: Path | None = None) -> None:
        self.bootstrap = bootstrap
        self._said: str = ""
        silent = logging.getLogger("rebalance.kafka")  # librdkafka's own words go nowhere: what matters we say in one line
        silent.addHandler(logging.NullHandler())
        silent.propagate = False
        self._logger = silent
        self._settings: dict[str, Any] = {**read_config(config), "bootstrap.servers": bootstrap, "error_cb": self._heard}

    def admin(self) -> AdminClient:
        """An admin client that has reached the cluster. UserError: it cannot be reached, and why."""
        try:
            admin = AdminClient(self._settings, logger=self._logger)
        except KafkaException as error:
            raise UserError(f"wrong settings of the client: {reason(error)}") from None
        try:
            admin.list_topics(timeout=CONNECT_SECONDS)
        except KafkaException as error:
            admin.poll(0)  # hands over what the client has to say
            raise UserError(f"cannot reach a cluster at {self.bootstrap}: {self._said or reason(error)}") from None
        return admin

    def consumer(self) -> Consumer:
        """A consumer that joins no group and commits nothing."""
        own = {"group.id": "rebalance", "enable.auto.commit": False, "enable.partition.eof": True, "isolation.level": "read_uncommitted"}
        return Consumer({**self._settings, **own}, logger=self._logger)

    def producer(self, defaults: Mapping[str, Any], own: Mapping[str, Any]) -> Producer:
        """A producer, not yet connected. The user's settings go before `defaults`, and `own` before both. UserError: they are wrong."""
        try:
            return Producer({**defaults, **self._settings, **own}, logger=self._logger)
        except KafkaException as error:
            raise UserError(f"wrong settings of the client: {reason(error)}") from None

    def setting(self, name: str) -> str | None:
        """A setting that the user gave."""
        value = self._settings.get(name)
        return None if value is None else str(value)

    @property
    def said(self) -> str:
        """What a client last complained of."""
        return self._said

    def _heard(self, error: KafkaError) -> None:
        if error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - which says less than the one before it
            self._said = str(error.str())


def reason(error: KafkaException) -> str:
    """What an exception of the client says, in a few words."""
    first = error.args[0] if error.args else error
    return str(first.str()) if isinstance(first, KafkaError) else str(first)
