"""Clients of a cluster, for what reads from one or writes to one: `rebalance dump-offsets`, `rebalance poll`, `rebalance ship`."""

from __future__ import annotations

import logging
import os
import re
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from jobs.common.errors import UserError

CONNECT_SECONDS: Final = 15.0
_STEP_SECONDS: Final = 1.0

_OWN: Final = frozenset({"group.id", "enable.auto.commit", "enable.partition.eof"})
_SECRET: Final = re.compile(r"password|passphrase|secret|\.key$|\.key\.pem$|jaas|oauthbearer\.config|user\.info", re.IGNORECASE)
_LEAST_TOLD: Final = 4  # characters of a word of a secret that is looked for in what a client says


def read_config(path: Path | None) -> dict[str, str]:
    """Settings of librdkafka from a file of `name=value` lines, as kcat takes it: security.protocol, sasl.username and the like.

    UserError: it cannot be read, or holds a secret and is not private (`_exposed`).
    """
    if path is None:
        return {}
    try:
        with path.open(encoding="utf-8") as file:
            lines, status = file.read().splitlines(), os.fstat(file.fileno())
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
    if secret is not None and os.name == "posix" and (whom := _exposed(status)):
        raise UserError(f"{path} holds {secret} and can be {whom}: chmod 600 {path}")
    return settings


def _exposed(status: os.stat_result) -> str:
    """Who but its owner may read or change a file, if anybody.

    The group of a file of root may read it: so does root hand a secret to a service, and Kubernetes to a container.
    """
    mode = status.st_mode
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        return f"{'read' if mode & stat.S_IROTH else 'changed'} by everybody on this machine"
    if mode & stat.S_IWGRP or (mode & stat.S_IRGRP and status.st_uid != 0):
        return f"{'changed' if mode & stat.S_IWGRP else 'read'} by its whole group"
    return ""


def check_cluster_name(option: str, name: str) -> None:
    """Refuses a name that cannot be the name of a folder which is read."""
    if not name or "/" in name or name == "clients" or name.startswith((".", "_")) or not name.isprintable():
        raise UserError(f"{option} {name}: this becomes the name of a folder, and must be one that is read")


class Cluster:
    """One cluster, and what its clients last complained of."""

    def __init__(self, bootstrap: str, config: Path | None = None) -> None:
        self.bootstrap = bootstrap
        self._said: str = ""
        self._refused = False  # by the cluster, which will not change its mind
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
            raise UserError(f"wrong settings of the client: {self._told(reason(error))}") from None
        until = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                admin.list_topics(timeout=_STEP_SECONDS)
            except KafkaException as error:  # noqa: PERF203 - each attempt may fail
                admin.poll(0)  # hands over what the client has to say
                if self._refused or time.monotonic() > until:
                    raise UserError(f"cannot reach a cluster at {self.bootstrap}: {self._said or reason(error)}") from None
            else:
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
            raise UserError(f"wrong settings of the client: {self._told(reason(error))}") from None

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
            self._said = self._told(str(error.str()))
            self._refused = error.code() == KafkaError._AUTHENTICATION  # noqa: SLF001

    def _told(self, text: str) -> str:
        """What a client says, without the secrets that it was given: some errors quote the setting that they are about."""
        for name, value in self._settings.items():
            if _SECRET.search(name):
                words = [value, *(word for word in re.split(r"[\s=,;]+", value) if len(word) >= _LEAST_TOLD)]
                for word in sorted(words, key=len, reverse=True):
                    text = text.replace(word, "…") if word else text
        return text


def reason(error: KafkaException) -> str:
    """What an exception of the client says, in a few words."""
    first = error.args[0] if error.args else error
    return str(first.str()) if isinstance(first, KafkaError) else str(first)
