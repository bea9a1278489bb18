"""What group coordinators log about KIP-848 groups (consumer, streams, share): Kafka 3.6 to 4.2.

Every line names its group in front. They become CONSUMER_GROUP_LOG events with the member where one is named, and their text as `reason`.
Source: `org/apache/kafka/coordinator/group/GroupMetadataManager.java`, `OffsetMetadataManager.java`.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.parsing.templates.language import Template

U: Final = "+czycdsORpaL6mgoKm439A"
V: Final = "PoXy/d3qQpOGkRtEOEpFtQ"


def _converted(state: str, text: str) -> Template:
    return Template(e.GROUP_CONVERTED, "Java", text, fixed={"state": state})


def _log(text: str, *examples: str) -> Template:
    return Template(e.CONSUMER_GROUP_LOG, "Java", text, examples)


CONSUMER: Final = (
    _log("[GroupId {group}] Member {member} joins the {word} group using the {word} protocol."),
    _log("[GroupId {group}] Static member {member} with instance id {instance} joins the consumer group using the {word} protocol."),
    _log("[GroupId {group}] Static member with instance id {instance} re-joins the consumer group using the {word} protocol. Created a new member {new_member} to replace the existing member {member}."),
    _log("[GroupId {group}] Bumped {word} group epoch to {generation} {text}",
         "[GroupId telemetry] Bumped streams group epoch to 2 with metadata hash 5 and validated topic epoch 1."),
    _log("[GroupId {group}] Bumped group epoch to {generation} {text}",
         "[GroupId telemetry] Bumped group epoch to 2 with metadata hash -7944087180104004329."),
    _log("[GroupId {group}] Bumped group epoch to {generation}."),
    _log("[GroupId {group}] Computed a new target assignment for epoch {generation} with '{text}' assignor in {number}ms{text}",
         "[GroupId telemetry] Computed a new target assignment for epoch 2 with 'uniform' assignor in 3ms."),
    _log("[GroupId {group}] Member {member} new assignment state: epoch={generation}, previousEpoch={number}, {text}",
         f"[GroupId telemetry] Member {U} new assignment state: epoch=3, previousEpoch=2, state=STABLE, assignedPartitions=[t-0]."),
    _log("[GroupId {group}] Member {member} updated its subscribed {text}",
         f"[GroupId telemetry] Member {U} updated its subscribed topics to: [orders]."),
    _log("[GroupId {group}] Member {member} left the {word} group."),
    _log("[GroupId {group}] Static member {member} with instance id {instance} temporarily left the consumer group."),
    _log("[GroupId {group}] Static member {member} with instance id {instance} left the consumer group."),
    _log("[GroupId {group}] Static Member {member} with instance id {instance} temporarily left the consumer group."),
    _log("[GroupId {group}] Static Member {member} with instance id {instance} left the consumer group."),
    _log("[GroupId {group}] Member {member} fenced from the group because it failed to transition from epoch {generation} within {number}ms."),
    _log("[GroupId {group}] Member {member} fenced from the group because {text}",
         f"[GroupId telemetry] Member {U} fenced from the group because the member session expired."),
    _log("[GroupId {group}] Static member {member} with instance id {instance} cannot join the group because the instance id is owned by member {new_member}."),
    _log("[GroupId {group}] Static member {member} with instance id {instance} is fenced by existing member {new_member}."),
    _log("[GroupId {group}] Dynamic member {member} has left group through explicit `LeaveGroup` request; client reason: {text}"),
    _log("[GroupId {group}] Static member {member} with instance id {instance} has left group through explicit `LeaveGroup` request; client reason: {text}"),
    _log("[Group {group}] Dynamic Member {member} has left group through explicit `LeaveGroup` request; client reason: {text}"),
    _log("[Group {group}] Static Member {member} with instance id {instance} has left group through explicit `LeaveGroup` request; client reason: {text}"),
    _converted("consumer", "[GroupId {group}] Converted the classic group to a consumer group."),
    _converted("classic", "[GroupId {group}] Converted the consumer group to a classic group."),
    _converted("consumer", "[GroupId {group}] Converted the empty {word} group to a consumer group."),
    _converted("classic", "[GroupId {group}] Converted the empty {word} group to a classic group."),
    _log("[GroupId {group}][MemberId {member}] {text}", f"[GroupId flow][MemberId {U}] Member joins the streams group."),
    _log("[GroupId {group}] Streams member {member} fenced from the group because {text}",
         f"[GroupId flow] Streams member {U} fenced from the group because the member session expired."),
    _log("[GroupId={group}] Unloaded group metadata for group epoch {generation}."),
    _log("Loaded {word} group {group} with {count} members."),
    _log("Loaded member {member} in consumer group {group}."),
    _log("Cannot upgrade classic group {group} to consumer group because {text}",
         "Cannot upgrade classic group search to consumer group because the online upgrade is disabled."),
    _log("Cannot upgrade the classic group {group} to consumer group because {text}",
         "Cannot upgrade the classic group search to consumer group because the embedded consumer protocol is malformed: x."),
    _log("Cannot downgrade consumer group {group} to classic group because {text}",
         "Cannot downgrade consumer group search to classic group because the online downgrade is disabled."),
    _log("Cannot downgrade the consumer group {group}: {text}",
         "Cannot downgrade the consumer group search: fail to parse the Consumer Protocol consumer."),
    _log("Skip downgrading the consumer group {group} to classic group because it's empty."),
    _log("[GroupId {group}] Member {member} {text}", f"[GroupId telemetry] Member {U} does something new."),
    _log("[GroupId {group}] {text}", "[GroupId telemetry] Assignment configurations changed to {}. Triggering rebalance."),
)  # fmt: skip
