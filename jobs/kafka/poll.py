"""`rebalance poll`: what Admin list and describe say of the groups, again and again, as lines of JSON (record_lines.py).

For clusters whose brokers nobody can reach but as a client. A group has a line when it is first seen and when it has changed since
its last line; every poll ends with a line that shows that the poller lived. Times are this machine's.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient

from jobs.common.errors import UserError
from jobs.kafka.clients import Cluster, reason

FORMAT: Final = "rebalance-poll-1"
TIMEOUT_SECONDS: Final = 30.0
_AT_ONCE: Final = 200  # groups asked for in one call

_STATES: Final = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
    ConsumerGroupState.STABLE: "Stable",
    ConsumerGroupState.DEAD: "Dead",
    ConsumerGroupState.EMPTY: "Empty",
}


class Poller:
    """Asks one cluster. `known` is what was last written of each group."""

    def __init__(self, cluster: Cluster, groups: Collection[str] = ()) -> None:
        self.cluster = cluster
        self._groups = frozenset(groups)
        self._admin: AdminClient = cluster.admin()
        self.known: dict[str, dict[str, Any]] = {}

    def poll(self) -> Iterator[dict[str, Any]]:
        """The lines of one poll. KafkaException: the cluster did not answer."""
        began = time.monotonic()
        listed = self._list()
        described = self._describe(sorted(listed))
        at_ms = time.time_ns() // 1_000_000
        for group_id in sorted(self.known.keys() - listed):
            if self.known[group_id].get("state") != "Dead":
                described[group_id] = {"group": group_id, "type": self.known[group_id].get("type"), "state": "Dead", "members": []}
        for group_id, answer in sorted(described.items()):
            if answer == self.known.get(group_id):
                continue
            if "error" not in answer or "error" not in self.known.get(group_id, {}):
                yield {"timestamp": at_ms, **answer}
            self.known[group_id] = answer
        yield {"timestamp": at_ms, "polled": len(listed), "took_ms": int((time.monotonic() - began) * 1000)}

    def _list(self) -> set[str]:
        found = _answer(self._admin.list_consumer_groups(request_timeout=TIMEOUT_SECONDS))
        if found.errors and not found.valid:
            raise found.errors[0]
        listed = {group.group_id for group in found.valid}
        return listed & self._groups if self._groups else listed

    def _describe(self, groups: list[str]) -> dict[str, dict[str, Any]]:
        answers: dict[str, dict[str, Any]] = {}
        for first in range(0, len(groups), _AT_ONCE):
            asked = self._admin.describe_consumer_groups(groups[first : first + _AT_ONCE], request_timeout=TIMEOUT_SECONDS)
            for group_id, future in asked.items():
                try:
                    answers[group_id] = described(group_id, _answer(future))
                except KafkaException as error:  # noqa: PERF203 - a group has an answer of its own
                    answers[group_id] = {"group": group_id, "error": reason(error)}
        return answers


def described(group_id: str, answer: Any) -> dict[str, Any]:
    """One group as a line says it, in an order that does not depend on the answer's."""
    node = answer.coordinator
    members = [
        {
            "member_id": member.member_id,
            "instance_id": member.group_instance_id,
            "client_id": member.client_id,
            "host": member.host,
            "partitions": sorted(f"{p.topic}-{p.partition}" for p in (member.assignment.topic_partitions if member.assignment else ())),
        }
        for member in answer.members
    ]
    return {
        "group": group_id,
        "type": "consumer" if answer.type == ConsumerGroupType.CONSUMER else "classic",
        "state": _STATES.get(answer.state) or str(getattr(answer.state, "name", answer.state)).title(),  # Assigning, Reconciling
        "assignor": answer.partition_assignor or None,
        "coordinator": {"id": node.id, "address": f"{node.host}:{node.port}"} if node is not None else None,
        "members": sorted(members, key=lambda member: str(member["member_id"])),
    }


def follow(
    poller: Poller,
    folder: Path,
    *,
    every: float,
    once: bool,
    stopped: Callable[[], bool],
    complain: Callable[[str], None],
) -> int:
    """Polls into a file of its own a day until it is stopped; returns the number of polls that were answered.

    A cluster that does not answer is complained of once, until it does again; that the poll heard nothing stands in the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    answered, failing, day = 0, False, ""
    name = ""
    while not stopped():
        began = time.monotonic()
        now = datetime.now(timezone.utc)
        if f"{now:%Y%m%d}" != day:
            day, name = f"{now:%Y%m%d}", f"poll-{now:%Y%m%dT%H%M%SZ}.jsonl"
            header = {"format": FORMAT, "from": poller.cluster.bootstrap, "began": now.isoformat(timespec="milliseconds")}
            _append(folder / name, [header])
        try:
            _append(folder / name, list(poller.poll()))
            answered, failing = answered + 1, False
        except (KafkaException, FutureTimeoutError) as error:
            said = reason(error) if isinstance(error, KafkaException) else "no answer in time"
            if once:
                raise UserError(f"polling {poller.cluster.bootstrap} failed: {said}") from None
            if not failing:
                complain(f"polling {poller.cluster.bootstrap} failed: {said}; trying on")
            failing = True
        if once:
            break
        while not stopped() and time.monotonic() - began < every:
            time.sleep(min(0.2, every))
    return answered


def duration(text: str) -> float:
    """`5s`, `500ms`, `2m`, or seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|m)?", text)
    seconds = float(found[1]) * {"ms": 0.001, "m": 60.0}.get(found[2] or "s", 1.0) if found is not None else 0.0
    if not 0.1 <= seconds <= 3600:
        raise UserError(f"--every {text}: write a duration from 100ms to 60m, such as 5s")
    return seconds


def _append(path: Path, lines: list[dict[str, Any]]) -> None:
    """Adds whole lines with one write, so that who reads along sees no half poll."""
    with path.open("a", encoding="utf-8") as file:
        file.write("".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in lines))


def _answer(future: Future[Any]) -> Any:
    return future.result(TIMEOUT_SECONDS + 5)
