"""Rebalances that follow each other closely: a rolling restart, a storm, or neither."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from coordinator_model.diagnosis import catalogue, consumer_catalogue
from coordinator_model.diagnosis.cost import Cost
from coordinator_model.diagnosis.findings import NOBODY, emit, seconds
from coordinator_model.diagnosis.kinds.settings import SINK_TASK, STREAMS_ASSIGNOR, process_of
from coordinator_model.errors import Error
from coordinator_model.events import CONNECT, TIMES_FROM_MS
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rebalance import Rebalance, RebalanceTrigger
from coordinator_model.view.rows import Ref, or_none
from coordinator_model.view.view import PastRebalance

QUIET_MS: Final = 60_000
"""A burst is over when no rebalance has started for so long."""

LONGEST_MS: Final = 600_000
"""A storm that does not end is reported after so long, and again."""

RESTARTED_AT_LEAST: Final = 3
STORM_AT_LEAST: Final = 5
"""Rebalances in one burst by clients that came back, or went, OFTEN; or by members that came in the place of others that had not left."""
REPLACED_AT_LEAST: Final = 10
"""Such members where no line shows how many members there are: several processes that start may have one client.id."""
OFTEN: Final = 3
"""Two restarts of all clients in a row are no storm."""
NEARLY_ALL: Final = 0.8
"""Who began so many of its rebalances is named as the culprit of a storm."""
NAMED_AT_MOST: Final = 4

_RESTARTS: Final = frozenset({reasons.MEMBER_LEFT, reasons.SESSION_TIMEOUT})
_FAILURES: Final = frozenset({reasons.SESSION_TIMEOUT, reasons.POLL_TIMEOUT, reasons.SYNC_TIMEOUT})
_DEPARTURES: Final = _RESTARTS | {reasons.POLL_TIMEOUT, reasons.REBALANCE_TIMEOUT}
_COMES_OR_GOES: Final = _DEPARTURES | {reasons.MEMBER_JOINED, reasons.SYNC_TIMEOUT, reasons.STATIC_MEMBER_REPLACED}
_CHANGES: Final = frozenset({reasons.SUBSCRIPTION_CHANGED, reasons.METADATA_CHANGED})
_ASKS_AGAIN: Final = frozenset({reasons.LEADER_REJOINED, reasons.MEMBER_REJOINED})
_BY_STREAMS: Final = "triggered followup rebalance"
"""StreamThread.runLoop: enforceRebalance of a probing rebalance, or of a task that another thread gave up."""

_AGAINST_MISSING_REPLICAS: Final = (
    "Check the replicas of __consumer_offsets at that time: a write needs min.insync.replicas of them within the broker's "
    "offsets.commit.timeout.ms. A broker that is down, slow or out of disk space can cause this."
)
_AGAINST_FAILED_WRITES: Final = {
    "UNKNOWN_SERVER_ERROR": "Most often the record exceeds max.message.bytes of __consumer_offsets: it holds the "
    "subscription and the partitions of each member. Raise that setting, or run fewer members and partitions in the group. The broker's "
    "log has the error."
}
"""By the error, as GroupMetadataManager.storeGroup (Scala) and CoordinatorOperationExceptionHelper (Java) translate it; others are about
replicas."""
_AGAINST_CRASH_LOOPS: Final = (
    "Stop the client that keeps coming and going, and read its log for why it dies: a crash loop, a failing health check, a poison record."
)
_AGAINST_STORMS_OF_SEVERAL: Final = (
    "Read in the logs of these clients why they keep joining: a crash loop, a failing health check, a poison record."
)
_UNDER_NEW_IDS: Final = ", each time under a new member id, though none had left"
_AGAINST_NEW_IDS: Final = (
    "Clients that rejoin under new member ids push each other out. Look for a client library that does not keep its member id from one "
    "JoinGroup to the next, for a proxy or load balancer in front of the brokers that cuts or mixes up connections, and for processes that "
    "are killed and restarted before their session ends."
)
_AGAINST_STORMS: Final = {
    "POLL_TIMEOUT": "The client comes back and stops polling again: each of its POLL_TIMEOUT findings says whether its process stopped or "
    "its work between two polls takes too long.",
    "SUBSCRIPTION_CHANGED": "The client keeps changing its subscription: let it subscribe once, to the same topics as the others.",
    "METADATA_CHANGED": "Topics or partitions that the group reads come and go: create them beforehand, and narrow subscription patterns.",
    "LEADER_REJOINED": "The leader rejoins without giving a reason: read its log. Most often the metadata of its topics changed.",
    "MEMBER_REJOINED": "The client rejoins by itself: read its log, and search its code for enforceRebalance().",
    "STATIC_MEMBER_REPLACED": "Two processes take one group.instance.id from each other, or one keeps restarting: give each its own, or "
    "read its log for why it dies.",
}
"""By the most common cause of the rebalances."""


def add(g: Emitter, past: PastRebalance) -> None:
    """Adds a rebalance, or a round of one, if a client's own doing began it.

    One that still ran when it was added is added again when it is written.
    """
    burst = g.view.burst = [one for one in g.view.burst if (one.at_ms, one.generation) != (past.at_ms, past.generation)]
    if burst and (past.at_ms > burst[-1].at_ms + QUIET_MS or past.at_ms > burst[0].at_ms + LONGEST_MS):
        _judge(g)
    is_timed = past.at_ms >= TIMES_FROM_MS  # else nobody knows how fast they followed each other
    if past.cause == reasons.ASSIGNMENT_NOT_STORED or (is_timed and _is_own_doing(g, past)):
        burst = g.view.burst
        burst.append(past)
        burst.sort(key=lambda one: one.at_ms)  # a row that waited for more evidence is written later


def _is_own_doing(g: Emitter, past: PastRebalance) -> bool:
    """Whether a client began a rebalance by itself: it came, went, changed what it reads, or its application asked again.

    Workers of Connect and threads of Streams ask again because the assignor told them to: when a connector changes, when a scheduled delay
    is over, for a follow-up (DistributedHerder, IncrementalCooperativeAssignor; StreamsPartitionAssignor). Workers start and stop the
    consumers of their sink tasks whenever they rebalance themselves (WorkerSinkTask).
    """
    if not (past.client_id or past.client_host) or past.client_id.startswith(SINK_TASK):
        return False
    if past.cause in _ASKS_AGAIN:
        by_itself = reasons.says_why(reasons.own_words(past.reason)) and _BY_STREAMS not in past.reason
        return by_itself or (g.view.protocol_type == "consumer" and g.view.protocol not in ("", STREAMS_ASSIGNOR))
    return past.cause in _COMES_OR_GOES or past.cause in _CHANGES


def past_of(g: Emitter, rebalance: Rebalance, culprit: RebalanceTrigger, sign: Ref | None, price: Cost) -> PastRebalance:
    """What is kept of a classic rebalance."""
    unheard_ms = sum(
        max(rebalance.started_ms - rebalance.stopped.get(owner, rebalance.started_ms), 0)
        for partition, owner in rebalance.owned_before.items()
        if partition not in rebalance.vacant
    )
    others = [g.view.ended_membership(member_id) for member_id in rebalance.moves.left() if member_id != culprit.member_id]
    failed = [old for old in others if old is not None and old.kind in _FAILURES and old.at_ms > rebalance.started_ms]
    return PastRebalance.of(
        culprit,
        at_ms=rebalance.started_ms,
        sign=sign,
        total_ms=rebalance.ended_ms - rebalance.started_ms if rebalance.end_seen and rebalance.ended_ms >= 0 else -1,
        unavailable_ms=-1 if price.unavailable_ms is None else price.unavailable_ms,
        moved=-1 if price.moved is None else price.moved,
        first=rebalance.from_state is State.EMPTY,
        generation=rebalance.old_generation,
        gone_ms=rebalance.stopped.get(culprit.member_id, -1),
        unheard_ms=unheard_ms,
        members=(rebalance.count_before, rebalance.count_after),
        row_ms=rebalance.started_ms,
        blamed=max(failed, key=lambda old: old.at_ms).kind if failed and culprit.cause not in _FAILURES else "",
    )


def _error_of(past: PastRebalance) -> str:
    """The error with which an assignment was not stored, as the coordinator logs it, or as the leader was answered."""
    if past.error_code == Error.REBALANCE_IN_PROGRESS:
        return Error.REQUEST_TIMED_OUT.name  # which the Scala coordinator answers so
    _, _, logged = past.reason.partition("Error ")
    return logged.partition(" ")[0] or Error(past.error_code).name


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next; NEVER if it has none."""
    return g.view.burst[-1].at_ms + QUIET_MS + 1 if g.view.burst else NEVER


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Judges a burst that is over. `flush`: nothing more will come, also of a rebalance that still runs."""
    view = g.view
    written = not view.unfinished() and (view.consumer is None or not view.consumer.unfinished())
    if view.burst and (flush or (written and view.burst[-1].at_ms + QUIET_MS < now_ms)):
        _judge(g)


def _judge(g: Emitter) -> None:
    rows = sorted(g.view.burst, key=lambda past: past.at_ms)  # rows of two protocols may be written in another order
    unstored = [past for past in rows if past.cause == reasons.ASSIGNMENT_NOT_STORED]
    burst = [past for past in rows if past.cause != reasons.ASSIGNMENT_NOT_STORED]
    g.view.burst = []
    if unstored:
        _report_not_stored(g, unstored)
    if burst:
        _judge_clients(g, burst)


def _judge_clients(g: Emitter, burst: list[PastRebalance]) -> None:
    """Reports a rolling restart or a storm, if it is one."""
    told = _from_departure_to_join(burst) if g.view.consumer_protocol else burst
    joined = {past.member_id for past in told if past.cause == reasons.MEMBER_JOINED and not past.first}
    left = [past for past in told if past.cause in _DEPARTURES]
    restarted = _restarted([past for past in left if past.member_id not in joined and past.cause in _RESTARTS])
    again = len(left) - len(restarted)  # in a crash loop the member that departs has only just joined
    is_several = len({process_of(client) for client in restarted.values()}) > 1
    if is_several and len(restarted) >= RESTARTED_AT_LEAST and len(joined) >= RESTARTED_AT_LEAST and again <= len(restarted) // 2:
        _report_rolling_restart(g, _from_first_to_last(told, restarted), restarted)
        return
    is_searched = g.view.group_type == "consumer"  # in others a stall, a restart and a scale-in within two minutes would make one
    flaps = _flaps(burst) if g.view.protocol_type == CONNECT else []
    if is_searched and (storm := flaps or _storm(burst)):
        _report_storm(g, storm)


def _storm(burst: list[PastRebalance]) -> list[PastRebalance]:
    """The rebalances of a storm, if it is one: clients come back, or go, again and again, whichever of them.

    The first one that only comes is part of a storm of several clients. Of one client it is the join with which its storm could begin.
    """
    vanished = _vanished(burst)
    own = {client: [past for past in burst if _client(past) == client] for client in map(_client, burst)}
    often = [client for client, rows in own.items() if _cycles(rows, vanished) >= OFTEN]
    again = [past for client in often for past in own[client][own[client][0].cause == reasons.MEMBER_JOINED :]]
    if len(often) == 1:
        again = _closest(again)
    if len(again) < STORM_AT_LEAST:
        replaced = sum(max(_came_back(rows, vanished) - len(_departures(rows)), 0) for rows in own.values())
        if replaced < (REPLACED_AT_LEAST if vanished is None else STORM_AT_LEAST):
            return []
        often = [client for client, rows in own.items() if _came_back(rows, vanished)]
    taken = again if len(often) == 1 else [past for client in often for past in own[client]]
    first, last = min(past.at_ms for past in taken), max(past.at_ms for past in taken)
    return [past for past in burst if first <= past.at_ms <= last]


def _flaps(burst: list[PastRebalance]) -> list[PastRebalance]:
    """The rebalances of a Connect worker that is lost again and again: each time its tasks wait for it once more, or move."""
    lost = [past for past in burst if past.cause in _FAILURES or past.blamed]
    runs = (_closest([past for past in lost if _client(past) == client]) for client in dict.fromkeys(map(_client, lost)))
    own = max(runs, key=len, default=[])
    return [past for past in burst if own[0].at_ms <= past.at_ms <= own[-1].at_ms] if len(own) >= OFTEN else []


def _closest(rows: list[PastRebalance]) -> list[PastRebalance]:
    """A client's rebalances that follow each other closely, the most of them: a restart long before has no part in its storm."""
    runs: list[list[PastRebalance]] = []
    for past in rows:
        if not runs or past.at_ms > runs[-1][-1].at_ms + QUIET_MS:
            runs.append([])
        runs[-1].append(past)
    return max(runs, key=len)


def _restarted(departures: list[PastRebalance]) -> dict[str, str]:
    """Client ids of the members that were restarted, by member id. A client that departs twice counts once, if each has its own id."""
    first = {past.client_id: past for past in reversed(departures)}
    counted = first.values() if len(first) >= RESTARTED_AT_LEAST else departures
    return {past.member_id: past.client_id for past in counted}


def _departures(rows: list[PastRebalance]) -> list[PastRebalance]:
    return [past for past in rows if past.cause in _DEPARTURES]


def _joins(rows: list[PastRebalance]) -> list[PastRebalance]:
    return [past for past in rows if past.cause == reasons.MEMBER_JOINED]


def _vanished(burst: list[PastRebalance]) -> int | None:
    """How many members went that began no rebalance by it: others came in their place. None: no line shows how many members there are."""
    before, after = burst[0].members[0], burst[-1].members[1]
    return max(len(_joins(burst)) - len(_departures(burst)) - (after - before), 0) if min(before, after) >= 0 else None


def _came_back(rows: list[PastRebalance], vanished: int | None) -> int:
    """How often a client came again. Several processes that have its client.id may start: they come, and nobody had gone before."""
    came = len(_joins(rows)) - (rows[0].cause == reasons.MEMBER_JOINED)
    return came if vanished is None else min(came, len(_departures(rows)) + vanished)


def _cycles(rows: list[PastRebalance], vanished: int | None) -> int:
    """How often a client came back, went, or asked for a rebalance. Members that went and had not come are others with its client.id."""
    came = {past.member_id for past in _joins(rows)}
    gone = sum(past.member_id in came for past in _departures(rows)) + (rows[0].cause in _DEPARTURES)
    return max(_came_back(rows, vanished), gone, len(rows) - len(_departures(rows)) - len(_joins(rows)))


def _from_departure_to_join(burst: list[PastRebalance]) -> list[PastRebalance]:
    """From the first departure to the last join. A group of the consumer protocol forms member by member: who joined before was there."""
    departures = [number for number, past in enumerate(burst) if past.cause in _DEPARTURES]
    joins = [number for number, past in enumerate(burst) if past.cause == reasons.MEMBER_JOINED]
    return burst[departures[0] : joins[-1] + 1] if departures and joins else []


def _from_first_to_last(told: list[PastRebalance], restarted: dict[str, str]) -> list[PastRebalance]:
    """From the first restart to the last one that came back. A member that is new afterwards has no part in it."""
    first = next(number for number, past in enumerate(told) if past.cause in _RESTARTS)
    back = [number for number, past in enumerate(told) if past.cause == reasons.MEMBER_JOINED and past.client_id in restarted.values()]
    return told[first : back[-1] + 1 if back and back[-1] > first else None]


def _restart_text(g: Emitter) -> catalogue.Text:
    of_consumers = consumer_catalogue.ROLLING_RESTART if g.view.consumer_protocol else catalogue.ROLLING_RESTART
    return consumer_catalogue.ROLLING_RESTART_OF.get(g.view.group_type, of_consumers)


def _client(past: PastRebalance) -> tuple[str, str]:
    return past.client_id, past.client_host if not past.client_id else ""


def _report_rolling_restart(g: Emitter, burst: list[PastRebalance], restarted: dict[str, str]) -> None:
    """Members were restarted one after the other: many rebalances with one purpose. `restarted`: their client ids by member id."""
    longest = _longest_restart_ms(burst)
    words = {"count": len(restarted), "longest": catalogue.LONGEST_RESTART.format(longest=seconds(longest)) if longest >= 0 else ""}
    # Member ids of the consumer protocol do not begin with the id of the client, also where a group has left that protocol since.
    named = not g.view.consumer_protocol and all(member.startswith(client) for member, client in restarted.items())
    clients = {} if named else {"clients": sorted(client or member for member, client in restarted.items())}
    _report(g, _restart_text(g), burst, NOBODY, words, restarted=sorted(restarted), longest_restart_ms=or_none(longest), **clients)


def _report_storm(g: Emitter, burst: list[PastRebalance]) -> None:
    """Clients join and depart again and again: the group does little else than rebalance. Names a client that began nearly all of it.

    Where topics change, none is named: the client only told the coordinator.
    """
    counted = Counter(past.blamed or past.cause for past in burst)
    causes = sorted(counted, key=lambda cause: (-counted[cause], cause))
    common = causes[: 1 if 2 * counted[causes[0]] > len(burst) else 2]
    by_client = Counter(map(_client, burst))
    clients = sorted(by_client, key=lambda client: (-by_client[client], client))
    if causes[0] == reasons.METADATA_CHANGED:
        clients = []
    elif by_client[clients[0]] >= NEARLY_ALL * len(burst):
        clients = clients[:1]
    names = [client_id or host for client_id, host in clients]
    shares = dict(zip(names, (by_client[client] for client in clients), strict=True))
    is_new = all(past.cause == reasons.MEMBER_JOINED for past in burst)
    remedy = _AGAINST_STORMS_OF_SEVERAL if len(clients) > 1 else _AGAINST_STORMS.get(causes[0], _AGAINST_CRASH_LOOPS)
    began = sum(shares.values())
    shown = names if len(names) <= NAMED_AT_MOST else [*names[: NAMED_AT_MOST - 1], f"{len(names) - NAMED_AT_MOST + 1} more"]
    verb = "began" if all(past.blamed in ("", past.cause) for past in burst) else "caused"
    words = {
        "began": f"; {_enumerated(shown)} {verb} {'all' if began == len(burst) else began} of them" if names else "",
        "common": ("mostly " if len(common) == 1 < len(causes) else "") + " and ".join(f"{cause} ({counted[cause]})" for cause in common),
        "how": (_UNDER_NEW_IDS if is_new else "") + _shares(shares),
        "remedy": _AGAINST_NEW_IDS if is_new else remedy,
    }
    one = next(("", past.client_id, past.client_host) for past in burst if _client(past) == clients[0]) if len(clients) == 1 else NOBODY
    figures = {"by_culprit": began, "by_client": shares, "clients": names, "causes": dict(counted), "common_causes": common}
    of_workers = catalogue.STORM_OF_WORKERS if g.view.protocol_type == CONNECT else catalogue.REBALANCE_STORM
    text = consumer_catalogue.REBALANCE_STORM if g.view.consumer_protocol else of_workers
    figures["silent_partition_ms"] = sum(past.unheard_ms for past in burst)
    _report(g, text, burst, one, words, **figures)


def _shares(by_client: dict[str, int]) -> str:
    """How many of the rebalances each client began, if there are several."""
    shown = ", ".join(f"{client} {count}" for client, count in list(by_client.items())[:NAMED_AT_MOST])
    return f" ({shown}{', …' if len(by_client) > NAMED_AT_MOST else ''})" if len(by_client) > 1 else ""


def _enumerated(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _report_not_stored(g: Emitter, burst: list[PastRebalance]) -> None:
    """The coordinator could not write assignments, and let all members join again each time (storeGroup, classicGroupSync)."""
    errors = sorted({_error_of(past) for past in burst})
    advice = dict.fromkeys(_AGAINST_FAILED_WRITES.get(error, _AGAINST_MISSING_REPLICAS) for error in errors)
    span = f"{len(burst)} rebalances in {seconds(burst[-1].at_ms - burst[0].at_ms)}"
    words = {"error": ", ".join(errors), "what": span if len(burst) > 1 else "one rebalance", "remedy": " ".join(advice)}
    _report(g, catalogue.ASSIGNMENT_NOT_STORED, burst, NOBODY, words, errors=errors)


def _report(
    g: Emitter, text: catalogue.Text, burst: list[PastRebalance], client: tuple[str, str, str], words: dict[str, Any], /, **details: Any
) -> None:
    span_ms = burst[-1].at_ms - burst[0].at_ms
    rows = len({past.row_ms for past in burst})
    epochs = {"epochs": len(burst)} if g.view.consumer_protocol else {}
    parts = {"total_ms": "total_ms", "unavailable_partition_ms": "unavailable_ms", "partitions_moved": "moved"}
    sums = {name: _sum(burst, of) for name, of in parts.items()}
    some = ", ".join(name for name, (known, is_whole) in sums.items() if known and not is_whole)
    emit(
        g,
        text,
        burst[0].at_ms,
        client,
        [past.sign for past in burst if past.sign is not None],
        words | {"span": seconds(span_ms), "rows": "one rebalance" if rows == 1 else f"{rows} rebalances"},
        generation=burst[0].generation,
        rebalances=rows,
        **epochs,
        span_ms=span_ms,
        **{name: known for name, (known, _) in sums.items()},
        **({"at_least": some} if some else {}),
        **details,
    )


def _sum(burst: list[PastRebalance], name: str) -> tuple[int | None, bool]:
    """What is known of a sum, and whether that is all of it: of rounds that share a row one may tell for all. None: not even 0 is known."""
    known = {past.row_ms for past in burst if getattr(past, name) >= 0}
    is_whole = known == {past.row_ms for past in burst}
    return sum(max(getattr(past, name), 0) for past in burst) or (0 if is_whole else None), is_whole


def _longest_restart_ms(burst: list[PastRebalance]) -> int:
    """The longest time from when a client was last heard to its return, where both began a rebalance; -1 if none did."""
    departed: dict[tuple[str, str], int] = {}
    took = [-1]
    for past in burst:
        client = (past.client_id, past.client_host)
        if past.cause == reasons.MEMBER_JOINED and client in departed:
            took.append(past.at_ms - departed.pop(client))
        elif past.cause in _RESTARTS and past.client_id:
            departed[client] = past.gone_ms if past.gone_ms >= 0 else past.at_ms
    return max(took)
