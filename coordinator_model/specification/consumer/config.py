"""The settings of consumer groups, under Kafka's names (`GroupCoordinatorConfig`, `GroupConfig`)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from coordinator_model.specification.config import CoordinatorConfig, KafkaVersion

_MAX_INT = 2**31 - 1


class MigrationPolicy(str, Enum):
    """`group.consumer.migration.policy`: which groups change their protocol while they have members."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        """Whether a consumer may turn a classic group into a consumer group."""
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        """Whether a consumer group turns into a classic one when its last consumer leaves."""
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True)
class ConsumerGroupConfig:
    """The settings of a broker. The defaults are those of 4.2 and later."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = _MAX_INT
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first is the default."""
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_interval_ms: int = 600_000
    assignment_interval_ms: int = 1_000
    """`group.consumer.assignment.interval.ms`, since 4.3."""
    min_assignment_interval_ms: int = 0
    max_assignment_interval_ms: int = 15_000
    classic: CoordinatorConfig = field(default_factory=lambda: CoordinatorConfig.of("4.2.0"))
    """The settings of classic groups and of offsets, and the release."""

    @property
    def version(self) -> KafkaVersion:
        """The behaviour of the broker's release."""
        return self.classic.version

    @classmethod
    def of(cls, name: str) -> ConsumerGroupConfig:
        """The default settings of the release called `name`."""
        return cls(classic=CoordinatorConfig.of(name))


@dataclass(frozen=True)
class GroupOverrides:
    """The settings of one group, which win over those of the broker. None: not set."""

    session_timeout_ms: int | None = None
    heartbeat_interval_ms: int | None = None
    assignment_interval_ms: int | None = None
