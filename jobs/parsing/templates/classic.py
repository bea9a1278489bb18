"""What group coordinators log about classic groups: Kafka 2.1 to 3.9 in Scala, 3.6 to 4.2 in Java.

Scala: `core/src/main/scala/kafka/coordinator/group/{GroupCoordinator,GroupMetadata,GroupMetadataManager}.scala`.
Java: `group-coordinator/src/main/java/org/apache/kafka/coordinator/group/{GroupMetadataManager,GroupCoordinatorShard}.java`, `classic/ClassicGroup.java`.
Odd spelling is Kafka's. The commonest lines come first.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.parsing.templates.language import Template

M: Final = "web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7"  # a member id of the examples
N: Final = "web-2-827e3983-da7d-4c5e-980f-c42b6caf6699"
METADATA: Final = (
    "MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, "
    "sessionTimeoutMs={session_timeout}, rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols={text})"
)
_M: Final = (
    f"MemberMetadata(memberId={M}, groupInstanceId=Some(i 1), clientId=web-1, clientHost=/10.0.0.1, sessionTimeoutMs=8000, "
    "rebalanceTimeoutMs=12000, supportedProtocols=List(range))"
)

REBALANCE: Final = (
    Template(
        e.PREPARING_REBALANCE, "Preparing to rebalance group {group} in state {state} with old generation {generation} (reason: {reason}).",
        "Java",
        (f"Preparing to rebalance group orders in state PreparingRebalance with old generation 3 (reason: removing member {M} on heartbeat expiration.).",),
    ),
    Template(
        e.PREPARING_REBALANCE,
        "Preparing to rebalance group {group} in state {state} with old generation {generation} (__consumer_offsets-{partition}) (reason: {reason})",
        "2.1-3.9",
        (f"Preparing to rebalance group a (b) c in state PreparingRebalance with old generation 0 (__consumer_offsets-9) (reason: Adding new member {M} with group instance id None; client reason: not provided)",),
    ),
    Template(e.STABILIZED, "Stabilized group {group} generation {generation} with {count} members.", "Java",
             ("Stabilized group orders generation 1 with 3 members.",)),
    Template(e.STABILIZED, "Stabilized group {group} generation {generation} (__consumer_offsets-{partition}) with {count} members", "2.8-3.9",
             ("Stabilized group orders generation 1 (__consumer_offsets-9) with 3 members",)),
    Template(e.STABILIZED, "Stabilized group {group} generation {generation} (__consumer_offsets-{partition})", "1.0-2.7",
             ("Stabilized group orders generation 1 (__consumer_offsets-9)",)),
    Template(
        e.ASSIGNMENT_RECEIVED,
        "Assignment received from leader {leader} for group {group} for generation {generation}. The group has {count} members, {number} of which are static.",
        "3.0-3.9, Java",
        (f"Assignment received from leader {M} for group orders for group x for generation 7. The group has 3 members, 0 of which are static.",),
    ),
    Template(
        e.ASSIGNMENT_RECEIVED,
        "Assignment received from leader for group {group} for generation {generation}. The group has {count} members, {number} of which are static.",
        "2.8",
        ("Assignment received from leader for group orders for generation 7. The group has 3 members, 0 of which are static.",),
    ),
    Template(e.ASSIGNMENT_RECEIVED, "Assignment received from leader for group {group} for generation {generation}", "1.0-2.7",
             ("Assignment received from leader for group orders for generation 7",)),
    Template(e.GROUP_EMPTY, "Group {group} with generation {generation} is now empty.", "Java",
             ("Group orders with generation 4 is now empty.",)),
    Template(e.GROUP_EMPTY, "Group {group} with generation {generation} is now empty (__consumer_offsets-{partition})", "1.0-3.9",
             ("Group orders with generation 4 is now empty (__consumer_offsets-31)",)),
    Template(e.MEMBERS_NOT_REJOINED, "Group {group} removed dynamic members who haven't joined: {members}", "2.8-3.9, Java",
             (f"Group orders removed dynamic members who haven't joined: Set({M}, {N})",
              f"Group orders removed dynamic members who haven't joined: [{M}]")),
    Template(e.MEMBERS_NOT_REJOINED, "Group {group} remove dynamic members who haven't joined: {members}", "2.7",
             (f"Group orders remove dynamic members who haven't joined: Set({M})",)),
    Template(e.MEMBERS_NOT_SYNCED, "Group {group} removed members who haven't sent their sync request: {members}", "3.0-3.9 DEBUG",
             (f"Group orders removed members who haven't sent their sync request: Set({M})",)),
    Template(e.MEMBERS_NOT_SYNCED, "Group {group} removed members who haven't sent their sync requests: {members}", "Java DEBUG",
             (f"Group orders removed members who haven't sent their sync requests: [{M}]",)),
    Template(e.NO_MEMBER_REJOINED, "Group {group} could not complete rebalance because no members rejoined", "2.3-3.9 ERROR",
             ("Group orders could not complete rebalance because no members rejoined",)),
    Template(e.NO_MEMBER_REJOINED, "Group {group} could not complete rebalance because no members rejoined.", "Java ERROR",
             ("Group orders could not complete rebalance because no members rejoined.",)),
    Template(
        e.LEADER_NOT_REJOINED,
        "Group leader [member.id: {member}, group.instance.id: {instance}] failed to join before rebalance timeout, while new leader {leader} was elected.",
        "2.4-3.9",
        (f"Group leader [member.id: {M}, group.instance.id: Some(i)] failed to join before rebalance timeout, while new leader {N} was elected.",
         f"Group leader [member.id: {M}, group.instance.id: None] failed to join before rebalance timeout, while new leader {_M} was elected."),
    ),
    Template(
        e.LEADER_NOT_REJOINED,
        "Group leader [member.id: {member}, group.instance.id: {instance}] failed to join before rebalance timeout, and the group couldn't proceed to next generationbecause no member joined.",
        "2.4-3.9",
        (f"Group leader [member.id: {M}, group.instance.id: None] failed to join before rebalance timeout, and the group couldn't proceed to next generationbecause no member joined.",),
    ),
    Template(
        e.LEADER_NOT_REJOINED,
        "Group leader [memberId: {member}, groupInstanceId: {instance}] failed to join before the rebalance timeout. Member {leader} was elected as the new leader.",
        "Java",
        (f"Group leader [memberId: {M}, groupInstanceId: None] failed to join before the rebalance timeout. Member {N} was elected as the new leader.",),
    ),
    Template(
        e.LEADER_NOT_REJOINED,
        "Group leader [memberId: {member}, groupInstanceId: {instance}] failed to join before the rebalance timeout and the group couldn't proceed to the next generation because no member joined.",
        "Java",
        (f"Group leader [memberId: {M}, groupInstanceId: i-1] failed to join before the rebalance timeout and the group couldn't proceed to the next generation because no member joined.",),
    ),
)  # fmt: skip

MEMBERS: Final = (
    Template(
        e.MEMBER_ID_ISSUED,
        "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} and requesting the member to rejoin with this id.",
        "Java",
        (f"Dynamic member with unknown member id joins group orders in Empty state. Created a new member id {M} and requesting the member to rejoin with this id.",),
    ),
    Template(
        e.MEMBER_ID_ISSUED,
        "Dynamic member with unknown member id joins group {group} in {state} state. Created a new member id {member} and request the member to rejoin with this id.",
        "2.5-3.9",
        (f"Dynamic member with unknown member id joins group orders in Stable state. Created a new member id {M} and request the member to rejoin with this id.",),
    ),
    Template(
        e.MEMBER_ID_ISSUED,
        "Dynamic member with unknown member id rejoins group {group} in {state} state. Created a new member id {member} and request the member to rejoin with this id.",
        "2.4 DEBUG",
        (f"Dynamic member with unknown member id rejoins group orders in Stable state. Created a new member id {M} and request the member to rejoin with this id.",),
    ),
    Template(
        e.MEMBER_ADDED, "Pending dynamic member with id {member} joins group {group} in {state} state. Adding to the group now.",
        "3.0-3.9 DEBUG, Java",
        (f"Pending dynamic member with id {M} joins group orders in Empty state. Adding to the group now.",),
    ),
    Template(
        e.MEMBER_ADDED, "Dynamic Member with specific member id {member} joins group {group} in {state} state. Adding to the group now.",
        "2.5-2.8 DEBUG",
        (f"Dynamic Member with specific member id {M} joins group orders in Empty state. Adding to the group now.",),
    ),
    Template(
        e.MEMBER_ADDED,
        "Dynamic member with unknown member id joins group {group} in state {state}. Created a new member id {member} and added the member to the group.",
        "Java",
        (f"Dynamic member with unknown member id joins group orders in state Empty. Created a new member id {M} and added the member to the group.",),
    ),
    Template(
        e.MEMBER_ADDED,
        "Dynamic Member with unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group.",
        "2.5-3.9",
        (f"Dynamic Member with unknown member id joins group orders in Empty state. Created a new member id {M} for this member and add to the group.",),
    ),
    Template(
        e.MEMBER_ADDED,
        "Dynamic member with unknown member id rejoins group {group} in {state} state. Created a new member id {member} for this member and add to the group.",
        "2.4 DEBUG",
        (f"Dynamic member with unknown member id rejoins group orders in Empty state. Created a new member id {M} for this member and add to the group.",),
    ),
    Template(
        e.MEMBER_ADDED,
        "Static Member with unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group.",
        "2.5-2.8",
        (f"Static Member with unknown member id joins group orders in Empty state. Created a new member id {M} for this member and add to the group.",),
    ),
    Template(
        e.MEMBER_ADDED,
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and added to the group.",
        "Java",
        (f"Static member with groupInstanceId=i 1 and unknown member id joins group orders in Empty state. Created a new member id {M} for this member and added to the group.",),
    ),
    Template(
        e.MEMBER_ADDED,
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group.",
        "3.0-3.9",
        (f"Static member with groupInstanceId=i 1 and unknown member id joins group orders in Empty state. Created a new member id {M} for this member and add to the group.",),
    ),
    Template(e.MEMBER_ADDED, "Adding new static member {instance} to group {group} with member id {member}.", "2.5-2.8",
             (f"Adding new static member i-1 to group orders with member id {M}.",)),
    Template(
        e.STATIC_MEMBER_REPLACED,
        "Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Replacing previously mapped member {member} with this groupInstanceId.",
        "3.0-3.9, Java",
        (f"Static member with groupInstanceId=i 1 and unknown member id joins group orders in Stable state. Replacing previously mapped member {M} with this groupInstanceId.",),
    ),
    Template(
        e.STATIC_MEMBER_REPLACED,
        "Static member {instance} of group {group} with unknown member id rejoins, assigning new member id {new_member}, while old member id {member} will be removed.",
        "2.5-2.8",
        (f"Static member Some(i) of group orders with unknown member id rejoins, assigning new member id {N}, while old member id {M} will be removed.",),
    ),
    Template(
        e.STATIC_MEMBER_REPLACED,
        "Static member {instance} with unknown member id rejoins, assigning new member id {new_member}, while old member {member} will be removed.",
        "2.3-2.4",
        (f"Static member Some(i) with unknown member id rejoins, assigning new member id {N}, while old member {M} will be removed.",),
    ),
    Template(e.STATIC_MEMBER_KEPT,
             "Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger a rebalance.", "Java",
             ("Static member which joins during Stable stage and doesn't affect the selected protocol will not trigger a rebalance.",)),
    Template(e.STATIC_MEMBER_KEPT,
             "Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.", "2.7-3.9",
             ("Static member which joins during Stable stage and doesn't affect selectProtocol will not trigger rebalance.",)),
    Template(e.STATIC_MEMBER_KEPT, "Static member joins during {state} stage will not trigger rebalance.", "2.3-2.6",
             ("Static member joins during Stable stage will not trigger rebalance.",)),
    Template(
        e.INSTANCE_FENCED,
        "Request memberId={member} for static member with groupInstanceId={instance} is fenced by existing memberId={new_member} during operation {reason}",
        "Java",
        (f"Request memberId= for static member with groupInstanceId=i-1 is fenced by existing memberId={M} during operation txn-offset-commit",
         f"Request memberId={N} for static member with groupInstanceId=i-1 is fenced by existing memberId={M} during operation heartbeat"),
    ),
    Template(
        e.INSTANCE_FENCED,
        "Request memberId={member} for static member with groupInstanceId={instance} is fenced by current memberId={new_member} during operation {reason}",
        "3.0-3.9",
        (f"Request memberId={N} for static member with groupInstanceId=i-1 is fenced by current memberId={M} during operation heartbeat",),
    ),
    Template(
        e.INSTANCE_FENCED,
        "given member.id {member} is identified as a known static member {instance}, but not matching the expected member.id {new_member} during {reason}, will respond with instance fenced error",
        "2.5-2.8 ERROR",
        (f"given member.id {N} is identified as a known static member i-1, but not matching the expected member.id {M} during join-group, will respond with instance fenced error",),
    ),
    Template(
        e.INSTANCE_FENCED,
        "given member.id {member} is identified as a known static member {instance},but not matching the expected member.id {new_member}",
        "2.3-2.4 ERROR",
        (f"given member.id {N} is identified as a known static member i-1,but not matching the expected member.id {M}",),
    ),
    Template(e.MEMBER_FAILED, "Member {member} in group {group} has failed, removing it from the group.", "Java",
             (f"Member {M} in group orders in group x has failed, removing it from the group.",)),
    Template(e.MEMBER_FAILED, "Member {member} in group {group} has failed, removing it from the group", "1.0-3.9",
             (f"Member {M} in group orders has failed, removing it from the group",)),
    Template(e.MEMBER_LEFT, "[Group {group}] Member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}", "Java",
             (f"[Group orders] Member {M} has left group through explicit `LeaveGroup` request; client reason: the consumer is being closed",)),
    Template(e.MEMBER_LEFT, "Member " + METADATA + " has left group {group} through explicit `LeaveGroup`; client reason: {reason}", "3.2-3.9",
             (f"Member {_M} has left group orders through explicit `LeaveGroup`; client reason: not provided",)),
    Template(e.MEMBER_LEFT, "Member " + METADATA + " has left group {group} through explicit `LeaveGroup` request", "3.0-3.1",
             (f"Member {_M} has left group orders through explicit `LeaveGroup` request",)),
    Template(e.MEMBER_LEFT, "Member[group.instance.id {instance}, member.id {member}] in group {group} has left, removing it from the group", "2.4-2.8",
             (f"Member[group.instance.id Some(i-1), member.id {M}] in group orders has left, removing it from the group",)),
    Template(e.MEMBER_LEFT, "Member {member} in group {group} has left, removing it from the group", "1.0-2.3",
             (f"Member {M} in group orders has left, removing it from the group",)),
    Template(e.PENDING_MEMBER_LEFT,
             "[Group {group}] Pending member {member} has left group through explicit `LeaveGroup` request; client reason: {reason}", "Java",
             (f"[Group orders] Pending member {M} has left group through explicit `LeaveGroup` request; client reason: not provided",)),
    Template(e.PENDING_MEMBER_LEFT, "Pending member with memberId={member} has left group {group} through explicit `LeaveGroup` request", "3.0-3.9",
             (f"Pending member with memberId={M} has left group orders through explicit `LeaveGroup` request",)),
    Template(e.PENDING_MEMBER_LEFT, "Pending member {member} is leaving group {group}.", "2.2-2.8",
             (f"Pending member {M} is leaving group orders.",)),
    Template(e.PENDING_MEMBER_EXPIRED, "Pending member {member} in group {group} has been removed after session timeout expiration.", "2.2-3.9, Java",
             (f"Pending member {M} in group orders has been removed after session timeout expiration.",)),
    Template(e.MEMBER_LOADED, "Static member {instance} of group {group} loaded with member id {member} at generation {generation}.", "2.5-2.7",
             (f"Static member i-1 of group orders loaded with member id {M} at generation 7.",)),
    Template(e.MEMBER_LOADED, "Loaded member " + METADATA + " in group {group} with generation {generation}.", "2.8-3.9",
             (f"Loaded member {_M} in group orders with generation 1.",)),
)  # fmt: skip
