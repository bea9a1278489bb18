"""What group coordinators log about themselves: taking over and giving up partitions, loading groups, trouble, housekeeping.

Sources as in classic_templates.py, and `org/apache/kafka/coordinator/common/runtime/CoordinatorRuntime.java` (`coordinator/group/runtime` in 3.6 to 3.8).
Lines with an empty kind concern no group; they are listed so that an unknown line is one that no release writes.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.parsing.templates.classic import M
from jobs.parsing.templates.language import Template

_TP: Final = "__consumer_offsets-{partition}"

OWNERSHIP: Final = (
    Template(e.COORDINATOR_ELECTED, "Elected as the group coordinator for partition {partition} in epoch {generation}", "3.0-3.9",
             ("Elected as the group coordinator for partition 15 in epoch 0",)),
    Template(e.COORDINATOR_ELECTED, "Elected as the group coordinator for partition {partition}", "2.8",
             ("Elected as the group coordinator for partition 15",)),
    Template(e.COORDINATOR_ELECTED, f"Scheduling loading of metadata from {_TP} with epoch {{generation}}", "Java",
             ("Scheduling loading of metadata from __consumer_offsets-15 with epoch 0",)),
    Template(e.COORDINATOR_RESIGNED, "Resigned as the group coordinator for partition {partition} in epoch {text}", "3.0-3.9",
             ("Resigned as the group coordinator for partition 46 in epoch OptionalInt[0]",)),
    Template(e.COORDINATOR_RESIGNED, "Resigned as the group coordinator for partition {partition}", "2.8",
             ("Resigned as the group coordinator for partition 46",)),
    Template(e.COORDINATOR_RESIGNED, f"Started unloading metadata for {_TP} with epoch {{text}}.", "Java",
             ("Started unloading metadata for __consumer_offsets-42 with epoch OptionalInt[2].",)),
    Template(e.GROUP_LOADED, "Loading group metadata for {group} with generation {generation}", "1.0-3.9",
             ("Loading group metadata for orders with generation 5",)),
    Template(e.GROUP_LOADED, "Loaded classic group {group} with {count} members.", "Java",
             ("Loaded classic group orders with 2 members.",)),
    Template(e.GROUP_LOADED, "Loaded generic group {group} with {count} members.", "3.6 Java",
             ("Loaded generic group orders with 2 members.",)),
    Template(e.GROUP_UNLOADED, "Unloading group metadata for {group} with generation {generation}", "1.0-3.9",
             ("Unloading group metadata for orders with generation 5",)),
    Template(e.GROUP_UNLOADED, "[GroupId={group}] Unloading group metadata for generation {generation}.", "Java",
             ("[GroupId=orders] Unloading group metadata for generation 8.",)),
    Template(e.GROUP_DEAD, "Group {group} transitioned to Dead in generation {generation}", "1.0-3.9",
             ("Group orders transitioned to Dead in generation 5",)),
    Template(e.GROUPS_DELETED, "The following groups were deleted: {groups}. A total of {number} offsets were removed.", "2.0-3.9, Java",
             ("The following groups were deleted: temp-backfill, old. A total of 6 offsets were removed.",
              "The following groups were deleted: . A total of 0 offsets were removed.")),
    Template(e.GROUPS_CLEANED, "Generated {count} tombstone records while cleaning up group metadata in {number} milliseconds.", "Java",
             ("Generated 7 tombstone records while cleaning up group metadata in 0 milliseconds.",)),
    Template(e.SIMPLE_GROUP, "Creating simple consumer group {group} via manual offset commit.", "since 3.9 Scala",
             ("Creating simple consumer group offset-bookkeeper via manual offset commit.",)),
    Template(e.SIMPLE_GROUP, "[GroupId {group}] Creating a simple consumer group via manual offset commit.", "Java",
             ("[GroupId offset-bookkeeper] Creating a simple consumer group via manual offset commit.",)),
)  # fmt: skip

NOTES: Final = (
    Template(e.COORDINATOR_NOTE, f"Finished loading of metadata from {_TP} with epoch {{number}}{{text}}", "Java",
             ("Finished loading of metadata from __consumer_offsets-35 with epoch 0 in 83ms where 83ms was spent in the scheduler. Loaded 0 records which total to 0 bytes.",
              "Finished loading of metadata from __consumer_offsets-35 with epoch 0.")),
    Template(e.COORDINATOR_NOTE, f"Finished loading offsets and group metadata from {_TP} in {{number}} milliseconds{{text}}", "1.0-3.9",
             ("Finished loading offsets and group metadata from __consumer_offsets-15 in 6 milliseconds for epoch 0, of which 5 milliseconds was spent in the scheduler.",
              "Finished loading offsets and group metadata from __consumer_offsets-15 in 6 milliseconds.")),
    Template(e.COORDINATOR_NOTE, f"Failed to load metadata from {_TP} with epoch {{number}} due to {{text}}", "Java ERROR",
             ("Failed to load metadata from __consumer_offsets-15 with epoch 3 due to java.lang.RuntimeException: x.",)),
    Template(e.COORDINATOR_NOTE, f"Error loading offsets from {_TP}", "ERROR", ("Error loading offsets from __consumer_offsets-15",)),
    Template(e.COORDINATOR_NOTE, f"Writing records to {_TP} failed due to: {{text}}", "Java ERROR",
             ("Writing records to __consumer_offsets-26 failed due to: this broker is not the leader..",)),
    Template(e.COORDINATOR_NOTE, "Group {group} is dead, skipping rebalance stage", "2.3-3.9",
             ("Group orders is dead, skipping rebalance stage",)),
    Template(e.COORDINATOR_NOTE, "Group {group} is dead, skipping rebalance stage.", "Java",
             ("Group orders is dead, skipping rebalance stage.",)),
    Template(e.COORDINATOR_NOTE, "Received notification of heartbeat expiration for member {member} after group {group} had already been {text}", "2.4-3.9, Java",
             (f"Received notification of heartbeat expiration for member {M} after group orders had already been unloaded or deleted.",
              f"Received notification of heartbeat expiration for member {M} after group orders had already been deleted or upgraded.")),
    Template(e.COORDINATOR_NOTE, "Member {member} has already been removed from the group.", "2.2-3.9, Java DEBUG",
             (f"Member {M} has already been removed from the group.",)),
    Template(e.COORDINATOR_NOTE, "Attempt to add rejoining member {member} of group {group} in unexpected group state {state}", "2.2-3.9, Java WARN",
             (f"Attempt to add rejoining member {M} of group orders in unexpected group state Dead",)),
    Template(e.COORDINATOR_NOTE, "Setting empty assignments for members {members} of {group} for generation {generation}", "2.5-3.9 WARN",
             (f"Setting empty assignments for members Set({M}) of orders for generation 5",)),
    Template(e.COORDINATOR_NOTE, "Setting empty assignments for members {members} of {group} for generation {generation}.", "Java WARN",
             (f"Setting empty assignments for members [{M}] of orders for generation 5.",)),
    Template(e.COORDINATOR_NOTE, "Sending empty assignment to member {member} of {group} for generation {generation} with no errors", "2.5-3.9, Java WARN",
             (f"Sending empty assignment to member {M} of orders for generation 5 with no errors",)),
    Template(e.COORDINATOR_NOTE, "Failed to write empty metadata for group {group}: {text}", "1.0-3.9, Java WARN",
             ("Failed to write empty metadata for group orders: The coordinator is not available.",)),
    Template(e.COORDINATOR_NOTE, "Failed to persist metadata for group {group} static member {new_member} with group instance id {instance} due to {text}. Reverting to old member id {member}.", "Java WARN",
             (f"Failed to persist metadata for group orders static member b-{M} with group instance id i due to x. Reverting to old member id {M}.",)),
    Template(e.COORDINATOR_NOTE, "Failed to persist metadata for group {group}: {text}", "2.4-3.9 WARN",
             ("Failed to persist metadata for group orders: The coordinator is not available.",)),
    Template(e.COORDINATOR_NOTE, "Received unexpected notification of sync expiration for {group} with an old generation {number} while the group has {generation}.", "3.0-3.9, Java ERROR",
             ("Received unexpected notification of sync expiration for orders with an old generation 3 while the group has 4.",)),
    Template(e.COORDINATOR_NOTE, "Received unexpected notification of sync expiration after group {group} already transitioned to {state} state.", "Java ERROR",
             ("Received unexpected notification of sync expiration after group orders already transitioned to Dead state.",)),
    Template(e.COORDINATOR_NOTE, "Received unexpected notification of sync expiration after group {group} already transitioned to the {state} state.", "3.0-3.9 ERROR",
             ("Received unexpected notification of sync expiration after group orders already transitioned to the Dead state.",)),
    Template(e.COORDINATOR_NOTE, "Cannot complete join phase of group {group} because {text}", "Java DEBUG",
             ("Cannot complete join phase of group orders because not all the members have rejoined. Members=3, AwaitingJoinResponses=1, PendingJoinMembers=0.",)),
    Template(e.COORDINATOR_NOTE, "The following offsets of the group {group} were deleted: {text}. A total of {number} offsets were removed.", "2.4-3.9",
             ("The following offsets of the group orders were deleted: t-0, t-1. A total of 2 offsets were removed.",)),
    Template(e.COORDINATOR_NOTE, "group: {group} with leader: {leader} has received offset commits from consumers as well as transactional producers. Mixing both types of offset commits will generally result in surprises and should be avoided.", "1.0-3.9 WARN",
             (f"group: orders with leader: {M} has received offset commits from consumers as well as transactional producers. Mixing both types of offset commits will generally result in surprises and should be avoided.",)),
    Template(e.COORDINATOR_NOTE, "Appending metadata message for group {group} generation {generation} failed {text}", "1.0-3.9 ERROR",
             ("Appending metadata message for group orders generation 5 failed due to unexpected error: org.apache.kafka.X",)),
    Template(e.COORDINATOR_NOTE, "Metadata from group {group} with generation {generation} failed when appending to log due to {text}", "1.0-3.9 DEBUG",
             ("Metadata from group orders with generation 5 failed when appending to log due to org.apache.kafka.X",)),
    Template(e.COORDINATOR_NOTE, "Attempt to load group {group} from log with generation {generation} failed because there is already a cached group with generation {number}", "1.0-3.9 DEBUG",
             ("Attempt to load group orders from log with generation 5 failed because there is already a cached group with generation 6",)),
    Template(e.COORDINATOR_NOTE, "Member id {member} was not found in {group} during heartbeat completion check", "2.8-3.9 DEBUG",
             (f"Member id {M} was not found in orders during heartbeat completion check",)),
    Template(e.COORDINATOR_NOTE, "Failed to parse Consumer Protocol {text} of group {group}. Consumer group coordinator is not aware of the subscribed topics.", "2.5-3.9, Java WARN",
             ("Failed to parse Consumer Protocol consumer:range of group orders. Consumer group coordinator is not aware of the subscribed topics.",)),
    Template(e.COORDINATOR_NOTE, "Group {group} has moved away from {number} after transaction marker was written but before the cache was updated. The cache on the new group owner will be updated instead.", "1.0-3.9",
             ("Group orders has moved away from 1 after transaction marker was written but before the cache was updated. The cache on the new group owner will be updated instead.",)),
    Template(e.COORDINATOR_NOTE, "BrokerId {number} is no longer a coordinator for the group {group}. Proceeding cleanup for other alive groups", "1.0-3.9",
             ("BrokerId 1 is no longer a coordinator for the group orders. Proceeding cleanup for other alive groups",)),
    Template(e.COORDINATOR_NOTE, "Loaded group metadata {text}", "1.0-3.9 DEBUG",
             ("Loaded group metadata GroupMetadata(groupId=orders, generation=5) with offsets Map() and pending offsets Map()",)),
    Template(e.COORDINATOR_NOTE, "Loaded member {member} in {word} group {group}.", "Java DEBUG",
             (f"Loaded member {M} in classic group orders.", f"Loaded member {M} in generic group orders.")),
    Template(e.COORDINATOR_NOTE, "Member id {member} was not found in {group} during heartbeat expiration.", "2.4",
             (f"Member id {M} was not found in orders during heartbeat expiration.",)),
    Template(e.COORDINATOR_NOTE, "Group {group} removed from the metadata cache and marked for deletion in {text}", "2.1-3.9 TRACE",
             ("Group orders removed from the metadata cache and marked for deletion in __consumer_offsets-9.",)),
    Template(e.COORDINATOR_NOTE, "Failed to invoke {word} callback for " + "{text}", "2.4-3.9 ERROR",
             ("Failed to invoke join callback for MemberMetadata(memberId=x) due to y.",)),
    Template(e.COORDINATOR_NOTE, "Loaded group {group} with an unknown group type {text}.", "Java WARN",
             ("Loaded group orders with an unknown group type x.",)),
    Template(e.COORDINATOR_NOTE, "Removed group {group} with an unknown group type {text}.", "Java WARN",
             ("Removed group orders with an unknown group type x.",)),
)  # fmt: skip

COMMITS: Final = tuple(
    Template("", f"[GroupId {{group}}] {start}{{text}}", "Java DEBUG", (f"[GroupId orders] {start}x",))
    for start in ("Committing ", "Expired offset ", "Removing expired offset ")
)
"""One line per partition and commit, of groups of all kinds."""

_STARTS: Final = (
    "Starting up.", "Startup complete.", "Shutting down.", "Shutdown complete.",
    "Scheduling loading of offsets and group metadata from ", "Scheduling unloading of ", "Finished unloading ",
    "Ignored unloading metadata for ", "Ignoring load completion from ", "Ignoring loading metadata from ", "Ignoring new metadata image ",
    "Update last written offset of ", "Revert last written offset of ", "Update committed offset of ", "Committed transaction offset commit ",
    "Operation ", "Ignored loading metadata from ", "Ignored load completion from ", "Not removing offsets and group metadata for ",
    "Not loading offsets and group metadata for ", "Already loading offsets and group metadata from ", "Started loading offsets and group metadata from ",
    "Started unloading offsets and group metadata for ", "Attempted to load offsets and group metadata from ", "Loaded offsets and group metadata from ",
    "Loading offsets and group metadata from ", "Skipping ", "Removed ", "Generated ", "Marked ", "Successfully appended ", "Failed to append ", "Removing expired",
    "Expired offset", "Unknown message key with version ", "Could not delete offsets for deleted partitions ",
    "The coordinator ", "The state machine of the coordinator ", "Cannot load coordinator ", "Coordinator runtime ", "Closing coordinator runtime.",
    "The write event ", "Failed to enqueue write event ", "Executing write event ", "Scheduling write event ", "Registering timer ", "Cancel",
    "Execution of ", "Replaying ", "Replayed ", "Transition from ", "Failed to complete the loading of metadata ", "High watermark of ",
    "Updating high watermark of ", "Ignored high watermark ", "Scheduled execution of ", "Scheduling applying of a new metadata image ",
    "Applying new metadata image ", "Ignored new metadata image ", "Committed transactional offset ", "Aborted transactional offset ",
    "Committing offsets ", "Skipped the materialization of transactional offset commit ", "Getting offsets of ", "Initialized offsets ",
    "TxnOffsetCommit for producer ", "Offset commit ", "onUnloaded group with an unknown group type ", "Group coordinator is already ",
    "Cannot find the group, skipping the initial rebalance stage.", "Cannot find the group, skipping rebalance stage.", "Received notification of sync expiration for an unknown ",
)  # fmt: skip

HARMLESS: Final = (
    *(
        Template("", start if start.endswith(".") else start + "{text}", "", (start if start.endswith(".") else start + "x",))
        for start in _STARTS
    ),
    Template("", "{word} request {text} hit an unexpected exception{text}", "3.6-3.7 Java",
             ("JoinGroup request JoinGroupRequestData(groupId='x') hit an unexpected exception: y",)),
)  # fmt: skip
"""By their beginnings: the coordinator's own start and stop, scheduling, replaying, and cleaning."""
