"""Why a rebalance began, once all is seen that bears on it: the trigger that the tracker noted, put into its context."""

from __future__ import annotations

from coordinator_model.diagnosis.incidents import SPAN_MS
from coordinator_model.tracker import reasons
from coordinator_model.tracker.emit import Emitter
from coordinator_model.tracker.view import Rebalance, Trigger


def sharpen(g: Emitter, rebalance: Rebalance, culprit: Trigger) -> None:
    """Corrects the cause of a rebalance that is about to be written."""
    if _follows_a_move(g, rebalance, culprit):
        culprit.cause = reasons.COORDINATOR_MOVED


def _follows_a_move(g: Emitter, rebalance: Rebalance, culprit: Trigger) -> bool:
    """Whether the member only came back, or was not heard in time, because another broker had taken the group over."""
    view = g.view
    if view.moved_ms < 0 or not 0 <= rebalance.started_ms - view.moved_ms <= SPAN_MS:
        return False
    if culprit.cause == reasons.MEMBER_JOINED:
        return culprit.client_id in view.moved_clients
    if culprit.cause != reasons.SESSION_TIMEOUT:
        return False
    gone = next((old for old in reversed(view.gone) if old.member_id == culprit.member_id), None)
    return gone is not None and gone.client_id in view.moved_clients
