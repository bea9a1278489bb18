"""What generated coordinators log at level INFO, as Kafka 3.9 (Scala) and 4.2 (Java) do: sentences of the table in jobs/sentences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_model import events as e
from coordinator_model.specification.transitions import Trigger
from jobs.generate.logged_group import Said
from jobs.sentences.coordinator import REASONS
from jobs.sentences.language import Template
from jobs.sentences.pages import sentences

_STATIC_MEMBER_ADDED: Final = "STATIC_MEMBER_ADDED"
_OPTIONAL: Final = ("MemberMetadata(", "Adding new member")
"""In sentences about members that may have no instance id. Scala prints an Option there."""


class Words:
    """The words of a release."""

    def __init__(self, release: str) -> None:
        self._is_java = release.startswith("4")
        self._sentences: dict[str, Template] = {}
        for template in (*sentences("classic", "Rebalances", "Members"), *sentences("service", "Ownership")):
            if self._is_written(template):
                self._sentences.setdefault(_key(template.kind, static="instance" in template.groups), template)
        if not self._is_java:
            del self._sentences[e.MEMBER_ADDED]  # of members that bring their ids it tells at DEBUG
        given = (one for one in reversed(REASONS) if one.kind in Trigger.__members__ and (not one.versions or self._is_written(one)))
        self.reasons = {Trigger[one.kind]: one for one in given}

    def _is_written(self, template: Template) -> bool:
        """Whether the release logs a sentence, and at INFO: a DEBUG would stand behind its name."""
        names = template.versions.split(", ")
        return "Java" in names if self._is_java else any(name.endswith("-3.9") for name in names)

    def line(self, broker: int, sentence: str, partition: int | None = None) -> str:
        """The line of a broker's log with a sentence about a group of a partition, or about none. It begins behind the time."""
        if not self._is_java:
            return f" INFO [GroupCoordinator {broker + 1}]: {sentence} (kafka.coordinator.group.GroupCoordinator)\n"
        if partition is None:
            logger = "org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime"
            return f" INFO [GroupCoordinator id={broker + 1}] {sentence} ({logger})\n"
        about = f"topic=__consumer_offsets partition={partition}"
        return f" INFO [GroupCoordinator id={broker + 1} {about}] {sentence} (org.apache.kafka.coordinator.group.GroupMetadataManager)\n"

    def moved(self, kind: str, partition: int, epoch: int) -> str:
        """What a coordinator says that takes over a partition or gives it up."""
        return self._sentences[kind].written({"partition": partition, "generation": epoch, "text": f"OptionalInt[{epoch}]"})

    def sentence(self, said: Said, group: str, about: Mapping[str, object]) -> str | None:
        """What a coordinator says of a group; None if it says nothing at INFO. `about`: what else is known of the member."""
        template = self._sentences.get(_key(said.kind, static=bool(said.instance_id)))
        if template is None:
            return None
        values = {**self._values(template, said, group), **about}
        if said.kind == e.PREPARING_REBALANCE:
            values |= {"state": "PreparingRebalance", "reason": self.reason(said, group)}
        return template.written(values)

    def reason(self, said: Said, group: str) -> str:
        """Why a rebalance begins."""
        assert said.trigger is not None
        template = self.reasons[said.trigger]
        return template.written(self._values(template, said, group))

    def _values(self, template: Template, said: Said, group: str) -> dict[str, object]:
        reason, instance = said.reason or "not provided", said.instance_id
        if self._is_java:
            instance = instance or "null"
        elif any(words in template.text for words in _OPTIONAL):
            instance = f"Some({instance})" if instance else "None"
        listed = ", ".join(said.member_ids)
        return {
            "group": group,
            "generation": said.generation,
            "member": said.member_id,
            "leader": said.member_id,
            "members": said.member_id if not listed else f"[{listed}]" if self._is_java else f"Set({listed})",
            "instance": instance,
            "reason": reason,
            "why": f"; client reason: {reason}",
            "state": said.state.value,
            "count": said.member_count,
            "number": said.static_count,
            "period": "." if self._is_java else "",
            "word": "UNKNOWN_SERVER_ERROR",
            "text": "" if self._is_java else " ",
        }


def _key(kind: str, *, static: bool) -> str:
    return _STATIC_MEMBER_ADDED if kind == e.MEMBER_ADDED and static else kind
