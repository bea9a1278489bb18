"""What raised each epoch of a group of the consumer protocol: a line that says so, or what is left when all else is ruled out."""

from __future__ import annotations

from coordinator_model.tracker.consumer import members, ownership
from coordinator_model.tracker.consumer.episode_rows import DEAD, EMPTY
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import Change, ConsumerView, Episode, Round
from coordinator_model.view.emit import Emitter


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
    for change in changes:
        one.signs.append(change.sign)
        _take_part(g, view, episode, one, change)


def _take_part(g: Emitter, view: ConsumerView, episode: Episode, one: Round, change: Change) -> None:
    member_id = change.member_id
    present = view.members.get(member_id)
    if change.comer is not None and present is None:
        episode.joined += [member_id] if change.cause else []
    elif present is not None and change.cause in members.END_KINDS:
        ownership.free(view, episode, present, present.partitions or (), one.at_ms)
        ownership.revoked(view, present, one.at_ms, members.END_KINDS[change.cause])
        episode.depart(member_id)
    members.take_effect(g, view, change)


def note_first(view: ConsumerView, episode: Episode, one: Round) -> None:
    """What ended Empty is that somebody joined. That the topics of an expression were found then, only raised the epoch."""
    first = members.known(view, episode.joined[0]) if episode.from_empty and episode.joined and one is episode.rounds[0] else None
    if first is not None and (one.cause == reasons.REGEX_RESOLVED or (not one.cause and first.regex)):
        one.cause, one.member_id = reasons.MEMBER_JOINED, first.member_id


def settle(view: ConsumerView, rounds: list[Round]) -> None:
    """What raised the epoch though no line names a cause: the partitions or the topics are others than before, or a subscription is.

    Which member changed its subscription is not known then.
    Source: org.apache.kafka.coordinator.group.GroupMetadataManager.consumerGroupHeartbeat (4.1, KIP-1101): nothing else raises it.
    """
    is_known = view.heard and not view.group_type and all(member.topics is not None for member in view.members.values())
    for one in rounds:
        if one.cause or one.member_id or not one.logged:
            continue
        if one.same_metadata:
            one.cause = reasons.SUBSCRIPTION_CHANGED
        elif is_known:
            one.cause = reasons.METADATA_CHANGED
        elif one.returned and not view.heard:  # a restart with another subscription, most likely
            one.cause, one.member_id = reasons.SUBSCRIPTION_CHANGED, one.returned


def founded(view: ConsumerView) -> None:
    """The epoch that was raised last is the first of a new group: its members so far came with it."""
    episode = view.episode
    assert episode is not None
    view.complete = episode.from_empty = True
    episode.members_before, episode.joined = 0, _by_join(view)
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
    return _by_join(view)


def _by_join(view: ConsumerView) -> list[str]:
    return sorted(view.members, key=lambda member_id: (view.members[member_id].joined_ms, member_id))
