"""The member that kept the others waiting for the end of a join phase."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator_model.diagnosis import catalogue, silences
from coordinator_model.diagnosis.findings import NOBODY, Client, current, emit, seconds, since
from coordinator_model.diagnosis.incidents import SPAN_MS, not_admitted
from coordinator_model.diagnosis.kinds.settings import Settings, of_member
from coordinator_model.events import CONNECT
from coordinator_model.states import State
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership, ObservedMember
from coordinator_model.view.rebalance import Rebalance
from coordinator_model.view.rows import Ref, or_none

SLOW_MS: Final = 5_000
"""Members learn of a rebalance within a heartbeat interval, 3 s by default; a longer wait has another reason."""

LOGGED_AFTER_MS: Final = 100
"""At most, between the departure that ends a join phase and the line about its end."""

Members = Mapping[str, ObservedMember | None]
"""By their ids; None: nothing is known of one."""
_BY_THE_CLIENT: Final = frozenset({reasons.LEFT, reasons.POLL_TIMEOUT})


class Awaited(NamedTuple):
    """Whom a join phase waited for."""

    slowest: str  # the member that it waited for longest; empty: it did not wait
    dropped: list[EndedMembership]  # until its timeout: they were removed
    absent: list[str]  # until its timeout: they are static, and stay
    refused: list[EndedMembership]  # until its timeout: others had taken their places, and a refusal does not end a wait


def awaited(g: Emitter, rebalance: Rebalance) -> Awaited | None:
    """Whom the join phase of a rebalance waited for. None: it waited for nobody, or who was a member before is not known.

    A member that was dead is not slow, and a group does not wait for new members.
    """
    if rebalance.joined_ms < 0 or rebalance.from_state is State.EMPTY:
        return None
    dropped, refused = _dropped(g, rebalance), _refused(g, rebalance)
    absent = [] if dropped or refused else _absent_static(g, rebalance, rebalance.joined_ms - rebalance.started_ms) or rebalance.absent
    if not (dropped or refused or absent) and rebalance.count_before < 0:
        return None
    gone = dropped or refused
    slowest = gone[0].member_id if gone else absent[0] if absent else _answered_last(g, rebalance)
    return Awaited(slowest, dropped, absent, refused)


def report(g: Emitter, rebalance: Rebalance, waited: Awaited) -> None:
    """Reports whom a join phase waited for, if that was long: until the rebalance timeout where no line shows when it began."""
    for old in waited.refused:
        back = any(one.client_name() == old.client_id for one in g.view.members.values())
        words = {
            "waited": seconds(rebalance.joined_ms - rebalance.started_ms),
            "outside": "" if back else catalogue.LEFT_OUTSIDE,
            "wanted": "",
        }
        details = {"join_ms": rebalance.joined_ms - rebalance.started_ms, "max_poll_interval_ms": or_none(old.rebalance_timeout_ms)}
        signs = [*([old.sign] if old.sign is not None else []), *rebalance.evidence]
        emit(g, catalogue.MEMBER_REFUSED, rebalance.joined_ms, old.client(), signs, words, generation=rebalance.generation, **details)
    if waited.refused:
        return
    until_timeout = (waited.dropped or rebalance.absent) and rebalance.unannounced
    if rebalance.joined_ms - rebalance.started_ms >= SLOW_MS or until_timeout:
        _report(g, rebalance, waited.dropped, waited.absent)


def _dropped(g: Emitter, rebalance: Rebalance) -> list[EndedMembership]:
    """The members that the join phase waited for until its timeout, and then removed."""
    refused = not_admitted(g)
    late = (old for old in g.view.ended if old.kind == reasons.JOIN_TIMEOUT and rebalance.moves.has_left(old.member_id))
    return sorted((old for old in late if old.client_id not in refused), key=lambda old: old.member_id)


def _refused(g: Emitter, rebalance: Rebalance) -> list[EndedMembership]:
    """The members that were refused and removed as they rejoined, long before the phase ended: all others had rejoined, too.

    GroupMetadataManager.classicGroupJoinToClassicGroup does not look then whether the phase is complete (GroupCoordinator.doJoinGroup).
    """
    last_ms = max([rebalance.started_ms, *rebalance.joins.values()])
    full = (old for old in g.view.ended if old.kind == reasons.GROUP_OVER_CAPACITY and rebalance.moves.has_left(old.member_id))
    return sorted((old for old in full if rebalance.joined_ms - max(last_ms, old.at_ms) >= SLOW_MS), key=lambda old: old.member_id)


def _report(g: Emitter, rebalance: Rebalance, dropped: list[EndedMembership], absent: list[str]) -> None:
    trouble = g.view.incident
    if trouble is not None and trouble.began_ms <= rebalance.joined_ms <= trouble.last_ms + SPAN_MS:
        return  # all wait for member ids that their clients have given up
    if dropped:
        one = len(dropped) == 1
        who = "it" if one else "they"
        signs = sorted({old.sign for old in dropped if old.sign is not None}) or rebalance.evidence
        limit_ms = max(old.rebalance_timeout_ms for old in dropped)
        limit = f" (max.poll.interval.ms, {seconds(limit_ms)})" if limit_ms >= 0 else ""
        why = f"{who} did not rejoin before the rebalance timeout{limit}, and the coordinator removed {'it' if one else 'them'}"
        _emit(g, rebalance, dropped[0].client() if one else NOBODY, why, signs, limit_ms, {old.member_id: old for old in dropped})
        return
    late = absent or [m for m in (_last_to_join(rebalance),) if m]
    if late:
        members = [g.view.members.get(member_id) for member_id in late]
        limit_ms = max(member.rebalance_timeout_ms if member is not None else -1 for member in members)
        stays = (
            "it did not rejoin before {}; it is static, and stays a member",
            "they did not rejoin before {}; they are static, and stay members",
        )
        why = stays[len(late) > 1].format("the rebalance timeout" + (f" ({seconds(limit_ms)})" if limit_ms >= 0 else ""))
        client = NOBODY if len(late) > 1 else members[0].client() if members[0] is not None else (late[0], "", "")
        known = dict(zip(late, members, strict=True))
        _emit(g, rebalance, client, why if absent else "it rejoined last", rebalance.evidence, limit_ms, known)


def _emit(g: Emitter, rebalance: Rebalance, client: Client, why: str, signs: list[Ref], limit_ms: int, members: Members) -> None:
    waited_ms = rebalance.joined_ms - rebalance.started_ms
    whom = "this member" if len(members) == 1 else f"{len(members)} members"
    waited = f"{seconds(waited_ms)} " if waited_ms >= SLOW_MS else ""
    known = [g.view.members.get(member_id) or g.view.ended_membership(member_id) for member_id in members]
    session_ms = max((one.session_timeout_ms for one in known if one is not None), default=-1)
    words = {"waited": waited, "whom": whom, "why": why, "remedy": _remedy(g, rebalance, members, limit_ms)}
    details = {"join_ms": waited_ms if waited else None, "max_poll_interval_ms": or_none(limit_ms), "waited_for": list(members)}
    details["session_timeout_ms"] = or_none(session_ms)
    emit(g, catalogue.SLOW_JOINER, rebalance.joined_ms, client, signs, words, generation=rebalance.generation, **details)


def _remedy(g: Emitter, rebalance: Rebalance, members: Members, limit_ms: int) -> str:
    """What to change, where all members that were waited for had the same reason."""
    until = {member_id: rebalance.joins.get(member_id, rebalance.joined_ms) for member_id in members}
    found = {silences.why(one, rebalance.started_ms, until[m]) if one is not None else silences.UNKNOWN for m, one in members.items()}
    why = found.pop() if len(found) == 1 else silences.UNKNOWN
    own = [of_member(g.view, one.client_id, one.software) for one in members.values() if one is not None]
    words = {"fewer": min((one.fewer_records(" ({})") for one in own), default="", key=len), "limit": current(limit_ms)}
    words |= {"poll": own[0].poll if own else Settings().poll, "unstick": own[0].unstick if own else ""}
    words["since"] = since(min((one.heard_until_ms() for one in members.values() if one is not None), default=-1))
    is_worker = why == silences.STALLED and g.view.protocol_type == CONNECT
    return (catalogue.SLOW_WORKER if is_worker else catalogue.SLOW_TO_JOIN[why]).format(**words)


def _last_to_join(rebalance: Rebalance) -> str:
    """The member that rejoined SLOW_MS after all others; empty if there is none."""
    joins = sorted((at_ms, member_id) for member_id, at_ms in rebalance.joins.items())
    if len(joins) < 2 or joins[-1][0] - joins[-2][0] < SLOW_MS or rebalance.moves.has_joined(joins[-1][1]):
        return ""
    return joins[-1][1]


def _answered_last(g: Emitter, rebalance: Rebalance) -> str:
    """The last of the former members that rejoined or left after the rebalance had begun; empty if there is none.

    The phase waited for one that left if it ended with its departure.
    """
    answers = [(at_ms, m) for m, at_ms in rebalance.joins.items() if not rebalance.moves.has_joined(m)]
    left = (old for old in g.view.ended if rebalance.moves.has_left(old.member_id) and old.kind in _BY_THE_CLIENT)
    answers += [(old.at_ms, old.member_id) for old in left if old.at_ms + LOGGED_AFTER_MS >= rebalance.joined_ms]
    return max((answer for answer in answers if rebalance.started_ms < answer[0] <= rebalance.joined_ms), default=(0, ""))[1]


def _absent_static(g: Emitter, rebalance: Rebalance, waited_ms: int) -> list[str]:
    """The static members that the phase waited for until its timeout; empty if there is none, or no member's timeout is known."""
    timeouts = [m.rebalance_timeout_ms for m in g.view.members.values() if m.rebalance_timeout_ms >= 0]
    if not rebalance.joins or not rebalance.listed or not timeouts or waited_ms < max(timeouts):
        return []
    return sorted(m.member_id for m in g.view.members.values() if m.instance_id and m.member_id not in rebalance.joins)
