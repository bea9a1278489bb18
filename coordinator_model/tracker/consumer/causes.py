"""What raised each epoch of a group of the consumer protocol: a line that says so, or what is left when all else is ruled out."""

from __future__ import annotations

from coordinator_model.events import Event
from coordinator_model.tracker.consumer import members, ownership
from coordinator_model.tracker.consumer.episode_rows import DEAD, EMPTY
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView, Episode, Round
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref


def explain(g: Emitter, view: ConsumerView, change: Change, since_ms: int = -1, epoch: int = -1) -> bool:
    """A line shows what raised an epoch, after `since_ms`, for which no cause is known; False if there is none. `epoch`: this one.

    What is doubtful explains only an epoch with the topics and partitions of the one before.
    """
    rounds = [one for one in (view.episode.rounds if view.episode is not None else ()) if epoch in (-1, one.epoch)]
    rounds = [one for one in rounds if one.same_metadata or not change.doubtful]
    one = next((one for one in reversed(rounds) if not one.cause and since_ms <= one.at_ms <= change.at_ms), None)
    if one is None:
        return False
    tell(g, view, one, change)
    return True


def tell(g: Emitter, view: ConsumerView, one: Round, *changes: Change, named: bool = True) -> None:
    """A round has a cause, the first of these: who comes, comes with it, and who goes, goes.

    `named`: whether it is known that these raised this epoch, and not one beside it.
    """
    if one.cause:
        return
    episode = view.episode
    assert episode is not None
    if named:
        one.cause, one.member_id = changes[0].cause, changes[0].member_id
    note_first(view, episode, one)
    found(view, one)
    for change in changes:
        one.note(change.sign)
        _take_part(g, view, episode, one, change)


def found(view: ConsumerView, one: Round) -> None:
    """It is known who came or went in a round, or that nobody did."""
    if not one.lost:
        return
    one.lost = False
    others = [other for other in (view.episode.rounds if view.episode is not None else ()) if other.lost]
    view.know_all(is_all=view.complete or (one.members_known and not others))
    for other in others:
        other.members_known |= one.members_known


def explain_join(g: Emitter, view: ConsumerView, event: Event, member: ConsumerMember) -> bool:
    """The answer to a join whose epoch is known: an answer of the same instant has shown it, or a line without the one that names it.

    Since 4.3 the answer may have an older epoch.
    """

    def is_of(one: Round) -> bool:
        return one.epoch == event.answer_generation or (one.lost and one.at_ms <= event.at_ms and bool(rules.since_4_3(g, view)))

    rounds = view.episode.rounds if view.episode is not None else []
    one = next((one for one in reversed(rounds) if is_of(one)), None)
    if one is None or one.cause or event.received_ms - one.lost > one.at_ms or (one.logged and not one.members_known):
        return False  # it was raised before, or the member may only join again
    change = Change(event.at_ms, reasons.MEMBER_JOINED, member.member_id, ref(event), logged=False, comer=member)
    return explain(g, view, change, since_ms=one.at_ms, epoch=one.epoch)


def _take_part(g: Emitter, view: ConsumerView, episode: Episode, one: Round, change: Change) -> None:
    present = view.members.get(change.member_id)
    if present is not None and change.cause in members.DEPARTURES:
        _note_wait(episode, one, present, change.cause)
        ownership.free(view, episode, present, present.partitions or (), one.at_ms)
        ownership.revoked(view, present, one.at_ms, reasons.end_of(change.cause))
        episode.depart(change.member_id)
    members.take_effect(g, view, change)


def _note_wait(episode: Episode, one: Round, member: ConsumerMember, cause: str) -> None:
    """Notes how long the group waited for a member that departs before it has given up what it was told to."""
    if member.told_ms >= 0:
        ownership.note_share(episode, member, one.at_ms - member.told_ms)
    elif cause == reasons.REBALANCE_TIMEOUT and member.rebalance_timeout_ms >= 0:
        ownership.note_share(episode, member, member.rebalance_timeout_ms)  # the coordinator waited so long


def note_first(view: ConsumerView, episode: Episode, one: Round) -> None:
    """What ended Empty is that somebody joined. That the topics of an expression were found then, only raised the epoch."""
    first = members.known(view, episode.joined[0]) if episode.from_empty and episode.joined and one is episode.rounds[0] else None
    if first is not None and (one.cause == reasons.REGEX_RESOLVED or (not one.cause and first.regex)):
        one.cause, one.member_id = reasons.MEMBER_JOINED, first.member_id


def settle(view: ConsumerView, rounds: list[Round]) -> None:
    """What raised the epoch though no line names a cause: the partitions or the topics are others than before, or a subscription is.

    Which member changed its subscription is not known then. A line about who came or went may be missing (lost_lines.py): requests, or
    the time at which the target was computed, show that nobody went.
    Source: org.apache.kafka.coordinator.group.GroupMetadataManager.consumerGroupHeartbeat (4.1, KIP-1101): nothing else raises it.
    """
    is_known = view.heard and not view.group_type and all(member.topics is not None for member in view.members.values())
    for one in rounds:
        if one.cause or one.member_id or not one.logged or (one.lost and (view.heard or not one.at_once)):
            continue
        if one.same_metadata:
            one.cause = reasons.SUBSCRIPTION_CHANGED
        elif one.lost:
            continue
        elif is_known:
            one.cause = reasons.METADATA_CHANGED
        elif one.returned and not view.heard:  # a restart with another subscription, most likely
            one.cause, one.member_id = reasons.SUBSCRIPTION_CHANGED, one.returned


def founded(view: ConsumerView) -> None:
    """The epoch that was raised last is the first of a new group: its members so far came with it."""
    episode = view.episode
    assert episode is not None
    if not view.members:
        return  # what shows that one came is missing
    view.found_group(episode)
    for one in episode.rounds:
        one.cause, one.member_id = one.cause or reasons.MEMBER_JOINED, one.member_id or episode.joined[0]
        note_first(view, episode, one)


def came_to_an_empty_group(g: Emitter, view: ConsumerView, epoch: int) -> list[str]:
    """Members that joined while the group had no others, and raised no epoch: they have an expression, which is resolved first."""
    last = view.ended[-1] if view.ended else None
    was_empty = last.is_empty if last is not None else view.state in (EMPTY, DEAD)
    is_new = not view.state and bool(rules.since_4_3(g, view)) and rules.is_first_epoch(g, view, epoch)
    if not view.complete or not (was_empty or is_new):
        return []
    return view.by_join()
