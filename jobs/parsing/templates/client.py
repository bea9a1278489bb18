"""What consumers log about their group: the Java client and librdkafka. The first template that fits a sentence decides.

Sources: Java, AbstractCoordinator, AbstractHeartbeatRequestManager and ConsumerMembershipManager in
clients/src/main/java/org/apache/kafka/clients/consumer/internals; Connect, WorkerCoordinator and DistributedHerder in
connect/runtime/…/distributed; librdkafka, src/rdkafka_cgrp.c and src/rdkafka_request.c.
"""

from __future__ import annotations

from typing import Final

from coordinator_model import events as e
from jobs.parsing.templates.language import Template

M: Final = "c1-0a1b2c3d-0000-4000-8000-00000000abcd"

JAVA: Final = (
    Template(e.CLIENT_POLL_TIMEOUT, "3.0+", "consumer poll timeout has expired.{text}",
             ("consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, which typically implies",)),
    Template(e.CLIENT_POLL_TIMEOUT, "3.7+, KIP-848", "Consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer than the configured max.poll.interval.ms{text}"),
    Template(e.CLIENT_POLL_TIMEOUT, "3.7+, KIP-848",
             "Time between subsequent calls to poll() was longer than the configured max.poll.interval.ms, exceeded approximately by {number} ms. Member {member} will rejoin the group now."),
    Template(e.CLIENT_POLL_TIMEOUT, "Connect", "worker poll timeout has expired.{text}",
             ("worker poll timeout has expired. The last known action being performed by the worker is : joining the cluster and may contribute to the timeout.",)),
    Template(e.CLIENT_POLL_TIMEOUT, "2.1 to 2.8", "This member will leave the group because consumer poll timeout has expired.{text}",
             ("This member will leave the group because consumer poll timeout has expired. This means the time",)),
    Template(e.CLIENT_LEAVES, "2.4+", "Member {member} sending LeaveGroup request to coordinator {text} due to {reason}",
             (f"Member {M} sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null) due to the consumer is being closed",)),
    Template(e.CLIENT_LEAVES, "2.2 and 2.3", "Member {member} sending LeaveGroup request to coordinator {text}",
             (f"Member {M} sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null)",)),
    Template(e.CLIENT_LEAVES, "2.1; DEBUG before", "Sending LeaveGroup request to coordinator {text}",
             ("Sending LeaveGroup request to coordinator h:9092 (id: 2147483646 rack: null)",)),
    Template(e.CLIENT_LEAVES, "3.7+, KIP-848", "Member {member} is triggering callbacks to release assignment {text} and leave group"),
    Template(e.CLIENT_REJOINS, "3.0+", "Request joining group due to: {reason}",
             ("Request joining group due to: group is already rebalancing",)),
    Template(e.CLIENT_JOINED, "2.6+",
             "Successfully joined group with generation Generation{generationId={generation}, memberId='{member}', protocol={text}}",
             (f"Successfully joined group with generation Generation{{generationId=2, memberId='{M}', protocol='range'}}",)),
    Template(e.CLIENT_JOINED, "to 2.5", "Successfully joined group with generation {generation}"),
)  # fmt: skip

LIBRDKAFKA: Final = (
    Template(e.CLIENT_POLL_TIMEOUT, "1.0+", "Application maximum poll interval ({rebalance_timeout}ms) exceeded by {number}ms{text}",
             ("Application maximum poll interval (10000ms) exceeded by 10ms (adjust max.poll.interval.ms for long-running message processing): leaving group",)),
    Template(e.CLIENT_SESSION_TIMEOUT, "1.6+",
             "Consumer group session timed out (in join-state {text}) after {session_timeout} ms without a successful response from the group coordinator (broker {number}, last error was {reason}): revoking assignment and rejoining group",
             ("Consumer group session timed out (in join-state steady) after 8004 ms without a successful response from the group coordinator (broker 3, last error was Success): revoking assignment and rejoining group",)),
    Template(e.CLIENT_JOINED, "debug=cgrp",
             "JoinGroup response: GenerationId {generation}, Protocol {text}, LeaderId {text}, my MemberId {member}, member metadata count {number}: (no error)",
             (f"JoinGroup response: GenerationId 2, Protocol range, LeaderId {M} (me), my MemberId {M}, member metadata count 3: (no error)",)),
    Template(e.CLIENT_REJOINS, "debug=cgrp",
             'Group "{group}" initiating rebalance ({word}) in state {text} (join-state {state}) with {number} assigned partition(s): {reason}',
             ('Group "orders" initiating rebalance (EAGER) in state up (join-state steady) with 2 assigned partition(s): Metadata for subscribed topic(s) has changed',)),
    Template(e.CLIENT_REJOINS, "debug=cgrp", 'Group "{group}": Rejoining group with {number} owned partition(s): {reason}',
             ('Group "orders": Rejoining group with 2 owned partition(s): rejoining group to redistribute previously owned partitions to other group members',)),
    Template(e.CLIENT_REJOINS, "debug=cgrp", 'Group "{group}": subscribe to new subscription of {number} topics (join-state steady)', fixed={"reason": "subscribe to new subscription"}),
)  # fmt: skip
