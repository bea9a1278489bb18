"""What consumers log about their group: the Java client and librdkafka. The first template that fits a sentence decides.

Sources: Java, AbstractCoordinator, ConsumerCoordinator, AbstractHeartbeatRequestManager (3.7 and 3.8: HeartbeatRequestManager),
ConsumerHeartbeatRequestManager, AbstractMembershipManager (MembershipManagerImpl) and CommitRequestManager in
clients/src/main/java/org/apache/kafka/clients/consumer/internals; Connect, WorkerCoordinator and DistributedHerder in
connect/runtime/…/distributed; librdkafka, src/rdkafka_cgrp.c and src/rdkafka_request.c. The texts of errors are those of
common/protocol/Errors.java, and of rd_kafka_err_descs in src/rdkafka.c.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Template, Templates
from jobs.sentences.other_clients import AIOKAFKA, FRANZ_GO, KAFKA_GO, KAFKA_PYTHON, KAFKAJS, OTHERS, SARAMA, STARTING

_SENT: Final = "Generation{generationId={generation}, memberId='{member}', protocol={text}}"
_REFUSED: Final = {
    "The coordinator is not aware of this member.": e.UNKNOWN_MEMBER_ID,
    "Specified group generation id is not valid.": e.ILLEGAL_GENERATION,
}
_COMMIT: Final = (
    "Offset commit cannot be completed since the consumer is not part of an active group",
    "Commit cannot be completed since the group has already rebalanced",
)
_FENCED: Final = {"state": e.FENCED_INSTANCE_ID}

JAVA: Final = (
    Template(e.CLIENT_POLL_TIMEOUT, "3.0+", "consumer poll timeout has expired.{text}"),
    Template(e.CLIENT_POLL_TIMEOUT, "3.7+, KIP-848", "Consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms{text}"),
    Template(e.CLIENT_POLL_TIMEOUT, "3.7+, KIP-848", "Time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, exceeded approximately by {exceeded} ms. Member {member} will rejoin the group now."),
    Template(e.CLIENT_POLL_TIMEOUT, "Connect", "worker poll timeout has expired.{text}"),
    Template(e.CLIENT_POLL_TIMEOUT, "2.1 to 2.8", "This member will leave the group because consumer poll timeout has expired.{text}"),
    Template(e.CLIENT_LEAVES, "2.4+", "Member {member} sending LeaveGroup request to coordinator {text} due to {reason}"),
    Template(e.CLIENT_LEAVES, "2.2 and 2.3", "Member {member} sending LeaveGroup request to coordinator {text}"),
    Template(e.CLIENT_LEAVES, "2.1; DEBUG before", "Sending LeaveGroup request to coordinator {text}"),
    Template(e.CLIENT_LEAVES, "3.7+, KIP-848", "Member {member} is triggering callbacks to release assignment {text} and leave group"),
    Template(e.CLIENT_REJOINS, "3.0+", "Request joining group due to: {reason}"),
    Template(e.CLIENT_JOINED, "2.6+", "Successfully joined group with generation Generation{generationId={generation}, memberId='{member}', protocol={text}}"),
    Template(e.CLIENT_JOINED, "to 2.5", "Successfully joined group with generation {generation}"),
    # The client is put out, or hears nothing.
    Template(e.CLIENT_SESSION_TIMEOUT, "2.7+", "Group coordinator {text} is unavailable or invalid due to cause: session timed out without receiving a heartbeat response.{text}"),
    *(
        Template(e.CLIENT_PUT_OUT, "2.6+", f"Attempt to heartbeat with {_SENT} and group instance id {{text}} failed due to {error}, resetting generation", fixed={"state": error, "reason": error})
        for error in (e.UNKNOWN_MEMBER_ID, e.ILLEGAL_GENERATION, e.FENCED_INSTANCE_ID)
    ),
    Template(e.CLIENT_PUT_OUT, "to 2.5", "Attempt to heartbeat failed for since member id {member} is not valid.", fixed={"state": e.UNKNOWN_MEMBER_ID}),
    Template(e.CLIENT_PUT_OUT, "to 2.5", "Attempt to heartbeat failed since generation {generation} is not current", fixed={"state": e.ILLEGAL_GENERATION}),
    *(
        Template(e.CLIENT_PUT_OUT, "2.7+; JoinGroup, SyncGroup", f"{{word}} failed: {words} Need to re-join the group. Sent generation was {_SENT}", fixed={"state": state, "reason": words})
        for words, state in _REFUSED.items()
    ),
    *(Template(e.CLIENT_PUT_OUT, "2.6", f"SyncGroup with {_SENT} failed: {words}, would request re-join", fixed={"state": state}) for words, state in _REFUSED.items()),
    Template(e.CLIENT_PUT_OUT, "2.7+; JoinGroup, SyncGroup", f"{{word}} failed: The group instance id Optional[{{instance}}] has been fenced by another instance. Sent generation was {_SENT}", fixed=_FENCED),
    Template(e.CLIENT_PUT_OUT, "2.3+", "Caught fenced group.instance.id Optional[{instance}] error in heartbeat thread", fixed=_FENCED),
    Template(e.CLIENT_PUT_OUT, "2.3 to 2.5", "Received fatal exception: group.instance.id gets fenced", fixed=_FENCED),
    Template(e.CLIENT_PUT_OUT, "3.7+, KIP-848", "{word}HeartbeatRequest failed for member {member} because epoch {generation} is fenced.{text}", fixed={"state": e.FENCED_MEMBER_EPOCH}),
    Template(e.CLIENT_PUT_OUT, "3.7+, KIP-848", "{word}HeartbeatRequest failed because member {member} is unknown.{text}", fixed={"state": e.UNKNOWN_MEMBER_ID}),
    Template(e.CLIENT_PUT_OUT, "3.8+, KIP-848", "{word}HeartbeatRequest failed due to fenced instance id {instance}: {reason}", fixed=_FENCED),
    Template(e.CLIENT_PUT_OUT, "3.8+, KIP-848", "{word}HeartbeatRequest failed due to unreleased instance id {instance}: {reason}", fixed={"state": e.UNRELEASED_INSTANCE_ID}),
    Template(e.CLIENT_STATE, "4.0+, KIP-848", "Member {member} with epoch {generation} transitioned from {reason} to {state}."),
    # A round is overtaken, or a commit is refused.
    Template(e.CLIENT_ROUND_FAILED, "2.7+", f"SyncGroup failed: The group began another rebalance. Need to re-join the group. Sent generation was {_SENT}"),
    *(Template(e.CLIENT_COMMIT_REFUSED, "classic", f"Offset commit failed on partition {{text}} at offset {{number}}: {words}", fixed={"reason": words}) for words in _REFUSED),
    *(Template(e.CLIENT_COMMIT_REFUSED, "2.6+", f"OffsetCommit failed with {_SENT}: {words}", fixed={"reason": words}) for words in _REFUSED),
    *(Template(e.CLIENT_COMMIT_REFUSED, "all", f"{{text}}ynchronous auto-commit of offsets {{text}} failed: {words}{{text}}", fixed={"reason": words}) for words in _COMMIT),
    *(Template(e.CLIENT_COMMIT_REFUSED, "all, where an application prints its exception", f"{words}{{text}}", fixed={"reason": words}) for words in _COMMIT),
    Template(e.CLIENT_COMMIT_REFUSED, "2.3+", "Failing OffsetCommit request since the consumer is not part of an active group"),
    Template(e.CLIENT_COMMIT_REFUSED, "3.7+, KIP-848", "OffsetCommit failed with UNKNOWN_MEMBER_ID{text}", fixed={"reason": e.UNKNOWN_MEMBER_ID}),
    Template(e.CLIENT_ASSIGNED, "Connect 2.3+", "Joined group at generation {generation} with protocol version {text} with rebalance delay: {rebalance_timeout}"),
    # How releases before 3.0 say why they join again.
    Template(e.CLIENT_REJOINS, "to 2.8", "Attempt to heartbeat failed since group is rebalancing", fixed={"reason": "group is already rebalancing"}),
    Template(e.CLIENT_REJOINS, "2.7 and 2.8", "Need to revoke partitions {text} and re-join the group", fixed={"reason": "need to revoke partitions and re-join"}),
    *(
        Template(e.CLIENT_REJOINS, "2.7 and 2.8", f"Requesting to re-join the group and trigger rebalance since the {what} has changed from {{text}}", fixed={"reason": reason})
        for what, reason in (("assignment metadata", "cached metadata has changed"), ("subscription", "subscription has changed"))
    ),
)  # fmt: skip

_BROKER_ERRORS: Final = (("Unknown member", e.UNKNOWN_MEMBER_ID), ("Specified group generation id is not valid", e.ILLEGAL_GENERATION))

LIBRDKAFKA: Final = (
    Template(e.CLIENT_POLL_TIMEOUT, "1.0+", "Application maximum poll interval ({rebalance_timeout}ms) exceeded by {exceeded}ms{text}"),
    Template(e.CLIENT_POLL_TIMEOUT, "1.0+; rd_kafka_err_descs", "Maximum application poll interval (max.poll.interval.ms) exceeded{text}"),
    Template(e.CLIENT_SESSION_TIMEOUT, "1.6+", "Consumer group session timed out (in join-state {text}) after {session_timeout} ms without a successful response from the group coordinator (broker {number}, last error was {reason}): revoking assignment and rejoining group"),
    Template(e.CLIENT_JOINED, "debug=cgrp", "JoinGroup response: GenerationId {generation}, Protocol {text}, LeaderId {text}, my MemberId {member}, member metadata count {number}: (no error)"),
    Template(e.CLIENT_REJOINS, "debug=cgrp", 'Group "{group}" initiating rebalance ({word}) in state {text} (join-state {plain}) with {number} assigned partition(s): {reason}'),
    Template(e.CLIENT_REJOINS, "debug=cgrp", 'Group "{group}": Rejoining group with {number} owned partition(s): {reason}'),
    Template(e.CLIENT_REJOINS, "debug=cgrp", 'Group "{group}": subscribe to new subscription of {number} topics (join-state steady)', fixed={"reason": "subscribe to new subscription"}),
    Template(e.CLIENT_JOINED, "0.11 to 1.5, debug=cgrp", "JoinGroup response: GenerationId {generation}, Protocol {text}, LeaderId {text}, my MemberId {member}, {number} members in group: (no error)"),
    Template(e.CLIENT_REJOINS, "1.6+, debug=cgrp", 'Group "{group}" is rebalancing ({word}) in state {text} (join-state {plain}) with {number} assigned partition(s){text}: {reason}'),
    Template(e.CLIENT_REJOINS, "to 1.5, debug=cgrp", 'Group "{group}" is rebalancing in state {word} (join-state {plain}) {word} assignment: {reason}'),
    Template(e.CLIENT_LEAVES, "debug=cgrp", 'Group "{group}": leave (in state {plain})'),
    *(
        Template(e.CLIENT_PUT_OUT, "debug=cgrp", f'Group "{{group}}"{words}', fixed={"state": state, "reason": error})
        for error, state in _BROKER_ERRORS
        for words in (f" heartbeat error response in state {{text}}: Broker: {error}", f": synchronization failed: Broker: {error}: rejoining")
    ),
    Template(e.CLIENT_ROUND_FAILED, "debug=cgrp", 'Group "{group}": synchronization failed: Broker: Group rebalance in progress: rejoining'),
    *(Template(e.CLIENT_COMMIT_REFUSED, "0.9+", f"Offset commit ({{text}}) failed for {{number}}/{{number}} partition(s){{text}}: Broker: {words}{{text}}", fixed={"reason": words}) for words, _ in _BROKER_ERRORS),
    *(
        Template(e.CLIENT_PUT_OUT, "2.4+, KIP-848; debug=cgrp, consumer", f"ConsumerGroupHeartbeat failed due to: Broker: {words}: will rejoin the group", fixed={"state": state, "reason": words})
        for words, state in (("Unknown member", e.UNKNOWN_MEMBER_ID), ("The member epoch is fenced by the group coordinator", e.FENCED_MEMBER_EPOCH))
    ),
    Template(e.CLIENT_PUT_OUT, "1.4+", "Fatal error: Broker: Static consumer fenced by other consumer with same group.instance.id: {reason}", fixed={"state": e.FENCED_INSTANCE_ID}),
)  # fmt: skip

NOTES: Final = tuple(
    Template(e.CLIENT_NOTE, versions, text)
    for versions, text in (
        ("all", "(Re-)joining group"), ("2.6+", "Attempt to heartbeat with stale {text}"), ("2.6+", "JoinGroup failed{reason}"),
        ("2.6+", "SyncGroup failed{reason}"), ("to 2.6", "Attempt to join group failed due to {reason}"), ("all", "Heartbeat thread failed due to unexpected error{text}"),
        ("2.8+", "Consumer has been disconnected from the group coordinator for {number}ms"), ("all", "Offset commit with offsets {text} failed{text}"),
        ("2.7+", f"Successfully synced group in generation {_SENT}"),
        ("all", "Group coordinator {text} is unavailable or invalid{reason}"), ("2.4 to 2.8", "Generation data was cleared by heartbeat thread{reason}"),
        ("2.4+", "Giving away all assigned partitions as lost since generation{text} has been reset,{reason}"),
        ("3.7+, KIP-848", "{word}HeartbeatRequest failed due to {reason}"), ("3.7+, KIP-848", "Member {member} with epoch {generation} transitioned to {reason}"),
        ("3.8+, KIP-848", "Reconciling assignment with local epoch {generation}{text}"),
        ("all", "Offset commit failed on partition {text} at offset {number}: {reason}"), ("2.6+", f"OffsetCommit failed with {_SENT}: {{reason}}"),
        ("debug=cgrp", "JoinGroup response: {text}: Broker: {reason}"),
        ("debug=cgrp", 'Group "{group}" heartbeat error response in state {reason}'), ("2.4+, KIP-848", "ConsumerGroupHeartbeat failed{reason}"),
        ("0.9+", "Offset commit ({text}) failed for {reason}"), ("Connect", "Rebalance started"), ("Connect", "Joined group at generation {generation} {reason}"),
        ("Connect", "Broker coordinator was unreachable for {number}ms. Revoking previous assignment {reason}"),
    )
)  # fmt: skip
"""Lines from which nothing follows that others do not say. They come after all others: some are only beginnings."""

CLIENTS: Final = Templates((*JAVA, *LIBRDKAFKA, *OTHERS, *NOTES))

UNSIGNED: Final[Mapping[str, tuple[Template, ...]]] = {
    "franz-go": FRANZ_GO,
    "librdkafka": tuple(template for template in LIBRDKAFKA if template.kind == e.CLIENT_POLL_TIMEOUT),
    "java": tuple(template for template in JAVA if template.text.startswith(_COMMIT)),
    "kafka-python": KAFKA_PYTHON,
    "aiokafka": AIOKAFKA,
    "sarama": SARAMA,
    "kafka-go": KAFKA_GO,
    "kafkajs": (*KAFKAJS, STARTING),
}
"""By library, sentences that show by themselves whose they are. Of librdkafka and Java, the texts of errors that an application prints."""
