"""The texts of findings about offsets: lag that nothing reads off, and places that were lost."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis.catalogue import Text

PARTITION_NOT_READ: Final = Text(
    "PARTITION_NOT_READ",
    "ERROR",
    "Nobody reads {partition}: its committed offset has been {offset} for {silence}, and {came} wait. Its owner is there, and "
    "still commits.",
    "Find out what its owner does with this partition: it may fail on the record at {offset} again and again, have paused the partition "
    "and not resumed it, or have lost the thread that works on it. A dump of its threads tells. Skip or park a record that it fails on. "
    "With isolation.level=read_committed a transaction that never ends holds it up, too (kafka-transactions.sh find-hanging).",
)
OPEN_TRANSACTION: Final = Text(
    "OPEN_TRANSACTION",
    "ERROR",
    "A transaction holds {partition} up: it began at {stable} and has not ended. The owner reads no further (isolation.level is "
    "read_committed): its committed offset has been {offset} for {silence}, and {came} wait.",
    "The owner is well. Find the producer (kafka-transactions.sh find-hanging, then abort): it hangs, or its transactions last too long. "
    "Keep transaction.timeout.ms low, so that the coordinator aborts those of a producer that died.",
)
COMMITS_STOPPED: Final = Text(
    "COMMITS_STOPPED",
    "ERROR",
    "The owner of {partition} has stopped to commit: the committed offset has been {offset} for {silence}, and {came} have come "
    "since. It is still a member.",
    "Either its owner reads and does not commit (enable.auto.commit=false without commitSync, or a commit that is never reached), and "
    "all of that is read again after the next rebalance; or it does not read: a dump of its threads tells.",
)
OFFSETS_EXPIRED: Final = Text(
    "OFFSETS_EXPIRED",
    "ERROR",
    "The committed offset of {partition} is gone: {silence} before it was {offset}, and it has expired since, or was deleted.",
    "Offsets of a group without members expire after offsets.retention.minutes; an administrator may have deleted them, or the group. "
    "Set them before the group starts again (kafka-consumer-groups --reset-offsets --to-offset {offset}), and raise the retention above "
    "the longest pause of the group.",
)
OFFSET_RESET: Final = Text(
    "OFFSET_RESET",
    "ERROR",
    "{why}, so it began where auto.offset.reset says. Its first commit is {to_offset}: {what}.",
    "{advice}. With auto.offset.reset=none the client stops instead, and the place can be set (kafka-consumer-groups --reset-offsets "
    "--to-offset).",
)
NONE_COMMITTED: Final = "The client had no committed offset of {partition} to begin at (the lost one was {from_offset})"
NOT_IN_LOG: Final = "The client was to begin at {from_offset} of {partition}, which its log does not have (OFFSET_OUT_OF_RANGE)"
_ONCE: Final = "Make the work idempotent, since earliest reads a topic from its beginning"
_ALL: Final = "Use earliest where no record may be lost"
BEGAN: Final = {
    (True, True): ("it began at {begun_offset}, so {again} were read again", _ONCE),
    (True, False): ("it began at {begun_offset}, so {skipped} were skipped", _ALL),
    (False, True): ("{least} were read again", _ONCE),
    (False, False): ("with latest up to {skipped_max} records were skipped, with earliest all were read again", _ALL),
}
"""What it means, and what to change: by whether its beginning is known, and whether that, else the first commit, is before the lost one."""
OUT_OF_RANGE: Final = {
    False: "Retention deleted records before they were read: keep them for longer than the group pauses (retention.ms, retention.bytes)",
    True: "The log is shorter than what was read of it: it lost records (an unclean election of its leader), or was made anew",
}
"""What to change where the log does not have the committed offset: by whether the client began before it."""
OFFSET_REWOUND: Final = Text(
    "OFFSET_REWOUND",
    "WARNING",
    "The committed offset of {partition} went back from {last} to {offset}, by {who}: {again} are read again{when}.",
    "If that was intended (kafka-consumer-groups --reset-offsets, or seek()), nothing is to be done. Else find out who did it: the line "
    "has the client.",
)
WHEN: Final = {False: "", True: " if its owner, which is another member, loses it before its next commit"}
"""When records are read again that a commit went back by: by whether another member owns the partition."""
READ_AGAIN: Final = Text(
    "READ_AGAIN",
    "WARNING",
    "The client went back in {partition} without a rebalance: it had read up to {from_offset} and goes on from {to_offset}, so {again} "
    "are read twice.",
    "If that was intended (seek()), nothing is to be done. A client that is started again, as a static member or with assign(), begins at "
    "the last committed offset: commit more often, and let a planned stop call close().",
)
NOTHING_COMMITTED: Final = Text(
    "NOTHING_COMMITTED",
    "ERROR",
    "The group commits no offsets: none is committed of {partition}, and after it had been read up to {from_offset} a client began at "
    "{to_offset} again. So {again} are read twice, and all will be with each rebalance.",
    "Commit what was processed (enable.auto.commit=true, or commitSync() after each batch). If offsets are kept elsewhere, seek() to them "
    "before the first poll(), or use assign() without a group.",
)
OFFSET_SET_FORWARD: Final = Text(
    "OFFSET_SET_FORWARD",
    "WARNING",
    "The committed offset of {partition} was set forward from {last} to {offset} while the group had no members, by {who}. The group "
    "has gone on from there: {skipped} offsets are skipped, unless that client read them.",
    "If that was intended (kafka-consumer-groups --reset-offsets), nothing is to be done. Else stop the group, set the offset back "
    "(--reset-offsets --to-offset {last}), and find out who did it: the line has the client, if it is that of a request.",
)
COMMIT_BEHIND: Final = Text(
    "COMMIT_BEHIND",
    "WARNING",
    "Offsets are committed every {interval} only: after the rebalance up to {most} records of {partition} were read again.",
    "Lower auto.commit.interval.ms (now about {interval}), or commit after each batch and in onPartitionsRevoked. In a transaction use "
    "sendOffsetsToTransaction with groupMetadata(). Static membership and the cooperative assignor hand fewer partitions over.",
)
