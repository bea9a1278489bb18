"""The tracker's settings."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator_model.specification.releases import release_numbers


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """How long the tracker waits before it draws conclusions, in milliseconds of event time."""

    lateness_ms: int = 5_000
    """Events wait until their broker's log was read this far past them: files and topics deliver out of order."""

    settle_ms: int = 2_000
    """A rebalance is written this long after its end: the answers with its assignment are logged after it."""

    grace_ms: int = 5_000
    """A session counts as expired this long after its deadline: a heartbeat that arrived in time may be logged late, when its answer
    waited behind an offset commit (9 s at worst in the recordings, on a broker that had lost a replica)."""

    max_silence_ms: int = 15_000
    """A broker whose log is silent for longer may have been down, so no session expires in that time. Brokers of one group wait for each
    other no longer than this, unless they are followed."""

    max_absence_ms: int = 60_000
    """All groups of a cluster wait this long for a broker that is followed: its shipper was stopped or cannot send, and will bring what
    the broker wrote meanwhile."""

    not_read_ms: int = 60_000
    """A partition whose log grows is told of once its committed offset has stood for so long, though its owner is there."""

    kafka_version: str = ""
    """The release of brokers whose own lines do not say it, such as "3.9.1": answers are compared with its rules. Empty: the answers show
    the release, and the choice of a group's leader is not compared, since it differs between releases."""

    def __post_init__(self) -> None:
        for name in ("lateness_ms", "settle_ms", "grace_ms", "max_silence_ms", "max_absence_ms", "not_read_ms"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.kafka_version:
            release_numbers(self.kafka_version)
