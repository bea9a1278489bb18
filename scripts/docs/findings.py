"""The tables of docs/findings.md: the codes, and the figures of each, which `details` has for programs."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, offset_catalogue

FIGURES: Final = {
    "after_ms": "from when the member was told of its epoch, or had left for a while, to the commit",
    "api": "the request",
    "assignor": "the assignor in use, or the one that the client asks for",
    "away_ms": "from when the member was last heard, or left for a while, until it came back, or its session ended",
    "back_ms": "how long after the end of the session the client was back",
    "broker": "the broker that answered",
    "by_client": "how many of the rebalances each of these clients began",
    "by_culprit": "how many of the rebalances the named clients began; of the epochs, in the consumer protocol",
    "by_member": "whether a member of the group did it",
    "came": "how many records came behind the committed offset",
    "came_back": "whether the member came back",
    "causes": "how many rebalances had which cause",
    "clients": "the client ids of the members",
    "commit_interval_ms": "the usual time between two commits",
    "common_causes": "the most common cause, or two if neither has more than half",
    "coordinator": "the node that FIND_COORDINATOR named",
    "coordinator_elected_ms_before": "how long before the session ended the broker had become the coordinator of a partition",
    "default_max_ms": "group.max.session.timeout.ms as Kafka ships it",
    "default_min_ms": "group.min.session.timeout.ms as Kafka ships it",
    "epoch": "the epoch that the member had been told of",
    "error_code": "Kafka's code of the answer",
    "epochs": "how often the epoch of the group was raised: several such may be one rebalance",
    "errors": "with which errors the writes failed",
    "failed": "how often the next rebalance began before a client had its assignment, by its own log",
    "first": "the first generation, or epoch, that no line has",
    "from_broker": "the coordinator before",
    "from_offset": "the committed offset before",
    "group_generation": "the group's generation at that time",
    "group_max_size": "group.max.size, by the number of members",
    "holder": "the member that has the group.instance.id",
    "hole_ms": "from the last line before them to the first after",
    "idle": "the members without partitions",
    "instance_id": "the group.instance.id",
    "join_ms": "how long the join phase took",
    "last": "the last of them",
    "leader": "whether the member led the group",
    "longest_gap_before_ms": "the longest silence of the member that its session survived before",
    "longest_restart_ms": "the longest time from when a client was last heard until it was back",
    "max_poll_interval_ms": "max.poll.interval.ms of the member: its rebalance timeout",
    "members": "how many members the group has",
    "members_lost": "the members that the coordinator did not hear in time",
    "node": "the node id of the broker that answered",
    "observed": "what the broker answered",
    "offset": "the committed offset",
    "partition": "the partition, as topic-partition",
    "partitions": "how many partitions there are, or the member has; of ASSIGNMENT_SKEW, those of each member",
    "partitions_moved": "how many times a partition changed its owner",
    "poll_gap_ms": "for how long the application did not poll, about",
    "predicted": "what Kafka's rules would have answered",
    "protocols": "the assignors that the client offers",
    "rebalance_timeout_ms": "the rebalance timeout of the member: its max.poll.interval.ms",
    "rebalances": "how many rebalances",
    "refused_clients": "how many clients asked and were refused",
    "regex": "the regular expression",
    "release": "the release by whose rules the answer was predicted",
    "removed": "how the membership had ended (member_sessions.end_kind)",
    "removed_before_ms": "how long before the membership had ended",
    "removed_ms_ago": "how long before the membership had ended",
    "reread": "how many records are read again, by the offsets",
    "reread_min": "how many records were read again at least",
    "reread_max": "how many records were read again at most",
    "restarted": "the members that were restarted",
    "sent_epoch": "the epoch that the request had",
    "sent_generation": "the generation that the request had",
    "session_timeout_ms": "session.timeout.ms of the member; in the consumer protocol what members were removed after, or the default",
    "session_timeout_seen": "whether the group was seen to remove a member after that time",
    "session_timeouts_ms": "session.timeout.ms of the members that were lost",
    "silent_ms": "for how long nothing was heard of the member",
    "silent_partition_ms": "the time, over all partitions, in which their owners were silent before the rebalances began",
    "begun_offset": "where the client began to read; null if that is not known",
    "skipped_max": "how many records were skipped at most; as many, if it is known where the client began",
    "span_ms": "from the start of the first rebalance to that of the last",
    "stands_ms": "for how long the committed offset has not moved",
    "sync_ms": "from the end of the join phase to the SyncGroup",
    "times": "how often the client's log says so",
    "to_broker": "the coordinator afterwards",
    "to_offset": "the committed offset afterwards",
    "total_ms": "how long all rebalances together took",
    "unavailable_partition_ms": "the time in which partitions had no owner at work, added up over all of them (cost.md)",
    "waited_for": "the members that the group waited for",
    "waited_ms": "how long the group waited",
    "unheard_ms": "for how long members that were lost could not reach the coordinator, the longest",
    "wanted": "how many members there would be with all that asked",
    "without_partitions_ms": "for how long nobody has had a partition",
}
"""What each key of `details` is. Times are in milliseconds; null: no line shows it."""

RULES: Final = {
    text.code: text
    for module in (catalogue, consumer_catalogue, offset_catalogue, client_catalogue)
    for text in vars(module).values()
    if isinstance(text, catalogue.Text) and text.row
}
"""The text of each code that says what a row of it is, in the order of the catalogues."""


def part() -> str:
    """Both tables, from the catalogues of findings."""
    lines = ["| code | severity | one row is | evidence |", "|---|---|---|---|"]
    lines += [f"| {rule.code} | {rule.severity} | {rule.row} | {rule.evidence} |" for rule in RULES.values()]
    lines += ["", "The keys of `details`, by code:", "", "| code | keys |", "|---|---|"]
    lines += [f"| {rule.code} | {', '.join(f'`{name}`' for name in sorted(rule.figures))} |" for rule in RULES.values()]
    lines += ["", "| key | what it is |", "|---|---|", *(f"| `{name}` | {meaning} |" for name, meaning in sorted(FIGURES.items()))]
    return "\n".join(lines) + "\n"
