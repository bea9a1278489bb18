"""What traces of consumer groups say, with the symbols of the trace for members and topics."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

from coordinator_model.specification.consumer.consumer_protocol import read_assignment
from coordinator_model.specification.consumer.coordinator import ConsumerCoordinator
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.member import ConsumerGroupMember, OrderedPartitions, Partitions, as_sets
from coordinator_model.specification.consumer.migration import partitions_by_id
from coordinator_model.specification.consumer.records import (
    TIME_UNKNOWN,
    ClassicGroupWritten,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogRecord,
    OffsetCommitted,
    PartitionMetadata,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    Tombstone,
)
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeatAnswer, OffsetFetchAnswer
from coordinator_model.specification.consumer.topics import TopicId, TopicImage
from coordinator_model.specification.consumer.traces.episodes import GroupEpisode
from coordinator_model.specification.requests import JoinAnswer, LeaveAnswer, SyncAnswer

Json = dict[str, Any]
_TOMBSTONE: Final = {"tombstone": True}
KEYS: Final = {
    "member_id": "member",
    "instance_id": "instance",
    "previous_epoch": "prev_epoch",
    "pending": "pending_revocation",
    "rack_id": "rack",
}
"""Names of values that have another name in traces."""


class TraceSymbols:
    """The symbols that stand for member ids and topic ids."""

    def __init__(self, ids: dict[str, str], topic_ids: dict[str, list[int]]) -> None:
        self._ids = ids
        self._symbols = {member_id: symbol for symbol, member_id in ids.items()}
        self._topics = {label: TopicId(*halves) for label, halves in topic_ids.items()}
        self._labels = {topic_id: label for label, topic_id in self._topics.items()}

    def member_id(self, symbol: str) -> str:
        """The id that a symbol stands for. What is no symbol is an id."""
        return self._ids.get(symbol, symbol)

    def member(self, member_id: str) -> str:
        """The symbol of a member id."""
        return self._symbols.get(member_id, member_id)

    def members(self, member_ids: Iterable[str]) -> list[str]:
        """The symbols of member ids, sorted."""
        return sorted(map(self.member, member_ids), key=by_number)

    def text(self, text: str | None) -> str | None:
        """A text with symbols in the place of member ids."""
        if text is not None:
            for member_id, symbol in self._symbols.items():
                text = text.replace(member_id, symbol)
        return text

    def label(self, topic_id: TopicId) -> str:
        """The label of a topic."""
        return self._labels[topic_id]

    def topic_id(self, label: str) -> TopicId:
        """The topic that a label stands for. ValueError: the trace does not say."""
        if label not in self._topics:
            raise ValueError(f"topic_ids has no {label!r}")
        return self._topics[label]

    def partitions(self, by_label: dict[str, list[int]]) -> Partitions:
        """Partitions by topic id. A topic without partitions counts too."""
        return {self.topic_id(label): frozenset(partitions) for label, partitions in by_label.items()}

    def by_label(self, partitions: Partitions) -> dict[str, list[int]]:
        """Partitions by label, sorted."""
        return {label: sorted(some) for label, some in sorted((self._labels[topic_id], some) for topic_id, some in partitions.items())}

    def ordered(self, partitions: OrderedPartitions) -> dict[str, list[int]]:
        """The same for partitions in an order."""
        return self.by_label(as_sets(partitions))


def told(of: Any, names: str, symbols: TraceSymbols) -> Json:
    """Some values of an object, by their names in traces."""
    return {KEYS.get(name, name): _value(name, getattr(of, name), symbols) for name in names.split()}


def _value(name: str, value: Any, symbols: TraceSymbols) -> Any:  # noqa: PLR0911 - one for each kind of value
    if name == "classic":
        return value is not None
    if name == "error":
        return value.name
    if value is None:
        return None
    if name in {"member_id", "leader"}:
        return symbols.member(value)
    if name == "message":
        return symbols.text(value)
    if name in {"assigned", "pending", "assignment", "partitions"}:
        return symbols.by_label(value)
    if name == "topics":
        return sorted(value)
    return value.value if isinstance(value, Enum) else value


def answer_json(answer: Any, symbols: TraceSymbols, image: TopicImage) -> Json:
    """An answer."""
    json = told(answer, "error", symbols)
    if isinstance(answer, JoinAnswer):
        return json | told(answer, "member_id generation leader protocol", symbols)
    if isinstance(answer, SyncAnswer):
        return json | {"assignment": symbols.by_label(partitions_by_id(read_assignment(answer.assignment).partitions, image))}
    if isinstance(answer, LeaveAnswer):
        return json | {"member_error": answer.members[0].error.name if answer.members else answer.error.name}
    if isinstance(answer, ConsumerGroupHeartbeatAnswer):
        return json | told(answer, "member_id epoch heartbeat_interval_ms assignment message", symbols)
    return json | (told(answer, "offset", symbols) if isinstance(answer, OffsetFetchAnswer) and not answer.error else {})


def snapshot_json(coordinator: ConsumerCoordinator, group_id: str, symbols: TraceSymbols) -> Json:
    """A group as it is."""
    classic = coordinator.classic.groups.get(group_id)
    if classic is not None:
        members_of_it = symbols.members(classic.members)
        return {"type": "classic", "state": classic.state.value, "generation": classic.generation, "members": members_of_it}
    group = coordinator.groups.get(group_id)
    if group is None or group.state is None:
        return {"type": "none"}
    state = group.state
    members = sorted(state.members.values(), key=lambda member: by_number(symbols.member(member.member_id)))
    return {
        "type": "consumer",
        "state": state.phase.value,
        "group_epoch": state.group_epoch,
        "target_epoch": state.target_epoch,
        **({"target_at_ms": state.target_at_ms} if state.release.assignment_interval else {}),
        "subscription": state.subscription.value,
        "static": {instance: symbols.member(member_id) for instance, member_id in sorted(state.static_members.items())},
        "resolved_regex": {regex: sorted(resolved.topics) for regex, resolved in sorted(state.resolved.items())},
        "members": [_member_json(state, member, symbols) for member in members],
    }


def _member_json(state: ConsumerGroupState, member: ConsumerGroupMember, symbols: TraceSymbols) -> Json:
    return {
        **told(member, "member_id instance_id epoch previous_epoch state assigned pending", symbols),
        **(_epochs_json(member, symbols) if state.release.assignment_epochs else {}),
        "target": symbols.ordered(state.target.get(member.member_id, ())),
        **told(member, "topics regex assignor rebalance_timeout_ms rack_id classic", symbols),
    }


def _epochs_json(owner: ConsumerGroupMember | CurrentMemberAssignment, symbols: TraceSymbols) -> Json:
    """The assignment epochs, in the order of the partitions."""
    epochs = owner.assignment_epochs or {}
    return {
        key: {symbols.label(topic_id): [epochs[topic_id, number] for number in sorted(numbers)] for topic_id, numbers in owned.items()}
        for key, owned in (("assigned_epochs", owner.assigned), ("pending_epochs", owner.pending))
    }


def by_number(symbol: str) -> tuple[bool, int, str]:
    """The order of symbols: $m2 comes before $m10, and $m... before others such as $c1."""
    return not symbol.startswith("$m"), len(symbol), symbol


_RECORDS: Final = {
    ConsumerGroupMetadata: ("GroupMetadata", ""),
    PartitionMetadata: ("ConsumerGroupPartitionMetadataKey", ""),
    ConsumerGroupMemberMetadata: ("MemberMetadata", "member"),
    TargetAssignmentMetadata: ("TargetAssignmentMetadata", ""),
    TargetAssignmentMember: ("TargetAssignmentMember", "member"),
    CurrentMemberAssignment: ("CurrentMemberAssignment", "member"),
    RegularExpression: ("RegularExpression", "regex"),
    OffsetCommitted: ("OffsetCommit", ""),
    ClassicGroupWritten: ("ClassicGroupMetadata", ""),
}
"""What a trace calls a record, and whom it is about."""


def record_json(record: LogRecord, symbols: TraceSymbols) -> Json:
    """A record."""
    match record:
        case Tombstone(of, key):
            name, about = _RECORDS[of]
            return {"rec": name, **({about: symbols.member(key)} if about else {}), **_TOMBSTONE}
        case ConsumerGroupMetadata(epoch):
            values: Json = {"epoch": epoch, "hash_zero": not record.metadata_hash}
        case ConsumerGroupMemberMetadata():
            values = told(record, "member_id instance_id topics regex assignor rebalance_timeout_ms rack_id client_id classic", symbols)
        case TargetAssignmentMetadata(epoch, at_ms):
            values = {"epoch": epoch, **({} if at_ms is None else {"at_ms": None if at_ms == TIME_UNKNOWN else at_ms})}
        case TargetAssignmentMember(member_id, partitions):
            values = {"member": symbols.member(member_id), "partitions": symbols.ordered(partitions)}
        case CurrentMemberAssignment():
            epochs = {} if record.assignment_epochs is None else _epochs_json(record, symbols)
            values = told(record, "member_id epoch previous_epoch state assigned pending", symbols) | epochs
        case RegularExpression():
            values = told(record, "regex topics", symbols)
        case OffsetCommitted():
            values = told(record, "topic partition", symbols) | (_TOMBSTONE if record.offset is None else {"offset": record.offset})
        case ClassicGroupWritten(stored):
            values = _TOMBSTONE if stored is None else {"generation": stored.generation}
    return {"rec": _RECORDS[type(record)][0], **values}


def episode_json(episode: GroupEpisode, symbols: TraceSymbols) -> Json:
    """A rebalance."""
    return {
        "first_epoch": episode.rounds[0].epoch,
        "last_epoch": episode.rounds[-1].epoch,
        "start_ms": episode.start_ms,
        "end_ms": episode.end_ms,
        "end_state": None if episode.end_phase is None else episode.end_phase.value,
        "rounds": [told(one, "epoch at_ms cause member_id reached_ms superseded", symbols) for one in episode.rounds],
        "holders": [told(holder, "member_id from_ms until_ms ended partitions", symbols) for holder in episode.holders],
        "unowned": [{"topic": symbols.label(one.topic_id), **told(one, "partition from_ms until_ms", symbols)} for one in episode.unowned],
    }
