"""Who kept the others waiting for the end of a join phase."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import findings
from coordinator_model.diagnosis.incidents import SPAN_MS
from coordinator_model.states import State
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import EndedMembership, Rebalance

SLOW_MS: Final = 5_000
"""Members learn of a rebalance within a heartbeat interval, 3 s by default; what is longer than this was somebody's doing."""


_OF_ITS_OWN_ACCORD: Final = frozenset({"LEFT", reasons.POLL_TIMEOUT})


def judge(g: Emitter, rebalance: Rebalance) -> str:
    """Whom the join phase of a rebalance that is being written waited for longest; tells it, if that was long.

    A member that was dead or refused is not slow, and nobody waits for one that had not been there. Empty: nobody was waited for.
    """
    if rebalance.joined_ms < 0 or rebalance.from_state is State.EMPTY:
        return ""
    waited_ms = rebalance.joined_ms - rebalance.started_ms
    dropped = _dropped(g, rebalance)
    absent = "" if dropped is not None else _static_that_did_not(g, rebalance, waited_ms)
    if waited_ms >= SLOW_MS:
        _tell(g, rebalance, dropped, absent)
    return dropped.member_id if dropped is not None else absent or _answered_last(g, rebalance)


def _dropped(g: Emitter, rebalance: Rebalance) -> EndedMembership | None:
    """The first member that the join phase waited for until its timeout, and gave up."""
    refused = {who.split(" ")[0] for code, who, _ in g.view.flagged if code == findings.GROUP_TOO_LARGE}
    late = (old for old in g.view.ended if old.kind == reasons.JOIN_TIMEOUT and old.member_id in rebalance.departed)
    return next((old for old in late if old.client_id not in refused), None)


def _tell(g: Emitter, rebalance: Rebalance, dropped: EndedMembership | None, absent: str) -> None:
    trouble = g.view.incident
    if trouble is not None and trouble.began_ms <= rebalance.joined_ms <= trouble.last_ms + SPAN_MS:
        return  # all wait for ids that their clients have given up
    if dropped is not None:
        signs = [dropped.sign] if dropped.sign else rebalance.evidence
        why = "it did not rejoin before the rebalance timeout and was removed"
        findings.slow_joiner(
            g, rebalance, dropped.member_id, dropped.client_id, dropped.client_host, why, signs, dropped.rebalance_timeout_ms
        )
        return
    member = absent or _last_to_join(rebalance)
    if member:
        known = g.view.members.get(member)
        why = "it rejoined last" if member in rebalance.joins else "it is static, keeps its place, and did not rejoin"
        client, host = (known.client(), known.client_host) if known is not None else ("", "")
        findings.slow_joiner(
            g, rebalance, member, client, host, why, rebalance.evidence, known.rebalance_timeout_ms if known is not None else -1
        )


def _last_to_join(rebalance: Rebalance) -> str:
    """The member that rejoined SLOW_MS after all others; empty if there is none."""
    joins = sorted((at_ms, member_id) for member_id, at_ms in rebalance.joins.items())
    if len(joins) < 2 or joins[-1][0] - joins[-2][0] < SLOW_MS or joins[-1][1] in rebalance.added:
        return ""
    return joins[-1][1]


def _answered_last(g: Emitter, rebalance: Rebalance) -> str:
    """The last of the members that had been there to rejoin, or to leave, once it had begun; empty if there is none."""
    answers = [(at_ms, m) for m, at_ms in rebalance.joins.items() if m not in rebalance.added]
    answers += [
        (old.at_ms, old.member_id) for old in g.view.ended if old.member_id in rebalance.departed and old.kind in _OF_ITS_OWN_ACCORD
    ]
    return max((answer for answer in answers if rebalance.started_ms < answer[0] <= rebalance.joined_ms), default=(0, ""))[1]


def _static_that_did_not(g: Emitter, rebalance: Rebalance, waited_ms: int) -> str:
    """A static member that the phase waited for until its timeout; empty if there is none."""
    timeouts = [m.rebalance_timeout_ms for m in g.view.members.values()]
    if not rebalance.joins or not rebalance.listed or not timeouts or waited_ms < max(timeouts):
        return ""
    return next((m.member_id for m in g.view.members.values() if m.instance_id and m.member_id not in rebalance.joins), "")
