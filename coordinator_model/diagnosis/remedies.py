"""What to change where rebalances follow one another closely, by what was found."""

from __future__ import annotations

from typing import Final

AGAINST_MISSING_REPLICAS: Final = (
    "Look at the replicas of __consumer_offsets at that time: a write needs min.insync.replicas of them within "
    "offsets.commit.timeout.ms of the broker. A broker that is down, slow or out of disk space takes them away."
)
AGAINST_FAILED_WRITES: Final = {
    "UNKNOWN_SERVER_ERROR": "Most often the record is larger than max.message.bytes of __consumer_offsets allows: it has the "
    "subscription and the partitions of each member. Raise that setting, or have fewer members and partitions in the group. The broker's "
    "log has the error.",
}
"""By the error, as GroupMetadataManager.storeGroup (Scala) and CoordinatorOperationExceptionHelper (Java) translate it; others are about
replicas."""
AGAINST_CRASH_LOOPS: Final = (
    "Stop the client that comes and goes, and find out why it ends: a crash loop, a failing health check, a record that it cannot process."
)
AGAINST_STORMS_OF_SEVERAL: Final = (
    "Find out why these clients join again and again: a crash loop, a failing health check, a record that they cannot process."
)
UNDER_NEW_IDS: Final = ", each time under a new member id, though none had left"
AGAINST_NEW_IDS: Final = (
    "Clients that join again under new member ids put each other out. Look for a client library that does not keep its member id from one "
    "JoinGroup to the next, for a proxy or load balancer before the brokers that cuts connections or mixes them up, and for processes that "
    "are killed and started again before their session ends."
)
AGAINST_STORMS: Final = {
    "POLL_TIMEOUT": "The client comes back and stops polling again: each of its findings POLL_TIMEOUT says whether its process stood still "
    "or its work between two polls takes too long.",
    "SUBSCRIPTION_CHANGED": "The client changes what it subscribes to, again and again: let it subscribe once, to the same topics as the "
    "others.",
    "METADATA_CHANGED": "Topics or partitions that the group reads come and go: create them beforehand, and narrow any subscription by "
    "pattern.",
    "LEADER_REJOINED": "The leader joins again without giving a reason: read its log. Most often the metadata of its topics change.",
    "MEMBER_REJOINED": "The client joins again by itself: read its log, and search its code for enforceRebalance().",
    "STATIC_MEMBER_REPLACED": "Two processes take one group.instance.id from each other, or one is restarted again and again: give each "
    "its own, or find out why it ends.",
}
"""By the most common cause of the rebalances."""
