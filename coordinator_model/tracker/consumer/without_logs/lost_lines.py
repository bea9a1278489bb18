"""Epochs of which the coordinator logged no reason, though it always does: the line about a member that came or went is missing.

Each join and each departure has a line just before that about the epoch. An epoch without one was raised for topics or for a subscription,
or the line is lost. So until something tells which, not all members are known, and no cause follows from what is absent.

* The heartbeat that changes topics, or a subscription, computes the target in the same operation, and so does a join: other topics than
  before are due to one of the first two. A departure waits for the heartbeat of another member (up to 4.2, which has no interval).
* Requests show who joined, who left, and who was heard since: the one that was not is gone.
* A group of one member whose subscribed topics are gone all at once, without a heartbeat that says so, has no member left.

Source: org.apache.kafka.coordinator.group.GroupMetadataManager.consumerGroupHeartbeat, consumerGroupFenceMember (4.x); ModernGroup.
computeMetadataHash (4.1): 0 without topics.
"""

from __future__ import annotations

import re
from typing import Final

from coordinator_model.events import Event
from coordinator_model.tracker.consumer import causes
from coordinator_model.tracker.consumer.without_logs import silence
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView, Round
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref, ref

_TOOK: Final = re.compile(r"assignor in (\d+)ms")
_ROUNDING_MS: Final = 1


def note(view: ConsumerView, one: Round) -> None:
    """An epoch has no reason: somebody may have come or gone."""
    if not view.group_type:
        one.lost, one.members_known = True, view.complete
        view.know_all(is_all=False)


def note_computed(view: ConsumerView, one: Round, event: Event) -> None:
    """The target of an epoch was computed. Where that began with the epoch, and topics are others than before, nobody came or went."""
    took = _TOOK.search(event.reason)
    one.at_once = took is not None and event.at_ms - int(took[1]) <= one.at_ms + _ROUNDING_MS
    if one.at_once and one.other_metadata and view.members:
        causes.found(view, one)


def seems_empty(view: ConsumerView) -> bool:
    """Whether nobody computed a target for the last epoch, which has no topics: the one member is gone, unless its heartbeat yet comes."""
    last = view.episode.rounds[-1] if view.episode is not None else None
    is_lost = last is not None and last.lost and last.members_known and last.without_topics and last.computed_ms < 0
    return is_lost and len(view.members) == 1


def note_emptied(g: Emitter, view: ConsumerView, last: Round) -> None:
    """The one member is gone, as the last epoch shows."""
    causes.tell(g, view, last, _departure(last, *view.members.values()))


def note_reconciled(view: ConsumerView) -> None:
    """Requests show who joined, and all members that are left have the last epoch: whatever raised an epoch, nobody is missing."""
    for one in view.episode.rounds if view.episode is not None else ():
        causes.found(view, one)


def find_departed(g: Emitter, view: ConsumerView) -> None:
    """Finds the member that departed when an epoch was raised that no heartbeat raised: the only one that was not heard since."""
    rounds = view.episode.rounds if view.episode is not None else []
    lost = [one for one in rounds if one.lost and one.members_known and one.computed_ms >= 0 and not one.at_once]
    if len(lost) != 1 or rules.since_4_3(g, view) is not False or any(member.regex for member in view.members.values()):
        return
    one = lost[0]
    unheard = [member for member in view.members.values() if max(member.heard_ms, member.joined_ms) <= one.at_ms]
    if view.heard and len(unheard) == 1 < len(view.members):
        causes.tell(g, view, one, _departure(one, *unheard))


def note_replaced(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A static member joins as a new one: the last one with its instance id departed before (getOrMaybeSubscribeStaticConsumerMember)."""
    for member in [one for one in view.members.values() if one.instance_id == event.instance_id]:
        silence.depart(g, view, Change(event.at_ms, reasons.UNKNOWN, member.member_id, ref(event), logged=False))


def _departure(one: Round, member: ConsumerMember) -> Change:
    sign: Ref = member.last_sign or one.signs[0]
    return Change(one.at_ms, silence.cause_of(member, one.at_ms), member.member_id, sign, logged=False)
