"""The texts of findings about offsets: lag that nothing reads off, and places that were lost."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis.catalogue import Text

PARTITION_NOT_READ: Final = Text(
    "PARTITION_NOT_READ",
    "ERROR",
    "Nobody reads {partition}: its committed offset has been {offset} for {silence}, and {came} are waiting. Its owner is alive and "
    "still commits.",
    "Find out what its owner does with this partition: it may keep failing on the record at {offset}, have paused the partition and not "
    "resumed it, or have lost the thread that works on it. A thread dump shows which. Skip or park a record that it fails on. With "
    "isolation.level=read_committed an open transaction blocks it, too (kafka-transactions.sh find-hanging).",
)
OPEN_TRANSACTION: Final = Text(
    "OPEN_TRANSACTION",
    "ERROR",
    "An open transaction blocks {partition}: it began at {stable} and has not ended. The owner reads no further (isolation.level is "
    "read_committed): its committed offset has been {offset} for {silence}, and {came} are waiting.",
    "The owner is fine. Find the producer (kafka-transactions.sh find-hanging, then abort): it hangs, or its transactions last too long. "
    "Keep transaction.timeout.ms low, so that the coordinator aborts the transactions of a dead producer.",
)
COMMITS_STOPPED: Final = Text(
    "COMMITS_STOPPED",
    "ERROR",
    "The owner of {partition} has stopped committing: the committed offset has been {offset} for {silence}, and {came} have arrived "
    "since. It is still a member.",
    "Either the owner reads and does not commit (enable.auto.commit=false without commitSync, or a commit that is never reached), and "
    "all of that is read again after the next rebalance; or it does not read. A thread dump shows which.",
)
OFFSETS_EXPIRED: Final = Text(
    "OFFSETS_EXPIRED",
    "ERROR",
    "The committed offset of {partition} is gone: it was {offset} {silence} before, and has since expired or been deleted.",
    "Offsets of a group without members expire after offsets.retention.minutes; an administrator may have deleted them, or the group. "
    "Set them before the group restarts (kafka-consumer-groups --reset-offsets --to-offset {offset}), and raise the retention above the "
    "group's longest pause.",
)
OFFSET_RESET: Final = Text(
    "OFFSET_RESET",
    "ERROR",
    "{why}, so it began where auto.offset.reset says. Its first commit is {to_offset}: {what}.",
    "{advice}. With auto.offset.reset=none the client stops instead, and you can set the offset (kafka-consumer-groups --reset-offsets "
    "--to-offset).",
)
NONE_COMMITTED: Final = "The client had no committed offset of {partition} to start from (the lost one was {from_offset})"
NOT_IN_LOG: Final = "The client asked for offset {from_offset} of {partition}, which its log does not have (OFFSET_OUT_OF_RANGE)"
_ONCE: Final = "Make the processing idempotent, since earliest reads a topic from its beginning"
_ALL: Final = "Use earliest where no record may be lost"
BEGAN: Final = {
    (True, True): ("it began at {begun_offset}, so {again} were read again", _ONCE),
    (True, False): ("it began at {begun_offset}, so {skipped} were skipped", _ALL),
    (False, True): ("{least} were read again", _ONCE),
    (False, False): ("with latest up to {skipped_max} records were skipped, with earliest all were read again", _ALL),
}
"""What it means, and what to change: by whether its beginning is known, and whether that, else the first commit, is before the lost one."""
OUT_OF_RANGE: Final = {
    False: "Retention deleted records before they were read: keep them longer than the group may pause (retention.ms, retention.bytes)",
    True: "The log ends before the committed offset: it lost records (an unclean leader election), or the topic was recreated",
}
"""What to change where the log does not have the committed offset: by whether the client began before it."""
OFFSET_REWOUND: Final = Text(
    "OFFSET_REWOUND",
    "WARNING",
    "The committed offset of {partition} went back from {last} to {offset}, by {who}: {again} are read again{when}.",
    "If that was intended (kafka-consumer-groups --reset-offsets, or seek()), do nothing. Otherwise find out who did it: the line names "
    "the client.",
)
WHEN: Final = {False: "", True: " if its owner, which is another member, loses it before its next commit"}
"""When records are read again that a commit went back by: by whether another member owns the partition."""
READ_AGAIN: Final = Text(
    "READ_AGAIN",
    "WARNING",
    "The client went back in {partition} without a rebalance: it had read up to {from_offset} and goes on from {to_offset}, so {again} "
    "are read twice.",
    "If that was intended (seek()), do nothing. A client that restarts, as a static member or with assign(), begins at the last committed "
    "offset: commit more often, and call close() on planned stops.",
)
NOTHING_COMMITTED: Final = Text(
    "NOTHING_COMMITTED",
    "ERROR",
    "The group commits no offsets: {partition} has none, and after it had been read up to {from_offset} a client started again at "
    "{to_offset}. So {again} are read twice, and each rebalance will repeat that.",
    "Commit what was processed (enable.auto.commit=true, or commitSync() after each batch). If you keep offsets elsewhere, seek() to them "
    "before the first poll(), or use assign() without a group.",
)
OFFSET_SET_FORWARD: Final = Text(
    "OFFSET_SET_FORWARD",
    "WARNING",
    "The committed offset of {partition} was set forward from {last} to {offset} while the group had no members, by {who}. The group "
    "has gone on from there: {skipped} offsets are skipped, unless that client read them.",
    "If that was intended (kafka-consumer-groups --reset-offsets), do nothing. Otherwise stop the group, set the offset back "
    "(--reset-offsets --to-offset {last}), and find out who did it: the line names the client, if it is a request's.",
)
COMMIT_BEHIND: Final = Text(
    "COMMIT_BEHIND",
    "WARNING",
    "Offsets are committed only every {interval}: after the rebalance up to {most} records of {partition} were read again.",
    "Lower auto.commit.interval.ms (now about {interval}), or commit after each batch and in onPartitionsRevoked. In a transaction use "
    "sendOffsetsToTransaction with groupMetadata(). Static membership and the cooperative assignor hand fewer partitions over.",
)
