"""Epochs that skip others: lines are missing, or the line is damaged. If the tracker believed damaged ones, all later epochs would be old.

The epoch of a group rises by one at a time (ConsumerGroup.groupEpoch, GroupMetadataManager.consumerGroupHeartbeat). So

* an answer that skips many epochs counts once another answer agrees. Until then it is no evidence of anything;
* a line of the coordinator that skips epochs counts at once, since each is there once only, and others may be lost. It is taken back if the
  next such line has an epoch in between.

Where epochs are missing, it is not known what the group did: how its rebalance ended, who came and went, who has which partitions. Up to
Kafka 3.9 a departure raises the epoch without a line of its own (consumerGroupFenceMember), so its own line counts for it. Members that
fall silent together raise it once each, which no request shows. Records are compacted.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from coordinator_model.diagnosis import troubles
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import prediction, undecided
from coordinator_model.view.consumer_view import ConsumerView, Round
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref

_SKIPPED: Final = 10
"""Epochs between two answers that no line explains. Members send heartbeats every few seconds, so a log without a hole skips none."""


def is_doubtful(view: ConsumerView, event: Event) -> bool:
    """Whether an answer shows an epoch that no other one has come near, so that it may be damaged."""
    epoch, before = event.answer_generation, view.doubtful_epoch
    agrees = before >= 0 and abs(epoch - before) <= _SKIPPED
    is_doubtful = view.epoch >= 0 and epoch > view.epoch + len(view.changes) + _SKIPPED and not agrees
    view.doubtful_epoch = epoch if is_doubtful else -1
    return is_doubtful


def take_back(view: ConsumerView, event: Event) -> bool:
    """Takes back the last epoch, if a line of the coordinator has one between it and the one before: the last line was damaged."""
    if not 0 <= view.epoch_before < event.generation < view.epoch:
        return False
    view.epoch = view.epoch_before
    rounds = view.episode.rounds if view.episode is not None else []
    if rounds and rounds[-1].epoch > event.generation:
        view.epoch = rounds[-1].epoch = max(view.epoch_before + 1, event.generation - 1)
    return True


def skips_in_lines(g: Emitter, view: ConsumerView, epoch: int, departed: int) -> int:
    """The first epoch that no line has, before one that a line of the coordinator shows; -1 if none is missing.

    `departed`: how many go with this epoch. What else is known to have raised the epoch since the last line has none either.
    """
    since = len([member for member in view.gone if member.gone_ms > g.view.line_ms])
    return _first_missing(view, epoch, departed + since + len(view.changes))


def skips_in_answers(view: ConsumerView, epoch: int) -> int:
    """The same of an epoch that an answer shows."""
    return _first_missing(view, epoch, 0) if epoch > view.epoch + len(view.changes) + len(view.members) + _SKIPPED else -1


def _first_missing(view: ConsumerView, epoch: int, explained: int) -> int:
    return view.epoch + 1 if 0 <= view.epoch < epoch - explained - 1 else -1


def lose_sight(g: Emitter, view: ConsumerView, since_ms: int, keep: Collection[str]) -> tuple[int, Ref] | None:
    """Forgets who is a member and who has what, but for those seen since then, and these. Returns the last line before."""
    signs = [(g.view.line_ms, g.view.line), *((one.heard_ms, one.last_sign) for one in view.members.values() if one.heard_ms < since_ms)]
    view.lose_sight(since_ms, keep)
    view.metadata_hash = ""
    prediction.drop(view, undecided.NOT_FOLLOWED)
    return max(((at_ms, sign) for at_ms, sign in signs if sign is not None), default=None)


def report(g: Emitter, one: Round) -> None:
    """Reports the epochs that are missing before a round."""
    if one.known is not None and 0 <= one.missing < one.epoch:
        since_ms, sign = one.known
        missing = one.missing, one.epoch - 1
        troubles.missing_lines(g, "Epoch", one.missing - 1, missing, (since_ms, one.at_ms), [sign, *one.signs[:1]])
