"""What group coordinators log about classic groups: Kafka 0.9 to 3.9 in Scala, 3.6 to 4.4 in Java.

Scala: `core/src/main/scala/kafka/coordinator/group/{GroupCoordinator,GroupMetadata,GroupMetadataManager}.scala`, up to 0.10.2 in
`kafka/coordinator`. Read at 0.9.0.1, 0.10.0.1, 0.10.1.1, 0.10.2.2, 0.11.0.2, 1.0.2, 1.1.1, 2.0.1 and the last of each later release.
Up to 2.0 no line says why a rebalance began.
Java: `group-coordinator/src/main/java/org/apache/kafka/coordinator/group/{GroupMetadataManager,GroupCoordinatorShard}.java`, `classic/ClassicGroup.java`.
Odd spelling is Kafka's. The most frequent lines come first.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Template

METADATA: Final = (
    "MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, "
    "sessionTimeoutMs={session_timeout}, rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols={text})"
)

REBALANCE: Final = (
    Template(e.PREPARING_REBALANCE, "Java", "Preparing to rebalance group {group} in state {state} with old generation {generation} (reason: {reason})."),
    Template(e.PREPARING_REBALANCE, "2.1-3.9", "Preparing to rebalance group {group} in state {state} with old generation {generation} (__consumer_offsets-{partition}) (reason: {reason})"),
    # The thread is none of the sentence: it stands around it, where the layout has it (jobs/logs/envelopes/layouts.py).
    Template(e.PREPARING_REBALANCE, "0.11-2.0", "Preparing to rebalance group {group} with old generation {generation} (__consumer_offsets-{partition}) (thread: {reason})"),
    Template(e.PREPARING_REBALANCE, "0.9-0.10.2", "Preparing to restabilize group {group} with old generation {generation} (thread: {reason})"),
    Template(e.PREPARING_REBALANCE, "0.11-2.0", "Preparing to rebalance group {group} with old generation {generation} (__consumer_offsets-{partition})"),
    Template(e.PREPARING_REBALANCE, "0.9-0.10.2", "Preparing to restabilize group {group} with old generation {generation}"),
    Template(e.STABILIZED, "Java", "Stabilized group {group} generation {generation} with {count} members."),
    Template(e.STABILIZED, "2.8-3.9", "Stabilized group {group} generation {generation} (__consumer_offsets-{partition}) with {count} members"),
    Template(e.STABILIZED, "0.11-2.7", "Stabilized group {group} generation {generation} (__consumer_offsets-{partition})"),
    Template(e.STABILIZED, "0.9-0.10.2", "Stabilized group {group} generation {generation}"),
    Template(e.ASSIGNMENT_RECEIVED, "3.0-3.9, Java", "Assignment received from leader {leader} for group {group} for generation {generation}. The group has {count} members, {number} of which are static."),
    Template(e.ASSIGNMENT_RECEIVED, "2.8", "Assignment received from leader for group {group} for generation {generation}. The group has {count} members, {number} of which are static."),
    Template(e.ASSIGNMENT_RECEIVED, "0.9-2.7", "Assignment received from leader for group {group} for generation {generation}"),
    Template(e.GROUP_EMPTY, "Java", "Group {group} with generation {generation} is now empty."),
    Template(e.GROUP_EMPTY, "0.11-3.9", "Group {group} with generation {generation} is now empty (__consumer_offsets-{partition})"),
    Template(e.GROUP_EMPTY, "0.10.1-0.10.2", "Group {group} with generation {generation} is now empty"),
    Template(e.GROUP_DEAD, "0.9-0.10.0", "Group {group} generation {generation} is dead and removed"),
    Template(e.MEMBERS_NOT_REJOINED, "2.8-3.9, Java", "Group {group} removed dynamic members who haven't joined: {members}"),
    Template(e.MEMBERS_NOT_REJOINED, "2.7", "Group {group} remove dynamic members who haven't joined: {members}"),
    Template(e.MEMBERS_NOT_SYNCED, "3.0-3.9 DEBUG", "Group {group} removed members who haven't sent their sync request: {members}"),
    Template(e.MEMBERS_NOT_SYNCED, "Java DEBUG", "Group {group} removed members who haven't sent their sync requests: {members}"),
    Template(e.NO_MEMBER_REJOINED, "2.3-3.9, Java ERROR", "Group {group} could not complete rebalance because no members rejoined{period}"),
    Template(e.LEADER_NOT_REJOINED, "Java", "Group leader [memberId: {member}, groupInstanceId: {instance}] failed to join before the rebalance timeout. Member {leader} was elected as the new leader."),
    Template(e.LEADER_NOT_REJOINED, "Java", "Group leader [memberId: {member}, groupInstanceId: {instance}] failed to join before the rebalance timeout and the group couldn't proceed to the next generation because no member joined."),
)  # fmt: skip

MEMBERS: Final = (
    Template(e.MEMBER_ID_ISSUED, "Java", "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} and requesting the member to rejoin with this id."),
    Template(e.MEMBER_ID_ISSUED, "2.5-3.9", "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} and request the member to rejoin with this id."),
    Template(e.MEMBER_ID_ISSUED, "2.4 DEBUG", "Dynamic member with unknown member id rejoins group {group} in {state} state. Created a new member id {member} and request the member to rejoin with this id."),
    Template(e.MEMBER_ADDED, "3.0-3.9 DEBUG, Java", "Pending dynamic member with id {member} joins group {group} in {state} state. Adding to the group now."),
    Template(e.MEMBER_ADDED, "2.5-2.8 DEBUG", "Dynamic Member with specific member id {member} joins group {group} in {state} state. Adding to the group now."),
    Template(e.MEMBER_ADDED, "Java", "Dynamic member with unknown member id joins group {group} in state {state}. Created a new member id {member} and added the member to the group."),
    Template(e.MEMBER_ADDED, "2.5-3.9", "Dynamic Member with unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group."),
    Template(e.MEMBER_ADDED, "2.4 DEBUG", "Dynamic member with unknown member id rejoins group {group} in {state} state. Created a new member id {member} for this member and add to the group."),
    Template(e.MEMBER_ADDED, "2.5-2.8", "Static Member with unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group."),
    Template(e.MEMBER_ADDED, "Java", "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and added to the group."),
    Template(e.MEMBER_ADDED, "3.0-3.9", "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group."),
    Template(e.MEMBER_ADDED, "2.5-2.8", "Adding new static member {instance} to group {group} with member id {member}."),
    Template(e.STATIC_MEMBER_REPLACED, "3.0-3.9, Java", "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Replacing previously mapped member {member} with this groupInstanceId."),
    Template(e.STATIC_MEMBER_REPLACED, "2.5-2.8", "Static member {instance} of group {group} with unknown member id rejoins, assigning new member id {new_member}, while old member id {member} will be removed."),
    Template(e.STATIC_MEMBER_REPLACED, "2.3-2.4", "Static member {instance} with unknown member id rejoins, assigning new member id {new_member}, while old member {member} will be removed."),
    Template(e.STATIC_MEMBER_KEPT, "Java", "Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger a rebalance."),
    Template(e.STATIC_MEMBER_KEPT, "2.7-3.9", "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance."),
    Template(e.STATIC_MEMBER_KEPT, "2.3-2.6", "Static member joins during {state} stage will not trigger rebalance."),
    Template(e.INSTANCE_FENCED, "Java", "Request memberId={member} for static member with groupInstanceId={instance} is fenced by existing memberId={new_member} during operation {reason}"),
    Template(e.INSTANCE_FENCED, "3.0-3.9", "Request memberId={member} for static member with groupInstanceId={instance} is fenced by current memberId={new_member} during operation {reason}"),
    Template(e.MEMBER_FAILED, "0.11-3.9, Java", "Member {member} in group {group} has failed, removing it from the group{period}"),
    Template(e.MEMBER_FAILED, "0.9-0.10.2 TRACE", "Member {member} in group {group} has failed"),
    Template(e.MEMBER_LEFT, "Java", "[Group {group}] Member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}"),
    Template(e.MEMBER_LEFT, "3.2-3.9", "Member " + METADATA + " has left group {group} through explicit `LeaveGroup`; client reason: {reason}"),
    Template(e.MEMBER_LEFT, "3.0-3.1", "Member " + METADATA + " has left group {group} through explicit `LeaveGroup` request"),
    Template(e.MEMBER_LEFT, "2.4-2.8", "Member[group.instance.id {instance}, member.id {member}] in group {group} has left, removing it from the group"),
    Template(e.MEMBER_LEFT, "0.11-2.3 DEBUG", "Member {member} in group {group} has left, removing it from the group"),
    Template(e.PENDING_MEMBER_LEFT, "Java", "[Group {group}] Pending member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}"),
    Template(e.PENDING_MEMBER_LEFT, "3.0-3.9", "Pending member with memberId={member} has left group {group} through explicit `LeaveGroup` request"),
    Template(e.PENDING_MEMBER_LEFT, "2.2-2.8", "Pending member {member} is leaving group {group}."),
    Template(e.PENDING_MEMBER_EXPIRED, "2.2-3.9, Java", "Pending member {member} in group {group} has been removed after session timeout expiration."),
)  # fmt: skip

UNPREFIXED: Final = (
    Template(e.LEADER_NOT_REJOINED, "2.4-3.9", "Group leader [member.id: {member}, group.instance.id: {instance}] failed to join before rebalance timeout, while new leader {leader} was elected."),
    Template(e.LEADER_NOT_REJOINED, "2.4-3.9", "Group leader [member.id: {member}, group.instance.id: {instance}] failed to join before rebalance timeout, and the group couldn't proceed to next generationbecause no member joined."),
    Template(e.INSTANCE_FENCED, "2.5-2.8 ERROR", "given member.id {member} is identified as a known static member {instance}, but not matching the expected member.id {new_member} during {reason}, will respond with instance fenced error"),
    Template(e.INSTANCE_FENCED, "2.3-2.4 ERROR", "given member.id {member} is identified as a known static member {instance},but not matching the expected member.id {new_member}"),
    Template(e.MEMBER_LOADED, "2.5-2.7", "Static member " + METADATA + ".groupInstanceId of group {group} loaded with member id {text} at generation {generation}."),
    Template(e.MEMBER_LOADED, "2.8-3.9", "Loaded member " + METADATA + " in group {group} with generation {generation}."),
)  # fmt: skip
"""What GroupMetadata of the Scala coordinator logs: nothing names the coordinator before the sentence."""

PREFIXES: Final = ("GroupCoordinator ", "GroupCoordinator id=", "GroupMetadataManager brokerId=", "Group Metadata Manager on Broker ")
"""What stands in a bracket before the other sentences, up to the number of the broker."""
