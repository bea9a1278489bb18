"""Lines as brokers write them, made from a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

START = datetime(2026, 11, 21, 6, 0, 0)  # noqa: DTZ001 - as in a log
START_MS = 1_795_240_800_000  # the same in UTC


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


def fetch(ms: int) -> bytes:
    return request(ms, "FETCH", 1)


def coordinator(ms: int, text: str = "Stabilized group g generation 1 with 3 members.") -> bytes:
    return f"{stamp(ms)} INFO [GroupCoordinator id=1] {text} (org.apache.kafka.coordinator.group.GroupMetadataManager)".encode()


def other(ms: int) -> bytes:
    return f"{stamp(ms)} INFO [LogLoader partition=x-8] Recovering segment 0. (org.apache.kafka.storage.LogLoader)".encode()


def write(path: Path, lines: list[bytes], end: bytes = b"\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + end for line in lines))
    return path
