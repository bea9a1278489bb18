"""Runs recorded traces of consumer groups through the specification, for `rebalance trace`.

The format is `consumer-group-case/1` of tests/data/traces-consumer/FORMAT.md. The result is the same object with the specification's
`expect` in every step: the answer, the group after the step, and the records that the step and the timers before it wrote. Members and
topics have the symbols of the trace.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides, MigrationPolicy
from coordinator_model.specification.consumer.consumer_protocol import (
    NEWEST_VERSION,
    PROTOCOL_TYPE,
    EmbeddedSubscription,
    TopicPartitions,
    write_assignment,
    write_subscription,
)
from coordinator_model.specification.consumer.coordinator import ConsumerCoordinator, ConsumerCoordinatorOutcome
from coordinator_model.specification.consumer.effects import ConsumerGroupEffect, RecordsWritten
from coordinator_model.specification.consumer.group import ConsumerGroupRequest
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerOffsetCommit, OffsetFetch
from coordinator_model.specification.consumer.topics import Topic
from coordinator_model.specification.consumer.traces.episodes import EpisodeReader
from coordinator_model.specification.consumer.traces.trace_json import TraceSymbols, answer_json, episode_json, record_json, snapshot_json
from coordinator_model.specification.releases import release_numbers
from coordinator_model.specification.requests import DeleteGroup, Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup

Json = dict[str, Any]

FORMAT: Final = "consumer-group-case/1"
KAFKA: Final = "4.2.0"
"""The release of traces that do not say on which they were measured."""
_OLDEST: Final = (4, 2)
"""The first release whose rules of consumer groups are known."""
_ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"
_SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
_HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
_ONE_GROUP_PER_PARTITION: Final = 2**31 - 1
"""Traces move groups, not partitions: with so many partitions each group has its own."""


def episodes_of_trace(trace: Json, kafka: str | None = None) -> Json:
    """The rebalances in a trace of one group, as the specification runs it. ValueError: it is a trace of classic groups."""
    if trace.get("format") != FORMAT:
        raise ValueError(f"only traces of consumer groups ({FORMAT}) have episodes")
    run = ConsumerTraceRun(trace, kafka)
    run.run()
    reader = EpisodeReader(run.coordinator.config.version, run.symbols.label)
    reader.read(effect for _, effect in run.effects)
    return {"name": trace["name"], "episodes": [episode_json(episode, run.symbols) for episode in reader.episodes]}


class ConsumerTraceRun:
    """One trace, run by a coordinator."""

    def __init__(self, trace: Json, kafka: str | None = None) -> None:
        self.trace = trace
        self.symbols = TraceSymbols(trace.get("ids") or {}, trace["topic_ids"])
        self.expects: list[Json] = []
        self.effects: list[tuple[str, ConsumerGroupEffect]] = []
        self._created: Counter[str] = Counter()
        release = kafka or trace.get("measured_on") or KAFKA
        if release_numbers(release) < _OLDEST:
            raise ValueError(f"the rules of consumer groups are known from Kafka 4.2 on, not of {release}")
        config = consumer_group_config(trace["config"], release)
        self.coordinator = ConsumerCoordinator(config, 0, ())
        for group_id in trace["config"].get("owned_groups") or ["g"]:
            self.coordinator.load(self.coordinator.partition(group_id), 0)

    def run(self) -> None:
        """Run all steps."""
        for index, step in enumerate(self.trace["steps"]):
            self.step(index, step)

    def step(self, index: int, step: Json) -> None:
        """Let time pass until the step, then run it."""
        at_ms, group_id = step["at_ms"], step["group"]
        expect: Json = {}
        self.expects.append(expect)
        error = Error[step.get("append_error") or "NONE"]
        passed = self.coordinator.advance(at_ms, append_error=error if step["op"] == "advance" else Error.NONE)
        outcome = self._execute(index, step, error)
        for reply in outcome.replies:
            if reply.ticket == index:
                expect["response"] = answer_json(reply.answer, self.symbols, self.coordinator.image)
        expect["group_after"] = snapshot_json(self.coordinator, group_id, self.symbols)
        for key, effects in (("records_advance", passed.effects), ("records", outcome.effects)):
            self.effects += effects
            records = [record for _, effect in effects if isinstance(effect, RecordsWritten) for record in effect.records]
            if records:
                expect[key] = [record_json(record, self.symbols) for record in records]

    def _execute(self, index: int, step: Json, error: Error) -> ConsumerCoordinatorOutcome:
        at_ms, op, group_id, coordinator = step["at_ms"], step["op"], step["group"], self.coordinator
        req: Json = step.get("req") or {}
        if op in _REQUESTS:
            fresh = self.symbols.member_id(step.get("bind") or f"$x{index}")
            request: ConsumerGroupRequest = _REQUESTS[op](self, req, fresh)
            return coordinator.handle(group_id, request, at_ms, index, append_error=error)
        if op == "topics":
            return coordinator.change_topics(self._topics(req), at_ms)
        if op == "group_config":
            overrides = GroupOverrides(*(_number(req.get(name)) for name in (_SESSION_TIMEOUT, _HEARTBEAT_INTERVAL, _ASSIGNMENT_INTERVAL)))
            return coordinator.configure(group_id, overrides, at_ms)
        if op == "advance":
            return coordinator.advance(at_ms)
        moves = {"unload": coordinator.unload, "load_begin": coordinator.load_begin}
        return moves.get(op, coordinator.load)(coordinator.partition(group_id), at_ms)

    def _topics(self, req: Json) -> dict[str, Topic | None]:
        """The changes of one step: create {name: partitions}, grow {name: new count}, delete [names]."""
        changes: dict[str, Topic | None] = dict.fromkeys(req.get("delete") or ())
        for name, partitions in (req.get("grow") or {}).items():
            topic = self.coordinator.image.named(name)
            if topic is not None:
                changes[name] = topic._replace(partitions=partitions)
        for name, partitions in (req.get("create") or {}).items():
            self._created[name] += 1
            count = self._created[name]
            changes[name] = Topic(name, self.symbols.topic_id(name if count == 1 else f"{name}#{count}"), partitions)
        return changes

    def heartbeat(self, req: Json, fresh_member_id: str) -> ConsumerGroupHeartbeat:
        """A heartbeat. A missing key is null."""
        owned, topics, timeout = req.get("owned"), req.get("topics"), req.get("rebalance_timeout_ms")
        version, client_id = req.get("api_version"), req.get("client_id")
        return ConsumerGroupHeartbeat(
            self.symbols.member_id(req["member"]),
            req["epoch"],
            req.get("instance"),
            req.get("rack"),
            -1 if timeout is None else timeout,
            None if topics is None else tuple(topics),
            req.get("regex"),
            req.get("assignor"),
            None if owned is None else self.symbols.partitions(owned),
            1 if version is None else version,
            "client" if client_id is None else client_id,
            fresh_member_id=fresh_member_id,
        )

    def offset_commit(self, req: Json, _: str) -> ConsumerOffsetCommit:
        """A commit of one offset."""
        version = req.get("api_version")
        return ConsumerOffsetCommit(
            self.symbols.member_id(req["member"]),
            req["epoch"],
            req["topic"],
            req["partition"],
            req["offset"],
            req.get("instance"),
            9 if version is None else version,
        )

    def offset_fetch(self, req: Json, _: str) -> OffsetFetch:
        """A question for one offset."""
        member = req.get("member")
        return OffsetFetch(None if member is None else self.symbols.member_id(member), req["epoch"], req["topic"], req["partition"])

    def delete_group(self, _: Json, __: str) -> DeleteGroup:
        """DeleteGroups."""
        return DeleteGroup()

    def join(self, req: Json, fresh_member_id: str) -> JoinGroup:
        """JoinGroup of a member of the classic protocol, with what it owns in its subscription."""
        topics, version = tuple(req["topics"]), req.get("api_version")
        generation = req.get("generation")
        subscription = EmbeddedSubscription(topics, _by_name(req.get("owned") or {}), -1 if generation is None else generation)
        return JoinGroup(
            self.symbols.member_id(req["member"]),
            *_JOIN_TIMEOUTS_MS,
            PROTOCOL_TYPE,
            (("range", b"" if req.get("malformed") else write_subscription(subscription)),),
            req.get("instance"),
            9 if version is None else version,
            "client",
            fresh_member_id=fresh_member_id,
        )

    def sync(self, req: Json, _: str) -> SyncGroup:
        """SyncGroup of a member of the classic protocol."""
        given = req.get("assignments") or {}
        assignments = tuple(
            (self.symbols.member_id(member), write_assignment(_by_name(owned), NEWEST_VERSION)) for member, owned in given.items()
        )
        return SyncGroup(self.symbols.member_id(req["member"]), req["generation"], assignments, req.get("instance"))

    def classic_heartbeat(self, req: Json, _: str) -> Heartbeat:
        """Heartbeat of a member of the classic protocol."""
        return Heartbeat(self.symbols.member_id(req["member"]), req["generation"], req.get("instance"))

    def leave(self, req: Json, _: str) -> LeaveGroup:
        """LeaveGroup of one member."""
        return LeaveGroup((LeavingMember(self.symbols.member_id(req["member"]), req.get("instance")),))


def _by_name(by_label: dict[str, list[int]]) -> TopicPartitions:
    return tuple((label.partition("#")[0], tuple(partitions)) for label, partitions in by_label.items())


_JOIN_TIMEOUTS_MS: Final = (45_000, 60_000)
"""Session and rebalance timeout of the classic members in traces."""

_REQUESTS: Final[dict[str, Callable[[ConsumerTraceRun, Json, str], ConsumerGroupRequest]]] = {
    "heartbeat": ConsumerTraceRun.heartbeat,
    "offset_commit": ConsumerTraceRun.offset_commit,
    "offset_fetch": ConsumerTraceRun.offset_fetch,
    "delete_group": ConsumerTraceRun.delete_group,
    "join": ConsumerTraceRun.join,
    "sync": ConsumerTraceRun.sync,
    "classic_heartbeat": ConsumerTraceRun.classic_heartbeat,
    "leave": ConsumerTraceRun.leave,
}


def _number(value: Any) -> int | None:
    return None if value is None else int(value)


def consumer_group_config(settings: Json, release: str) -> ConsumerGroupConfig:
    """The settings of a trace; what is absent has its default in the release."""
    default = ConsumerGroupConfig.of(release)
    classic = {"offsets_topic_num_partitions": _ONE_GROUP_PER_PARTITION, **_given(settings, _CLASSIC_SETTINGS)}
    return ConsumerGroupConfig(
        **_given(settings, _SETTINGS),
        assignors=tuple(settings["assignors"].split(",")) if "assignors" in settings else default.assignors,
        migration_policy=MigrationPolicy(settings.get("migration_policy", default.migration_policy.value)),
        classic=CoordinatorConfig(default.classic.version, group_initial_rebalance_delay_ms=0, **classic),
    )


_SETTINGS: Final = {
    "session_timeout_ms": "session_timeout_ms",
    "heartbeat_interval_ms": "heartbeat_interval_ms",
    "group_max_size": "max_size",
    "regex_refresh_ms": "regex_refresh_interval_ms",
    "assignment_interval_ms": "assignment_interval_ms",
}
_CLASSIC_SETTINGS: Final = {"offsets_retention_check_ms": "offsets_retention_check_interval_ms"}


def _given(settings: Json, names: dict[str, str]) -> dict[str, int]:
    return {name: settings[key] for key, name in names.items() if key in settings}
