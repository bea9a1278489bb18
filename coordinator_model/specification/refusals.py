"""A request that is refused: nothing changes, and the answer says why."""

from __future__ import annotations

from coordinator_model.errors import Error


class RefusedRequestError(Exception):
    """Ends the handling of a request. It never leaves the specification."""

    def __init__(self, error: Error, message: str | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


def no_consumer_group(group_id: str, *, exists: bool) -> RefusedRequestError:
    """`GroupMetadataManager.consumerGroup` finds no group, or one of another type."""
    reason = f"Group {group_id} is not a consumer group." if exists else f"Group {group_id} not found."
    return RefusedRequestError(Error.GROUP_ID_NOT_FOUND, reason)
