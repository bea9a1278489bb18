"""The words by which a line tells of trouble. Nothing is called healthy over a line that has one and that no entry explains."""

from __future__ import annotations

import re
from typing import Final

WORDS: Final = r"(?i:error|fatal|failed|failure|expir(?:ed|ation)|(?:\b|_)fenced|timed out|exception)"
"""A regular expression of Python and of RE2, which DuckDB uses. Each node that Kafka 4 prints has `isFenced: false`."""

NO_ERROR: Final = r"""(?i:\berror(?:s|[_ ]?code|[_ ]?message)?\s?[=:]\s?(?:['"]?(?:0|none|null|nil)['"]?|''|"")(?:[,;.)\]}\s]|$))"""
"""A field of a response that says that there was none: `errorCode=0, errorMessage=''`. It counts as no word."""

ROUTINE: Final = r"(?i:member[_ ]?id[_ ]?required|valid member id|given member[.-]id)"
"""How a client learns its member id before its first join (KIP-394). The words say "failed", and nothing did."""

OVERTAKEN: Final = r"(?i:rebalance[_ ]?in[_ ]?progress|group is rebalancing)"
"""How a client hears that its group rebalances. No trouble of its own; where a broker speaks, it has to show that rebalance."""

UNREACHED: Final = (
    r"(?i:sending fetch request|transport failure|\bdisconnected|not[ _](?:the correct )?coordinator"
    r"|not the current leader|coordinator[ _](?:is )?(?:not[ _]available|loading)|request[ _]timed[ _]out|either not started or not valid)"
)
"""How a client says that it cannot reach a broker, and a broker that a partition has moved. What happened to a broker then explains it."""

_WORDS: Final = re.compile(WORDS)
_NO_ERROR: Final = re.compile(NO_ERROR)
_GRAVE: Final = re.compile(r"\[[^\]]*\] (?:WARN|ERROR|FATAL) ")


def tells_of_trouble(sentence: str) -> bool:
    """Whether a sentence has such a word."""
    return _WORDS.search(sentence) is not None and _WORDS.search(_NO_ERROR.sub(" ", sentence)) is not None


def is_grave(line: str) -> bool:
    """Whether a line of Kafka's own pattern has the level WARN or a graver one."""
    return _GRAVE.match(line) is not None
