"""What more evidence may say of a fact in place of what less evidence says."""

_REJOINED = {"METADATA_CHANGED", "SUBSCRIPTION_CHANGED", "REVOCATION_FOLLOW_UP"}
SHARPER = {
    "LEADER_REJOINED": _REJOINED,
    "MEMBER_REJOINED": _REJOINED,
    "MEMBER_LEFT": {"POLL_TIMEOUT", "ADMIN_REMOVED"},
    "LEFT": {"POLL_TIMEOUT"},
    "SESSION_TIMEOUT": {"POLL_TIMEOUT", "COORDINATOR_MOVED"},
}
"""What another log may show of a cause, an end or a finding."""


def as_sharp(told, other):
    """Whether `told` is what `other` says, or less of it."""
    return told in (other, "UNKNOWN") or other in SHARPER.get(told, ())
