"""Regular expressions in subscriptions: changed by a heartbeat, resolved in the background.

Kafka: `maybeUpdateRegularExpressions`, `refreshRegularExpressions`, `handleRegularExpressionsResult`. Kafka's background takes time;
here it runs right after the request, at the same time.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.core import ConsumerGroupCore, Operation
from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.group_state import ConsumerGroupState
from coordinator_model.specification.consumer.handlers.epochs import bump, refresh_topics
from coordinator_model.specification.consumer.handlers.membership import MemberChange
from coordinator_model.specification.consumer.records import RegularExpression, Tombstone
from coordinator_model.specification.consumer.regular_expressions import InvalidExpressionError, matching_names, translated
from coordinator_model.specification.consumer.subscriptions import metadata_hash
from coordinator_model.specification.hash_maps import JavaHashMap, hash_set
from coordinator_model.specification.refusals import RefusedRequestError

LEAST_PAUSE_MS: Final = 10_000
"""Between two resolutions in a group (`REGEX_BATCH_REFRESH_MIN_INTERVAL_MS`)."""


class ExpressionChange(Enum):
    """What a heartbeat changed in the expression of its member (`UpdateRegularExpressionsResult`)."""

    NONE = "none"
    UNRESOLVED = "unresolved"
    """To one whose topics are not known yet."""
    RESOLVED = "resolved"
    """To one whose topics are known, or to none: the group epoch moves at once."""


def update_expression(group: ConsumerGroupCore, state: ConsumerGroupState, change: MemberChange, operation: Operation) -> ExpressionChange:
    """`maybeUpdateRegularExpressions`: take the change, and ask for a resolution if one is due."""
    old, new = change.before.regex, change.after.regex
    changed = ExpressionChange.NONE
    unknown = False
    if old != new:
        changed = ExpressionChange.UNRESOLVED
        if old and state.regexes.get(old) == 1:
            operation.records.append(Tombstone(RegularExpression, old))
        unknown = bool(new) and new not in state.regexes
        if unknown:
            _check(new)
        elif not new or new in state.resolved:
            changed = ExpressionChange.RESOLVED
    if unknown or state.regexes:
        _maybe_resolve(group, state, (old, new), wanted=unknown)
    return changed


def _check(expression: str) -> None:
    """`throwIfRegularExpressionIsInvalid`."""
    try:
        translated(expression)
    except InvalidExpressionError as error:
        message = f"SubscribedTopicRegex `{expression}` is not a valid regular expression: {error}."
        raise RefusedRequestError(Error.INVALID_REGULAR_EXPRESSION, message) from None


def _maybe_resolve(group: ConsumerGroupCore, state: ConsumerGroupState, change: tuple[str, str], *, wanted: bool) -> None:
    """Ask for a resolution of all expressions of the group, unless the last one was a short while ago."""
    last = next(iter(state.resolved.values()), None)
    if last is not None and group.now_ms <= last.at_ms + LEAST_PAUSE_MS:
        return
    counts: JavaHashMap[str, int] = JavaHashMap.copy_of(state.regexes.items(), len(state.regexes))
    for expression, by in zip(change, (-1, 1), strict=True):
        if expression:
            counts.compute(expression, lambda count, by=by: ((count or 0) + by) or None)  # type: ignore[misc]
    due = (
        wanted
        or len(counts) != len(state.resolved)
        or last is None
        or last.version < group.image.version_with_new_topics
        or group.now_ms > last.at_ms + group.config.regex_refresh_interval_ms
    )
    if due:
        group.wanted_expressions = tuple(counts)


def resolve_expressions(group: ConsumerGroupCore) -> Operation:
    """Match the expressions that were asked for with the names of all topics, and keep those that are still in use."""
    expressions = hash_set(group.wanted_expressions, len(group.wanted_expressions))
    group.wanted_expressions = ()
    operation = Operation()
    state = group.state
    if state is None:
        return operation
    names = set(state.names)  # a topic that an expression no longer matches is gone, and the hash looks only at those that exist
    differs = False
    for expression in expressions:
        if expression not in state.regexes:
            continue
        topics = matching_names(expression, group.image.names())
        resolved = state.resolved.get(expression)
        differs |= set(topics) != set(() if resolved is None else resolved.topics)
        names.update(topics)
        operation.records.append(RegularExpression(expression, topics, group.image.version, group.now_ms))
    found = metadata_hash(names, group.image)
    if differs or found != state.metadata_hash:
        epoch = state.group_epoch + 1
        bump(group, operation, epoch, found, BumpCause.EXPRESSION_RESOLVED, None)
        refresh_topics(group, state, epoch)
    return operation
