"""Workers of Connect: why they join again, and how long connectors and tasks of a lost one run nowhere (KIP-415).

Sources: DistributedHerder.tick, IncrementalCooperativeAssignor.handleLostAssignments, WorkerCoordinator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.diagnosis import catalogue, cost
from coordinator_model.diagnosis.findings import emit, seconds
from coordinator_model.events import CONNECTOR, NO_CONFIG
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rebalance import Aftermath, Rebalance, RebalanceTrigger, TasksWait

_EARLY_MS: Final = 200
_LATE_MS: Final = 3_000
"""A worker asks again when the delay is over by its own clock, which began when it got its assignment."""
_HOW: Final = {reasons.SESSION_TIMEOUT: "missed its session timeout", reasons.MEMBER_LEFT: "left", reasons.POLL_TIMEOUT: "was stuck"}


def why_again(rebalance: Rebalance, culprit: RebalanceTrigger, before: Aftermath) -> str:
    """The cause where a worker joined again: a scheduled delay was over, or the leader had read news in the config topic."""
    due_ms = -1 if before.wait is None else before.wait.due_ms
    if due_ms >= 0 and -_EARLY_MS <= rebalance.started_ms - due_ms <= _LATE_MS:
        return reasons.DELAY_ENDED
    has_news = NO_CONFIG < before.config_offset < rebalance.config_offset
    return reasons.CONNECTOR_CHANGED if has_news else culprit.cause


def named(rebalance: Rebalance, culprit: RebalanceTrigger, before: Aftermath) -> RebalanceTrigger:
    """The culprit with the connectors that changed, or the worker because of which a delay ran; any other one as it is."""
    if culprit.cause == reasons.CONNECTOR_CHANGED and (names := _changed(rebalance)):
        return culprit.changed(reason=names)
    if culprit.cause == reasons.DELAY_ENDED and before.wait is not None:
        return before.wait.began.changed(at_ms=culprit.at_ms, cause=culprit.cause, reason=culprit.reason, sign=culprit.sign)
    return culprit


def _changed(rebalance: Rebalance) -> str:
    """The connectors of which an assignment has more or less than the one before; empty if there are none, or that is not known."""
    if rebalance.assigned is None or rebalance.owners_unknown or rebalance.count_before < 1:
        return ""
    before, after = set(rebalance.owned_before), {name for held in rebalance.assigned.values() for name in held}
    differ = after - before if rebalance.delay_ms else before ^ after  # what lost workers had is not there while a delay runs
    return ", ".join(sorted({_connector(name) for name in differ}))


def connectors(held: Iterable[str]) -> list[str]:
    """The connectors of which a worker has tasks."""
    return sorted({_connector(name) for name in held if cost.is_counted(name)})


def _connector(name: str) -> str:
    """The connector of a task, or of its own name."""
    return name.rpartition("-")[0] if cost.is_counted(name) else name.removesuffix(CONNECTOR.format(""))


def wait_after(g: Emitter, rebalance: Rebalance, unowned: dict[str, str], culprit: RebalanceTrigger, before: Aftermath) -> TasksWait | None:
    """Who waits for a worker after a rebalance: what the lost ones had, while a scheduled delay runs. It goes on in later rebalances.

    `unowned`: what the rebalance leaves without an owner (cost.leaves_unowned).
    """
    if rebalance.assigned is None:
        return before.wait
    if not rebalance.delay_ms:
        return None
    started_ms = rebalance.started_ms
    lost = {task: owner for task, owner in unowned.items() if cost.is_counted(task)}
    wait = before.wait or TasksWait(rebalance.ended_ms, rebalance.delay_ms, _lost(g, lost, culprit), rebalance.old_generation)
    since = {task: wait.since.get(task, (rebalance.stopped.get(owner, started_ms), started_ms)) for task, owner in lost.items()}
    return wait.changed(due_ms=rebalance.ended_ms + rebalance.delay_ms, since=since)


def _lost(g: Emitter, lost: dict[str, str], culprit: RebalanceTrigger) -> RebalanceTrigger:
    """The loss of a worker that had tasks. One that starts again at once joins before its old session ends, and begins the rebalance."""
    ended = next((old for owner in lost.values() if (old := g.view.ended_membership(owner)) is not None), None)
    if ended is None or culprit.member_id in lost.values():
        return culprit
    return RebalanceTrigger(ended.at_ms, ended.kind, ended.member_id, *g.view.identity(ended.member_id), "", ended.sign)


def price(rebalance: Rebalance, culprit: RebalanceTrigger) -> cost.Cost:
    """What a rebalance cost. Of tasks that a worker stops before the broker hears of it, or starts again in place, it is not known."""
    paid = cost.of(rebalance)
    if not rebalance.of_connect or culprit.cause not in (reasons.CONNECTOR_CHANGED, reasons.MEMBER_LEFT) or rebalance.delay_ms:
        return paid
    given_up = {task for task, owner in rebalance.owned_before.items() if owner == culprit.member_id}
    kept = {task for held in rebalance.kept.values() for task in held}
    restart = _may_restart(rebalance, kept) if culprit.cause == reasons.CONNECTOR_CHANGED else False
    return paid._replace(unavailable_ms=None) if restart or any(map(cost.is_counted, given_up - kept)) else paid


def _may_restart(rebalance: Rebalance, kept: set[str]) -> bool:
    """Whether workers keep tasks of a connector that changed, or may: they stop and start them where they are."""
    changed = set(filter(None, _changed(rebalance).split(", ")))
    stay = kept.intersection(task for held in (rebalance.assigned or {}).values() for task in held)
    return any(cost.is_counted(task) and (not changed or _connector(task) in changed) for task in stay)


def is_waited_for(g: Emitter, member_id: str) -> bool:
    """Whether nobody has got the tasks of a worker that was removed: its scheduled delay runs."""
    wait = g.view.aftermath.wait
    return wait is not None and wait.began.member_id == member_id


def report(g: Emitter, wait: TasksWait, ended: Rebalance | None) -> None:
    """Tells of a delay that a rebalance ended; of one that runs at the end of the logs if there is none."""
    began, count = wait.began, len(wait.since)
    details = {"tasks": count, "delay_ms": wait.delay_ms, "worker_cause": began.cause}
    then = "They still waited when the logs ended."
    if ended is not None:
        lasted_ms, waited = ended.started_ms - wait.began_ms, _waited(wait, ended)
        kept = len(wait.since.keys() & {task for held in ended.kept.values() for task in held})
        details |= {"lasted_ms": lasted_ms, "waited_ms": max(waited, default=0), "task_ms": sum(waited), "kept": kept}
        # A worker that leaves by itself has stopped its tasks before; one that was lost may have gone on after its last heartbeat.
        bound, told = ("at least", "since it left") if began.cause == reasons.MEMBER_LEFT else ("up to", "with its silence before")
        then = f"They ran nowhere for {bound} {seconds(max(waited, default=0))}, {seconds(sum(waited))} in sum, {told}."
        if not waited:
            then = f"It was back {seconds(lasted_ms)} later, and they stayed with it." if kept else "None of them was given to another."
    words = {"how": _HOW.get(began.cause, "was lost"), "many": f"{count} task{'s' * (count != 1)}", "delay": seconds(wait.delay_ms)}
    signs = [sign for sign in (began.sign, *(ended.evidence[:1] if ended is not None else ())) if sign is not None]
    client = (began.member_id, began.client_id, began.client_host)
    emit(g, catalogue.CONNECT_TASKS_WAIT, wait.began_ms, client, signs, words | {"then": then}, generation=wait.generation, **details)


def _waited(wait: TasksWait, ended: Rebalance) -> list[int]:
    """For how long each task that was given to a worker at the end had run nowhere, ms. One that came back with it had gone on."""
    given = {
        task: ended.synced.get(member_id, ended.ended_ms)
        for member_id, held in (ended.assigned or {}).items()
        for task in set(held) - set(ended.kept.get(member_id, ()))
    }
    return [given[task] - since_ms for task, (since_ms, _) in wait.since.items() if task in given]
