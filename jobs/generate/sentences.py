"""What group coordinators log at level INFO, in the words of Kafka 3.9 (Scala) and 4.2 (Java). Odd spelling is Kafka's."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model import events as e
from coordinator_model.specification.transitions import Trigger
from jobs.generate.logged_group import Said

STATIC_MEMBER_ADDED: Final = "STATIC_MEMBER_ADDED"
"""In `Words.sentences`, MEMBER_ADDED of a static member."""


class Words(NamedTuple):
    """How a family of releases writes about groups."""

    line: str
    """Around a sentence about a group."""
    sentences: dict[str, str]
    """By kind of line. A kind that is missing is not logged at INFO."""
    reasons: dict[Trigger, str]
    instance: str
    """An instance id, where a member may have none."""
    no_instance: str
    members: str
    """A list of members."""
    gives_up: tuple[str, str]
    """The broker's lines before and after those about the groups of a partition that it gives up."""
    takes_over: tuple[str, str]
    """The same for a partition that it takes over."""


_REASONS: Final = {
    Trigger.NEW_MEMBER: "Adding new member {member} with group instance id {instance}; client reason: {reason}",
    Trigger.LEADER_REJOIN: "Leader {member} re-joining group during {state}; client reason: {reason}",
    Trigger.MEMBER_METADATA_CHANGED: "Updating metadata for member {member} during {state}; client reason: {reason}",
    Trigger.STATIC_REPLACED_DURING_COMPLETING: (
        "Updating metadata for static member {member} with instance id {bare_instance}; client reason: {reason}"
    ),
    Trigger.STATIC_PROTOCOL_CHANGE: (
        "Group's selectedProtocol will change because static member {member} with instance id {bare_instance} "
        "joined with change of protocol; client reason: {reason}"
    ),
    Trigger.SYNC_EXPIRED: "Removing {members} on pending sync request expiration",
}
_STATIC: Final = "Static member with groupInstanceId={bare_instance} and unknown member id joins group {group} in {state} state. "
_LEADER: Final = "Assignment received from leader {member} for group {group} for generation {generation}. "
_COORDINATOR: Final = "INFO [GroupCoordinator {{broker}}]: {} (kafka.coordinator.group.GroupCoordinator)"
_MANAGER: Final = "INFO [GroupMetadataManager brokerId={{broker}}] {} (kafka.coordinator.group.GroupMetadataManager)"
_RUNTIME: Final = "INFO [GroupCoordinator id={{broker}}] {} (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"

JAVA: Final = Words(
    line=(
        "INFO [GroupCoordinator id={broker} topic=__consumer_offsets partition={partition}] {sentence} "
        "(org.apache.kafka.coordinator.group.GroupMetadataManager)"
    ),
    sentences={
        e.PREPARING_REBALANCE: (
            "Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation} (reason: {why})."
        ),
        e.STABILIZED: "Stabilized group {group} generation {generation} with {count} members.",
        e.ASSIGNMENT_RECEIVED: _LEADER + "The group has {count} members, {static} of which are static.",
        e.GROUP_EMPTY: "Group {group} with generation {generation} is now empty.",
        e.MEMBER_FAILED: "Member {member} in group {group} has failed, removing it from the group.",
        e.MEMBER_LEFT: "[Group {group}] Member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}",
        e.MEMBERS_NOT_REJOINED: "Group {group} removed dynamic members who haven't joined: {members}",
        e.MEMBER_ID_ISSUED: (
            "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} "
            "and requesting the member to rejoin with this id."
        ),
        e.MEMBER_ADDED: "Pending dynamic member with id {member} joins group {group} in {state} state. Adding to the group now.",
        STATIC_MEMBER_ADDED: _STATIC + "Created a new member id {member} for this member and added to the group.",
        e.STATIC_MEMBER_REPLACED: _STATIC + "Replacing previously mapped member {member} with this groupInstanceId.",
        e.STATIC_MEMBER_KEPT: (
            "Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger a rebalance."
        ),
        e.GROUP_LOADED: "Loaded classic group {group} with {count} members.",
        e.GROUP_UNLOADED: "[GroupId={group}] Unloading group metadata for generation {generation}.",
    },
    reasons=_REASONS
    | {
        Trigger.SESSION_EXPIRED: "removing member {member} on heartbeat expiration.",
        Trigger.LEAVE: "explicit `LeaveGroup` request for ({member}) members.",
        Trigger.ASSIGNMENT_APPEND_FAILED: "Error UNKNOWN_SERVER_ERROR when storing group assignmentduring SyncGroup (member: {member}).",
    },
    instance="{}",
    no_instance="null",
    members="[{}]",
    gives_up=(
        _RUNTIME.format("Started unloading metadata for {offsets} with epoch OptionalInt[{epoch}]."),
        _RUNTIME.format("Finished unloading metadata for {offsets} with epoch OptionalInt[{epoch}]."),
    ),
    takes_over=(
        _RUNTIME.format("Scheduling loading of metadata from {offsets} with epoch {epoch}"),
        _RUNTIME.format(
            "Finished loading of metadata from {offsets} with epoch {epoch} in {took}ms where {took}ms was spent in the scheduler. "
            "Loaded {count} records which total to {bytes} bytes."
        ),
    ),
)

SCALA: Final = Words(
    line=_COORDINATOR.format("{sentence}"),
    sentences={
        e.PREPARING_REBALANCE: (
            "Preparing to rebalance group {group} in state PreparingRebalance with old generation {generation} "
            "(__consumer_offsets-{partition}) (reason: {why})"
        ),
        e.STABILIZED: "Stabilized group {group} generation {generation} (__consumer_offsets-{partition}) with {count} members",
        e.ASSIGNMENT_RECEIVED: _LEADER + "The group has {count} members, {static} of which are static.",
        e.GROUP_EMPTY: "Group {group} with generation {generation} is now empty (__consumer_offsets-{partition})",
        e.MEMBER_FAILED: "Member {member} in group {group} has failed, removing it from the group",
        e.MEMBER_LEFT: (
            "Member MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, "
            "sessionTimeoutMs={session_ms}, rebalanceTimeoutMs={rebalance_ms}, supportedProtocols=List({protocols})) "
            "has left group {group} through explicit `LeaveGroup`; client reason: {reason}"
        ),
        e.MEMBERS_NOT_REJOINED: "Group {group} removed dynamic members who haven't joined: {members}",
        e.MEMBER_ID_ISSUED: (
            "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} "
            "and request the member to rejoin with this id."
        ),
        STATIC_MEMBER_ADDED: _STATIC + "Created a new member id {member} for this member and add to the group.",
        e.STATIC_MEMBER_REPLACED: _STATIC + "Replacing previously mapped member {member} with this groupInstanceId.",
        e.STATIC_MEMBER_KEPT: "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.",
        e.GROUP_LOADED: "Loading group metadata for {group} with generation {generation}",
        e.GROUP_UNLOADED: "Unloading group metadata for {group} with generation {generation}",
    },
    reasons=_REASONS
    | {
        Trigger.SESSION_EXPIRED: "removing member {member} on heartbeat expiration",
        Trigger.LEAVE: "Removing member {member} on LeaveGroup; client reason: {reason}",
        Trigger.ASSIGNMENT_APPEND_FAILED: "Error UNKNOWN_SERVER_ERROR when storing group assignment during SyncGroup (member: {member})",
    },
    instance="Some({})",
    no_instance="None",
    members="Set({})",
    gives_up=(
        _COORDINATOR.format("Resigned as the group coordinator for partition {partition} in epoch OptionalInt[{epoch}]"),
        _MANAGER.format(
            "Finished unloading {offsets} for coordinator epoch OptionalInt[{epoch}]. "
            "Removed {count} cached offsets and {groups} cached groups."
        ),
    ),
    takes_over=(
        _COORDINATOR.format("Elected as the group coordinator for partition {partition} in epoch {epoch}"),
        _MANAGER.format(
            "Finished loading offsets and group metadata from {offsets} in {took} milliseconds for epoch {epoch}, "
            "of which {took} milliseconds was spent in the scheduler."
        ),
    ),
)


def values_of(words: Words, said: Said, group: str) -> dict[str, object]:
    """What stands in the places of a sentence, as far as `said` tells."""
    return {
        "group": group,
        "generation": said.generation,
        "member": said.member_id,
        "members": words.members.format(", ".join(said.member_ids)),
        "instance": words.instance.format(said.instance_id) if said.instance_id else words.no_instance,
        "bare_instance": said.instance_id,
        "reason": said.reason or "not provided",
        "state": said.state.value,
        "count": said.member_count,
        "static": said.static_count,
    }


def reason_of(words: Words, said: Said, group: str) -> str:
    """Why a rebalance begins; empty for a line of another kind."""
    return words.reasons[said.trigger].format_map(values_of(words, said, group)) if said.trigger is not None else ""


def words_of(release: str) -> Words:
    """The words of a release."""
    return JAVA if release.startswith("4") else SCALA
