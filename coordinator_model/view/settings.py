"""Settings of the tracker: parsed once at the edge, passed down."""

from __future__ import annotations

from dataclasses import dataclass

from coordinator_model.specification.releases import release_numbers


@dataclass(frozen=True, slots=True)
class TrackerSettings:
    """How long the tracker waits before it believes what it has not seen. All in milliseconds of event time."""

    lateness_ms: int = 5_000
    """Events are held until their broker's log was read this far past them: files and topics deliver out of order."""

    settle_ms: int = 2_000
    """A rebalance that ended is written this much later: the answers that carry its assignment are logged after it."""

    grace_ms: int = 5_000
    """A session that ran out is claimed this much after its deadline: a heartbeat that arrived in time may be logged
    late, when its answer waited behind an offset commit (9 s at worst in the recordings, on a broker that had lost a replica)."""

    max_silence_ms: int = 15_000
    """A broker whose log is silent for longer may have been down, so nothing is claimed of that time; brokers of one
    group wait for each other no longer than this, unless they are followed."""

    max_absence_ms: int = 60_000
    """A broker that is followed is waited for as long as this, by all groups of its cluster: its shipper was stopped or cannot send, and
    will bring what the broker wrote meanwhile."""

    kafka_version: str = ""
    """Release of the brokers, such as "3.9.1": which rules their answers are compared with. Empty: as their answers tell, and
    which member a group elects as its leader is not judged, since it differs between releases."""

    def __post_init__(self) -> None:
        for name in ("lateness_ms", "settle_ms", "grace_ms", "max_silence_ms", "max_absence_ms"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        if self.kafka_version:
            release_numbers(self.kafka_version)
