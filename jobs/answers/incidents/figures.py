"""The figure of each kind of finding that says which of several is the gravest."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, offset_catalogue

FIGURES: Final = {
    catalogue.SESSION_TIMEOUT.code: "silent_ms",
    client_catalogue.NO_HEARTBEAT_RESPONSE.code: "silent_ms",
    catalogue.POLL_TIMEOUT.code: "poll_gap_ms",
    catalogue.SLOW_JOINER.code: "join_ms",
    consumer_catalogue.STUCK_RECONCILING.code: "waited_ms",
    catalogue.GROUP_TOO_LARGE.code: "wanted",
    catalogue.HEARTBEAT_NEAR_MISS.code: "silent_ms",
    catalogue.UNKNOWN_MEMBER.code: "silent_ms",
    catalogue.ZOMBIE_COMMIT.code: "silent_ms",
    catalogue.IDLE_MEMBERS.code: "members",
    catalogue.REBALANCE_STORM.code: "total_ms",
    catalogue.ASSIGNMENT_NOT_STORED.code: "total_ms",
    catalogue.ROLLING_RESTART.code: "total_ms",
    offset_catalogue.PARTITION_NOT_READ.code: "came",
    offset_catalogue.COMMITS_STOPPED.code: "came",
    offset_catalogue.OPEN_TRANSACTION.code: "came",
    offset_catalogue.OFFSET_RESET.code: "skipped_max",
    offset_catalogue.OFFSET_REWOUND.code: "reread",
    offset_catalogue.OFFSET_SET_FORWARD.code: "skipped",
    offset_catalogue.READ_AGAIN.code: "reread_max",
    offset_catalogue.NOTHING_COMMITTED.code: "reread_max",
    offset_catalogue.COMMIT_BEHIND.code: "reread_max",
}
"""The figure in the details that says which of several findings is the gravest: its advice holds for all."""
