"""`rebalance poll`: lists and describes the groups of a cluster at intervals, and writes lines of JSON (jobs/logs/record_judge.py).

It serves clusters whose broker logs are out of reach. A group gets a line when it is first seen and whenever it has changed, and another
one whenever its committed offsets or the ends of its partitions have (poll_offsets.py); every poll ends with a sign of life. Times are
those of this machine.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaException
from confluent_kafka.admin import AdminClient

from jobs.common.errors import UserError
from jobs.kafka.clients import Cluster, reason
from jobs.kafka.poll_offsets import ChildPoller, OffsetPoller, Partition

FORMAT: Final = "rebalance-poll-1"
TIMEOUT_SECONDS: Final = 30.0
_GROUPS_A_CALL: Final = 200

_STATES: Final = {
    ConsumerGroupState.PREPARING_REBALANCING: "PreparingRebalance",
    ConsumerGroupState.COMPLETING_REBALANCING: "CompletingRebalance",
}


class Poller:
    """Polls one cluster. `last_lines`: what was last written about each group."""

    def __init__(
        self, cluster: Cluster, groups: Collection[str] = (), *, offsets_each: int = 0, offsets: OffsetPoller | None = None
    ) -> None:
        """`groups`: the only ones to poll; all if empty. `offsets_each`: how many polls it takes to ask for offsets again; 0: never.

        `offsets`: who asks for them, if it is not a process of its own.
        """
        self.cluster = cluster
        self.last_lines: dict[str, dict[str, Any]] = {}
        self._groups = frozenset(groups)
        self._admin: AdminClient = cluster.admin()
        self._offsets = offsets or ChildPoller(cluster)
        self._offsets_each = offsets_each
        self._polls = 0

    def poll(self) -> Iterator[dict[str, Any]]:
        """The lines of one poll. KafkaException: the cluster did not answer."""
        began = time.monotonic()
        listed = self._list()
        described = self._describe(sorted(listed))
        at_ms = time.time_ns() // 1_000_000
        last_ms, offsets = self._poll_offsets(described) or (at_ms, [])
        for group_id in sorted(self.last_lines.keys() - listed):
            if self.last_lines[group_id].get("state") != "Dead":
                described[group_id] = {"group": group_id, "type": self.last_lines[group_id].get("type"), "state": "Dead", "members": []}
        for group_id, line in sorted(described.items()):
            last = self.last_lines.get(group_id, {})
            if line == last:
                continue
            if "error" not in line or "error" not in last:
                yield {"timestamp": at_ms, **line}
            self.last_lines[group_id] = line
        yield from offsets
        yield {"timestamp": last_ms, "polled": len(listed), "took_ms": int((time.monotonic() - began) * 1000)}

    def may_see_all(self) -> bool:
        """Whether brokers list all groups for this client: they leave out, in silence, those that it may not describe."""
        asked = self._admin.describe_cluster(include_authorized_operations=True, request_timeout=TIMEOUT_SECONDS)
        return "DESCRIBE" in {operation.name for operation in _result(asked).authorized_operations or ()}

    def _poll_offsets(self, described: Mapping[str, dict[str, Any]]) -> tuple[int, list[dict[str, Any]]] | None:
        """What ChildPoller tells; None if it is not its turn."""
        turn, self._polls = self._polls, self._polls + 1
        if not self._offsets_each or turn % self._offsets_each:
            return None
        return self._offsets.poll({group_id: _assigned(line) for group_id, line in described.items() if _has_offsets(line)})

    def _list(self) -> set[str]:
        answer = _result(self._admin.list_consumer_groups(request_timeout=TIMEOUT_SECONDS))
        if answer.errors and not answer.valid:
            raise KafkaException(answer.errors[0])  # a KafkaError is no exception, although it can be raised
        listed = {group.group_id for group in answer.valid}
        return listed & self._groups if self._groups else listed

    def _describe(self, groups: list[str]) -> dict[str, dict[str, Any]]:
        lines: dict[str, dict[str, Any]] = {}
        for first in range(0, len(groups), _GROUPS_A_CALL):
            futures = self._admin.describe_consumer_groups(groups[first : first + _GROUPS_A_CALL], request_timeout=TIMEOUT_SECONDS)
            for group_id, future in futures.items():
                try:
                    lines[group_id] = group_line(group_id, _result(future))
                except KafkaException as error:  # noqa: PERF203 - each group may fail
                    lines[group_id] = {"group": group_id, "error": reason(error)}
        return lines


def group_line(group_id: str, answer: Any) -> dict[str, Any]:
    """The line of one group. Its order does not depend on the order of the answer."""
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
        "state": _STATES.get(answer.state) or str(getattr(answer.state, "name", answer.state)).title(),
        "assignor": answer.partition_assignor or None,
        "coordinator": {"id": node.id, "address": f"{node.host}:{node.port}"} if node is not None else None,
        "members": sorted(members, key=lambda member: str(member["member_id"])),
    }


def _has_offsets(line: Mapping[str, Any]) -> bool:
    """Whether a group is there to be asked. Groups of other types, such as share groups, are not listed at all."""
    return "error" not in line and line["state"] not in ("Dead", "Unknown")


def _assigned(line: Mapping[str, Any]) -> list[Partition]:
    names = (name.rpartition("-") for member in line["members"] for name in member["partitions"])
    return [Partition(topic, int(number)) for topic, _, number in names]


def follow(poller: Poller, folder: Path, *, every: float, once: bool, stopped: Callable[[], bool], complain: Callable[[str], None]) -> int:
    """Polls until it is stopped, into a new file each day; returns the number of polls that were answered.

    Complains once when the cluster stops answering. A poll without an answer has no line in the file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    answered, failing, day, path = 0, False, "", folder
    while not stopped():
        began = time.monotonic()
        now = datetime.now(timezone.utc)
        if f"{now:%Y%m%d}" != day:
            day, path = f"{now:%Y%m%d}", folder / f"poll-{now:%Y%m%dT%H%M%SZ}.jsonl"
            _append(path, [{"format": FORMAT, "from": poller.cluster.bootstrap, "began": now.isoformat(timespec="milliseconds")}])
        try:
            _append(path, poller.poll())
            answered, failing = answered + 1, False
        except (KafkaException, FutureTimeoutError) as error:
            problem = reason(error) if isinstance(error, KafkaException) else "no answer in time"
            problem = f"polling {poller.cluster.bootstrap} failed: {problem}"
            if once:
                raise UserError(problem) from None
            if not failing:
                complain(f"{problem}; still trying")
            failing = True
        if once:
            break
        while not stopped() and time.monotonic() - began < every:
            time.sleep(min(0.2, every))
    return answered


def _append(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Adds whole lines with one write, so that a reader never sees half a poll."""
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def _result(future: Future[Any]) -> Any:
    return future.result(TIMEOUT_SECONDS + 5)
