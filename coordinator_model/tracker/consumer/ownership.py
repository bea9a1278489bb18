"""Who has the partitions of a group during an episode, and whom the group waits for."""

from __future__ import annotations

from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView, Episode, Revocation

ACKNOWLEDGED, AWAY = "ACKNOWLEDGED", "AWAY"
"""How a member gives partitions up: its heartbeat says so, or it leaves for a while."""


def free(view: ConsumerView, episode: Episode, member: ConsumerMember, partitions: tuple[str, ...], at_ms: int) -> None:
    """Partitions of a member have no owner from now on."""
    if partitions:
        gives_some_up(view, episode, member)
    for partition in partitions:
        episode.unowned.setdefault(partition, at_ms)


def gives_some_up(view: ConsumerView, episode: Episode, member: ConsumerMember) -> None:
    """Others may get what a member gives up, whichever partitions that are."""
    view.frees += 1
    episode.freed[member.member_id] = view.frees


def may_wait(view: ConsumerView, episode: Episode, member: ConsumerMember) -> bool:
    """Whether a member may still get partitions that another one gave up: it is told with its next heartbeat.

    Those that a member of the classic protocol gave up have no names. Who came and has none yet gets some of them.
    """
    others = [other for other, number in episode.freed.items() if other != member.member_id and number > member.caught_up]
    nameless = member.partitions == () and any(view.members[other].classic for other in others if other in view.members)
    return member.waits < 0 and bool(nameless or (others and episode.unowned))


def lost(view: ConsumerView) -> list[ConsumerMember]:
    """Those who had the partitions of a group that a failure emptied, in the order in which they went; else nobody."""
    gone = sorted((one for one in view.gone if one.gone_ms >= 0), key=lambda one: one.gone_ms)
    return gone if gone and gone[-1].end_kind not in (reasons.LEFT, reasons.UNKNOWN) else []


def told_to_revoke(view: ConsumerView, member: ConsumerMember, partitions: tuple[str, ...], at_ms: int) -> None:
    """A member was told to give partitions up, perhaps more of them than before."""
    more = tuple(partition for partition in partitions if partition not in member.giving)
    member.told_ms, member.giving = at_ms, (*member.giving, *more)
    if view.episode is not None:
        epoch = view.episode.rounds[-1].epoch
        view.episode.revocations.append(Revocation(member.member_id, member.client_id, epoch, at_ms, len(more)))


def revoked(view: ConsumerView, member: ConsumerMember, at_ms: int, end: str) -> None:
    """A member has given up what it was told to, or has gone: nobody has these partitions from now on."""
    if view.episode is not None:
        free(view, view.episode, member, member.giving, at_ms)
        for one in view.episode.revocations:
            if one.member_id == member.member_id and one.ended_ms < 0:
                one.ended_ms, one.end = max(at_ms, one.told_ms), end
    member.told_ms, member.giving = -1, ()


def left_for_a_while(view: ConsumerView, member: ConsumerMember, at_ms: int) -> None:
    """A static member left for a while (epoch -2). It keeps its partitions, but not what it was told to give up."""
    if member.away_ms < 0:
        revoked(view, member, at_ms, AWAY)
        member.away_ms = at_ms


def note_share(episode: Episode, member: ConsumerMember, waited_ms: int) -> None:
    """Notes how long the group waited for a member: for its heartbeat, or until it had given partitions up."""
    episode.shares[member.member_id] = max(episode.shares.get(member.member_id, 0), waited_ms)


def take_partitions(episode: Episode, member: ConsumerMember, partitions: tuple[str, ...] | None, at_ms: int) -> None:
    """Partitions of an answer or a record have an owner again."""
    for partition in partitions or ():
        since_ms = episode.unowned.pop(partition, None)
        if since_ms is not None:
            episode.unavailable_ms += max(at_ms - since_ms, 0)
        episode.owners[partition] = member.member_id


def note_partitions(view: ConsumerView, epoch: int, count: int) -> None:
    """Takes the partitions of the one member of a group, whose first answer is logged after the line that ended the episode."""
    for episode in view.ended:
        if episode.partitions < 0 and episode.members_after == 1 and episode.rounds[-1].epoch == epoch:
            episode.partitions = count
