"""A small language for log lines: Kafka's own sentences with fields in braces, turned into regular expressions.

    Stabilized group {group} generation {generation} with {count} members.

Ids hold any character, even brackets, quotes and ' in group '. So a template is anchored at both ends, and every id gets as little
text as the fixed words around it allow. Member ids that end like Kafka's (a UUID, or KIP-848's 22 characters) are matched first:
where a line has two readings, the one with a well-formed member id is the true one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
        "exceeded": r"-?\d{1,10}",  # by how much, ms
        "reason": r".*",
        "members": r".*",  # a printed collection
        "groups": r".*",  # comma separated
        "node": r"\d{1,9}",
        "nodes": r"\d[\d, ]*",  # comma separated
        "topic": r"(?!__)[\w.-]{1,249}?",  # not Kafka's own
        "topic_id": r"[\w-]{22}",
        "release": r"\d{1,2}(?:\.\d{1,3}){2,3}",
    }
)
"""The fields that are kept, with the text that each may hold."""

IGNORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "number": r"-?\d+",
        "word": r"\S+",
        "plain": r"\w+",
        "text": r".*",
        "period": r"\.?",  # Java ends many sentences with one that Scala does not end so
        "why": r"(?:; client reason: .*)?",
        "build": r"(?:[.-](?!c(?:c?s|e)\b).*)?",  # of the release; Confluent's -ccs, -cs and -ce have numbers of their own
    }
)
"""Fields that are skipped."""

_BOUNDED: Final = {
    "text": ".{0,512}?",
    "word": r"\S{1,512}?",
    "reason": ".{1,4096}?",  # a stack trace in one line
    **dict.fromkeys(("number", "generation", "rebalance_timeout", "exceeded"), r"-?\d{1,10}"),
}
"""What fields hold in beginnings; the others hold ids."""

_BRACES: Final = re.compile(r"\{(\w+)\}")

LONG_WORD: Final = re.compile(r"\S{38,}", re.ASCII)
"""A word that no template has: a name, or a member in a list, whose id alone has 37 characters.

A client may write a template's words into its names over and over. The cost of matching grows with the cube of such a text: 20,000
characters take minutes. So the length of a text counts without long words, because no template's word can be inside one.
"""


class Template(NamedTuple):
    """One sentence of Kafka's: which kind of event it is, and how it is worded."""

    kind: str  # of coordinator_model/events.py; empty for a line that concerns no group
    versions: str  # releases that write it, or since when they do
    text: str  # the sentence after the prefix, with fields
    fixed: Mapping[str, str] = MappingProxyType({})  # fields whose value the wording implies

    @property
    def pattern(self) -> str:
        """A regular expression for a whole sentence, with one numbered group per kept field."""
        parts = _BRACES.split(self.text)
        return "(?as)" + "".join(_group(part) if index % 2 else re.escape(part) for index, part in enumerate(parts)) + r"\Z"

    @property
    def groups(self) -> tuple[str, ...]:
        """Kept fields, in the order of the pattern's groups."""
        return tuple(name for name in _BRACES.findall(self.text) if name in FIELDS)

    @property
    def opening(self) -> str:
        """A regular expression for the text before the first field, and the first digit of that if it is a number."""
        before, *others = _BRACES.split(self.text, maxsplit=1)
        is_number = bool(others) and {**FIELDS, **IGNORED}[others[0]].lstrip("-?").startswith(r"\d")
        return re.escape(before) + (r"\d" if is_number else "")

    @property
    def beginning(self) -> str:
        """A regular expression for as much of the sentence as nobody else writes: it ends before the second field.

        One field of bounded length keeps a hostile line from taking minutes.
        """
        before, *others = _BRACES.split(self.text, maxsplit=2)
        between = _BOUNDED.get(others[0], ".{1,512}?") + re.escape(others[1]) if others else ""
        return re.escape(before) + between

    def written(self, values: Mapping[str, object]) -> str:
        """The sentence with values in the places of its fields."""
        return _BRACES.sub(lambda field: str(values[field[1]]), self.text)


def _group(name: str) -> str:
    return f"({FIELDS[name]})" if name in FIELDS else f"(?:{IGNORED[name]})"


class Reading(NamedTuple):
    """What a template reads of a sentence."""

    template: Template
    fields: Mapping[str, str]  # the kept ones that are not empty


class Templates:
    """Templates in their order: the first that fits a sentence decides. Those without a kind and fields come last.

    A pattern is tried only if the sentence has the template's first and last words and its longest text between: that takes 0.2 µs.
    """

    def __init__(self, templates: Sequence[Template]) -> None:
        ordered = sorted(templates, key=lambda template: not template.kind and not template.groups)
        tried = [_Tried(template) for template in ordered]
        self._open = [one for one in tried if not one.word.endswith(" ")]
        words = {one.word for one in tried if one.word.endswith(" ")}
        self._by_word = {
            word: [one for one in tried if one.word == word or (one in self._open and word.startswith(one.word))] for word in words
        }

    def read(self, sentence: str) -> Reading | None:
        """What the first template that fits reads; None if none fits."""
        for tried in self._tried(sentence):
            reading = tried.read(sentence)
            if reading is not None:
                return reading
        return None

    def may_read(self, sentence: str) -> bool:
        """Whether a sentence of any length has the fixed words of a template, though another text may have them too."""
        return any(tried.may_read(sentence) for tried in self._tried(sentence))

    def _tried(self, sentence: str) -> list[_Tried]:
        return self._by_word.get(sentence[: sentence.find(" ") + 1], self._open)


class _Tried:
    """A template whose pattern is compiled when the first sentence may fit."""

    __slots__ = ("_end", "_inside", "_pattern", "_template", "word")

    def __init__(self, template: Template) -> None:
        literals = _BRACES.split(template.text)[::2]  # before, between and after the fields
        *others, self._end = literals
        self._inside = max(others, key=len, default="")
        self._template = template
        self._pattern: re.Pattern[str] | None = None
        self.word = "".join(literals[0].partition(" ")[:2])  # how every sentence begins: up to the first blank, or the first field

    def may_read(self, sentence: str) -> bool:
        return sentence.endswith(self._end) and self._inside in sentence

    def read(self, sentence: str) -> Reading | None:
        if not self.may_read(sentence):
            return None
        if self._pattern is None:
            self._pattern = re.compile(self._template.pattern)
        found = self._pattern.match(sentence)
        if found is None:
            return None
        fields = dict(self._template.fixed)
        fields.update((name, value) for name, value in zip(self._template.groups, found.groups(), strict=True) if value)
        return Reading(self._template, fields)
