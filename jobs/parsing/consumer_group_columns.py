"""The event columns of records of `__consumer_offsets` about a group of the consumer protocol (KIP-848): one row for each record."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model import events as e
from coordinator_model.specification.consumer.consumer_protocol import PROTOCOL_TYPE
from jobs.kafka import consumer_group_records as records
from jobs.kafka.consumer_group_records import ConsumerGroupRecord, StoredValue
from jobs.parsing.consumer_protocol import partitions_entry

_KINDS: Final = {
    records.EPOCH_KEY: e.EPOCH_STORED,
    records.TOPICS_KEY: e.TOPICS_STORED,
    records.MEMBER_KEY: e.MEMBER_STORED,
    records.TARGET_KEY: e.TARGET_STORED,
    records.SHARE_KEY: e.TARGET_MEMBER_STORED,
    records.ASSIGNMENT_KEY: e.CURRENT_STORED,
    records.EXPRESSION_KEY: e.EXPRESSION_STORED,
}


def record_columns(record: ConsumerGroupRecord) -> dict[str, Any]:
    """Columns of PARSED by name; the others are null."""
    subject = "reason" if record.key == records.EXPRESSION_KEY else "member_id"
    columns: dict[str, Any] = {"kind": _KINDS[record.key], "group_id": record.group_id, subject: record.subject or None}
    return columns | ({"state": e.REMOVED} if record.value is None else _of_value(record.value, record.subject))


def _of_value(value: StoredValue, member_id: str) -> dict[str, Any]:
    match value:
        case records.StoredEpoch(epoch, metadata_hash):
            return {"generation": epoch, "reason": None if metadata_hash is None else f"with metadata hash {metadata_hash}"}
        case records.StoredTarget(epoch, timed):
            return {"generation": epoch, "state": e.TIMED if timed else None}
        case records.StoredMember():
            return {
                "instance_id": value.instance_id or None,
                "client_id": value.client_id,
                "client_host": value.client_host,
                "session_timeout_ms": value.session_timeout_ms if value.session_timeout_ms >= 0 else None,
                "rebalance_timeout_ms": value.rebalance_timeout_ms if value.rebalance_timeout_ms >= 0 else None,
                "subscribed_regex": value.regex,
                "protocols": [{"name": value.assignor or PROTOCOL_TYPE, "topics": list(value.topics), "owned": None, "digest": None}],
            }
        case records.StoredShare(partitions):
            return {"assignments": [partitions_entry(member_id, partitions)]}
        case records.StoredAssignment():
            return {
                "generation": value.previous_epoch,
                "answer_generation": value.epoch,
                "state": value.state,
                "assignments": [partitions_entry(member_id, value.assigned), partitions_entry(member_id, value.pending)],
            }
        case records.StoredExpression(topics) | records.StoredTopics(topics):
            return {"member_count": len(topics)}
