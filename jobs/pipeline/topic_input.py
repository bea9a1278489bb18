"""`rebalance run --kafka`: which topic is read, checked before Spark starts, and the client's settings in Java's words.

One file of settings serves all commands: librdkafka's names, as for `rebalance ship`. Spark reads with Kafka's Java client, which has other
names for the same things; what only Java knows may stand in the file too, and goes to it alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from confluent_kafka import KafkaException, TopicCollection

from jobs.common.errors import UserError
from jobs.common.files import write_whole
from jobs.kafka.clients import CONNECT_SECONDS, Cluster, read_config, reason
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline.topic import Topic

_JAVA_ALONE: Final = re.compile(r"sasl\.jaas\.config|ssl\.(truststore|keystore)\.|sasl\.(login|client)\.")
_SAME: Final = frozenset(
    {"security.protocol", "sasl.kerberos.service.name", "ssl.endpoint.identification.algorithm", "client.id", "client.dns.lookup"}
)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True)
class TopicInput:
    """What the user asked for."""

    bootstrap: str
    topic: str
    starting: str = "earliest"
    config: Path | None = None
    max_offsets: int | None = None
    accept_loss: bool = False


def java_settings(config: Path | None) -> dict[str, str]:
    """A file of librdkafka's settings as settings of Kafka's Java client. UserError: one of them has no counterpart."""
    given = read_config(config)
    java = {name: value for name, value in given.items() if _JAVA_ALONE.match(name) or name in _SAME}
    mechanism = given.get("sasl.mechanisms") or given.get("sasl.mechanism")
    if mechanism:
        java["sasl.mechanism"] = mechanism
    if "sasl.username" in given and "sasl.jaas.config" not in java:
        if mechanism not in _LOGIN_MODULES:
            raise UserError(f"{config}: sasl.mechanism {mechanism} with a user name; known are {', '.join(_LOGIN_MODULES)}")
        user, password = _quoted(given["sasl.username"]), _quoted(given.get("sasl.password", ""))
        java["sasl.jaas.config"] = f"{_LOGIN_MODULES[mechanism]} required username={user} password={password};"
    if "ssl.ca.location" in given and "ssl.truststore.location" not in java:
        java |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    if "ssl.certificate.location" in given and "ssl.keystore.location" not in java:
        java |= _key_store(given)
    return java


def _key_store(given: Mapping[str, str]) -> dict[str, str]:
    """Certificate and key, which librdkafka has in two files and Java's client takes as texts."""
    if "ssl.key.location" not in given:
        raise UserError("ssl.certificate.location needs ssl.key.location beside it")
    found = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _text(given["ssl.certificate.location"]),
        "ssl.keystore.key": _text(given["ssl.key.location"]),
    }
    if "ssl.key.password" in given:
        found["ssl.key.password"] = given["ssl.key.password"]
    return found


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"cannot read {path}, which the client's settings name") from None


def topic_of(wanted: TopicInput, default_max_offsets: int) -> Topic:
    """What Spark is to read."""
    return Topic(
        wanted.bootstrap,
        wanted.topic,
        starting=wanted.starting,
        max_offsets=wanted.max_offsets or default_max_offsets,
        accept_loss=wanted.accept_loss,
        settings=java_settings(wanted.config),
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check(wanted: TopicInput, house: Lakehouse) -> None:
    """Refuses a topic that is not there, or is another one than this lakehouse was fed from before. Remembers which one it is."""
    if _TOPIC.fullmatch(wanted.topic) is None:
        raise UserError(f"--topic {wanted.topic}: no topic can have this name")
    if any(_JAVA_ALONE.match(name) for name in read_config(wanted.config)):
        return  # librdkafka could not log in; Spark says what is wrong
    admin = Cluster(wanted.bootstrap, wanted.config).admin()
    try:
        found = admin.list_topics(wanted.topic, timeout=CONNECT_SECONDS)
        listed = found.topics[wanted.topic]
        if listed.error is not None:
            raise UserError(f"no topic {wanted.topic} at {wanted.bootstrap}: {listed.error.str()}; create it (docs/shipping.md)")
        described = admin.describe_topics(TopicCollection([wanted.topic]), request_timeout=CONNECT_SECONDS)[wanted.topic].result()
    except KafkaException as error:
        raise UserError(f"cannot read topic {wanted.topic} at {wanted.bootstrap}: {reason(error)}") from None
    ours = {"topic": wanted.topic, "cluster_id": found.cluster_id, "topic_id": str(described.topic_id)}
    theirs = _remembered(house)
    if theirs is None:
        write_whole(house.topic, json.dumps(ours).encode())
    elif theirs != ours:
        same = theirs.get("topic") == wanted.topic and theirs.get("cluster_id") == ours["cluster_id"]
        what = "was deleted and made again" if same else f"is not the topic ({theirs.get('topic')}) that {house.folder} was fed from"
        raise UserError(f"topic {wanted.topic} of {wanted.bootstrap} {what}: give a new lakehouse")


def loss(error: BaseException) -> str | None:
    """What to say of an error that means: the topic dropped records before they were read (Spark's failOnDataLoss). Else None."""
    if "KAFKA_DATA_LOSS" not in str(error) and "failOnDataLoss" not in str(error):
        return None
    return "the topic dropped records before they were read: its retention is too short for such a pause. --accept-loss goes on"


def _remembered(house: Lakehouse) -> dict[str, Any] | None:
    try:
        found = json.loads(house.topic.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise UserError(f"{house.topic} is damaged: give a new folder") from None
    return found if isinstance(found, dict) else {}
