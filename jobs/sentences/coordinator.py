"""What group coordinators log: the sentences of classic.md, consumer.md, service.md and reasons.md. The first that fits decides."""

from __future__ import annotations

from typing import Final

from jobs.sentences.pages import sentences

UNPREFIXED: Final = sentences("classic", "Unprefixed")
REASONS: Final = sentences("reasons")
TEMPLATES: Final = (
    *sentences("classic"),
    *sentences("service", "Ownership", "Commits"),
    *sentences("consumer"),
    *sentences("service", "Notes", "Harmless"),
)
"""A general wording comes after the special ones that it includes."""

PREFIXES: Final = ("GroupCoordinator ", "GroupCoordinator id=", "GroupMetadataManager brokerId=", "Group Metadata Manager on Broker ")
"""What stands in a bracket before a sentence that is not UNPREFIXED, up to the number of the broker."""
