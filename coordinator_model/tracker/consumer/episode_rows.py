"""Rows of an episode: one of `rebalances`, one of `rebalance_rounds` for each round, and two of `group_transitions`."""

from __future__ import annotations

import json
from typing import Any, Final

from coordinator_model import events
from coordinator_model.diagnosis import bursts, consumer_findings
from coordinator_model.tracker.consumer import doubtful_epochs, members
from coordinator_model.view import reasons, rules
from coordinator_model.view.consumer_view import ConsumerView, Episode, Round
from coordinator_model.view.emit import Emitter, write_transition
from coordinator_model.view.members import worked_until_ms
from coordinator_model.view.outcomes import ABANDONED, COMPLETED, EMPTIED
from coordinator_model.view.rebalance import RebalanceTrigger
from coordinator_model.view.rows import REBALANCE_ROUNDS, REBALANCES, Ref, evidence_json, or_none
from coordinator_model.view.view import PastRebalance

PROTOCOL: Final = "consumer"
"""Of groups of KIP-848: the value of `rebalances.group_protocol`. Groups of other types have their own."""
EMPTY, STABLE, RECONCILING, DEAD = "Empty", "Stable", "Reconciling", "Dead"
ALL_RECONCILED: Final = "ALL_MEMBERS_RECONCILED"
ALL_MEMBERS_GONE: Final = "ALL_MEMBERS_GONE"
GROUP_REMOVED: Final = "GROUP_REMOVED"
GROUP_LOADED: Final = "GROUP_LOADED"

_OF_CLASSIC: Final = ("joined_at", "join_ms", "sync_ms", "leader_id", "assignment_ms", "first_fetch_ms", "first_fetch_member_id")
"""Columns of `rebalances` that only a classic group has."""


def columns(g: Emitter, view: ConsumerView, episode: Episode) -> dict[str, Any]:
    """The row of `rebalances` for an episode that has ended."""
    first, last = episode.rounds[0], episode.rounds[-1]
    owners_known = episode.partitions >= 0 and not episode.unheard and episode.members_before >= 0
    moved = sum(1 for p, owner in episode.owners.items() if episode.owners_before.get(p, owner) != owner)
    is_priced = owners_known and episode.end_seen and not episode.polled and not episode.is_empty
    # Else the line about the computed target is the first about its epoch: it was raised at some time before.
    start_seen = not episode.polled and (first.logged or first.stored or view.heard or bool(first.cause))
    return dict(
        generation=or_none(last.epoch),
        started_at=first.at_ms,
        ended_at=episode.ended_ms,
        total_ms=episode.ended_ms - first.at_ms if episode.end_seen and (start_seen or episode.polled) else None,
        outcome=ABANDONED if episode.cut_off else EMPTIED if episode.is_empty else COMPLETED,
        **_culprit(view, first).columns(),
        **dict.fromkeys(_OF_CLASSIC),
        members_before=or_none(episode.members_before),
        members_after=or_none(episode.members_after),
        joined=sorted(episode.joined),
        left=sorted(episode.left),
        slowest_member_id=_slowest(episode),
        protocol=episode.assignor or None,
        partitions=or_none(episode.partitions),
        partitions_moved=moved if owners_known else None,
        unavailable_partition_ms=episode.unavailable_ms if is_priced else None,
        evidence=evidence_json(sign for one in episode.rounds for sign in one.signs),
        joined_unnamed=0,
        left_unnamed=0,
        start_seen=start_seen,
        group_protocol=view.group_type or PROTOCOL,
        first_epoch=or_none(first.epoch),
        rounds=len(episode.rounds) if not episode.polled else None,
        end_seen=episode.end_seen,
        interval_wait_ms=_interval_wait_ms(episode) if rules.since_4_3(g, view) and not episode.polled else None,
    )


def write(g: Emitter, view: ConsumerView) -> None:
    """Writes the first episode that has ended."""
    episode = view.ended.pop(0)
    last = episode.rounds[-1]
    gone = [one for one in view.gone if one.member_id in episode.left]
    stopped = {one.member_id: worked_until_ms(one.end_kind, one.gone_ms, one.heard_ms, one.rebalance_timeout_ms) for one in gone}
    g.emit(REBALANCES, stopped, **columns(g, view, episode))
    consumer_findings.waited_for_interval(g, episode, _interval_wait_ms(episode))
    slowest = _slowest(episode)
    if slowest is not None:
        consumer_findings.waited(g, episode, members.known(view, slowest), episode.shares[slowest])
    for number, one in enumerate(episode.rounds):
        doubtful_epochs.report(g, one)
        if not episode.polled:
            _write_round(g, view, episode, one)
        _add_to_burst(g, view, episode, number)
    write_start(g, view, episode)
    if episode.cut_off:
        return
    to_state, trigger = (EMPTY, ALL_MEMBERS_GONE) if episode.is_empty else (STABLE, ALL_RECONCILED)
    _change_state(g, view, episode.ended_ms, RECONCILING, to_state, last.epoch, last.signs, {"cause": trigger})


def write_start(g: Emitter, view: ConsumerView, episode: Episode) -> None:
    """Writes once that the group began to change."""
    first = episode.rounds[0]
    if not episode.start_written:
        taken_up(g, view, first.at_ms, first.signs)
        from_state = view.state if view.state not in ("", DEAD) else EMPTY if episode.from_empty else STABLE
        _change_state(g, view, first.at_ms, from_state, RECONCILING, first.epoch, first.signs, _culprit(view, first).columns())
    episode.start_written = True


def _culprit(view: ConsumerView, one: Round) -> RebalanceTrigger:
    """The cause of a round, and the member that it is about."""
    cause = one.cause or reasons.UNKNOWN
    culprit = RebalanceTrigger(one.at_ms, cause, one.member_id if cause != reasons.UNKNOWN else "", sign=next(iter(one.signs), None))
    member = members.known(view, culprit.member_id)
    return culprit if member is None else culprit.known_as(member.instance_id, member.client_id, member.client_host)


def _slowest(episode: Episode) -> str | None:
    """The member that the group waited for longest: for its next heartbeat, or until it had given partitions up."""
    return min(episode.shares, key=lambda member_id: (-episode.shares[member_id], member_id), default=None)


def _interval_wait_ms(episode: Episode) -> int:
    """How long targets were missing that a heartbeat had asked for: `group.consumer.assignment.interval.ms` had not passed (KIP-1263).

    A departure asks for none: the next heartbeat does.
    """
    waited_ms, since_ms = 0, -1
    for one in episode.rounds:
        if since_ms < 0 and one.cause not in members.DEPARTURES:
            since_ms = one.at_ms
        if one.target_ms >= 0:
            waited_ms += one.target_ms - since_ms if since_ms >= 0 else 0
            since_ms = -1
    return waited_ms


def _write_round(g: Emitter, view: ConsumerView, episode: Episode, one: Round) -> None:
    last = episode.rounds[-1]
    culprit: dict[str, Any] = _culprit(view, one).columns()
    del culprit["reason"]  # which only a classic group has
    g.emit(
        REBALANCE_ROUNDS,
        generation=last.epoch,
        epoch=one.epoch,
        started_at=one.at_ms,
        start_exact=one.logged,
        computed_at=or_none(max(one.computed_ms, one.target_ms)),
        reconciled_at=or_none(one.reached_ms),
        superseded=one is not last,
        **culprit,
        revocations=_revocations(episode, one) if view.heard or one.stored else None,
        evidence=evidence_json(one.signs),
    )


def _revocations(episode: Episode, one: Round) -> str:
    """Who was told to give partitions up in a round, as JSON, in the order of time."""
    told = [
        {
            "member_id": member.member_id,
            "client_id": member.client_id or None,
            "partitions": member.partitions,
            "told_at": member.told_ms,
            "ended_at": or_none(member.ended_ms),
            "end": member.end or None,
        }
        for member in episode.revocations
        if member.epoch == one.epoch
    ]
    return json.dumps(told, separators=(",", ":"), ensure_ascii=False)


def _add_to_burst(g: Emitter, view: ConsumerView, episode: Episode, number: int) -> None:
    """Each round counts in the search for storms and rolling restarts, if a member is behind it. The cost counts with the last one."""
    one, culprit = episode.rounds[number], _culprit(view, episode.rounds[number])
    if not culprit.member_id:
        return
    is_last = number + 1 == len(episode.rounds)
    past = PastRebalance.of(
        culprit,
        client_id=culprit.client_id or culprit.member_id,  # the coordinator's log names no client
        total_ms=(episode.ended_ms if is_last else episode.rounds[number + 1].at_ms) - one.at_ms,
        unavailable_ms=episode.unavailable_ms if is_last and episode.partitions >= 0 else -1,
        first=episode.from_empty and number == 0,
        generation=max(one.epoch - 1, -1),
        row_ms=episode.rounds[0].at_ms,
    )
    bursts.add(g, past)


def write_given_up(g: Emitter, view: ConsumerView, at_ms: int, sign: Ref) -> None:
    """Writes that the coordinator gave the group up, as of a classic group: no line shows how it goes on."""
    _change_state(g, view, at_ms, view.state or STABLE, DEAD, view.epoch, [sign], {"cause": reasons.COORDINATOR_MOVED})


def taken_up(g: Emitter, view: ConsumerView, at_ms: int, signs: list[Ref]) -> None:
    """A line after its coordinator gave the group up shows that one has it: all of it is stored, so it goes on as it was."""
    if view.given_up is None or at_ms <= view.given_up[0]:
        return
    if view.state == DEAD:
        to_state = EMPTY if view.complete and not view.members else STABLE
        _change_state(g, view, at_ms, DEAD, to_state, view.epoch, signs, {"cause": GROUP_LOADED})
    view.given_up = None


def write_removal(g: Emitter, view: ConsumerView, at_ms: int, sign: Ref) -> None:
    """Writes that the group was removed, which only an Empty one can be."""
    _change_state(g, view, at_ms, view.state or EMPTY, DEAD, view.epoch, [sign], {"cause": GROUP_REMOVED})


def _change_state(
    g: Emitter, view: ConsumerView, at_ms: int, from_state: str, to_state: str, epoch: int, signs: list[Ref], culprit: dict[str, Any]
) -> None:
    if view.group_type == events.SHARE:  # it has no state Reconciling: nobody gives partitions up (ShareGroup.ShareGroupState)
        from_state, to_state = (STABLE if state == RECONCILING else state for state in (from_state, to_state))
    view.state = to_state
    if from_state != to_state:
        write_transition(g, at_ms, (from_state, to_state), epoch, culprit["cause"], signs, culprit)
