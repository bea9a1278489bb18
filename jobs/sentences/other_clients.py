"""What consumers of other libraries log about their group. The first template that fits a sentence decides.

jobs/logs/clients/sentences.py finds the beginnings of these sentences in a line, and puts fields that a logger writes beside the message
behind it. Only aiokafka and sarama keep silent about much: aiokafka leaves after a poll timeout with the words of any
other departure, sarama neither says that it joins nor that it leaves. franz-go and kafka-go have no poll timeout: their word that they leave
is a reason, and nothing else is waited for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Template, Templates

_UNKNOWN: Final = {"state": e.UNKNOWN_MEMBER_ID}
_OLD: Final = {"state": e.ILLEGAL_GENERATION}
_FENCED: Final = {"state": e.FENCED_INSTANCE_ID}

# kafka/coordinator/base.py, consumer.py
KAFKA_PYTHON: Final = (
    Template(e.CLIENT_JOINED, "1.3 to 2.0", "Successfully joined group {group} with generation {generation}"),
    Template(e.CLIENT_JOINED, "2.1+", "Successfully joined group {group} <Generation {generation} (member_id: {member}, protocol: {text})>"),
    Template(e.CLIENT_POLL_TIMEOUT, "1.4 to 2.0", "Heartbeat poll expired, leaving group", fixed={"reason": "Heartbeat poll expired"}),
    Template(e.CLIENT_POLL_TIMEOUT, "2.1+", "Consumer poll timeout has expired. {text}max_poll_interval_ms{text}"),
    Template(e.CLIENT_SESSION_TIMEOUT, "1.4+", "Heartbeat session expired, marking coordinator dead"),
    Template(e.CLIENT_LEAVES, "3.0+", "Leaving consumer group {group} (member {member})."),
    Template(e.CLIENT_LEAVES, "1.4 to 2.3", "Leaving consumer group ({group})."),
    Template(e.CLIENT_REJOINS, "1.3+, aiokafka", "Heartbeat failed for group {group} because it is rebalancing", fixed={"reason": "it is rebalancing"}),
    Template(e.CLIENT_REJOINS, "3.0+", "Group {group} is rebalancing; rejoining.", fixed={"reason": "it is rebalancing"}),
    Template(e.CLIENT_PUT_OUT, "1.3+, aiokafka", "Heartbeat failed for group {group}: generation id is not {text}", fixed={**_OLD, "reason": "generation id is not current"}),
    Template(e.CLIENT_PUT_OUT, "1.3+", "Heartbeat: local member_id was not recognized;{text}", fixed={**_UNKNOWN, "reason": "local member_id was not recognized"}),
    Template(e.CLIENT_PUT_OUT, "2.3+", "Heartbeat failed for group {group} due to fenced id error: {instance}", fixed=_FENCED),
    Template(e.CLIENT_PUT_OUT, "2.3+", "SyncGroup for group {group} failed due to fenced id error: {instance}", fixed=_FENCED),
    Template(e.CLIENT_ROUND_FAILED, "2.3+", "SyncGroup for group {group} failed due to coordinator rebalance"),
    Template(e.CLIENT_COMMIT_REFUSED, "1.3+", "Offset commit failed: group membership out of date{reason}"),
    Template(e.CLIENT_COMMIT_REFUSED, "1.3+", "Auto offset commit failed for group {group}: CommitFailedError: {reason}"),
    *(Template(e.CLIENT_COMMIT_REFUSED, "2.3+", f"OffsetCommit for group {{group}} failed: [Error {code}] {{reason}}") for code in (22, 25)),
    Template(e.CLIENT_NOTE, "1.3+, aiokafka", "(Re-)joining group {group}"),
    Template(e.CLIENT_NOTE, "1.3+, aiokafka", "Discovered coordinator {word} for group {group}"),
    Template(e.CLIENT_NOTE, "1.3+, aiokafka", "Marking the coordinator dead (node {word}){text}for group {group}: {reason}"),
    Template(e.CLIENT_NOTE, "1.3+, aiokafka", "Marking the coordinator dead (node {word}){text}for group {group}."),
    Template(e.CLIENT_REJOINS, "3.0+", "Triggering follow-up rebalance for group {group} to {reason}"),
)  # fmt: skip

# aiokafka/consumer/group_coordinator.py
AIOKAFKA: Final = (
    Template(e.CLIENT_JOINED, "0.1+", "Joined group '{group}' (generation {generation}) with member_id {member}"),
    Template(e.CLIENT_LEAVES, "0.1+", "LeaveGroup request succeeded"),
    Template(e.CLIENT_SESSION_TIMEOUT, "0.1+", "Heartbeat session expired - marking coordinator dead"),
    Template(e.CLIENT_PUT_OUT, "0.1+", "Heartbeat failed: local member_id was not recognized;{text}", fixed={**_UNKNOWN, "reason": "local member_id was not recognized"}),
    Template(e.CLIENT_COMMIT_REFUSED, "0.1+", "OffsetCommit failed for group {group} due to group error ({reason}), will rejoin"),
    Template(e.CLIENT_REJOINS, "0.1+", "Metadata for topic has changed from {text} to {text}", fixed={"reason": "Metadata for topic has changed"}),
)  # fmt: skip

# pkg/kgo/consumer_group.go, consumer_group_848.go; the form is that of BasicLogger in pkg/kgo/logger.go
FRANZ_GO: Final = (
    *(
        Template(e.CLIENT_JOINED, "1.0+", words + "; group: {group}, member_id: {member}, {text}generation: {generation}{text}")
        for words in ("joined", "joined, balancing group", "joined as leader but unable to balance group due to KIP-345 limitations")
    ),
    Template(e.CLIENT_LEAVES, "1.0+", "leaving group; group: {group}, member_id: {member}", fixed={"reason": "leaving group"}),
    Template(e.CLIENT_LEAVES, "1.19+, KIP-848", "leaving next-gen group; group: {group}, member_id: {member}, instance_id: {text}", fixed={"reason": "leaving group"}),
    Template(e.CLIENT_LEAVES, "1.19+, KIP-848", "leaving next-gen group; group: {group}, member_id: {member}", fixed={"reason": "leaving group"}),
    Template(e.CLIENT_REJOINS, "1.0+", "forced rejoin quitting heartbeat loop; why: {reason}, is848: {word}"),
    Template(e.CLIENT_REJOINS, "1.0+", "forced rejoin quitting heartbeat loop; why: {reason}"),
    *(
        Template(e.CLIENT_PUT_OUT, "1.0+", f"{words}; group: {{group}}, err: {error}: {{reason}}", fixed={"state": error})
        for words in ("heartbeat errored", "join group failed", "join and sync loop errored")
        for error in (e.UNKNOWN_MEMBER_ID, e.ILLEGAL_GENERATION, e.FENCED_INSTANCE_ID)
    ),
    *(Template(e.CLIENT_NOTE, "1.0+", f"{words}; group: {{group}}, err: {{reason}}") for words in ("join group failed", "join and sync loop errored")),
    Template(e.CLIENT_ROUND_FAILED, "1.0+", "sync failed with RebalanceInProgress, rejoining; group: {group}"),
    Template(e.CLIENT_PUT_OUT, "1.0+", "join returned UnknownMemberID, rejoining without a member id; group: {group}", fixed=_UNKNOWN),
    Template(e.CLIENT_COMMIT_REFUSED, "1.19+", "offset commit returned a fatal group member error, triggering rejoin; group: {group}, err: {reason}"),
    *(
        Template(e.CLIENT_PUT_OUT, "1.19+, KIP-848", f"consumer group heartbeat error, abandoning assignment and rejoining{{text}}; group: {{group}}, member_id: {{member}}, generation: {{generation}}, err: {error}: {{reason}}", fixed={"state": error})
        for error in (e.UNKNOWN_MEMBER_ID, e.FENCED_MEMBER_EPOCH)
    ),
    Template(e.CLIENT_REJOINS, "1.0+", "heartbeat errored; group: {group}, err: {reason}"),
)  # fmt: skip

# consumer_group.go
SARAMA: Final = (
    Template(e.CLIENT_PUT_OUT, "1.29+", "JoinGroup failed: group instance id {instance} has been fenced", fixed=_FENCED),
    Template(e.CLIENT_REJOINS, "1.29+", "consumergroup/{group} loop check partition number {word} find {reason}"),
    Template(e.CLIENT_REJOINS, "1.60+", "consumergroup/{group}: lost ownership of {text} due to {reason}"),
)  # fmt: skip

# consumergroup.go of segmentio/kafka-go
KAFKA_GO: Final = (
    Template(e.CLIENT_JOINED, "0.3+", "Joined group {group} as member {member} in generation {generation}"),
    Template(e.CLIENT_LEAVES, "0.3+", "Leaving group {group}, member {member}", fixed={"reason": "Leaving group"}),
    Template(e.CLIENT_ROUND_FAILED, "0.3+", "Failed to sync group {group}: [27] {reason}"),
    *(
        Template(e.CLIENT_PUT_OUT, "0.3+", f"Failed to {api} group {{group}}: [{code}] {{reason}}", fixed=learned)
        for api in ("join", "sync")
        for code, learned in ((22, _OLD), (25, _UNKNOWN))
    ),
    Template(e.CLIENT_REJOINS, "0.3+", "Partition changes found, rebalancing group: {group}.", fixed={"reason": "Partition changes found"}),
)  # fmt: skip

# src/consumer/consumerGroup.js, runner.js, index.js
KAFKAJS: Final = (
    Template(e.CLIENT_JOINED, "1.0+", "Consumer has joined the group; groupId: {group}, memberId: {member}"),
    Template(e.CLIENT_REJOINS, "1.0+", "The group is rebalancing, re-joining; groupId: {group}, memberId: {member}", fixed={"reason": "The group is rebalancing"}),
    Template(e.CLIENT_PUT_OUT, "1.0+", "The coordinator is not aware of this member, re-joining the group; groupId: {group}, memberId: {member}", fixed={**_UNKNOWN, "reason": "The coordinator is not aware of this member"}),
    *(
        Template(kind, "1.0+", f"Response {api}(key: {{number}}, version: {{number}}); clientId: {{client}}, error: {words}", fixed={"reason": words, "state": state})
        for api, kind in (("Heartbeat", e.CLIENT_PUT_OUT), ("SyncGroup", e.CLIENT_PUT_OUT), ("OffsetCommit", e.CLIENT_COMMIT_REFUSED))
        for words, state in (("The coordinator is not aware of this member", e.UNKNOWN_MEMBER_ID), ("Specified group generation id is not valid", e.ILLEGAL_GENERATION))
    ),
    Template(e.CLIENT_ROUND_FAILED, "1.0+", "Response SyncGroup(key: {number}, version: {number}); clientId: {client}, error: The group is rebalancing, so a rejoin is needed"),
    Template(e.CLIENT_REJOINS, "1.0+", "Response Heartbeat(key: {number}, version: {number}); clientId: {client}, error: {reason}"),
    Template(e.CLIENT_LEAVES, "1.0+", "Stopped; groupId: {group}", fixed={"reason": "Stopped"}),
    Template(e.CLIENT_LEAVES, "1.0+", "Crash: {reason}; groupId: {group}"),
)  # fmt: skip

OTHERS: Final = (*KAFKA_PYTHON, *AIOKAFKA, *FRANZ_GO, *SARAMA, *KAFKA_GO, *KAFKAJS)

STARTING: Final = Template("", "1.0+", "Starting; groupId: {group}")
"""From KafkaJS. It tells nothing but the group."""
NAMING: Final = Templates((*OTHERS, STARTING))
"""What may name the group of a log's other lines."""

_NAME: Final = re.compile(r"(?:^|, |\})(\w+): ")


def _fields() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for template in (*FRANZ_GO, *KAFKAJS, STARTING):
        message, _, fields = template.text.partition("; ")
        names = tuple(_NAME.findall(fields))
        if names:
            found[message] = min(found.get(message, names), names, key=len)
    return found


FIELDS: Final[Mapping[str, tuple[str, ...]]] = _fields()
"""Which fields belong to a message of franz-go or KafkaJS, where a logger writes fields beside the message."""
OPEN: Final = {message.partition("{")[0]: names for message, names in FIELDS.items() if "{" in message}
"""The same of messages that have fields in them, by how they begin."""
