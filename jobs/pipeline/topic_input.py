"""`rebalance run --kafka`: checks the topic before Spark starts, and translates the client's settings for Java.

One file of settings serves all commands. It has librdkafka's names, as for `rebalance ship`. Spark reads with Kafka's Java client, which
has other names for the same settings. Settings that only Java has may stand in the file too; librdkafka does not get them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from confluent_kafka import KafkaException, TopicCollection, TopicPartition

from jobs.common.errors import UserError
from jobs.common.files import write_whole
from jobs.kafka.clients import CONNECT_SECONDS, Cluster, read_config, reason, topic_metadata
from jobs.kafka.topic_records import Header, lines_in
from jobs.lakehouse.folder import Lakehouse

_JAVA_ALONE: Final = re.compile(r"sasl\.jaas\.config|ssl\.(truststore|keystore)\.|sasl\.(login|client)\.")
_SAME: Final = frozenset(
    {"security.protocol", "sasl.kerberos.service.name", "ssl.endpoint.identification.algorithm", "client.id", "client.dns.lookup"}
)
_MOST_RECORDS: Final = 100_000  # of a micro-batch, where each is a line
_MOST_LINES: Final = 500_000  # of a micro-batch: each is a row in the memory of the driver
_FEW_RECORDS: Final = 20_000  # where nobody can look at them
_LEAST_RECORDS: Final = 500
_SAMPLE: Final = 500  # records of each partition
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_LOGIN_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


@dataclass(frozen=True)
class TopicInput:
    """The topic of log lines to read, and how."""

    bootstrap: str
    topic: str
    starting: str = "earliest"  # or latest; for a topic that was not read before
    config: Path | None = None
    max_offsets: int | None = None  # records in a micro-batch, at most
    accept_loss: bool = False  # continue although records were deleted before they were read


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
    """Certificate and key, which librdkafka reads from two files and Java's client takes as texts."""
    if "ssl.key.location" not in given:
        raise UserError("ssl.certificate.location needs ssl.key.location beside it")
    store = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": _text(given["ssl.certificate.location"]),
        "ssl.keystore.key": _text(given["ssl.key.location"]),
    }
    if "ssl.key.password" in given:
        store["ssl.key.password"] = given["ssl.key.password"]
    return store


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"cannot read {path}, which the client's settings name") from None


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check(chosen: TopicInput, house: Lakehouse) -> None:
    """Refuses a missing topic, and a topic other than the one that this lakehouse was fed from. Remembers the topic's identity."""
    if _TOPIC.fullmatch(chosen.topic) is None:
        raise UserError(f"--topic {chosen.topic}: no topic can have this name")
    if is_for_java_alone(chosen):
        return  # Spark reports what is wrong
    admin = Cluster(chosen.bootstrap, chosen.config).admin()
    try:
        listed = topic_metadata(admin, chosen.topic, CONNECT_SECONDS)
        error = listed.topics[chosen.topic].error
        if error is not None:
            raise UserError(f"no topic {chosen.topic} at {chosen.bootstrap}: {error.str()}; create it (docs/shipping.md)")
        described = admin.describe_topics(TopicCollection([chosen.topic]), request_timeout=CONNECT_SECONDS)[chosen.topic].result()
    except KafkaException as error:
        raise UserError(f"cannot read topic {chosen.topic} at {chosen.bootstrap}: {reason(error)}") from None
    identity = {"topic": chosen.topic, "cluster_id": listed.cluster_id, "topic_id": str(described.topic_id)}
    before = _remembered(house)
    if before is None:
        write_whole(house.topic, json.dumps(identity).encode())
    elif before != identity:
        same = before.get("topic") == chosen.topic and before.get("cluster_id") == identity["cluster_id"]
        what = "was deleted and made again" if same else f"is not the topic ({before.get('topic')}) that {house.folder} was fed from"
        raise UserError(f"topic {chosen.topic} of {chosen.bootstrap} {what}: give a new lakehouse")


def records_at_once(chosen: TopicInput, most_lines: int) -> int:
    """How many records a micro-batch may have: the user's number, or so many that they hold about `most_lines` lines.

    Spark can limit the records of a micro-batch and nothing else, and a bundle has thousands of lines. The newest records show how many a
    record has on average.
    """
    if chosen.max_offsets is not None:
        return chosen.max_offsets
    if is_for_java_alone(chosen):
        return _FEW_RECORDS
    records, lines = _newest(chosen)
    return max(min(_MOST_RECORDS, min(most_lines, _MOST_LINES) * records // lines if lines else _MOST_RECORDS), _LEAST_RECORDS)


def _newest(chosen: TopicInput) -> tuple[int, int]:
    """The number of the newest records, and of the lines in them."""
    consumer = Cluster(chosen.bootstrap, chosen.config).consumer()
    records = lines = 0
    try:
        partitions = consumer.list_topics(chosen.topic, timeout=CONNECT_SECONDS).topics[chosen.topic].partitions
        ends = {number: consumer.get_watermark_offsets(TopicPartition(chosen.topic, number), CONNECT_SECONDS) for number in partitions}
        consumer.assign([TopicPartition(chosen.topic, number, max(low, high - _SAMPLE)) for number, (low, high) in ends.items()])
        left = {number for number, (low, high) in ends.items() if high > low}
        while left:
            message = consumer.poll(CONNECT_SECONDS)  # consume() would wait for more than there is
            if message is None:
                break
            number, is_end = cast("int", message.partition()), message.error() is not None
            if not is_end:
                records += 1
                lines += lines_in(cast("list[Header]", message.headers() or []))
            if is_end or cast("int", message.offset()) >= ends[number][1] - 1:  # more may come all the time
                left.discard(number)
    except KafkaException:
        return 0, 0  # Spark says what is wrong
    finally:
        consumer.close()
    return records, lines


def is_for_java_alone(chosen: TopicInput) -> bool:
    """Whether the settings are some with which librdkafka cannot log in."""
    return any(_JAVA_ALONE.match(name) for name in read_config(chosen.config))


def loss(error: BaseException) -> str | None:
    """One line for Spark's error (failOnDataLoss) that the topic dropped records before they were read; None for any other error."""
    if "KAFKA_DATA_LOSS" not in str(error) and "failOnDataLoss" not in str(error):
        return None
    return "the topic dropped records before they were read: its retention is shorter than the pause. To skip them, pass --accept-loss"


def _remembered(house: Lakehouse) -> dict[str, Any] | None:
    try:
        identity = json.loads(house.topic.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise UserError(f"{house.topic} is damaged: give a new folder") from None
    return identity if isinstance(identity, dict) else {}
