"""A small language for log lines: Kafka's own sentences with fields in braces, turned into regular expressions.

    Stabilized group {group} generation {generation} with {count} members.

Ids hold any character, even brackets, quotes and ' in group '. So a template is anchored at both ends, and every id gets as little
text as the fixed words around it allow. Member ids that end like Kafka's (a UUID, or KIP-848's 22 characters) are matched first:
where a line has two readings, the one with a well-formed member id is the true one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

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
        "node": r"\d{1,9}",
        "nodes": r"\d[\d, ]*",  # comma separated
    }
)
"""The fields that are kept, in the order of `fields_of`, with the text that each may hold."""

IGNORED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "number": r"-?\d+",
        "word": r"\S+",
        "text": r".*",
    }
)
"""Fields that are skipped."""

_SEPARATOR: Final = "\x01"  # between the fields of a sentence that was read
_BRACES: Final = re.compile(r"\{(\w+)\}")

LONG_WORD: Final = r"\S{38,}"
"""A word that no template has: a name, or a member in a list, whose id alone has 37 characters.

A client may write a template's words into its names over and over. The cost of matching grows with the cube of such a text: 20,000
characters take minutes. So the length of a text counts without long words, because no template's word can be inside one.
"""


class Template(NamedTuple):
    """One sentence of Kafka's: which kind of event it is, and how it is worded."""

    kind: str
    """A kind of coordinator_model/events.py; empty for a line that concerns no group."""

    versions: str
    """Releases that write it, or since when they do."""

    text: str
    """The sentence after the prefix, with fields."""

    examples: tuple[str, ...] = ()
    """Sentences that it reads, where they show more than an ordinary value in the place of each field."""

    fixed: Mapping[str, str] = MappingProxyType({})
    """Fields whose value the wording implies."""

    @property
    def pattern(self) -> str:
        """A regular expression for Java and Python alike, with one numbered group per kept field."""
        parts = _BRACES.split(self.text)
        return "(?s)^" + "".join(_group(part) if index % 2 else _literal(part) for index, part in enumerate(parts)) + "$"

    @property
    def replacement(self) -> str:
        """What a sentence is replaced by: its kind and the kept fields, empty where the template has none; nothing if it has no kind."""
        groups = self.groups
        fields = (f"${groups.index(name) + 1}" if name in groups else self.fixed.get(name, "") for name in FIELDS)
        return _SEPARATOR.join((self.kind, *fields)) if self.kind else ""

    @property
    def first_word(self) -> str:
        """The beginning of every sentence of the template: its text up to and including the first blank, or up to the first field."""
        return re.match(r"[^ {]* ?", self.text).group()  # type: ignore[union-attr]  # it matches the empty text, too

    @property
    def groups(self) -> tuple[str, ...]:
        """Kept fields, in the order of the pattern's groups."""
        return tuple(name for name in _BRACES.findall(self.text) if name in FIELDS)


def _literal(text: str) -> str:
    return re.sub(r"([\\.^$|?*+()\[\]{}])", r"\\\1", text)


def _group(name: str) -> str:
    return f"({FIELDS[name]})" if name in FIELDS else f"(?:{IGNORED[name]})"


def template_number(templates: tuple[Template, ...], sentence: Column) -> Column:
    """The index of the first template that fits a sentence; null if none does.

    Only templates that begin with the sentence's first word are tried. Those without a kind and fields are tried last, as one pattern.
    """
    by_word: dict[str, Column] = {}
    plain = [(place, template) for place, template in enumerate(templates) if not template.kind and not template.groups]
    for place, template in enumerate(templates):
        if template.kind or template.groups:
            tried = by_word.get(template.first_word, F.when(F.lit(False), F.lit(None).cast("int")))
            by_word[template.first_word] = tried.when(sentence.rlike(template.pattern), place)
    number = F.when(F.lit(False), F.lit(None).cast("int"))
    for word, tried in by_word.items():
        number = number.when(sentence.startswith(word), tried)
    if plain:
        number = F.coalesce(number, F.when(sentence.rlike("|".join(template.pattern for _, template in plain)), plain[0][0]))
    return number


def fields_of(templates: tuple[Template, ...], sentence: Column, number: Column) -> Column:
    """The kind and then the fields of a sentence, empty where the template has none.

    Spark compiles the pattern for each line. Cutting out the fields where the template is matched would be a little faster, but ten
    times the code for Spark to generate and the JVM to compile.
    """
    patterns = F.array(*(F.lit(template.pattern if template.kind else "(?s)^.*$") for template in templates))
    replacements = F.array(*(F.lit(template.replacement) for template in templates))
    return F.split(F.regexp_replace(sentence, F.get(patterns, number), F.get(replacements, number)), _SEPARATOR)


def sentence_kind() -> Column:
    """The kind of a sentence that was read; null if no template fits, empty if it concerns no group."""
    return F.get("fields", F.lit(0))


def sentence_field(name: str, of: str = "fields") -> Column:
    """A field of a sentence that was read; null where the template does not have it."""
    value = F.get(of, F.lit(1 + list(FIELDS).index(name)))
    return F.when(value != "", value)
