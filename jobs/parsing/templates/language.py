"""A small language for log lines: Kafka's own sentences with fields in braces, turned into regular expressions.

    Stabilized group {group} generation {generation} with {count} members.

Ids hold any character, brackets, quotes and ' in group ' included, so a template is anchored at both ends and every id gets as little
text as the fixed words around it allow. Member ids that end like Kafka's (a UUID, or KIP-848's 22 characters) are read as such first:
where a line can be read in two ways, the reading with a well-formed member id is the true one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

_MEMBER: Final = r"(?:.*?-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[\w+/-]{22}|.*?)"
FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "group": r".*?",
        "member": _MEMBER,
        "instance": r".*?",  # Scala prints an Option, Java a value or null
        "client": r".*?",
        "host": r"[^, ]*?",
        "generation": r"-?\d{1,10}",
        "new_member": _MEMBER,
        "leader": _MEMBER,
        "state": r"\w+",
        "count": r"\d{1,9}",
        "partition": r"\d{1,9}",
        "session_timeout": r"\d{1,10}",
        "rebalance_timeout": r"\d{1,10}",
        "reason": r".*",
        "members": r".*",  # a printed collection
        "groups": r".*",  # comma separated
    }
)
"""Fields that are kept, in the order of a read line's record, and the text that each may hold."""

IGNORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "number": r"-?\d+",
        "word": r"\S+",
        "text": r".*",
    }
)
"""Fields that are only passed over."""

_BRACES: Final = re.compile(r"\{(\w+)\}")

LONG_WORD: Final = r"\S{38,}"
"""A word that is none of a template's own: a name, or a member in a list, whose id alone has 37 characters.

What a pattern costs grows with the cube of a text in which its words stand over and over, as a client may write them into its names:
20,000 such characters take minutes. So a text is short that is so without these words, in which no template's words can be.
"""


class Template(NamedTuple):
    """One sentence of Kafka's: what kind of event it is, and how it is worded."""

    kind: str
    """Of coordinator_model/events.py; empty for a line that concerns no group."""

    text: str
    """The sentence after the prefix, with fields."""

    versions: str
    """Releases that write it, or since when they do."""

    examples: tuple[str, ...]
    """Sentences that it reads."""

    fixed: Mapping[str, str] = MappingProxyType({})
    """Fields that the wording itself tells."""

    @property
    def pattern(self) -> str:
        """A regular expression for Java and Python alike, with one numbered group per kept field."""
        parts = _BRACES.split(self.text)
        return "(?s)^" + "".join(_field(part) if index % 2 else _literal(part) for index, part in enumerate(parts)) + "$"

    @property
    def first_word(self) -> str:
        """How every sentence of the template begins: its text up to the first blank, that included, or field."""
        return re.match(r"[^ {]* ?", self.text).group()  # type: ignore[union-attr]  # it matches the empty text, too

    @property
    def groups(self) -> tuple[str, ...]:
        """Kept fields, in the order of the pattern's groups."""
        return tuple(name for name in _BRACES.findall(self.text) if name in FIELDS)


def _literal(text: str) -> str:
    return re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text)


def _field(name: str) -> str:
    return f"({FIELDS[name]})" if name in FIELDS else f"(?:{IGNORED[name]})"
