"""What group coordinators log about themselves: taking over and giving up partitions, loading groups, trouble, housekeeping.

Sources as in classic.py, and `org/apache/kafka/coordinator/common/runtime/CoordinatorRuntime.java` (`coordinator/group/runtime` in 3.6 to 3.8):
what it could not write, in CoordinatorContext.flushCurrentBatch and completeTransaction. Settings that a broker cuts to what it allows (4.3):
`coordinator/group/GroupConfig.java` and `GroupCoordinatorConfig.java`. Descriptions of streams topologies (4.4):
`coordinator/group/streams/StreamsGroupTopologyDescriptionManager.java`.
Lines with an empty kind concern no group. They are listed so that an unknown line is one that no release writes.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Template

_TP: Final = "__consumer_offsets-{partition}"


def _note(versions: str, text: str) -> Template:
    is_trouble = ("ERROR" in versions or "WARN" in versions) and "{state}" not in text
    return Template(e.COORDINATOR_NOTE, versions, text, fixed={"state": e.TROUBLE} if is_trouble else {})


OWNERSHIP: Final = (
    Template(e.COORDINATOR_ELECTED, "3.0-3.9", "Elected as the group coordinator for partition {partition} in epoch {generation}"),
    Template(e.COORDINATOR_ELECTED, "2.8", "Elected as the group coordinator for partition {partition}"),
    Template(e.COORDINATOR_ELECTED, "Java", f"Scheduling loading of metadata from {_TP} with epoch {{generation}}"),
    Template(e.COORDINATOR_RESIGNED, "3.0-3.9", "Resigned as the group coordinator for partition {partition} in epoch {text}"),
    Template(e.COORDINATOR_RESIGNED, "2.8", "Resigned as the group coordinator for partition {partition}"),
    Template(e.COORDINATOR_RESIGNED, "Java", f"Started unloading metadata for {_TP} with epoch {{text}}."),
    Template(e.GROUP_LOADED, "0.9-3.9", "Loading group metadata for {group} with generation {generation}"),
    Template(e.GROUP_LOADED, "Java", "Loaded classic group {group} with {count} members."),
    Template(e.GROUP_LOADED, "3.6 Java", "Loaded generic group {group} with {count} members."),
    Template(e.GROUP_UNLOADED, "0.9-3.9", "Unloading group metadata for {group} with generation {generation}"),
    Template(e.GROUP_UNLOADED, "Java", "[GroupId={group}] Unloading group metadata for generation {generation}."),
    Template(e.GROUP_DEAD, "0.10.1-3.9", "Group {group} transitioned to Dead in generation {generation}"),
    Template(e.GROUPS_DELETED, "2.0-3.9, Java", "The following groups were deleted: {groups}. A total of {number} offsets were removed."),
    Template(e.GROUPS_DELETED, "1.1", "The following groups were deleted: {groups}"),
    Template(e.GROUPS_CLEANED, "Java", "Generated {count} tombstone records while cleaning up group metadata in {number} milliseconds."),
    Template(e.SIMPLE_GROUP, "since 3.9 Scala", "Creating simple consumer group {group} via manual offset commit."),
    Template(e.SIMPLE_GROUP, "Java", "[GroupId {group}] Creating a simple consumer group via manual offset commit."),
)  # fmt: skip

NOTES: Final = (
    _note("Java", f"Finished loading of metadata from {_TP} with epoch {{number}}{{text}}"),
    _note("0.11-3.9", f"Finished loading offsets and group metadata from {_TP} in {{number}} milliseconds{{text}}"),
    _note("Java ERROR", f"Failed to load metadata from {_TP} with epoch {{number}} due to {{text}}"),
    _note("0.9-0.10.2", "Finished loading offsets from {word} in {number} milliseconds."),
    _note("0.10.2-3.9 ERROR", f"Error loading offsets from {_TP}"),
    _note("0.9-0.10.1 ERROR", "Error in loading offsets from {word}"),
    _note("Java ERROR", f"Writing records to {_TP} failed due to: {{text}}"),
    _note("4.3+ Java ERROR, DEBUG", f"Failed to write {{text}} to {_TP} because {{text}}"),
    _note("4.3+ Java ERROR", f"Failed to write {{text}} to {_TP} due to an unexpected error: {{text}}"),
    _note("4.3+ Java DEBUG", f"Failed to flush the pending records to {_TP}: {{text}}"),
    _note("4.3+ Java WARN", "The group config '{word}' for group '{group}' has value {number} which {text} The effective value will be capped to {number}."),
    _note("4.3+ Java WARN", "The effective {word} ({number}) for group '{group}' is not greater than {word} ({number}). {text}"),
    _note("4.3+ Java WARN", "The config '{word}' has value {number} which {text} The effective value will be capped to {number}."),
    _note("2.3-3.9, Java", "Group {group} is dead, skipping rebalance stage{period}"),
    _note("2.4-3.9, Java", "Received notification of heartbeat expiration for member {member} after group {group} had already been {text}"),
    _note("2.2-3.9, Java DEBUG", "Member {member} has already been removed from the group."),
    _note("2.2-3.9, Java WARN", "Attempt to add rejoining member {member} of group {group} in unexpected group state {state}"),
    _note("2.5-3.9, Java WARN", "Setting empty assignments for members {members} of {group} for generation {generation}{period}"),
    _note("2.5-3.9, Java WARN", "Sending empty assignment to member {member} of {group} for generation {generation} with no errors"),
    _note("0.10.1-3.9, Java WARN", "Failed to write empty metadata for group {group}: {text}"),
    _note("Java WARN", "Failed to persist metadata for group {group} static member {new_member} with group instance id {instance} due to {text}. Reverting to old member id {member}."),
    _note("2.4-3.9 WARN", "Failed to persist metadata for group {group}: {text}"),
    _note("3.0-3.9, Java ERROR", "Received unexpected notification of sync expiration for {group} with an old generation {number} while the group has {generation}."),
    _note("Java ERROR", "Received unexpected notification of sync expiration after group {group} already transitioned to {state} state."),
    _note("3.0-3.9 ERROR", "Received unexpected notification of sync expiration after group {group} already transitioned to the {state} state."),
    _note("Java DEBUG", "Cannot complete join phase of group {group} because {text}"),
    _note("2.4-3.9", "The following offsets of the group {group} were deleted: {text}. A total of {number} offsets were removed."),
    _note("0.11-3.9 WARN", "group: {group} with leader: {leader} has received offset commits from consumers as well as transactional producers. Mixing both types of offset commits will generally result in surprises and should be avoided."),
    # An error whose consequence the next line tells: the assignment was not stored.
    Template(e.COORDINATOR_NOTE, "0.9-3.9 ERROR", "Appending metadata message for group {group} generation {generation} failed {text}"),
    _note("0.9-3.9 DEBUG", "Metadata from group {group} with generation {generation} failed when appending to log due to {text}"),
    _note("0.9-3.9 DEBUG", "Attempt to load group {group} from log with generation {generation} failed because there is already a cached group with generation {number}"),
    _note("2.8-3.9 DEBUG", "Member id {member} was not found in {group} during heartbeat completion check"),
    _note("2.5-3.9, Java WARN", "Failed to parse Consumer Protocol {text} of group {group}. Consumer group coordinator is not aware of the subscribed topics."),
    _note("0.11-3.9", "Group {group} has moved away from {number} after transaction marker was written but before the cache was updated. The cache on the new group owner will be updated instead."),
    _note("0.10.1-3.9", "BrokerId {number} is no longer a coordinator for the group {group}. Proceeding cleanup for other alive groups"),
    _note("0.11-3.9 DEBUG", "Loaded group metadata {text}"),
    _note("Java DEBUG", "Loaded member {member} in {word} group {group}."),
    _note("2.4", "Member id {member} was not found in {group} during heartbeat expiration."),
    _note("2.1-3.9 TRACE", "Group {group} removed from the metadata cache and marked for deletion in {text}"),
    _note("2.4-3.9 ERROR", "Failed to invoke {word} callback for " + "{text}"),
    _note("0.9-0.10.0 ERROR", "Failed to mark group {group} as deleted in {word}."),
    _note("0.9-1.1 DEBUG", "Could not fetch offsets for group {group} (not {word} coordinator){text}"),
    _note("Java WARN", "Cannot upgrade classic group {group} to consumer group: {text}"),
    _note("4.4 Java WARN", "Topology description plugin getTopology failed for group {group}."),
    _note("4.4 Java WARN", "Unexpected error scanning streams group {group} for topology cleanup; skipping."),
    _note("4.4 Java WARN", "Failed to apply topology-description post-processing on the streams group heartbeat response for group {group}; returning the response unmodified."),
    _note("Java WARN", "Loaded group {group} with an unknown group type {text}."),
    _note("Java WARN", "Removed group {group} with an unknown group type {text}."),
)  # fmt: skip

COMMITS: Final = tuple(
    Template("", "Java DEBUG", f"[GroupId {{group}}] {start}{{text}}")
    for start in ("Committing ", "Expired offset ", "Removing expired offset ")
)
"""One line per partition and commit, for groups of all kinds."""

_STARTS: Final = (
    "Starting up.", "Startup complete.", "Shutting down.", "Shutdown complete.",
    "Scheduling loading of offsets and group metadata from ", "Scheduling unloading of ", "Finished unloading ",
    "Ignored unloading metadata for ", "Ignoring load completion from ", "Ignoring loading metadata from ", "Ignoring new metadata image ",
    "Update last written offset of ", "Revert last written offset of ", "Update committed offset of ", "Committed transaction offset commit ",
    "Operation ", "Ignored loading metadata from ", "Ignored load completion from ", "Not removing offsets and group metadata for ",
    "Not loading offsets and group metadata for ", "Already loading offsets and group metadata from ", "Started loading offsets and group metadata from ",
    "Started unloading offsets and group metadata for ", "Attempted to load offsets and group metadata from ", "Loaded offsets and group metadata from ",
    "Loading offsets and group metadata from ", "Skipping ", "Removed ", "Generated ", "Marked ", "Successfully appended ", "Failed to append ", "Removing expired",
    "Expired offset", "Unknown message key with version ", "Could not delete offsets for deleted ",
    "The coordinator ", "The state machine of the coordinator ", "Cannot load coordinator ", "Coordinator runtime ", "Closing coordinator runtime.",
    "The write event ", "Failed to enqueue write event ", "Executing write event ", "Scheduling write event ", "Registering timer ", "Cancel",
    "Execution of ", "Replaying ", "Replayed ", "Transition from ", "Failed to complete the loading of metadata ", "High watermark of ",
    "Updating high watermark of ", "Ignored high watermark ", "Scheduled execution of ", "Scheduling applying of a new metadata image ",
    "Applying new metadata image ", "Ignored new metadata image ", "Committed transactional offset ", "Aborted transactional offset ",
    "Committing offsets ", "Skipped the materialization of transactional offset commit ", "Getting offsets of ", "Initialized offsets ",
    "TxnOffsetCommit for producer ", "Offset commit ", "onUnloaded group with an unknown group type ", "Group coordinator is already ",
    "Cannot find the group, skipping the initial rebalance stage.", "Cannot find the group, skipping rebalance stage.", "Received notification of sync expiration for an unknown ",
    # 0.9 to 1.1
    "Offset load from ", "No log found for ", "Collecting expired offsets.", "Found ", "Failed to mark ", "Getting offsets ", "Ignoring redundant tombstone for ",
    "Loaded offset ", "Marking group ",
    # the runtime of 3.6 to 4.4
    "Shutting down event processor.", "Event processor closed.", "Event processor is already shutting down.", "[group-coordinator-event-processor-",
    "Coordinator loader is already shutting down.", "Loaded metadata from ", "Unknown record type ", "Completion of event ", "Failed to unload coordinator for ",
    "Failed to unload metadata for ", "failAll(", "completeUpTo(", "The subscription list is empty, returning an empty assignment", "Member Id ",
    "Tried to flush an empty batch for ", "Updated ", "Detected that ",
    # streams groups
    "Failed to finalize StoredDescriptionTopologyEpoch for groups ", "Failed to write the UNCERTAIN barrier for groups ", "Topology-description cleanup ",
    "Unexpected error running topology-description cleanup cycle.", "Unable to determine number of partitions for ", "Determined number of partitions for ",
    "Ignoring unexpected empty copartitioned topics set.",
    # share groups
    "Error deleting share group ", "Failed to delete share group state due to: ", "Failed to read summary of the share partition",
    "Failed to retrieve deleteState request parameters ", "Failed to retrieve partition end offsets ", "Partition end offset fetch failed ",
    "Persister initialization failed", "Received error while ", "Result is null for the ", "Unable to cleanup ", "Unable to delete share group", "ShareGroup",
    "Unable to initialize share group state", "Existing deleting entries found in share group ", "Initializing topic ", "Some topics for share group id ",
    "Authentication exception", "Exhausted max retries (", "Interrupted while shutting down NetworkPartitionMetadataClient", "Response for ListOffsets for ",
    "Version mismatch exception", "NetworkPartitionMetadataClient sendThread initialized and started",
)  # fmt: skip

HARMLESS: Final = (
    *(Template("", "", start if start.endswith(".") else start + "{text}") for start in _STARTS),
    Template("", "Java", "The member {word} is assigned more partitions than the maximum possible."),
    Template("", "4.1-4.2 Java", "{text} There is not enough available capacity. You should increase {text}"),
    Template("", "4.1 Java", "{text} Error in standby task assignment!"),
    Template("", "4.1 Java", "Unable to assign active task {text} to any member."),
    Template("", "3.6-3.7 Java", "{word} request {text} hit an unexpected exception{text}"),
)  # fmt: skip
"""The coordinator's own start and stop, scheduling, replaying and cleaning, by how the sentences begin."""
