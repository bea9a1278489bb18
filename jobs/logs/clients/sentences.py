"""What clients other than Java's and librdkafka say about their group: the beginnings of their sentences, and which library says them.

The templates (jobs/sentences/other_clients.py) read the sentences whole, and name the source of each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

# A group id may be longer. A bound keeps a hostile line from taking minutes.
_ID: Final = rb".{1,512}?"

JAVA: Final = b"java"

SENTENCES: Final[Mapping[str, tuple[bytes, ...]]] = {
    "franz-go": (
        rb"joined(?:, balancing group| as leader but unable to balance group[^;]{0,60})?; group: ",
        rb"leaving (?:next-gen )?group; group: ",
        rb"forced rejoin quitting heartbeat loop; why: ",
        rb"heartbeat errored; group: " + _ID + rb", err: (?!context canceled)",  # as it closes
        rb"(?:sync failed with RebalanceInProgress, rejoining|join returned UnknownMemberID, rejoining without a member id); group: ",
        rb"join (?:group failed|and sync loop errored); group: " + _ID + rb", err: (?!context canceled)",
        rb"offset commit returned a fatal group member error, triggering rejoin; group: ",
        rb"consumer group heartbeat error, abandoning assignment and rejoining(?: with new member id)?; group: ",
    ),
    # ... the texts of its errors, where an application prints them
    "librdkafka": (rb"Application maximum poll interval \(\d", rb"Maximum application poll interval \(max\.poll\.interval\.ms\) exceeded"),
    "java": (rb"Offset commit cannot be completed since the consumer is not", rb"Commit cannot be completed since the group has already"),
    # ... that of its CommitFailedException, and of CommitFailedError in Python
    "kafka-python": (
        rb"Successfully joined group " + _ID + rb" (?:with generation \d|<Generation )",
        rb"Heartbeat poll expired, leaving group",
        rb"Consumer poll timeout has expired\. [^_]{60,120}max_poll_interval_ms",
        rb"Leaving consumer group ",
        rb"Heartbeat session expired, marking coordinator dead",
        rb"Heartbeat: local member_id was not recognized",
        rb"Heartbeat failed for group " + _ID + rb"(?: because it is rebalancing|: generation id is not| due to fenced id)",
        rb"SyncGroup for group " + _ID + rb" failed due to (?:fenced id|coordinator rebalance)",
        rb"Group " + _ID + rb" is rebalancing; rejoining\.",
        rb"Triggering follow-up rebalance for group ",
        rb"(?:Offset commit failed: group membership|Auto offset commit failed for group " + _ID + rb": CommitFailedError)",
        rb"OffsetCommit for group " + _ID + rb" failed: \[Error 2[25]\]",
        rb"(?:\(Re-\)joining group |Discovered coordinator \S{1,99} for group |Marking the coordinator dead \(node )",
    ),
    "aiokafka": (
        rb"Joined group '" + _ID + rb"' \(generation \d",
        rb"LeaveGroup request succeeded",
        rb"Heartbeat session expired - marking coordinator dead",
        rb"Heartbeat failed: local member_id was not recognized",
        rb"Metadata for topic has changed from ",
        rb"OffsetCommit failed for group " + _ID + rb" due to group error ",
    ),
    "sarama": (
        rb"consumergroup/" + _ID + rb" loop check partition number (?:go|co)routine find partitions in topics ",
        rb"consumergroup/" + _ID + rb": lost ownership of ",
        rb"JoinGroup failed: group instance id \S{1,512} has been fenced",
    ),
    "kafka-go": (
        rb"Joined group " + _ID + rb" as member " + _ID + rb" in generation \d",
        rb"Leaving group " + _ID + rb", member ",
        rb"Partition changes found, rebalancing group: ",
        rb"Failed to (?:join|sync) group " + _ID + rb": \[2[257]\] ",
    ),
    "kafkajs": (
        rb"Consumer has joined the group; groupId: ",
        rb"The group is rebalancing, re-joining; groupId: ",
        rb"The coordinator is not aware of this member, re-joining the group; groupId: ",
        rb"Response (?:Heartbeat|SyncGroup|OffsetCommit)\(key: \d{1,2}, version: \d{1,2}\); clientId: ",
        rb"(?:Starting|Stopped); groupId: ",
        rb"Crash: .{1,4096}; groupId: ",
    ),
}
"""The beginnings of the sentences, by library; as much of each as nobody else writes."""

_SIGNS: Final = (
    b"; group: ", b"forced rejoin quitting", b"oined group ", b" join group ", b"Heartbeat", b"poll timeout has expired", b"Leaving ",
    b"; rejoining.", b"follow-up rebalance", b" sync group ", b"LeaveGroup request", b"Metadata for topic", b"consumergroup/",
    b"rebalancing group: ", b"; groupId: ", b"joining group ", b"for group ", b"ommit cannot be", b"ommit failed", b"poll interval",
    b"; clientId: ", b" been fenced",
)  # fmt: skip
"""Each sentence has one of these. Most lines of an application have none, and need no more to be looked at."""

_SAID: Final = re.compile(
    rb"(?:^|(?<=[\s:|\]>)\"'-]))(?:"
    + b"|".join(b"(?P<%s>%s)" % (library.replace("-", "_").encode(), b"|".join(texts)) for library, texts in SENTENCES.items())
    + b")"
)
_NAMED: Final = re.compile(
    rb"[^;]{1,120}; group: (.*?)(?:, (?:member_id|err): .*)?$"
    rb"|Successfully joined group (.*?) (?:with generation \d+|<Generation .*)$"
    rb"|Joined group '(.*?)' \(generation \d+\) with member_id .*$"
    rb"|Joined group (.*?) as member .* in generation \d+$"
    rb"|(?:[^;]{1,80}|Crash: .{1,4096}); groupId: (.*?)(?:, memberId: .*)?$"
    rb"|(?:\(Re-\)joining|Discovered coordinator \S+ for) group (.*)$"
    rb"|Marking the coordinator dead \(node [^)]*\) ?for group (.*?)(?:: .*|\.$)"
    rb"|(?:Auto offset commit failed|Heartbeat failed|Triggering follow-up rebalance) for group (.*?)(?::| because| due| to complete) .*$"
    rb"|(?:OffsetCommit|SyncGroup) (?:failed )?for group (.*?)(?: failed| due to)[: ].*$"
    rb"|Failed to (?:join|sync) group (.*?): \[2[257]\] .*$"
    rb"|Group (.*) is rebalancing; rejoining\.$",
    re.DOTALL,
)
_NAMED_WITHIN: Final = 8_192  # bytes of a sentence that are looked through for its group

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "joined": ("group", "member_id", "generation"),
    "joined, balancing group": ("group", "member_id", "generation"),
    "joined as leader but unable to balance group due to KIP-345 limitations": ("group", "member_id", "generation"),
    "leaving group": ("group", "member_id"),
    "leaving next-gen group": ("group", "member_id"),
    "forced rejoin quitting heartbeat loop": ("why",),
    "heartbeat errored": ("group", "err"),
    "sync failed with RebalanceInProgress, rejoining": ("group",),
    **dict.fromkeys(("join group failed", "join and sync loop errored"), ("group", "err")),
    "join returned UnknownMemberID, rejoining without a member id": ("group",),
    "offset commit returned a fatal group member error, triggering rejoin": ("group", "err"),
    "consumer group heartbeat error, abandoning assignment and rejoining": ("group", "member_id", "generation", "err"),
    "consumer group heartbeat error, abandoning assignment and rejoining with new member id": ("group", "member_id", "generation", "err"),
    "Consumer has joined the group": ("groupId", "memberId"),
    "The group is rebalancing, re-joining": ("groupId", "memberId"),
    "The coordinator is not aware of this member, re-joining the group": ("groupId", "memberId"),
    **{f"Response {api}(key": ("clientId", "error") for api in ("Heartbeat", "SyncGroup", "OffsetCommit")},
    **dict.fromkeys(("Starting", "Stopped", "Crash"), ("groupId",)),
}
"""Which fields belong to a message of franz-go or KafkaJS, where a logger writes fields beside the message."""

_NAMESPACE: Final = re.compile(r"\[(?:Connection|Consumer|ConsumerGroup|Runner)\] ")


def library_of(line: bytes) -> tuple[str, int]:
    """Which library says something in a line, and where its sentence begins; ("", 0) if none does."""
    if not any(map(line.__contains__, _SIGNS)):
        return "", 0
    said = _SAID.search(line)
    if said is None:
        return "", 0
    library = str(said.lastgroup).replace("_", "-")
    # aiokafka took sentences over from kafka-python: the name of the logger before them tells.
    return "aiokafka" if b"aiokafka" in line[: said.start()] else library, said.start()


def named_group(sentence: bytes) -> str:
    """The group that a sentence of such a library names; empty if it names none."""
    named = _NAMED.match(sentence, 0, _NAMED_WITHIN)
    return "" if named is None else next(group for group in named.groups() if group is not None).decode("utf-8", "replace")


def with_fields(message: str, entry: Mapping[str, Any]) -> str:
    """A message with its fields as franz-go's own logger writes them: `joined; group: orders, member_id: …`."""
    bare = _NAMESPACE.sub("", message, count=1) if message[:1] == "[" else message
    names = FIELDS.get(bare) or FIELDS.get(bare.partition(":")[0])
    if names is None:
        return message
    holders = (entry, *(value for value in entry.values() if isinstance(value, dict)))
    values = [_scalar(name, holders) for name in names]
    return message if None in values else f"{bare}; " + ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))


def _scalar(name: str, holders: Iterable[Mapping[str, Any]]) -> str | None:
    """The first value of that name that is a text or a number."""
    found = (holder[name] for holder in holders if isinstance(holder.get(name), str | int))
    return next((str(value) for value in found), None)
