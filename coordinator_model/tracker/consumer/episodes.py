"""Rebalances of groups of the consumer protocol: episodes of rounds, from the first raised epoch until the group is Stable again.

The coordinator logs each epoch that it begins, not what members acknowledge; answers to ConsumerGroupHeartbeat show that. So

* with a request log an episode ends with the answer that reconciled its last member;
* without one its end is known only where it follows at once: the last member is gone, or there is one member alone, which is reconciled by
  the heartbeat that computes the assignment. Otherwise the episode is taken for ended when nothing has followed for a heartbeat interval.

Source: org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup.maybeUpdateGroupState, CurrentAssignmentBuilder (4.x).
"""

from __future__ import annotations

import re
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.events import COORDINATOR_SOURCE, OFFSETS_SOURCE, Event
from coordinator_model.tracker.consumer import causes, doubtful_epochs, members, ownership
from coordinator_model.tracker.consumer.without_logs import client_words, lost_lines, silence
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView, Episode, Revocation, Round
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref, ref

SAME_OPERATION_MS: Final = 1_000
"""The line with the cause and the line with the epoch are written by one operation of the coordinator."""
_REJOIN_MS: Final = 100
"""A member that joins again seldom raises the epoch, so its line counts for a shorter time."""
_METADATA_HASH: Final = re.compile(r"with metadata hash (-?\d+)")
_NO_TOPICS: Final = "0"
_OWN_WORDS: Final = frozenset({COORDINATOR_SOURCE, OFFSETS_SOURCE})
"""Sources of what the coordinator itself writes."""
_LONGEST_INTERVAL_MS: Final = 15_000
"""`group.consumer.max.assignment.interval.ms`: the first heartbeat of anyone after it computes the target."""


def note(
    g: Emitter, view: ConsumerView, event: Event, cause: str, member_id: str, comer: ConsumerMember | None = None, *, doubtful: bool = False
) -> None:
    """Notes what raises the epoch. A line of the coordinator counts for the next line about an epoch only.

    So do records. One operation writes all of them at one time, and may remove several members. Another thread looks for the topics of
    an expression, so its line may come between those of an operation.
    """
    if event.source == COORDINATOR_SOURCE and cause != reasons.REGEX_RESOLVED:
        forget_logged(g, view, at_ms=event.at_ms)
    view.changes.append(Change(event.at_ms, cause, member_id, ref(event), event.source in _OWN_WORDS, comer, doubtful))


def member_of(view: ConsumerView, member_id: str) -> ConsumerMember | None:
    """A member, also one whose join was answered before its epoch was."""
    coming = next((one for one in reversed(view.changes) if one.comer is not None and one.member_id == member_id), None)
    if coming is None or (coming.logged and member_id in view.members):
        return view.members.get(member_id)
    return coming.comer


def note_leave(g: Emitter, view: ConsumerView, event: Event, member_id: str) -> None:
    """Takes the answer to a member that leaves. Begins the rounds of departures once the last one has left: no answer will show them.

    An answer that crossed this one may have shown its epoch before. That is sure only if it assigned partitions of this member.
    """
    if any(one.member_id == member_id for one in departures(view)):
        return  # a line has said so, and that about the epoch is missing
    cause = client_words.cause_of_leave(member_of(view, member_id), event.at_ms)
    change = Change(event.at_ms, cause, member_id, ref(event), logged=False)
    episode, since_ms = view.episode, event.received_ms
    if episode is not None and any(one.logged and not one.cause and since_ms - 1 <= one.at_ms <= event.at_ms for one in episode.rounds):
        causes.explain(g, view, change, since_ms=since_ms - 1)  # the line that says so is missing
        end_if_reconciled(g, view, event.at_ms)
        return
    if episode is not None and any(not one.cause and not one.logged and one.at_ms >= since_ms for one in episode.rounds):
        left = member_of(view, member_id)
        partitions = (left.partitions if left is not None else None) or ()
        if any(episode.owners.get(partition, member_id) != member_id for partition in partitions):
            causes.explain(g, view, change, since_ms=since_ms)
        else:
            silence.take_out(g, view, episode, change)
        end_if_reconciled(g, view, event.at_ms)
        return
    view.changes.append(change)
    leaving = [one for one in view.changes if not one.logged and one.cause in members.DEPARTURES]
    present = {*view.members, *(one.member_id for one in view.changes if one.comer is not None)}
    if view.complete and view.epoch >= 0 and present == {one.member_id for one in leaving}:
        seen(g, view, event, view.epoch + len([one for one in view.changes if not one.logged]))


def forget_logged(g: Emitter, view: ConsumerView, member_id: str = "", *, searches: bool = True, at_ms: int = -1) -> None:
    """No epoch followed what the coordinator logged (of a member): it needed none, or the line is lost.

    `searches`: also searches for the topics of an expression, each of which ends with an operation of its own. `at_ms`: of a line of
    another operation. A departure raises the epoch in any case, so before that the line about the epoch is lost.
    """
    raise_departures(g, view, at_ms)
    logged = [one for one in view.changes if one.logged and member_id in ("", one.member_id)]
    forget(g, view, [one for one in logged if searches or one.cause != reasons.REGEX_RESOLVED])


def raise_departures(g: Emitter, view: ConsumerView, at_ms: int, *, patience_ms: int = _REJOIN_MS) -> None:
    """Begins the rounds of departures that the coordinator logged so long before, where the lines about their epochs are missing."""
    for change in departures(view):
        if change.at_ms < at_ms - patience_ms:
            _raise(g, view, change)


def _raise(g: Emitter, view: ConsumerView, change: Change) -> None:
    """Begins the round of a change of which no line shows the epoch."""
    view.settle(change)
    causes.tell(g, view, _begin_round(g, view, change.at_ms, view.epoch + 1, logged=True), change)
    end_if_reconciled(g, view, change.at_ms)


def departures(view: ConsumerView) -> list[Change]:
    """Departures that the coordinator logged, and no epoch after them."""
    if view.epoch < 0 or view.group_type:
        return []
    return [one for one in view.changes if one.sign.source == COORDINATOR_SOURCE and one.cause in members.DEPARTURES]


def forget(g: Emitter, view: ConsumerView, changes: list[Change]) -> None:
    """These raised no epoch. Who came or went has done so all the same."""
    for change in changes:
        view.settle(change)
        members.take_effect(g, view, change)


def raised(g: Emitter, view: ConsumerView, event: Event) -> None:
    """The coordinator logged or stored that it raised the epoch of the group."""
    changes = [one for one in view.changes if one.logged and _may_raise(one, event.at_ms)]
    searches = [one for one in changes if one.cause == reasons.REGEX_RESOLVED]
    others = [one for one in changes if one not in searches]
    # A departure raises the epoch in any case, and so does a first member up to 4.2: what was found raises the next one.
    is_apart = any(one.cause in members.DEPARTURES or event.generation == 1 for one in others)
    changes = others if is_apart else searches or others
    one = round_of(view, event.generation)
    view.settle(*changes)
    forget_logged(g, view, searches=not is_apart)
    if one is None and event.generation <= view.epoch:
        if not doubtful_epochs.take_back(view, event):
            return  # a copy of a line
        one = round_of(view, event.generation)
    is_logged = event.state != kinds.TARGET_COMPUTED or not all(change.doubtful for change in changes)
    if one is None:
        departed = len([change for change in changes if change.cause in members.DEPARTURES])
        is_line = event.source == COORDINATOR_SOURCE
        missing = doubtful_epochs.skips_in_lines(g, view, event.generation, departed) if is_line else -1
        known = _skip(g, view, event.at_ms, changes) if missing >= 0 else None
        one = _begin_round(g, view, event.at_ms, event.generation, logged=is_logged)
        one.missing, one.known = missing, known
    if event.source == COORDINATOR_SOURCE:
        g.view.note_line(event.at_ms, ref(event))
    one.at_ms, one.logged = min(one.at_ms, event.at_ms), is_logged  # a request may have shown it before
    if not is_logged and view.episode is not None and one is view.episode.rounds[0]:
        view.episode.doubt_count()
    one.note(ref(event))
    _note_metadata(view, one, event)
    one.stored = one.stored or event.source == OFFSETS_SOURCE
    if not changes and not one.cause and is_logged and event.source == COORDINATOR_SOURCE:
        lost_lines.note(view, one)
    for change in [change for change in changes if change.doubtful and not one.same_metadata]:
        one.note(change.sign)  # the member joined again: it may have another subscription, or topics are others than before
        changes.remove(change)
        member = view.members.get(change.member_id)
        one.returned = change.member_id if member is not None and member.instance_id else ""
    if changes:
        causes.tell(g, view, one, *changes)
    end_if_reconciled(g, view, event.at_ms)


def _note_metadata(view: ConsumerView, one: Round, event: Event) -> None:
    """Takes the hash of the subscribed topics and their partitions, which a line and a record of one epoch both have."""
    found = _METADATA_HASH.search(event.reason)
    if found is None:
        view.metadata_hash = view.metadata_hash if event.source == OFFSETS_SOURCE else ""
    elif one.epoch > view.hash_epoch:
        one.same_metadata = found[1] == view.metadata_hash and not view.group_type
        one.other_metadata = view.metadata_hash not in ("", found[1])
        one.without_topics = one.other_metadata and found[1] == _NO_TOPICS
        view.metadata_hash, view.hash_epoch = found[1], one.epoch


def raised_silently(g: Emitter, view: ConsumerView) -> None:
    """A departure from a share or streams group raises the epoch too, but the coordinator does not log that epoch."""
    change = next((one for one in view.changes if one.logged), None)
    if view.epoch >= 0 and change is not None:
        _raise(g, view, change)


def seen(g: Emitter, view: ConsumerView, event: Event, epoch: int) -> None:
    """An answer shows an epoch of the group, which the coordinator's log may have shown before.

    Each departure, each arrival and each change of a subscription raises the epoch by one, in the order of the answers to them. What the
    answer itself shows comes last.
    """
    if view.epoch < 0:
        before_first = rules.epoch_before_first(g, view)
        view.epoch = max(epoch - 1, before_first) if event.generation == 0 else epoch
        view.know_all(is_all=rules.founds(g, view, event) or (event.generation == 0 and epoch == before_first))
    if view.epoch >= epoch:
        _forget_unraised(g, view, event)
        return
    waiting = [one for one in view.changes if not one.logged and one.sign != ref(event)]
    own = next((one for one in view.changes if one.sign == ref(event)), None)
    silent = [one for one in silence.removed(g, view, event) if not silence.unexplained_since(view, one.member_id)]
    if len(silent) + len(waiting) + (own is not None) == epoch - view.epoch:
        waiting = [*silent, *waiting]
    waiting, is_order_known = silence.in_order(view, waiting)
    lags = rules.since_4_3(g, view)
    if lags:  # its own epoch may be one of those that no answer has yet
        waiting, own = [*waiting, *([own] if own is not None else [])], None
        is_order_known = is_order_known and len(waiting) >= epoch - view.epoch
    missing = doubtful_epochs.skips_in_answers(view, epoch)
    if missing >= 0:
        known = _skip(g, view, event.at_ms, view.changes)
        view.epoch, waiting = epoch - 1, []
    while view.epoch < epoch:
        change = own if own is not None and view.epoch + 1 == epoch else waiting.pop(0) if waiting else None
        if change is not None:
            view.settle(change)
        one = _begin_round(g, view, change.at_ms if change is not None else event.at_ms, view.epoch + 1, logged=False)
        if missing >= 0:
            one.missing, one.known = missing, known
        one.note(ref(event))
        if lags:
            one.target_ms = max(one.at_ms, event.received_ms)  # it computed the target
        if change is not None:
            causes.tell(g, view, one, change, named=is_order_known or change is own)
        if not view.members:
            end_if_reconciled(g, view, one.at_ms)


def _forget_unraised(g: Emitter, view: ConsumerView, event: Event) -> None:
    """What was answered so long ago raised no epoch, or there would be a target for it."""
    if event.answer_generation == view.epoch and rules.since_4_3(g, view):
        since_ms = event.received_ms - _LONGEST_INTERVAL_MS
        forget(g, view, [one for one in view.changes if not one.logged and one.at_ms < since_ms])


def removed_unseen(g: Emitter, view: ConsumerView, event: Event) -> None:
    """An answer assigns partitions of a silent member, so that member was removed: a partition has one owner at a time."""
    episode = view.episode
    if episode is None or all(one.cause or (one.logged and not one.lost) for one in episode.rounds):
        return
    silent = [change for change in silence.removed(g, view, event) if view.members[change.member_id].partitions]
    for change in silent:
        since = silence.unexplained_since(view, change.member_id)
        if len(silent) == len(since) == 1:
            change.at_ms = min(change.at_ms, since[0].at_ms)
            causes.tell(g, view, since[0], change)
        else:
            silence.take_out(g, view, episode, change)


def computed(g: Emitter, view: ConsumerView, event: Event, assignor: str) -> None:
    """The coordinator logged that it computed the target assignment for an epoch, within the heartbeat of a member."""
    causing = [one for one in view.changes if one.logged and (one.cause in members.DEPARTURES or _may_raise(one, event.at_ms))]
    if view.epoch < 0 and not (causing and rules.is_first_epoch(g, view, event.generation)):
        forget_logged(g, view)  # the log begins late: its target is that of an epoch before them
    if event.generation > view.epoch and not view.group_type:
        raised(g, view, event._replace(at_ms=min([event.at_ms, *(one.at_ms for one in causing)])))  # the line about the epoch is missing
    forget_logged(g, view, searches=False)
    episode, one = view.episode, round_of(view, event.generation)
    if episode is None or one is None:
        return
    one.computed_ms = event.at_ms
    g.view.note_line(event.at_ms, ref(event))
    lost_lines.note_computed(view, one, event)
    if rules.since_4_3(g, view):
        one.target_ms = event.at_ms
    one.note(ref(event))
    episode.assignor = assignor or episode.assignor
    episode.touch(event.at_ms)
    if not view.heard and view.stored_epoch < 0 and is_alone(view):
        end(view, event.at_ms, end_seen=True)


def found_at(g: Emitter, view: ConsumerView, event: Event) -> None:
    """A coordinator gives the group up, at this epoch."""
    missing = doubtful_epochs.skips_in_lines(g, view, event.generation + 1, 0)
    if missing >= 0:
        one = Round(event.generation + 1, event.at_ms, logged=True, missing=missing)
        one.known = _skip(g, view, event.at_ms, [])
        doubtful_epochs.report(g, one)
    view.epoch = max(view.epoch, event.generation)


def round_of(view: ConsumerView, epoch: int) -> Round | None:
    """The round of an epoch, if it belongs to the episode that has not ended."""
    rounds = view.episode.rounds if view.episode is not None else []
    return next((one for one in rounds if one.epoch == epoch), None)


def end_if_reconciled(g: Emitter, view: ConsumerView, at_ms: int) -> None:
    """Ends the episode if the group is Empty, or all its members are reconciled to its epoch."""
    episode = view.episode
    if episode is None:
        return
    if not view.members:
        if view.heard and episode.rounds[-1].cause in members.DEPARTURES:
            lost_lines.note_reconciled(view)
        if view.complete:
            end(view, at_ms, end_seen=True)
        return
    if rules.since_4_3(g, view) and any(not one.logged for one in view.changes):
        return  # the epoch is there, the target for it is not
    lost_lines.find_departed(g, view)
    if not is_shown(view) or any(not is_reconciled(member, view.epoch) for member in view.members.values()):
        return
    if any(ownership.may_wait(view, episode, member) for member in view.members.values()):
        return
    end(view, max(episode.changed_ms, episode.rounds[-1].at_ms), end_seen=True)


def end_if_emptied(g: Emitter, view: ConsumerView) -> None:
    """Ends the episode if its last epoch shows that nobody is left, though a line about that is missing."""
    if view.episode is not None and lost_lines.seems_empty(view):
        last = view.episode.rounds[-1]
        lost_lines.note_emptied(g, view, last)
        end_if_reconciled(g, view, last.at_ms)


def _may_raise(change: Change, at_ms: int) -> bool:
    """Whether an epoch that was raised at a time may be due to what the coordinator wrote before."""
    return change.at_ms >= at_ms - (_REJOIN_MS if change.doubtful else SAME_OPERATION_MS)


def is_shown(view: ConsumerView) -> bool:
    """Whether requests or records show what the members acknowledge."""
    return view.heard or (view.complete and view.episode is not None and view.episode.rounds[-1].stored)


def is_alone(view: ConsumerView) -> bool:
    """Whether the last epoch was computed for one member: the heartbeat that computes an assignment reconciles its sender."""
    last = view.episode.rounds[-1] if view.episode is not None else None
    return last is not None and last.computed_ms >= 0 and last.epoch == view.epoch and view.complete and len(view.members) == 1


def is_reconciled(member: ConsumerMember, epoch: int) -> bool:
    """Whether a member is known to have the partitions of an epoch. One that is away holds its group in Reconciling."""
    return member.epoch >= epoch and member.told_ms < 0 and member.away_ms < 0 and member.waits <= 0


def _skip(g: Emitter, view: ConsumerView, at_ms: int, changes: list[Change]) -> tuple[int, Ref] | None:
    """Epochs are missing before this time: an episode that ran has ended unseen. Returns the last line before.

    `changes`: what is known to come after.
    """
    if view.episode is not None:
        end(view, view.episode.last_ms, end_seen=False)
    return doubtful_epochs.lose_sight(g, view, at_ms - SAME_OPERATION_MS, {one.member_id for one in changes})


def _begin_round(g: Emitter, view: ConsumerView, at_ms: int, epoch: int, *, logged: bool) -> Round:
    if view.episode is None:
        owners = {p: member.member_id for member in view.members.values() for p in (*(member.partitions or ()), *member.giving)}
        view.know_all(is_all=view.complete or epoch == 1)  # also since 4.3: a classic group without a generation became one of consumers
        came = causes.came_to_an_empty_group(g, view, epoch)
        from_empty, count = view.complete and len(came) == len(view.members), len(view.members) - len(came) if view.complete else -1
        lost = ownership.lost(view) if from_empty else []  # it pays for the time in which nobody has their partitions, as a classic one
        unheard = [member.member_id for member in (*view.members.values(), *lost[-1:]) if member.partitions is None]
        unowned = {partition: at_ms for member in lost for partition in member.partitions or ()}
        view.episode = Episode(from_empty, count, joined=came, owners_before=owners, unheard=unheard, unowned=unowned)
        told = [member for member in view.members.values() if member.told_ms >= 0]  # before any line showed that epoch
        view.episode.revocations = [Revocation(one.member_id, one.client_id, epoch, one.told_ms, len(one.giving)) for one in told]
    episode = view.episode
    if episode.rounds:
        at_ms = max(at_ms, episode.rounds[-1].at_ms)
    episode.rounds.append(Round(epoch, at_ms, logged))
    episode.changed_ms, episode.last_ms = max(episode.changed_ms, at_ms), max(episode.last_ms, at_ms)
    view.epoch_before, view.epoch = view.epoch, max(view.epoch, epoch)
    return episode.rounds[-1]


def end(view: ConsumerView, at_ms: int, *, end_seen: bool) -> None:
    """Ends the episode. `end_seen`: something shows that it ended then."""
    episode = view.episode
    assert episode is not None
    last, members_now = episode.rounds[-1], view.members.values()
    if end_seen and view.heard and not episode.cut_off:
        lost_lines.note_reconciled(view)
    causes.note_first(view, episode, episode.rounds[0])
    causes.settle(view, episode.rounds)
    episode.ended_ms, episode.end_seen = max(at_ms, last.at_ms), end_seen
    if end_seen:
        last.reached_ms = episode.ended_ms
    if view.complete:
        episode.count(len(members_now))
    if (view.heard or last.stored or episode.polled) and all(member.partitions is not None for member in members_now):
        episode.partitions = sum(len(member.partitions or ()) for member in members_now)
        owned = {partition: member.member_id for member in members_now for partition in member.partitions or ()}
        episode.owners = {partition: owner for partition, owner in episode.owners.items() if owned.get(partition) == owner}
    view.ended, view.episode = [*view.ended, episode], None
