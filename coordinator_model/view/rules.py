"""Which rules the coordinator of a consumer group follows: those of its broker's release, else what its first epochs show.

Kafka 4.3 changed what an answer says of the group. A new group begins with epoch 1, so that its first bump gives 2. A target is computed at
most once per assignment interval, so that the epoch of an answer, which is that of the target, may lag behind the group's.
Source: GroupMetadataManager.maybeUpdateTargetAssignment, the constructor of ModernGroup (4.3; KIP-1263).
"""

from __future__ import annotations

from typing import Final

from coordinator_model.errors import Error
from coordinator_model.events import CONSUMER_GROUP_HEARTBEAT, Event
from coordinator_model.specification.config import KafkaVersion
from coordinator_model.specification.releases import is_known, release_numbers
from coordinator_model.view.consumer_view import ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.reasons import MEMBER_JOINED

OLDEST: Final = "4.2.0"
"""The first release whose consumer groups the specification follows."""
_CANDIDATES: Final = {0: (OLDEST,), 1: ("4.4.0", "4.3.1"), -1: (OLDEST, "4.4.0", "4.3.1")}
"""By `ConsumerView.since_4_3`: the releases whose rules differ."""


def since_4_3(g: Emitter, view: ConsumerView) -> bool | None:
    """Whether the coordinator follows the rules of 4.3 and later; None: not known."""
    if g.view.release:
        return KafkaVersion.of(g.view.release).assignment_interval
    return None if view.since_4_3 < 0 else bool(view.since_4_3)


def epoch_before_first(g: Emitter, view: ConsumerView) -> int:
    """The epoch of a new group, before its first bump: that of 4.2 where the release is not known."""
    return 1 if since_4_3(g, view) else 0


def is_first_epoch(g: Emitter, view: ConsumerView, epoch: int) -> bool:
    """Whether an epoch is the first that a group is moved to."""
    return epoch == epoch_before_first(g, view) + 1


def founds(g: Emitter, view: ConsumerView, event: Event) -> bool:
    """Whether an answer is that to the first member of a new group.

    Since 4.3 the target may be older than the join. A member that has to wait for the next one gets no partitions.
    """
    if event.generation != 0 or event.error_code != Error.NONE or not is_first_epoch(g, view, event.answer_generation):
        return False
    return not since_4_3(g, view) or any(one.partitions for one in event.assignments)


def learn(view: ConsumerView, event: Event) -> bool:
    """Takes what the answer to a join shows, where no line names the release. True: it shows a new group of Kafka 4.3 or later.

    The first member of a group that names topics moves it to epoch 1, since 4.3 to 2, and gets partitions at once. Up to 4.2 epoch 2 is
    that of a second member, which gets none at once: the first one still has them. That it joined, and did not only join again, shows
    in the coordinator's log.
    """
    joins = event.kind == CONSUMER_GROUP_HEARTBEAT and event.error_code == Error.NONE and event.generation == 0
    if view.since_4_3 >= 0 or not joins or not any(protocol.topics for protocol in event.protocols):
        return False
    if event.answer_generation == 1:
        view.since_4_3 = 0
    elif event.answer_generation == 2 and any(one.partitions for one in event.assignments):
        first = view.episode.rounds[0] if view.episode is not None else None
        is_new = first is not None and (first.epoch, first.cause, first.member_id) == (2, MEMBER_JOINED, event.answer_member_id)
        view.since_4_3 = 1 if is_new and view.members.keys() == {event.answer_member_id} else -1
    return view.since_4_3 > 0


def votes_may_raise(g: Emitter, view: ConsumerView) -> bool:
    """Whether a member that prefers another assignor may raise the epoch (4.4, `hasPreferredServerAssignorChanged`)."""
    return KafkaVersion.of(g.view.release).preferred_assignor_bumps if g.view.release else view.since_4_3 > 0


def candidates(g: Emitter, view: ConsumerView) -> tuple[str, ...]:
    """The releases whose rules the coordinator may follow. One that is newer than all known ones is taken for the newest."""
    if g.view.release:
        return (g.view.release if release_numbers(g.view.release) >= release_numbers(OLDEST) else OLDEST,)
    return _CANDIDATES[view.since_4_3]


def has_known_assignors(release: str) -> bool:
    """Whether a release is named, and one whose rules of consumer groups are known."""
    return is_known(release) and release_numbers(release)[:2] >= release_numbers(OLDEST)[:2]
