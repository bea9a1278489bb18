"""Epochs that a damaged line shows: far too high. If the tracker believed them, all later epochs would be old.

The epoch of a group rises by one at a time (ConsumerGroup.groupEpoch, GroupMetadataManager.consumerGroupHeartbeat). So

* an answer that skips many epochs counts once another answer agrees. Until then it is no evidence of anything;
* a line of the coordinator that skips epochs counts at once, since each is there once only, and others may be lost. It is taken back if the
  next such line has an epoch in between.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.events import Event
from coordinator_model.view.consumer_view import ConsumerView

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
