"""Lines as brokers write them, made from a time."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 21, 6, 0, 0)  # noqa: DTZ001 - as in a log
START_MS = 1_795_240_800_000  # the same in UTC
PROMPT = (0.4, 0.1, 0.2, 0.0, 0.05, 0.05)  # total, request queue, local, remote, response queue, send


def stamp(ms: int) -> str:
    """`[2026-11-21 06:00:00,000]` for 0."""
    at = START + timedelta(milliseconds=ms)
    return f"[{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}]"


def request(ms: int, api: str = "HEARTBEAT", key: int = 12, group: str = "g") -> bytes:
    return (
        f'{stamp(ms)} DEBUG Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":{key},'
        f'"requestApiVersion":3,"correlationId":{ms},"clientId":"c","requestApiKeyName":"{api}"}},'
        f'"request":{{"groupId":"{group}"}},"response":{{"errorCode":0}}}} (kafka.request.logger)'
    ).encode()


def heartbeat(
    ms: int,
    member: str = "a",
    number: str = "7",
    times: Sequence[object] = PROMPT,
    error: int = 0,
    *,
    member_id: str | None = None,
    connection: str = "10.0.0.1:9092-10.0.0.9:53676-0-2",
    generation: int = 3,
) -> bytes:
    """A line as Kafka 4 writes it. `member`: the client id."""
    total, queue, local, remote, answer, send = times
    return (
        f'{stamp(ms)} DEBUG Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":12,"requestApiVersion":4,'
        f'"correlationId":{number},"clientId":"{member}","requestApiKeyName":"HEARTBEAT"}},"request":{{"groupId":"g","generationId":'
        f'{generation},"memberId":"{member_id or f"{member}-1"}","groupInstanceId":null}},'
        f'"response":{{"throttleTimeMs":0,"errorCode":{error}}},'
        f'"connection":"{connection}","totalTimeMs":{total},"requestQueueTimeMs":{queue},"localTimeMs":{local},'
        f'"remoteTimeMs":{remote},"throttleTimeMs":0,"responseQueueTimeMs":{answer},"sendTimeMs":{send},"securityProtocol":"PLAINTEXT",'
        f'"principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":{{"softwareName":"apache-kafka-java",'
        f'"softwareVersion":"4.2.0"}},"privilegedListener":false}} (kafka.request.logger)'
    ).encode()


def consumer_heartbeat(
    ms: int,
    member: str = "a",
    number: str = "7",
    times: Sequence[object] = PROMPT,
    *,
    member_id: str = "WR0lBCwrTxSoqM5Yd3xUww",
    connection: str = "10.0.0.1:9092-10.0.0.9:53676-0-2",
    epoch: int = 3,
    answer_epoch: int | None = None,
    interval_ms: int = 5_000,
) -> bytes:
    """A heartbeat of the consumer protocol as Kafka 4.2 writes it, steady unless told otherwise."""
    total, queue, local, remote, send_queue, send = times
    request = (
        f'"groupId":"g8","memberId":"{member_id}","memberEpoch":{epoch},"instanceId":null,"rackId":null,"rebalanceTimeoutMs":-1,'
        '"subscribedTopicNames":null,"subscribedTopicRegex":null,"serverAssignor":null,"topicPartitions":null'
    )
    answer = (
        f'"throttleTimeMs":0,"errorCode":0,"errorMessage":null,"memberId":"{member_id}","memberEpoch":{answer_epoch or epoch},'
        f'"heartbeatIntervalMs":{interval_ms},"assignment":null'
    )
    return (
        f'{stamp(ms)} DEBUG Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":68,"requestApiVersion":1,'
        f'"correlationId":{number},"clientId":"{member}","requestApiKeyName":"CONSUMER_GROUP_HEARTBEAT"}},"request":{{{request}}},'
        f'"response":{{{answer}}},"connection":"{connection}","totalTimeMs":{total},"requestQueueTimeMs":{queue},"localTimeMs":{local},'
        f'"remoteTimeMs":{remote},"throttleTimeMs":0,"responseQueueTimeMs":{send_queue},"sendTimeMs":{send},"securityProtocol":"PLAINTEXT",'
        f'"principal":"User:ANONYMOUS","listener":"PLAINTEXT","clientInformation":{{"softwareName":"apache-kafka-java",'
        f'"softwareVersion":"4.2.0"}}}} (kafka.request.logger)'
    ).encode()


def fetch(ms: int) -> bytes:
    return request(ms, "FETCH", 1)


def api_versions(ms: int, level: int | None = 29, address: str = "10.0.0.1:9092") -> bytes:
    """An answer to ApiVersions. `level`: the highest metadata.version; None: to a version of the request that gets no features."""
    features = "" if level is None else f',"supportedFeatures":[{{"name":"metadata.version","minVersion":7,"maxVersion":{level}}}]'
    return (
        f'{stamp(ms)} DEBUG Completed request:{{"isForwarded":false,"requestHeader":{{"requestApiKey":18,"requestApiVersion":3,'
        f'"correlationId":{ms},"clientId":"c","requestApiKeyName":"API_VERSIONS"}},"request":{{"clientSoftwareName":"x",'
        f'"clientSoftwareVersion":"1"}},"response":{{"errorCode":0,"apiKeys":[{{"apiKey":11,"minVersion":0,"maxVersion":9}}],'
        f'"throttleTimeMs":0{features},"finalizedFeatures":[{{"name":"metadata.version","maxVersionLevel":19,"minVersionLevel":19}}]}},'
        f'"connection":"{address}-10.0.0.9:53676-0-2","totalTimeMs":1.5,"listener":"PLAINTEXT"}} (kafka.request.logger)'
    ).encode()


def coordinator(ms: int, text: str = "Stabilized group g generation 1 with 3 members.") -> bytes:
    return f"{stamp(ms)} INFO [GroupCoordinator id=1] {text} (org.apache.kafka.coordinator.group.GroupMetadataManager)".encode()


def other(ms: int) -> bytes:
    return f"{stamp(ms)} INFO [LogLoader partition=x-8] Recovering segment 0. (org.apache.kafka.storage.LogLoader)".encode()


def write(path: Path, lines: list[bytes], end: bytes = b"\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + end for line in lines))
    return path
