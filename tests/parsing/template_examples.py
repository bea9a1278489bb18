"""Sentences that templates read: where they show more than an ordinary value in the place of each field.

A template, and indented below it the sentences.
"""

import re

TEXTS = """
Preparing to rebalance group {group} in state {state} with old generation {generation} (reason: {reason}).
    Preparing to rebalance group orders in state PreparingRebalance with old generation 3 (reason: removing member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 on heartbeat expiration.).
Preparing to rebalance group {group} in state {state} with old generation {generation} (__consumer_offsets-{partition}) (reason: {reason})
    Preparing to rebalance group a (b) c in state PreparingRebalance with old generation 0 (__consumer_offsets-9) (reason: Adding new member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with group instance id None; client reason: not provided)
Preparing to rebalance group {group} with old generation {generation} (__consumer_offsets-{partition}) (thread: {reason})
    Preparing to rebalance group orders with old generation 3 (__consumer_offsets-9) (thread: executor-Heartbeat)
Preparing to restabilize group {group} with old generation {generation} (thread: {reason})
    Preparing to restabilize group orders with old generation 3 (thread: executor-Heartbeat)
Preparing to rebalance group {group} with old generation {generation} (__consumer_offsets-{partition})
    Preparing to rebalance group a with old generation 1 (b) with old generation 3 (__consumer_offsets-9)
Assignment received from leader {leader} for group {group} for generation {generation}. The group has {count} members, {number} of which are static.
    Assignment received from leader web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 for group orders for group x for generation 7. The group has 3 members, 0 of which are static.
Group {group} removed dynamic members who haven't joined: {members}
    Group orders removed dynamic members who haven't joined: Set(web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, web-2-827e3983-da7d-4c5e-980f-c42b6caf6699)
    Group orders removed dynamic members who haven't joined: [web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7]
Group {group} remove dynamic members who haven't joined: {members}
    Group orders remove dynamic members who haven't joined: Set(web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7)
Group {group} removed members who haven't sent their sync request: {members}
    Group orders removed members who haven't sent their sync request: Set(web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7)
Group {group} removed members who haven't sent their sync requests: {members}
    Group orders removed members who haven't sent their sync requests: [web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7]
Group leader [member.id: {member}, group.instance.id: {instance}] failed to join before rebalance timeout, while new leader {leader} was elected.
    Group leader [member.id: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, group.instance.id: Some(i)] failed to join before rebalance timeout, while new leader web-2-827e3983-da7d-4c5e-980f-c42b6caf6699 was elected.
    Group leader [member.id: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, group.instance.id: None] failed to join before rebalance timeout, while new leader MemberMetadata(memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, groupInstanceId=Some(i 1), clientId=web-1, clientHost=/10.0.0.1, sessionTimeoutMs=8000, rebalanceTimeoutMs=12000, supportedProtocols=List(range)) was elected.
Group leader [member.id: {member}, group.instance.id: {instance}] failed to join before rebalance timeout, and the group couldn't proceed to next generationbecause no member joined.
    Group leader [member.id: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, group.instance.id: None] failed to join before rebalance timeout, and the group couldn't proceed to next generationbecause no member joined.
Group leader [memberId: {member}, groupInstanceId: {instance}] failed to join before the rebalance timeout. Member {leader} was elected as the new leader.
    Group leader [memberId: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, groupInstanceId: None] failed to join before the rebalance timeout. Member web-2-827e3983-da7d-4c5e-980f-c42b6caf6699 was elected as the new leader.
Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and added to the group.
    Static member with groupInstanceId=i 1 and unknown member id joins group orders in Empty state. Created a new member id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 for this member and added to the group.
Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Created a new member id {member} for this member and add to the group.
    Static member with groupInstanceId=i 1 and unknown member id joins group orders in Empty state. Created a new member id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 for this member and add to the group.
Static member with groupInstanceId={instance} and unknown member id joins group {group} in {state} state. Replacing previously mapped member {member} with this groupInstanceId.
    Static member with groupInstanceId=i 1 and unknown member id joins group orders in Stable state. Replacing previously mapped member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with this groupInstanceId.
Static member {instance} of group {group} with unknown member id rejoins, assigning new member id {new_member}, while old member id {member} will be removed.
    Static member Some(i) of group orders with unknown member id rejoins, assigning new member id web-2-827e3983-da7d-4c5e-980f-c42b6caf6699, while old member id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 will be removed.
Static member {instance} with unknown member id rejoins, assigning new member id {new_member}, while old member {member} will be removed.
    Static member Some(i) with unknown member id rejoins, assigning new member id web-2-827e3983-da7d-4c5e-980f-c42b6caf6699, while old member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 will be removed.
Request memberId={member} for static member with groupInstanceId={instance} is fenced by existing memberId={new_member} during operation {reason}
    Request memberId= for static member with groupInstanceId=i-1 is fenced by existing memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 during operation txn-offset-commit
    Request memberId=web-2-827e3983-da7d-4c5e-980f-c42b6caf6699 for static member with groupInstanceId=i-1 is fenced by existing memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 during operation heartbeat
Request memberId={member} for static member with groupInstanceId={instance} is fenced by current memberId={new_member} during operation {reason}
    Request memberId=web-2-827e3983-da7d-4c5e-980f-c42b6caf6699 for static member with groupInstanceId=i-1 is fenced by current memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 during operation heartbeat
given member.id {member} is identified as a known static member {instance}, but not matching the expected member.id {new_member} during {reason}, will respond with instance fenced error
    given member.id web-2-827e3983-da7d-4c5e-980f-c42b6caf6699 is identified as a known static member i-1, but not matching the expected member.id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 during join-group, will respond with instance fenced error
Member {member} in group {group} has failed, removing it from the group{period}
    Member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 in group orders in group x has failed, removing it from the group.
Member MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, sessionTimeoutMs={session_timeout}, rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols={text}) has left group {group} through explicit `LeaveGroup`; client reason: {reason}
    Member MemberMetadata(memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, groupInstanceId=Some(i 1), clientId=web-1, clientHost=/10.0.0.1, sessionTimeoutMs=8000, rebalanceTimeoutMs=12000, supportedProtocols=List(range)) has left group orders through explicit `LeaveGroup`; client reason: not provided
Member MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, sessionTimeoutMs={session_timeout}, rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols={text}) has left group {group} through explicit `LeaveGroup` request
    Member MemberMetadata(memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, groupInstanceId=Some(i 1), clientId=web-1, clientHost=/10.0.0.1, sessionTimeoutMs=8000, rebalanceTimeoutMs=12000, supportedProtocols=List(range)) has left group orders through explicit `LeaveGroup` request
Member[group.instance.id {instance}, member.id {member}] in group {group} has left, removing it from the group
    Member[group.instance.id Some(i-1), member.id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7] in group orders has left, removing it from the group
Static member MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, sessionTimeoutMs={session_timeout}, rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols={text}).groupInstanceId of group {group} loaded with member id {text} at generation {generation}.
    Static member MemberMetadata(memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, groupInstanceId=Some(null), clientId=web-1, clientHost=/10.0.0.1, sessionTimeoutMs=8000, rebalanceTimeoutMs=12000, supportedProtocols=List(range)).groupInstanceId of group orders loaded with member id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 at generation 1.
Loaded member MemberMetadata(memberId={member}, groupInstanceId={instance}, clientId={client}, clientHost={host}, sessionTimeoutMs={session_timeout}, rebalanceTimeoutMs={rebalance_timeout}, supportedProtocols={text}) in group {group} with generation {generation}.
    Loaded member MemberMetadata(memberId=web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, groupInstanceId=Some(i 1), clientId=web-1, clientHost=/10.0.0.1, sessionTimeoutMs=8000, rebalanceTimeoutMs=12000, supportedProtocols=List(range)) in group orders with generation 1.
Resigned as the group coordinator for partition {partition} in epoch {text}
    Resigned as the group coordinator for partition 46 in epoch OptionalInt[0]
Started unloading metadata for __consumer_offsets-{partition} with epoch {text}.
    Started unloading metadata for __consumer_offsets-42 with epoch OptionalInt[2].
The following groups were deleted: {groups}. A total of {number} offsets were removed.
    The following groups were deleted: temp-backfill, old. A total of 6 offsets were removed.
    The following groups were deleted: . A total of 0 offsets were removed.
Finished loading of metadata from __consumer_offsets-{partition} with epoch {number}{text}
    Finished loading of metadata from __consumer_offsets-35 with epoch 0 in 83ms where 83ms was spent in the scheduler. Loaded 0 records which total to 0 bytes.
    Finished loading of metadata from __consumer_offsets-35 with epoch 0.
Finished loading offsets and group metadata from __consumer_offsets-{partition} in {number} milliseconds{text}
    Finished loading offsets and group metadata from __consumer_offsets-15 in 6 milliseconds for epoch 0, of which 5 milliseconds was spent in the scheduler.
    Finished loading offsets and group metadata from __consumer_offsets-15 in 6 milliseconds.
Failed to load metadata from __consumer_offsets-{partition} with epoch {number} due to {text}
    Failed to load metadata from __consumer_offsets-15 with epoch 3 due to java.lang.RuntimeException: x.
Finished loading offsets from {word} in {number} milliseconds.
    Finished loading offsets from [__consumer_offsets,15] in 6 milliseconds.
Error in loading offsets from {word}
    Error in loading offsets from [__consumer_offsets,15]
Writing records to __consumer_offsets-{partition} failed due to: {text}
    Writing records to __consumer_offsets-26 failed due to: this broker is not the leader..
Failed to write {text} to __consumer_offsets-{partition} because {text}
    Failed to write records to __consumer_offsets-26 because this broker is no longer the leader of the partition.
    Failed to write a batch of 3 record(s) to __consumer_offsets-26 because it is larger than the maximum batch size of 1048588 bytes. This usually means that a single record is too large. Consider increasing the maximum batch size.
    Failed to write the transaction marker to __consumer_offsets-26 because the producer 7 with epoch 1 has been fenced.
Failed to write {text} to __consumer_offsets-{partition} due to an unexpected error: {text}
    Failed to write records to __consumer_offsets-26 due to an unexpected error: x.
Failed to flush the pending records to __consumer_offsets-{partition}: {text}
    Failed to flush the pending records to __consumer_offsets-26: x.
The group config '{word}' for group '{group}' has value {number} which {text} The effective value will be capped to {number}.
    The group config 'consumer.assignment.interval.ms' for group 'orders' has value 20000 which exceeds the broker's allowed maximum 15000. The effective value will be capped to 15000.
The effective {word} ({number}) for group '{group}' is not greater than {word} ({number}). {text}
    The effective consumer.session.timeout.ms (45000) for group 'orders' is not greater than consumer.heartbeat.interval.ms (45000). Check that the broker-level min/max bounds for session timeout and heartbeat interval do not overlap.
The config '{word}' has value {number} which {text} The effective value will be capped to {number}.
    The config 'group.consumer.assignment.interval.ms' has value 20000 which exceeds the allowed maximum 15000. The effective value will be capped to 15000.
Received notification of heartbeat expiration for member {member} after group {group} had already been {text}
    Received notification of heartbeat expiration for member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 after group orders had already been unloaded or deleted.
    Received notification of heartbeat expiration for member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 after group orders had already been deleted or upgraded.
Setting empty assignments for members {members} of {group} for generation {generation}{period}
    Setting empty assignments for members Set(web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7) of orders for generation 5
    Setting empty assignments for members [web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7] of orders for generation 5.
Failed to write empty metadata for group {group}: {text}
    Failed to write empty metadata for group orders: The coordinator is not available.
Failed to persist metadata for group {group} static member {new_member} with group instance id {instance} due to {text}. Reverting to old member id {member}.
    Failed to persist metadata for group orders static member b-web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with group instance id i due to x. Reverting to old member id web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7.
Failed to persist metadata for group {group}: {text}
    Failed to persist metadata for group orders: The coordinator is not available.
Cannot complete join phase of group {group} because {text}
    Cannot complete join phase of group orders because not all the members have rejoined. Members=3, AwaitingJoinResponses=1, PendingJoinMembers=0.
The following offsets of the group {group} were deleted: {text}. A total of {number} offsets were removed.
    The following offsets of the group orders were deleted: t-0, t-1. A total of 2 offsets were removed.
Appending metadata message for group {group} generation {generation} failed {text}
    Appending metadata message for group orders generation 5 failed due to unexpected error: org.apache.kafka.X
Metadata from group {group} with generation {generation} failed when appending to log due to {text}
    Metadata from group orders with generation 5 failed when appending to log due to org.apache.kafka.X
Failed to parse Consumer Protocol {text} of group {group}. Consumer group coordinator is not aware of the subscribed topics.
    Failed to parse Consumer Protocol consumer:range of group orders. Consumer group coordinator is not aware of the subscribed topics.
Loaded group metadata {text}
    Loaded group metadata GroupMetadata(groupId=orders, generation=5) with offsets Map() and pending offsets Map()
Group {group} removed from the metadata cache and marked for deletion in {text}
    Group orders removed from the metadata cache and marked for deletion in __consumer_offsets-9.
Failed to invoke {word} callback for {text}
    Failed to invoke join callback for MemberMetadata(memberId=x) due to y.
Failed to mark group {group} as deleted in {word}.
    Failed to mark group orders as deleted in [__consumer_offsets,15].
Could not fetch offsets for group {group} (not {word} coordinator){text}
    Could not fetch offsets for group orders (not group coordinator).
Cannot upgrade classic group {group} to consumer group: {text}
    Cannot upgrade classic group orders to consumer group: x.
{text} There is not enough available capacity. You should increase {text}
    x There is not enough available capacity. You should increase the number of threads.
{word} request {text} hit an unexpected exception{text}
    JoinGroup request JoinGroupRequestData(groupId='x') hit an unexpected exception: y
[GroupId {group}][MemberId {member}] Bumped streams group epoch to {generation} {text}
    [GroupId flow][MemberId +czycdsORpaL6mgoKm439A] Bumped streams group epoch to 2 with metadata hash -7782713719880650054 and validated topic epoch 0.
[GroupId {group}][MemberId {member}] Member's new assignment state: epoch={generation}, previousEpoch={number}, {text}
    [GroupId flow][MemberId +czycdsORpaL6mgoKm439A] Member's new assignment state: epoch=2, previousEpoch=1, state=STABLE, assignedTasks=(active=[0-0@2], standby=[], warmup=[]) and tasksPendingRevocation=(active=[], standby=[], warmup=[]).
[GroupId {group}][MemberId {member}] {text}
    [GroupId flow][MemberId +czycdsORpaL6mgoKm439A] Configuring the topology 0
[GroupId {group}] Bumped streams group epoch to {generation} {text}
    [GroupId flow] Bumped streams group epoch to 2 with metadata hash 5 and validated topic epoch 1.
[GroupId {group}] Bumped group epoch to {generation} {text}
    [GroupId telemetry] Bumped group epoch to 2 with metadata hash -7944087180104004329.
[GroupId {group}] Computed a new target assignment for epoch {generation} with '{text}' assignor in {number}ms{text}
    [GroupId telemetry] Computed a new target assignment for epoch 2 with 'uniform' assignor in 3ms.
[GroupId {group}] Member {member} new assignment state: epoch={generation}, previousEpoch={number}, {text}
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A new assignment state: epoch=3, previousEpoch=2, state=STABLE, assignedPartitions=[t-0].
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A new assignment state: epoch=3, previousEpoch=2, state=UNREVOKED_PARTITIONS, assignedPartitions=[PoXy/d3qQpOGkRtEOEpFtQ-0@3] and revokedPartitions=[PoXy/d3qQpOGkRtEOEpFtQ-1@2].
[GroupId {group}] Member {member} updated its subscribed topics to: {text}
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A updated its subscribed topics to: [orders].
[GroupId {group}] Member {member} updated its subscribed {text}
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A updated its subscribed regex to: orders.*.
[GroupId {group}] Member {member} fenced from the group because the classic member failed to join within the rebalance timeout{text}
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A fenced from the group because the classic member failed to join within the rebalance timeout.
[GroupId {group}] Member {member} fenced from the group because {text}
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A fenced from the group because it does something new.
[GroupId {group}] Streams member {member} fenced from the group because the member session expired{text}
    [GroupId flow] Streams member +czycdsORpaL6mgoKm439A fenced from the group because the member session expired..
[GroupId {group}] Streams member {member} fenced from the group because {text}
    [GroupId flow] Streams member +czycdsORpaL6mgoKm439A fenced from the group because it does something new.
Cannot upgrade classic group {group} to consumer group because {text}
    Cannot upgrade classic group search to consumer group because the online upgrade is disabled.
Cannot upgrade the classic group {group} to consumer group because {text}
    Cannot upgrade the classic group search to consumer group because the embedded consumer protocol is malformed: x.
Cannot downgrade consumer group {group} to classic group because {text}
    Cannot downgrade consumer group search to classic group because the online downgrade is disabled.
Cannot downgrade the consumer group {group}: {text}
    Cannot downgrade the consumer group search: fail to parse the Consumer Protocol consumer.
[GroupId {group}] Scanned {number} topics to refresh regular expressions {text}
    [GroupId telemetry] Scanned 6 topics to refresh regular expressions [orders.*] in 2ms.
[GroupId {group}] Member {member} {text}
    [GroupId telemetry] Member +czycdsORpaL6mgoKm439A does something new.
[GroupId {group}] Assignment configurations changed to {text}. Triggering rebalance.
  [GroupId telemetry] Assignment configurations changed to {}. Triggering rebalance.
[GroupId {group}] {text}
      [GroupId telemetry] Size of assignment epochs 1 is not equal to partitions 2 for topic PoXy/d3qQpOGkRtEOEpFtQ. Using default epoch 7 for all partitions.
Kafka version: {release}{build}
    Kafka version: 4.4.0
    Kafka version: 3.6.0.redhat-00005
    Kafka version: 4.4.0-SNAPSHOT
Kafka version : {release}{build}
    Kafka version : 0.10.2.2
    Kafka version : 1.1.0-cp1
Terminating process due to signal {word}
    Terminating process due to signal SIGTERM
Shutdown broker because all log dirs in {text} have failed
    Shutdown broker because all log dirs in /var/lib/kafka have failed
Skipping recovery of {count} logs from {text} since clean shutdown file was found
    Skipping recovery of 71 logs from /var/lib/kafka since clean shutdown file was found
Skipping recovery for all logs in {text} since clean shutdown file was found
    Skipping recovery for all logs in /var/lib/kafka since clean shutdown file was found
Recovering {count} logs from {text} since no clean shutdown file was found
    Recovering 71 logs from /var/lib/kafka since no clean shutdown file was found
Attempting recovery for all logs in {text} since no clean shutdown file was found
    Attempting recovery for all logs in /var/lib/kafka since no clean shutdown file was found
[ReplicaFetcher replicaId={number}, leaderId={number}, fetcherId={number}] Error sending fetch request (sessionId={number}, epoch={number}) to node {node}:{text}
    [ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Error sending fetch request (sessionId=1440, epoch=1891) to node 3:
    [ReplicaFetcher replicaId=1, leaderId=3, fetcherId=0] Error sending fetch request (sessionId=7, epoch=9) to node 3: x.
[Controller id={number}] Newly added brokers: {text}, deleted brokers: {nodes}, bounced brokers: {text}
    [Controller id=1] Newly added brokers: , deleted brokers: 3, bounced brokers: , all live brokers: 1,2
[Controller id={number}] Newly added brokers: {text}, deleted brokers: {nodes}, all live brokers: {text}
    [Controller id=1] Newly added brokers: , deleted brokers: 3, all live brokers: 1,2
[Controller {number}]: Newly added brokers: {text}, deleted brokers: {nodes}, all live brokers: {text}
    [Controller 1]: Newly added brokers: , deleted brokers: 3, all live brokers: 1,2
[BrokerChangeListener on Controller {number}]: Newly added brokers: {text}, deleted brokers: {nodes}, all live brokers: {text}
    [BrokerChangeListener on Controller 1]: Newly added brokers: , deleted brokers: 3,4, all live brokers: 1,2
consumer poll timeout has expired.{text}
    consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, which typically implies
worker poll timeout has expired.{text}
    worker poll timeout has expired. The last known action being performed by the worker is : joining the cluster and may contribute to the timeout.
This member will leave the group because consumer poll timeout has expired.{text}
    This member will leave the group because consumer poll timeout has expired. This means the time
Member {member} sending LeaveGroup request to coordinator {text} due to {reason}
    Member c1-0a1b2c3d-0000-4000-8000-00000000abcd sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null) due to the consumer is being closed
Member {member} sending LeaveGroup request to coordinator {text}
    Member c1-0a1b2c3d-0000-4000-8000-00000000abcd sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null)
Sending LeaveGroup request to coordinator {text}
    Sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null)
Request joining group due to: {reason}
    Request joining group due to: group is already rebalancing
Successfully joined group with generation Generation{generationId={generation}, memberId='{member}', protocol={text}}
    Successfully joined group with generation Generation{generationId=2, memberId='c1-0a1b2c3d-0000-4000-8000-00000000abcd', protocol='range'}
Application maximum poll interval ({rebalance_timeout}ms) exceeded by {exceeded}ms{text}
    Application maximum poll interval (10000ms) exceeded by 10ms (adjust max.poll.interval.ms for long-running message processing): leaving group
Consumer group session timed out (in join-state {text}) after {session_timeout} ms without a successful response from the group coordinator (broker {number}, last error was {reason}): revoking assignment and rejoining group
    Consumer group session timed out (in join-state steady) after 8004 ms without a successful response from the group coordinator (broker 3, last error was Success): revoking assignment and rejoining group
JoinGroup response: GenerationId {generation}, Protocol {text}, LeaderId {text}, my MemberId {member}, member metadata count {number}: (no error)
    JoinGroup response: GenerationId 2, Protocol range, LeaderId c1-0a1b2c3d-0000-4000-8000-00000000abcd (me), my MemberId c1-0a1b2c3d-0000-4000-8000-00000000abcd, member metadata count 3: (no error)
Group "{group}" initiating rebalance ({word}) in state {text} (join-state {plain}) with {number} assigned partition(s): {reason}
    Group "orders" initiating rebalance (EAGER) in state up (join-state steady) with 2 assigned partition(s): Metadata for subscribed topic(s) has changed
Group "{group}": Rejoining group with {number} owned partition(s): {reason}
    Group "orders": Rejoining group with 2 owned partition(s): rejoining group to redistribute previously owned partitions to other group members
JoinGroup response: GenerationId {generation}, Protocol {text}, LeaderId {text}, my MemberId {member}, {number} members in group: (no error)
    JoinGroup response: GenerationId 2, Protocol range, LeaderId c1-0a1b2c3d-0000-4000-8000-00000000abcd (me), my MemberId c1-0a1b2c3d-0000-4000-8000-00000000abcd, 3 members in group: (no error)
Successfully joined group {group} <Generation {generation} (member_id: {member}, protocol: {text})>
    Successfully joined group orders <Generation 3 (member_id: orders-1-0a1b2c3d-0000-4000-8000-00000000abcd, protocol: range)>
Consumer poll timeout has expired. {text}max_poll_interval_ms{text}
    Consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max_poll_interval_ms, which typically implies that
Leaving consumer group {group} (member {member}).
    Leaving consumer group orders (member orders-1-0a1b2c3d-0000-4000-8000-00000000abcd).
Triggering follow-up rebalance for group {group} to {reason}
    Triggering follow-up rebalance for group orders to complete cooperative move of 2 partition(s)
Metadata for topic has changed from {text} to {text}
    Metadata for topic has changed from {'orders': 6} to {'orders': 8}.
joined; group: {group}, member_id: {member}, {text}generation: {generation}{text}
    joined; group: orders, member_id: orders-1-0a1b2c3d-0000-4000-8000-00000000abcd, instance_id: <nil>, generation: 2, balance_protocol: cooperative-sticky, leader: true
joined, balancing group; group: {group}, member_id: {member}, {text}generation: {generation}{text}
    joined, balancing group; group: orders, member_id: orders-1-0a1b2c3d-0000-4000-8000-00000000abcd, instance_id: <nil>, generation: 2, balance_protocol: cooperative-sticky, leader: true
joined as leader but unable to balance group due to KIP-345 limitations; group: {group}, member_id: {member}, {text}generation: {generation}{text}
    joined as leader but unable to balance group due to KIP-345 limitations; group: orders, member_id: orders-1-0a1b2c3d-0000-4000-8000-00000000abcd, instance_id: <nil>, generation: 2, balance_protocol: cooperative-sticky, leader: true
forced rejoin quitting heartbeat loop; why: {reason}, is848: {word}
    forced rejoin quitting heartbeat loop; why: rejoining because we are the leader and noticed some topics have new partitions, is848: false
heartbeat errored; group: {group}, err: {reason}
    heartbeat errored; group: orders, err: REBALANCE_IN_PROGRESS: The group is rebalancing, so a rejoin is needed.
consumergroup/{group} loop check partition number {word} find {reason}
    consumergroup/orders loop check partition number goroutine find partitions in topics [orders] changed from 6 to 8
Crash: {reason}; groupId: {group}
    Crash: KafkaJSNumberOfRetriesExceeded: The coordinator is not aware of this member; groupId: orders
Adding new member {member} with group instance id {instance}{why}
    Adding new member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with group instance id None; client reason: not provided
    Adding new member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with group instance id null; client reason: need to re-join with the given member-id: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7
    Adding new member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with group instance id Some(i)
Adding new member {member} with group instanceid {instance}
    Adding new member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with group instanceid None
explicit `LeaveGroup` request for ({members}) members{period}
    explicit `LeaveGroup` request for (web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, web-2-827e3983-da7d-4c5e-980f-c42b6caf6699) members.
    explicit `LeaveGroup` request for (web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7) members
Removing member {member} on LeaveGroup{why}
    Removing member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 on LeaveGroup; client reason: the consumer is being closed
Updating metadata for static member {member} with instance id {instance}{why}
    Updating metadata for static member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 with instance id i 1; client reason: not provided
Updating metadata for member {member} during {state}{why}
    Updating metadata for member web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 during Stable; client reason: subscription has changed
Leader {member} re-joining group during {state}{why}
    Leader web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7 re-joining group during Stable; client reason: rebalance enforced by user
Removing {members} on pending sync request expiration
    Removing Set(web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7) on pending sync request expiration
    Removing [web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7, web-2-827e3983-da7d-4c5e-980f-c42b6caf6699] on pending sync request expiration
{text}rror {text}when storing group assignment{text}during SyncGroup (member: {member}){period}
    Error NOT_COORDINATOR when storing group assignmentduring SyncGroup (member: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7).
    error when storing group assignment during SyncGroup (member: web-1-0ec6e36b-3898-4595-96dd-e3531f8ddea7)
"""

EXAMPLES = {
    template: [sentence.strip() for sentence in sentences]
    for template, *sentences in (block.splitlines() for block in re.split(r"\n(?! )", TEXTS.strip()))
}
"""Sentences by the text of their template."""
