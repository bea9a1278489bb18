"""Runs recorded traces of consumer groups through the specification, for `rebalance trace`.

The format is `consumer-group-case/1` of tests/data/traces-consumer/FORMAT.md. The result is the same object with the specification's
`expect` in every step: the answer, the group after the step, and the records that the step and the timers before it wrote. Members and
topics have the symbols of the trace.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar, Final

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
from coordinator_model.specification.consumer.coordinator import ConsumerCoordinator
from coordinator_model.specification.consumer.effects import ConsumerGroupEffect, RecordsWritten
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerOffsetCommit, OffsetFetch
from coordinator_model.specification.consumer.topics import Topic
from coordinator_model.specification.consumer.traces.episodes import EpisodeReader
from coordinator_model.specification.consumer.traces.trace_json import (
    Json,
    TraceSymbols,
    answer_json,
    episode_json,
    record_json,
    snapshot_json,
)
from coordinator_model.specification.consumer.traces.trace_run import ONE_GROUP_PER_PARTITION, Run, given
from coordinator_model.specification.releases import release_numbers
from coordinator_model.specification.requests import DeleteGroup, Heartbeat, JoinGroup, LeaveGroup, LeavingMember, SyncGroup

FORMAT: Final = "consumer-group-case/1"
KAFKA: Final = "4.2.0"
"""The release of traces that do not say on which they were measured."""
_OLDEST: Final = (4, 2)
"""The first release whose rules of consumer groups are known."""
_OVERRIDES: Final = ("consumer.session.timeout.ms", "consumer.heartbeat.interval.ms", "consumer.assignment.interval.ms")
"""Settings of a group, in the order of GroupOverrides."""
_JOIN_TIMEOUTS: Final = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000}
"""Of the classic members in traces."""


def episodes_of_trace(trace: Json, kafka: str | None = None) -> Json:
    """The rebalances in a trace of one group, as the specification runs it. ValueError: it is a trace of classic groups."""
    if trace.get("format") != FORMAT:
        raise ValueError(f"only traces of consumer groups ({FORMAT}) have episodes")
    run = ConsumerTraceRun(trace, kafka)
    run.run()
    reader = EpisodeReader(run.coordinator.config.version, run.symbols.label)
    reader.read(effect for _, effect in run.effects)
    return {"name": trace["name"], "episodes": [episode_json(episode, run.symbols) for episode in reader.episodes]}


class ConsumerTraceRun(Run):
    """One trace, run by a coordinator of both protocols."""

    requests: ClassVar = {
        "heartbeat": ConsumerGroupHeartbeat,
        "offset_commit": ConsumerOffsetCommit,
        "offset_fetch": OffsetFetch,
        "delete_group": DeleteGroup,
        "join": JoinGroup,
        "sync": SyncGroup,
        "classic_heartbeat": Heartbeat,
        "leave": LeavingMember,
    }

    def __init__(self, trace: Json, kafka: str | None = None) -> None:
        symbols = TraceSymbols(trace.get("ids") or {}, trace["topic_ids"])
        release = kafka or trace.get("measured_on") or KAFKA
        if release_numbers(release) < _OLDEST:
            raise ValueError(f"the rules of consumer groups are known from Kafka 4.2 on, not of {release}")
        coordinator = ConsumerCoordinator(consumer_group_config(trace["config"], release), 0, ())
        super().__init__(trace, symbols, coordinator, trace["config"].get("owned_groups") or ["g"])
        self.values |= {"topics": tuple, "owned": symbols.partitions, "assignments": self._assignments}
        self.effects: list[tuple[str, ConsumerGroupEffect]] = []
        self._created: Counter[str] = Counter()

    def step(self, index: int, step: Json) -> None:
        """The answer, if it comes at once, the group, and what was written before and by the step."""
        expect: Json = {}
        self.expects.append(expect)
        error = Error[step.get("append_error") or "NONE"]
        passed = self.coordinator.advance(step["at_ms"], append_error=error if step["op"] == "advance" else Error.NONE)
        outcome = self.executed(index, step)
        for reply in outcome.replies:
            if reply.ticket == index:
                expect["response"] = answer_json(reply.answer, self.symbols, self.coordinator.image)
        expect["group_after"] = snapshot_json(self.coordinator, step["group"], self.symbols)
        for key, effects in (("records_advance", passed.effects), ("records", outcome.effects)):
            self.effects += effects
            records = [record for _, effect in effects if isinstance(effect, RecordsWritten) for record in effect.records]
            if records:
                expect[key] = [record_json(record, self.symbols) for record in records]

    def executed(self, index: int, step: Json) -> Any:
        """Topics and settings change, too."""
        req: Json = step.get("req") or {}
        if step["op"] == "topics":
            return self.coordinator.change_topics(self._topics(req), step["at_ms"])
        if step["op"] == "group_config":
            overrides = GroupOverrides(*(None if req.get(name) is None else int(req[name]) for name in _OVERRIDES))
            return self.coordinator.configure(step["group"], overrides, step["at_ms"])
        return super().executed(index, step)

    def request(self, op: str, req: Json, fresh_member_id: str) -> Any:
        """A member of the classic protocol joins with what it owns in its subscription, and leaves alone."""
        others: Json = {"fresh_member_id": fresh_member_id, "client_id": "client"}
        if op == "join":
            others |= {**_JOIN_TIMEOUTS, "protocol_type": PROTOCOL_TYPE, "protocols": (("range", _subscription(req)),)}
        made = self.made(self.requests[op], req, **others)
        return LeaveGroup((made,)) if op == "leave" else made

    def _assignments(self, given: Json) -> tuple[tuple[str, bytes], ...]:
        return tuple((self.symbols.member_id(member), write_assignment(_by_name(owned), NEWEST_VERSION)) for member, owned in given.items())

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


def _subscription(req: Json) -> bytes:
    if req.get("malformed"):
        return b""
    generation = req.get("generation")
    owned = _by_name(req.get("owned") or {})
    return write_subscription(EmbeddedSubscription(tuple(req["topics"]), owned, -1 if generation is None else generation))


def _by_name(by_label: dict[str, list[int]]) -> TopicPartitions:
    return tuple((label.partition("#")[0], tuple(partitions)) for label, partitions in by_label.items())


def consumer_group_config(settings: Json, release: str) -> ConsumerGroupConfig:
    """The settings of a trace; what is absent has its default in the release."""
    default = ConsumerGroupConfig.of(release)
    classic = {"offsets_topic_num_partitions": ONE_GROUP_PER_PARTITION, **given(settings, _CLASSIC_SETTINGS)}
    return ConsumerGroupConfig(
        **given(settings, _SETTINGS),
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
