"""What group coordinators log about KIP-848 groups (consumer, streams, share): Kafka 3.6 to 4.4.

Every line names its group in front. They become CONSUMER_GROUP_LOG events with the member where one is named, and their text as `reason`.
Source: `org/apache/kafka/coordinator/group/GroupMetadataManager.java`, `OffsetMetadataManager.java`, `Utils.java`;
`streams/StreamsGroupTopologyDescriptionManager.java`. Static members of streams groups: GroupMetadataManager.streamsGroupHeartbeat,
replaceStreamsMember and streamsGroupLeave of 4.4.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Template


def _converted(state: str, text: str) -> Template:
    return Template(e.GROUP_CONVERTED, "Java", text, fixed={"state": state})


def _log(text: str, *, tells: str = "", of: str = "") -> Template:
    """`of`: the type of group that alone has this line, if not that of KIP-848."""
    fixed = {"state": tells, "protocol_type": of}
    return Template(e.CONSUMER_GROUP_LOG, "Java", text, fixed={name: value for name, value in fixed.items() if value})


def _refused(text: str) -> Template:
    """The group keeps its protocol, so the line is none about a group of the consumer protocol."""
    return Template(e.COORDINATOR_NOTE, "Java", text, fixed={"state": e.TROUBLE})


CONSUMER: Final = (
    # First, since a group may have any name, also one with a bracket.
    _log("[GroupId {group}][MemberId {member}] Member joins the streams group.", tells=e.JOINED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] Static member {text} with instance id {instance} joins the streams group.", tells=e.JOINED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {text}] Static member with instance id {instance} re-joins the streams group using the streams protocol. Created a new member {new_member} to replace the existing member {member}.", tells=e.RETURNED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] Static member {text} with instance id {instance} temporarily left the streams group.", tells=e.AWAY, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] Static member {text} with instance id {instance} left the streams group.", tells=e.DEPARTED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] Bumped streams group epoch to {generation} {text}", tells=e.EPOCH_RAISED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] Member {text} left the streams group.", tells=e.DEPARTED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] Member's new assignment state: epoch={generation}, previousEpoch={number}, {text}", tells=e.ASSIGNMENT_STORED, of=e.STREAMS),
    _log("[GroupId {group}][MemberId {member}] {text}"),
    _log("[GroupId {group}] Member {member} joins the consumer group using the {word} protocol.", tells=e.JOINED),
    _log("[GroupId {group}] Member {member} joins the share group using the share protocol.", tells=e.JOINED, of=e.SHARE),
    _log("[GroupId {group}] Member {member} joins the {word} group using the {word} protocol."),
    _log("[GroupId {group}] Static member {member} with instance id {instance} joins the consumer group using the {word} protocol.", tells=e.JOINED),
    _log("[GroupId {group}] Static member with instance id {instance} re-joins the consumer group using the {word} protocol. Created a new member {new_member} to replace the existing member {member}.", tells=e.RETURNED),
    _log("[GroupId {group}] Bumped streams group epoch to {generation} {text}", tells=e.EPOCH_RAISED, of=e.STREAMS),
    _log("[GroupId {group}] Bumped group epoch to {generation} {text}", tells=e.EPOCH_RAISED),
    _log("[GroupId {group}] Bumped group epoch to {generation}.", tells=e.EPOCH_RAISED),
    _log("[GroupId {group}] Computed a new target assignment for epoch {generation} with '{text}' assignor in {number}ms{text}", tells=e.TARGET_COMPUTED),
    _log("[GroupId {group}] Member {member} new assignment state: epoch={generation}, previousEpoch={number}, {text}", tells=e.ASSIGNMENT_STORED),
    _log("[GroupId {group}] Member {member} updated its subscribed topics to: {text}", tells=e.TOPICS_UPDATED),
    _log("[GroupId {group}] Member {member} updated its subscribed {text}"),
    _log("[GroupId {group}] Member {member} left the consumer group.", tells=e.DEPARTED),
    _log("[GroupId {group}] Member {member} left the share group.", tells=e.DEPARTED, of=e.SHARE),
    _log("[GroupId {group}] Member {member} left the {word} group."),
    _log("[GroupId {group}] Static {plain} {member} with instance id {instance} temporarily left the consumer group.", tells=e.AWAY),
    _log("[GroupId {group}] Static {plain} {member} with instance id {instance} left the consumer group.", tells=e.DEPARTED),
    _log("[GroupId {group}] Member {member} fenced from the group because it failed to transition from epoch {generation} within {rebalance_timeout}ms.", tells=e.STUCK),
    _log("[GroupId {group}] Member {member} fenced from the group because the member session expired.", tells=e.EXPIRED),
    _log("[GroupId {group}] Member {member} fenced from the group because its session expired.", tells=e.EXPIRED),
    _log("[GroupId {group}] Member {member} fenced from the group because the classic member failed to join within the rebalance timeout{text}", tells=e.STUCK),
    _log("[GroupId {group}] Member {member} fenced from the group because {text}", tells=e.TROUBLE),
    _log("[GroupId {group}] Static member {member} with instance id {instance} cannot join the group because the instance id is owned by member {new_member}.", tells=e.OWNED),
    _log("[GroupId {group}] Static member {member} with instance id {instance} is fenced by existing member {new_member}.", tells=e.FENCED),
    _log("[GroupId {group}] Dynamic member {member} has left group through explicit `LeaveGroup` request; client reason: {text}", tells=e.DEPARTED),
    _log("[GroupId {group}] Static member {member} with instance id {instance} has left group through explicit `LeaveGroup` request; client reason: {text}", tells=e.DEPARTED),
    _log("[Group {group}] Dynamic Member {member} has left group through explicit `LeaveGroup` request; client reason: {text}"),
    _log("[Group {group}] Static Member {member} with instance id {instance} has left group through explicit `LeaveGroup` request; client reason: {text}"),
    _converted("consumer", "[GroupId {group}] Converted the classic group to a consumer group."),
    _converted("classic", "[GroupId {group}] Converted the consumer group to a classic group."),
    _converted("consumer", "[GroupId {group}] Converted the empty {word} group to a consumer group."),
    _converted("classic", "[GroupId {group}] Converted the empty {word} group to a classic group."),
    _log("[GroupId {group}] Streams member {member} fenced from the group because the member session expired{text}", tells=e.EXPIRED, of=e.STREAMS),
    _log("[GroupId {group}] Streams member {member} fenced from the group because {text}", tells=e.TROUBLE),
    _log("[GroupId={group}] Unloaded group metadata for group epoch {generation}.", tells=e.GIVEN_UP),
    _log("Loaded consumer group {group} with {count} members.", tells=e.READ_BACK),
    _log("Loaded share group {group} with {count} members.", tells=e.READ_BACK, of=e.SHARE),
    _log("Loaded streams group {group} with {count} members.", tells=e.READ_BACK, of=e.STREAMS),
    _log("Loaded {word} group {group} with {count} members."),
    _log("Loaded member {member} in consumer group {group}."),
    _refused("Cannot upgrade classic group {group} to consumer group because {text}"),
    _refused("Cannot upgrade the classic group {group} to consumer group because {text}"),
    _log("Cannot downgrade consumer group {group} to classic group because {text}", tells=e.TROUBLE),
    _log("Cannot downgrade the consumer group {group}: {text}", tells=e.TROUBLE),
    _log("Cannot join the consumer group {group} with the classic protocol because the group migration is disabled.", tells=e.REFUSED),  # 4.2.2, 4.3.1
    _log("Skip downgrading the consumer group {group} to classic group because it's empty."),
    _log("[GroupId {group}] Scanned {number} topics to refresh regular expressions {text}", tells=e.REGEX_RESOLVED),
    *(_log(text, of=e.STREAMS) for text in (
        "[GroupId {group}] Requested topology description push at topology epoch {number}.",
        "[GroupId {group}] The configured task assignor {text} is not available; falling back to the default assignor {text}.",
        "[GroupId {group}] The refined assignment does not hand out as many active tasks as the target assignment. {text}",
        "[GroupId {group}] Size of assignment epochs {number} is not equal to partitions {number} for subtopology {text}",
    )),
    _log("[GroupId {group}] Member {member} {text}"),
    _log("[GroupId {group}] {text}"),
)  # fmt: skip
