"""Answers of Admin describe about a group of the consumer protocol: its members, what each has, and its state. They show no epoch.

So a rebalance has no rounds here. It is what lies between two polls that found the group Stable (or Empty) with other members or other
partitions. Its start is the latest possible one. Its cause is UNKNOWN, except for MEMBER_JOINED: one member more, or members of an Empty
group.

A broker's log and records say more, by other clocks and other names of partitions: once they show the group, polls no longer count.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.events import Event, MemberEntry
from coordinator_model.tracker.consumer import closing, episode_rows, episodes, following, members, migrations
from coordinator_model.tracker.consumer.ownership import take_partitions
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView, Episode, Round
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref

_SETTLED: Final = frozenset({episode_rows.STABLE, episode_rows.EMPTY})
_NO_EPOCH: Final = -1


def take(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Takes a poll."""
    if event.state == episode_rows.DEAD:
        _take_removal(g, view, event)
        return
    view.polled = True
    listed = {entry.member_id: entry for entry in event.members}
    assigned = {one.member_id: one.partitions or () for one in event.assignments}
    _rename(g, view, listed, event)
    is_settled = event.state in _SETTLED
    if view.episode is None and is_settled and not (view.complete and _differs(view, listed, assigned)):
        view.take_list({member_id: view.members.get(member_id) or _member(entry, -1) for member_id, entry in listed.items()})
        for member_id, member in view.members.items():
            member.partitions = assigned.get(member_id, ())
        view.state = event.state
        return
    episode = view.episode = view.episode or _begun(view, event)
    _change(g, view, episode, listed, assigned, event)
    view.know_all()
    if is_settled:
        _end(view, episode, event)


def identify(view: ConsumerView, event: Event) -> None:
    """Takes the identity of a member."""
    member = view.members.get(event.member_id)
    if view.polled and member is not None:
        members.learn(member, event)


def give_way(g: Emitter) -> None:
    """A broker's log or a record shows the group: what polls showed of it no longer counts. A rebalance that runs has no end then."""
    view = g.view.consumer
    if view is not None and view.polled:
        closing.cut_off(g, view.episode.last_ms if view.episode is not None else 0)
        is_at_rest = view.state != episode_rows.RECONCILING  # else nothing shows what came of it
        g.view.consumer = ConsumerView(state=view.state if is_at_rest else "")


def become_classic(g: Emitter, event: Event) -> None:
    """A poll finds a classic group that followed the consumer protocol: who is still there changed its protocol before."""
    view = g.view.consumer
    listed = {entry.member_id for entry in event.members}
    for member in view.members.values() if view is not None else ():
        member.classic = member.member_id in listed
    migrations.become_classic_group(g, event)


def _take_removal(g: Emitter, view: ConsumerView, event: Event) -> None:
    """The group was deleted, or its offsets expired. Only an Empty group can be: another poll might have found it so."""
    if view.members or view.episode is not None:
        take(g, view, event._replace(state=episode_rows.EMPTY, members=(), assignments=()))
    if view.state not in ("", episode_rows.DEAD):
        following.group_removed(g, view, event)
        following.view_of(g).polled = True


def _differs(view: ConsumerView, listed: dict[str, MemberEntry], assigned: dict[str, tuple[str, ...]]) -> bool:
    """Whether there was a rebalance since the group was last Stable: its members, or what they have, are others."""
    if listed.keys() != view.members.keys():
        return True
    return any(one.partitions is not None and {*one.partitions} != {*assigned.get(one.member_id, ())} for one in view.members.values())


def _begun(view: ConsumerView, event: Event) -> Episode:
    owners = {partition: member.member_id for member in view.members.values() for partition in member.partitions or ()}
    begun = Round(_NO_EPOCH, event.at_ms, logged=False, signs=[ref(event)])
    return Episode(
        from_empty=view.complete and not view.members,
        members_before=len(view.members) if view.complete else -1,
        rounds=[begun],
        owners_before=owners,
        unheard=[member.member_id for member in view.members.values() if member.partitions is None],
        changed_ms=event.at_ms,
        last_ms=event.at_ms,
        polled=True,
    )


def _change(
    g: Emitter, view: ConsumerView, episode: Episode, listed: dict[str, MemberEntry], assigned: dict[str, tuple[str, ...]], event: Event
) -> None:
    """Takes who came and who is gone since the last poll, and what each has now."""
    at_ms, sign = event.at_ms, ref(event)
    for member_id in [one for one in view.members if one not in listed]:
        episode.depart(member_id)
        members.take_effect(g, view, Change(at_ms, reasons.UNKNOWN, member_id, sign, logged=False))
    for member_id, entry in listed.items():
        if member_id not in view.members:
            view.admit(_member(entry, at_ms if view.complete else -1), joins=view.complete)
    for member in view.members.values():
        member.partitions = assigned.get(member.member_id, ())
        take_partitions(episode, member, member.partitions, at_ms)
    episode.touch(at_ms)


def _end(view: ConsumerView, episode: Episode, event: Event) -> None:
    only = episode.rounds[0]
    if ref(event) not in only.signs:
        only.note(ref(event))
    if episode.members_before >= 0 and episode.joined and (episode.from_empty or (len(episode.joined) == 1 and not episode.left)):
        only.cause = reasons.MEMBER_JOINED
        only.member_id = episode.joined[0] if len(episode.joined) == 1 else ""
    episodes.end(view, event.at_ms, end_seen=True)


def _rename(g: Emitter, view: ConsumerView, listed: dict[str, MemberEntry], event: Event) -> None:
    """Static members that came back under a new id keep their partitions: that is no rebalance."""
    by_instance = {entry.instance_id: entry.member_id for entry in listed.values() if entry.instance_id}
    for member in list(view.members.values()):
        new_id = by_instance.get(member.instance_id, "") if member.instance_id and member.member_id not in listed else ""
        if new_id and new_id not in view.members:
            members.rename(g, view, member, new_id, event.at_ms, ref(event))


def _member(entry: MemberEntry, joined_ms: int) -> ConsumerMember:
    return ConsumerMember(entry.member_id, entry.instance_id, joined_ms=joined_ms)
