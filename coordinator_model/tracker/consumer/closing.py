"""When episodes end, or are written, though no line says so: in time."""

from __future__ import annotations

from typing import Final

from coordinator_model.specification.timers import NEVER
from coordinator_model.tracker.consumer import causes, episode_rows, episodes, members
from coordinator_model.tracker.consumer.members import HEARTBEAT_INTERVAL_MS
from coordinator_model.tracker.consumer.without_logs import departed, lost_lines, silence
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import ConsumerView, Episode
from coordinator_model.view.emit import Emitter

_ANSWERED_MS: Final = 10_000
"""A busy broker answers, and logs, a first heartbeat so long after the line about the new member. Only the request log names its client."""
_TAKEN_UP_MS: Final = 10_000
"""By then another coordinator has read a group back that one gave up, and the group goes on as it was; else no line shows who has it."""


def next_ms(g: Emitter) -> int:
    """When an episode is written, or taken for ended if no line follows; NEVER if only a line can change anything."""
    view = g.view.consumer
    if view is None:
        return NEVER
    due = [_written_ms(g, view, episode) for episode in view.ended[:1]]
    due += [one.at_ms + episodes.SAME_OPERATION_MS + 1 for one in episodes.departures(view)]
    if view.episode is not None and not view.episode.polled:
        due.append(view.episode.last_ms + _patience_ms(view))
        due += [] if view.episode.start_written or view.episode.rounds[0].lost else [_start_ms(g, view, view.episode)]
    if view.given_up is not None and _is_nowhere(view):
        due.append(view.given_up[0] + _TAKEN_UP_MS)
    return min([*due, departed.next_ms(g, view)])


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes episodes that have ended, and ends one that nothing continued: for a heartbeat interval, if nothing shows when it ends.

    `flush`: no line follows.
    """
    view = g.view.consumer
    if view is None:
        return
    departed.settle(g, view, now_ms, flush=flush)
    episodes.raise_departures(g, view, NEVER if flush else now_ms, patience_ms=episodes.SAME_OPERATION_MS)
    episode = view.episode if view.episode is None or not view.episode.polled else None  # polls alone end what they began
    if episode is not None and (flush or episode.last_ms + HEARTBEAT_INTERVAL_MS <= now_ms):
        episodes.end_if_emptied(g, view)
    runs_on = episode is not None and view.episode is episode
    if episode and runs_on and ((flush and not episodes.is_shown(view)) or episode.last_ms + _patience_ms(view) <= now_ms):
        alone = not episodes.is_shown(view) and episodes.is_alone(view)
        episodes.end(view, episode.rounds[-1].computed_ms if alone else episode.last_ms, end_seen=alone)
    while view.ended and (flush or _written_ms(g, view, view.ended[0]) <= now_ms):
        episode_rows.write(g, view)
    running = episode and view.episode
    if (
        running is not None
        and not running.start_written
        and not running.rounds[0].lost
        and not view.ended
        and (flush or _start_ms(g, view, running) <= now_ms)
    ):
        causes.settle(view, running.rounds[:1])  # answers may yet explain later ones
        episode_rows.write_start(g, view, running)
    if view.given_up is not None and _is_nowhere(view) and (flush or view.given_up[0] + _TAKEN_UP_MS <= now_ms):
        episode_rows.write_given_up(g, view, *view.given_up)


def _is_nowhere(view: ConsumerView) -> bool:
    """Whether it is to be written that a group was given up: its rebalances are, and lines before showed it."""
    return not view.unfinished() and view.state != episode_rows.DEAD and bool(view.state or view.members or view.loaded_ms >= 0)


def _written_ms(g: Emitter, view: ConsumerView, episode: Episode) -> int:
    """When an episode that has ended is written: lines that come until then name its members."""
    came = (members.known(view, member_id) for member_id in episode.joined)
    is_asked = g.view.found_coordinator is not None  # requests of this group are logged
    waits = is_asked and any(member is not None and not member.client_id for member in came)
    settled_ms = episode.ended_ms + (max(g.settings.settle_ms, _ANSWERED_MS) if waits else g.settings.settle_ms)
    return max(settled_ms, departed.settled_ms(g, view, episode.rounds[0].at_ms, episode.ended_ms))


def _patience_ms(view: ConsumerView) -> int:
    """How long after the last line about an episode it is taken for ended. Records come only when a member acts, or has to be removed."""
    if not episodes.is_shown(view) or lost_lines.seems_empty(view):
        return HEARTBEAT_INTERVAL_MS
    stored = view.episode is not None and view.episode.rounds[-1].stored
    return silence.SILENT_MS + max((member.rebalance_timeout_ms for member in view.members.values() if stored), default=0)


def cut_off(g: Emitter, at_ms: int) -> None:
    """The group follows the classic protocol from now on, which ends an episode."""
    view = g.view.consumer
    if view is None:
        return
    if view.episode is not None and (view.episode.polled or episodes.is_shown(view)):
        view.episode.cut_off = True
        episodes.end(view, at_ms, end_seen=True)
        view.ended[-1].rounds[-1].reached_ms = -1
    elif view.episode is not None:
        episodes.end(view, view.episode.last_ms, end_seen=False)
    while view.ended:
        episode_rows.write(g, view)
    departed.settle(g, view, at_ms, flush=True)


def _start_ms(g: Emitter, view: ConsumerView, episode: Episode) -> int:
    """When it is written that an episode began: where a record shows that a member departed, heartbeats may yet show why."""
    first = episode.rounds[0]
    if not view.heard or first.cause != reasons.UNKNOWN:
        return first.at_ms + g.settings.settle_ms
    return max(first.at_ms + g.settings.settle_ms + HEARTBEAT_INTERVAL_MS, departed.settled_ms(g, view, first.at_ms, first.at_ms))
