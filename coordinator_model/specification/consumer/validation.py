"""Checks of a heartbeat that need no group. Kafka: `GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid`."""

from __future__ import annotations

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH
from coordinator_model.specification.consumer.refusals import RefusedRequestError
from coordinator_model.specification.consumer.requests import MEMBER_MAKES_ITS_ID, ConsumerGroupHeartbeat
from coordinator_model.specification.hash_maps import hash_set


def check_consumer_heartbeat(group_id: str, request: ConsumerGroupHeartbeat, config: ConsumerGroupConfig) -> None:
    """Refuse a request that makes no sense, whatever the group is."""
    problem = _problem(group_id, request)
    if problem is not None:
        raise RefusedRequestError(Error.INVALID_REQUEST, problem)
    if request.assignor is not None and request.assignor not in config.assignors:
        supported = ", ".join(hash_set(config.assignors))  # Kafka names them in the order of a HashSet
        message = f"ServerAssignor {request.assignor} is not supported. Supported assignors: {supported}."
        raise RefusedRequestError(Error.UNSUPPORTED_ASSIGNOR, message)


def _problem(group_id: str, request: ConsumerGroupHeartbeat) -> str | None:
    epoch = request.epoch
    needs_id = request.api_version >= MEMBER_MAKES_ITS_ID or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    texts = (
        ("MemberId", request.member_id if needs_id else None),
        ("GroupId", group_id),
        ("InstanceId", request.instance_id),
        ("RackId", request.rack_id),
    )
    for name, text in texts:
        if text is not None and not text.strip():
            return f"{name} can't be empty."
    if epoch == JOIN_EPOCH:
        return _problem_of_newcomer(request)
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if epoch < STATIC_LEAVE_EPOCH else None


def _problem_of_newcomer(request: ConsumerGroupHeartbeat) -> str | None:
    if request.rebalance_timeout_ms == -1:
        return "RebalanceTimeoutMs must be provided in first request."
    if request.owned is None or request.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if request.topics is None and request.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None
