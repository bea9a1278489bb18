"""Findings about groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, incidents, margins, silences
from coordinator_model.diagnosis.findings import above, current, emit, first_time, seconds, since
from coordinator_model.diagnosis.kinds import settings
from coordinator_model.diagnosis.refusals import poll_limit_too, removal
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.consumer_view import Change, ConsumerMember, ConsumerView, Episode
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import or_none, ref
from coordinator_model.view.view import Silence

LONG_WAIT_MS: Final = 10_000
"""Twice a heartbeat interval: with the default of the assignment interval a target is there after one."""
STUCK_MS: Final = 15_000
"""Three heartbeat intervals: a member that polls has answered by then."""
HELD_MS: Final = 5_000
"""A heartbeat interval: a member that is told to give partitions up and polls has given them up by then."""
STALE_MS: Final = 5_000
"""A heartbeat interval: after it, a client that lives has used the epoch that it was told."""
_CANNOT_JOIN: Final = {
    Error.GROUP_MAX_SIZE_REACHED: consumer_catalogue.GROUP_TOO_LARGE,
    Error.UNSUPPORTED_ASSIGNOR: consumer_catalogue.UNSUPPORTED_ASSIGNOR,
    Error.INVALID_REGULAR_EXPRESSION: consumer_catalogue.INVALID_REGEX,
}
_OF_TOPICS: Final = frozenset({reasons.METADATA_CHANGED, reasons.REGEX_RESOLVED})
_LEAVES: Final = frozenset({reasons.MEMBER_LEFT, reasons.LEFT, reasons.POLL_TIMEOUT})
"""How a member goes by itself: what raises the epoch then, and how its membership ends."""
OWN_LEAVE_MS: Final = 10_000
"""A client's last heartbeats can cross its own leave: that they are refused is no finding."""


def removed(g: Emitter, view: ConsumerView, member: ConsumerMember, change: Change) -> None:
    """Reports a member that the coordinator removed: it was silent, or did not give partitions up."""
    signs = [change.sign, *([member.last_sign] if member.last_sign is not None else [])]
    limit_ms = member.rebalance_timeout_ms
    epoch = member.epoch if member.epoch >= 0 else view.epoch - 1  # its removal raised the epoch
    if change.cause == reasons.SESSION_TIMEOUT and member.away_ms >= 0:
        margins.long_away(g, view, member, change.at_ms, signs, came_back=False)
    elif change.cause == reasons.SESSION_TIMEOUT:
        silent_ms = change.at_ms - member.heard_ms if member.heard_ms >= 0 else -1
        told = {"generation": epoch, "signs": signs, "silent_ms": silent_ms, "of_group": member.session_timeout_ms < 0}
        incidents.hold_back(g, Silence(**member.shared() | told, at_ms=change.at_ms, is_end=True, seen_ms=member.heard_ms))
    elif change.cause == reasons.REBALANCE_TIMEOUT:
        topics = view.episode is not None and any(one.cause in _OF_TOPICS for one in view.episode.rounds)
        remedy = (consumer_catalogue.TOPIC_MAY_BE_GONE if topics else "") + _revoke_sooner(g, member, change.at_ms)
        words = {"limit": f" ({seconds(limit_ms)})" if limit_ms >= 0 else "", "remedy": remedy}
        details = {"rebalance_timeout_ms": or_none(limit_ms)}
        emit(g, consumer_catalogue.REBALANCE_TIMEOUT, change.at_ms, member.client(), signs, words, generation=epoch, **details)


def _revoke_sooner(g: Emitter, member: ConsumerMember, at_ms: int) -> str:
    """What helps a member that did not give partitions up within its rebalance timeout, which was over then.

    Heartbeats go on while the application does not poll: its background thread sends them (ConsumerHeartbeatRequestManager).
    """
    limit_ms = member.rebalance_timeout_ms
    why = silences.why(member.as_observed(member.longest_gap_ms), at_ms - limit_ms, at_ms)
    less = settings.of_member(g.view, member.client_id, member.software).less_work()
    return consumer_catalogue.SLOW_TO_REVOKE[why].format(current=current(limit_ms), less=less, since=since(member.heard_ms))


def waited(g: Emitter, episode: Episode, member: ConsumerMember | None, waited_ms: int) -> None:
    """Reports the member that a rebalance waited for, if that was long."""
    if member is None or waited_ms < HELD_MS:
        return
    if any((one.cause, one.member_id) == (reasons.REBALANCE_TIMEOUT, member.member_id) for one in episode.rounds):
        return  # its removal is told
    own = (one for one in episode.revocations if one.member_id == member.member_id)
    held = any(one.ended_ms - one.told_ms >= waited_ms for one in own)
    if not held and waited_ms < STUCK_MS:
        return
    what = "it was slow to give up partitions" if held else "it sent no heartbeat"
    silent = not held or 2 * member.longest_gap_ms >= waited_ms
    remedy = (catalogue.PAUSE if silent else consumer_catalogue.GIVES_UP_LATE).format(
        limit=current(member.rebalance_timeout_ms), since=since(episode.ended_ms - waited_ms)
    )
    words = {"waited": seconds(waited_ms), "what": what, "remedy": remedy}
    signs = [sign for one in episode.rounds for sign in one.signs]
    epoch = episode.rounds[-1].epoch
    details = {"waited_ms": waited_ms, "rebalance_timeout_ms": or_none(member.rebalance_timeout_ms)}
    text = consumer_catalogue.STUCK_RECONCILING
    emit(g, text, episode.ended_ms, member.client(), signs, words, generation=epoch, **details)


def waited_for_interval(g: Emitter, episode: Episode, waited_ms: int) -> None:
    """Reports that a rebalance waited long for the coordinator to compute a target, while no member held it up."""
    if waited_ms < LONG_WAIT_MS:
        return
    signs = [sign for one in episode.rounds for sign in one.signs]
    words, epoch = {"waited": seconds(waited_ms)}, episode.rounds[-1].epoch
    emit(g, consumer_catalogue.ASSIGNMENT_DELAYED, episode.ended_ms, ("", "", ""), signs, words, generation=epoch, waited_ms=waited_ms)


def refused(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Reports a heartbeat that the coordinator refused, once for each member and epoch."""
    client = (event.member_id, event.client_id, event.client_host)
    if event.error_code in _CANNOT_JOIN:
        _cannot_join(g, view, event)
    elif event.error_code == Error.UNSUPPORTED_VERSION:
        protocol_refused(g, event)
    elif event.error_code == Error.UNKNOWN_MEMBER_ID:
        _of_no_member(g, view, event)
    elif event.error_code == Error.FENCED_MEMBER_EPOCH:
        text = consumer_catalogue.FENCED_MEMBER_EPOCH
        if first_time(g, text, event.member_id, event.generation):
            emit(g, text, event.at_ms, client, [ref(event)], {}, generation=view.epoch, sent_epoch=event.generation)
    elif event.error_code in (Error.UNRELEASED_INSTANCE_ID, Error.FENCED_INSTANCE_ID):
        owner = next((m for m in view.members.values() if m.instance_id == event.instance_id and m.member_id != event.member_id), None)
        unreleased = event.error_code == Error.UNRELEASED_INSTANCE_ID
        text = consumer_catalogue.UNRELEASED_INSTANCE_ID if unreleased else catalogue.FENCED_INSTANCE
        words = {"owner": f" ({owner.client_id or owner.member_id})" if owner is not None else ""}
        if first_time(g, text, event.member_id, view.epoch):
            emit(g, text, event.at_ms, client, [ref(event)], words, generation=view.epoch, instance_id=event.instance_id)


def _cannot_join(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Once for each client: it tries again and again."""
    text = _CANNOT_JOIN[Error(event.error_code)]
    if not first_time(g, text, event.client_id or event.client_host, -1):
        return
    assignor = next((protocol.name for protocol in event.protocols), "")
    members = len(view.members) if view.complete else None
    words = {
        "regex": event.subscribed_regex or "",
        "assignor": assignor or "that it names",
        "limit": f" {members}" if members is not None else "",
    }
    client = ("", event.client_id, event.client_host)
    details = {"regex": event.subscribed_regex, "assignor": assignor or None, "members": members}
    emit(g, text, event.at_ms, client, [ref(event)], words, generation=view.epoch, **details)


def rejected(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Reports a client that asked for what is not possible, such as another topology than the group's, and gives up, once for each client.

    Source: GroupMetadataManager.streamsGroupHeartbeat, StreamsGroupHeartbeatRequestManager.handleFatalFailure (4.2).
    """
    if first_time(g, client_catalogue.CLIENT_REFUSED, event.client_id or event.client_host, -1):
        client, words = (event.member_id, event.client_id, event.client_host), {"reason": event.reason}
        text = client_catalogue.TOPOLOGY_REFUSED if "opology" in event.reason else client_catalogue.CLIENT_REFUSED
        emit(g, text, event.at_ms, client, [ref(event)], words, generation=view.epoch, times=1)


def acknowledged_late(g: Emitter, event: Event) -> None:
    """Reports a share consumer whose acknowledgement was refused, once for each member (SharePartition.acknowledge, 4.2)."""
    if event.error_code == Error.INVALID_RECORD_STATE and first_time(g, consumer_catalogue.SHARE_LOCK_EXPIRED, event.member_id, -1):
        lock_ms, client = event.session_timeout_ms, (event.member_id, event.client_id, event.client_host)
        words = {"lock": seconds(lock_ms) if lock_ms >= 0 else "a limited time"}
        epoch = g.view.consumer.epoch if g.view.consumer is not None else None
        text = consumer_catalogue.SHARE_LOCK_EXPIRED
        emit(g, text, event.at_ms, client, [ref(event)], words, generation=epoch, lock_ms=or_none(lock_ms), partitions=event.owned)


def classic_member_refused(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Reports a JoinGroup that was refused, once for each client. The coordinator's line names none: it counts where no request does.

    Source: GroupMetadataManager.throwIfClassicMemberCannotJoinConsumerGroup (4.2.2, 4.3.1).
    """
    is_request = event.kind == kinds.JOIN_GROUP
    client = ("", event.client_id, event.client_host)
    text = consumer_catalogue.CLASSIC_MEMBER_REFUSED
    if (is_request or not view.heard) and first_time(g, text, event.client_id or event.client_host, -1):
        words = {
            "who": "The client" if is_request else "A client",
            "error": " (INCONSISTENT_GROUP_PROTOCOL)" if is_request else "; group.consumer.migration.policy is disabled",
        }
        emit(g, text, event.at_ms, client, [ref(event)], words, generation=view.epoch)


def protocol_refused(g: Emitter, event: Event) -> None:
    """Reports a client whose consumer protocol the broker does not have, once for each client: it is no member of any group.

    Source: KafkaApis.handleConsumerGroupHeartbeat, isConsumerGroupProtocolEnabled (3.7 to 4.4).
    """
    text = consumer_catalogue.CONSUMER_PROTOCOL_REFUSED
    if first_time(g, text, event.client_id or event.client_host, -1):
        emit(g, text, event.at_ms, ("", event.client_id, event.client_host), [ref(event)], {}, error_code=event.error_code)


def refused_commit(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Reports a refused commit that shows a zombie: of a member that was removed, or with an epoch that it gave up long before.

    A commit that crosses an answer with a new epoch is refused too; the client repeats it with that epoch. It is no finding.
    Source: org.apache.kafka.coordinator.group.modern.consumer.ConsumerGroup.validateOffsetCommit, validateMemberEpoch (4.x).
    """
    member = view.members.get(event.member_id)
    is_stale = event.error_code == Error.STALE_MEMBER_EPOCH or (
        event.error_code == Error.ILLEGAL_GENERATION and event.kind == kinds.TXN_OFFSET_COMMIT
    )
    if event.error_code == Error.UNKNOWN_MEMBER_ID and event.member_id:
        _of_no_member(g, view, event)
    elif is_stale and member is not None:
        _commit_with_old_epoch(g, view, event, member)


def _commit_with_old_epoch(g: Emitter, view: ConsumerView, event: Event, member: ConsumerMember) -> None:
    since_ms = member.away_ms if member.away_ms >= 0 else member.epoch_ms
    after_ms = event.received_ms - since_ms
    if since_ms < 0 or after_ms < STALE_MS or event.generation >= member.epoch + (member.away_ms >= 0):
        return
    if not first_time(g, consumer_catalogue.STALE_COMMIT, member.member_id, event.generation):
        return
    if member.away_ms >= 0:
        why, remedy = f"it had left temporarily (epoch -2) {seconds(after_ms)} before", consumer_catalogue.COMMITS_WHILE_AWAY
    else:
        why, remedy = f"it had been told of epoch {member.epoch} {seconds(after_ms)} before", consumer_catalogue.KEPT_EPOCH
    signs = [ref(event), *([member.last_sign] if member.last_sign is not None else [])]
    details = {"sent_epoch": event.generation, "epoch": member.epoch, "after_ms": after_ms}
    text = consumer_catalogue.STALE_COMMIT
    emit(g, text, event.at_ms, member.client(), signs, {"why": why, "remedy": remedy}, generation=view.epoch, **details)


def _of_no_member(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Reports a heartbeat or a commit under the id of a member that is there no more."""
    gone = next((member for member in reversed(view.gone) if member.member_id == event.member_id), None)
    after_ms = event.received_ms - gone.gone_ms if gone is not None and gone.gone_ms >= 0 else None
    commits = event.kind not in (kinds.CONSUMER_GROUP_HEARTBEAT, *kinds.HEARTBEATS_OF_OTHERS)
    text = consumer_catalogue.ZOMBIE_COMMIT if commits else catalogue.UNKNOWN_MEMBER
    sent = {"sent_epoch": event.generation} if commits else {}
    if _crosses_own_leave(view, gone, event) or not first_time(g, text, event.member_id, event.generation if commits else view.epoch):
        return
    remedy, figures = _remedy(g, view, gone, event)
    words = {
        "api": event.kind,
        "removal": removal(gone.end_kind if gone is not None else "", after_ms),
        "after": f" {seconds(after_ms)} after its removal" if after_ms is not None and after_ms >= 0 else "",
        "remedy": remedy if commits or gone is None else catalogue.STILL_RAN.format(meanwhile=catalogue.MAY_BE_TAKEN) + remedy,
        "act": catalogue.IN_A_TRANSACTION if event.kind == kinds.TXN_OFFSET_COMMIT else catalogue.BE_IDEMPOTENT,
    }
    client = (event.member_id, event.client_id, event.client_host)
    details = {"removed_before_ms": after_ms, **sent, **figures}
    emit(g, text, event.at_ms, client, [ref(event)], words, generation=view.epoch, **details)


def _remedy(g: Emitter, view: ConsumerView, gone: ConsumerMember | None, event: Event) -> tuple[str, dict[str, int | None]]:
    """What helps a client that went on though it was no member any more, by the way in which its membership ended; and its figure."""
    if gone is not None and gone.end_kind == reasons.SESSION_TIMEOUT and gone.heard_ms > max(view.loaded_ms, g.view.moved_ms):
        if gone.tried_ms < gone.gone_ms:
            gone.tried_ms = event.received_ms  # the first request that is refused ends the silence
        silent_ms = gone.tried_ms - gone.heard_ms
        stalled = " The poll loop of a static member may have stalled, too." if gone.instance_id else ""
        words = {
            "silence": seconds(silent_ms),
            "least": above(silent_ms),
            "stalled": stalled,
            "type": g.view.group_type,
            "since": since(gone.heard_ms),
            "poll": poll_limit_too(silent_ms, gone.rebalance_timeout_ms),
        }
        figures = {"silent_ms": silent_ms, "max_poll_interval_ms": or_none(gone.rebalance_timeout_ms)}
        return consumer_catalogue.CAME_BACK_AFTER_SILENCE.format(**words), figures
    if gone is None or gone.end_kind not in {reasons.REBALANCE_TIMEOUT, *_LEAVES}:
        return consumer_catalogue.CAME_BACK, {}
    figures = {"rebalance_timeout_ms": or_none(gone.rebalance_timeout_ms)}
    if gone.end_kind == reasons.REBALANCE_TIMEOUT:
        return f"{consumer_catalogue.CAME_BACK} {_revoke_sooner(g, gone, gone.gone_ms)}", figures
    return catalogue.LEFT_AND_RAN_ON.format(current=current(gone.rebalance_timeout_ms)), figures


def _crosses_own_leave(view: ConsumerView, gone: ConsumerMember | None, event: Event) -> bool:
    """Whether a member had just left when a request of it was refused. Its leave may not have taken effect in the estimate yet."""
    left_ms = [one.at_ms for one in view.changes if one.member_id == event.member_id and one.cause in _LEAVES]
    if gone is not None and gone.end_kind in _LEAVES and gone.gone_ms >= 0:
        left_ms.append(gone.gone_ms)
    return any(event.received_ms - at_ms < OWN_LEAVE_MS for at_ms in left_ms)
