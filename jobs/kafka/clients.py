"""Clients of a cluster, for `rebalance dump-offsets`, `poll`, `ship` and `run --kafka`."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from jobs.common.errors import UserError
from jobs.common.files import foreign_access

CONNECT_SECONDS: Final = 15.0
SPREAD_SECONDS: Final = 10.0
"""How long a topic may be missing. Brokers hear of a new topic one after the other, and a broker that has just started knows few."""

_STEP_SECONDS: Final = 1.0
_AGAIN_SECONDS: Final = 0.2
_NOT_YET: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.LEADER_NOT_AVAILABLE})
_IGNORED: Final = frozenset({"group.id", "enable.auto.commit", "enable.partition.eof"})  # `consumer` sets them
_SECRET: Final = re.compile(r"password|passphrase|secret|\.key$|\.key\.pem$|jaas|oauthbearer\.config|user\.info", re.IGNORECASE)
_SHORTEST_SECRET: Final = 4  # characters: shorter words of a secret are not looked for in a client's messages


def read_config(path: Path | None) -> dict[str, str]:
    """Settings of librdkafka from a file of `name=value` lines, in the format of kcat: security.protocol, sasl.username and others.

    UserError: the file cannot be read, or it holds a secret and other users can read or change it.
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
        name, separator, value = (part.strip() for part in line.partition("="))
        if name.startswith(("#", "!")) or not line.strip():
            continue
        if not separator or not name:
            raise UserError(f"{path}, line {number}: write name=value")
        if name not in _IGNORED:
            settings[name] = value
    secret = next((name for name in settings if _SECRET.search(name)), None)
    if secret is not None and os.name == "posix" and (access := foreign_access(status)):
        raise UserError(f"{path} holds {secret} and can be {access}: chmod 600 {path}")
    return settings


def check_cluster_name(option: str, name: str) -> None:
    """UserError: the pipeline would not read a folder of this name."""
    if not name or "/" in name or name == "clients" or name.startswith((".", "_")) or not name.isprintable():
        raise UserError(f"{option} {name}: this name cannot be used for a folder that the pipeline reads")


def reason(error: KafkaException) -> str:
    """The message of an exception of the client."""
    first = error.args[0] if error.args else error
    return str(first.str()) if isinstance(first, KafkaError) else str(first)


def without_secrets(text: str, settings: Mapping[str, Any]) -> str:
    """A message of a client without the secrets among its settings: some messages quote the setting that they are about."""
    for name, value in settings.items():
        if _SECRET.search(name):
            words = [value, *(word for word in re.split(r"[\s=,;]+", value) if len(word) >= _SHORTEST_SECRET)]
            for word in sorted(words, key=len, reverse=True):
                text = text.replace(word, "…") if word else text
    return text


def topic_metadata(client: AdminClient | Producer, topic: str, timeout: float, *, stopped: Callable[[], bool] = lambda: False) -> Any:
    """What brokers know of a topic (a ClusterMetadata). While they know no such topic they are asked again, for SPREAD_SECONDS at most.

    The topic's own `error` says that it is missing. `timeout`: seconds for each answer. KafkaException: the cluster does not answer.
    """
    until = time.monotonic() + SPREAD_SECONDS
    while True:
        listed = client.list_topics(topic, timeout=timeout)
        error = listed.topics[topic].error
        if error is None or error.code() not in _NOT_YET or stopped() or time.monotonic() > until:
            return listed
        time.sleep(_AGAIN_SECONDS)


class Cluster:
    """Makes the clients of one cluster. `last_error`: the last problem that one of them reported."""

    def __init__(self, bootstrap: str, config: Path | None = None, *, connect_seconds: float = CONNECT_SECONDS) -> None:
        self.bootstrap = bootstrap
        self.config = config
        self.last_error = ""
        self._connect_seconds = connect_seconds
        self.login_refused = False  # which no further attempt changes
        self._is_dead = False  # nothing listens at any address
        self._logger = logging.getLogger("rebalance.kafka")  # discards librdkafka's log: its errors become lines of ours
        self._logger.addHandler(logging.NullHandler())
        self._logger.propagate = False
        self._settings: dict[str, Any] = {**read_config(config), "bootstrap.servers": bootstrap, "error_cb": self._on_error}

    def unconnected_admin(self) -> AdminClient:
        """An admin client that has not reached the cluster yet. UserError: the settings are wrong."""
        try:
            return AdminClient(self._settings, logger=self._logger)
        except KafkaException as error:
            raise self._wrong_settings(error) from None

    def admin(self) -> AdminClient:
        """An admin client that has reached the cluster. UserError: it cannot be reached."""
        admin = self.unconnected_admin()
        until = time.monotonic() + self._connect_seconds
        while True:
            try:
                admin.list_topics(timeout=_STEP_SECONDS)
            except KafkaException as error:  # noqa: PERF203 - each attempt may fail
                admin.poll(0)  # calls _on_error
                if self.login_refused or self._is_dead or time.monotonic() > until:
                    raise UserError(f"cannot reach a cluster at {self.bootstrap}: {self.last_error or reason(error)}") from None
            else:
                return admin

    def consumer(self) -> Consumer:
        """A consumer that joins no group and commits nothing."""
        fixed = {
            "group.id": "rebalance",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
        }
        return Consumer({**self._settings, **fixed}, logger=self._logger)

    def producer(self, defaults: Mapping[str, Any], fixed: Mapping[str, Any]) -> Producer:
        """A producer, not yet connected. The user's settings override `defaults`, `fixed` overrides both. UserError: they are wrong."""
        try:
            return Producer({**defaults, **self._settings, **fixed}, logger=self._logger)
        except KafkaException as error:
            raise self._wrong_settings(error) from None

    def setting(self, name: str) -> str | None:
        """A setting that the user gave."""
        value = self._settings.get(name)
        return None if value is None else str(value)

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - it follows an error that says more
            self._is_dead = "Connection refused" in self.last_error
        else:
            self.last_error = without_secrets(str(error.str()), self._settings)
            self.login_refused = error.code() == KafkaError._AUTHENTICATION  # noqa: SLF001

    def _wrong_settings(self, error: KafkaException) -> UserError:
        return UserError(f"wrong settings of the client: {without_secrets(reason(error), self._settings)}")
