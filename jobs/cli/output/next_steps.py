"""What to do about lines that were not understood, by the reason for which they were refused."""

from __future__ import annotations

from typing import Final

_NO_TIME: Final = (
    "a line needs a date and a time. Copy it with that of its container (`kubectl logs --timestamps`, `docker logs --timestamps`), or let"
    " the log's own pattern have both; if both are there in another form, name the pattern of the log: --log-format '%d{…} %p %m (%c)%n'"
)
_TIME: Final = (
    "the time of such a line is damaged, or far from those of the lines around it. A clock of another time zone is: explain its lines in a"
    " file of their own, with --timezone"
)
_STEPS: Final = {
    "UNKNOWN_TEMPLATE": "such a line is whole, and is not read: a gap in this program. Please report it as it stands there",
    "NO_TIMESTAMP": _NO_TIME,
    "NO_TIME": _NO_TIME,
    "BAD_TIMESTAMP": _TIME,
    "TIMESTAMP_OUTLIER": _TIME,
    "TRUNCATED": "such a line ends before its logger: it was cut, or the pattern of the log has no logger; then name the pattern:"
    " --log-format '[%d] %p %m%n'",
    "MALFORMED": "such a line is a coordinator's, in a layout that is not known: name the pattern of the log:"
    " --log-format '[%d] %p [%t] %c %m%n'",
    "NO_GROUP": "no line of that client names its group. Put the log into a folder that bears its name, logs/clients/GROUP/app.log, and"
    " explain logs/",
    "OLD_FORMAT": "Kafka 0.9 to 0.11 logs requests without their answers: server.log tells more",
    "LOGGED_WITHOUT_BODY": "the request log was switched on while such a request was in flight",
}
_DAMAGED: Final = "such a line is damaged"


def next_step(reason: str) -> str:
    """A sentence about lines that were refused for this reason, a code with or without a detail."""
    return _STEPS.get(reason.partition(":")[0], _DAMAGED)
