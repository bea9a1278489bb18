r"""Regular expressions over names of topics, by the rules of RE2 (KIP-848: `SubscribedTopicRegex`).

Kafka matches whole names with RE2/J. For the syntax below, RE2/J and Python mean the same set of names: literals, `.`, classes,
groups, alternatives, repetitions, anchors. Only syntax that both read alike gets to Python; what else there is in RE2 (`\pL`, flags,
`\Q...\E`, ...) raises `UnsupportedExpressionError`. Which of several ways of matching is taken makes no difference for whole names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MOST_REPETITIONS: Final = 1000
"""RE2 refuses larger counts."""

_PERL_CLASSES: Final = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}
_CONTROLS: Final = "aftnrv"
_REPEAT: Final = re.compile(r"\{(0|[1-9]\d*)(?:(,)(0|[1-9]\d*)?)?\}", re.ASCII)
_PLAIN_GROUP: Final = re.compile(r"\?:|\?P?<([A-Za-z0-9_]+)>", re.ASCII)


class InvalidExpressionError(ValueError):
    """RE2 does not compile the expression. The text is that of RE2/J."""


class UnsupportedExpressionError(ValueError):
    """The expression uses syntax of RE2 that this specification does not know."""


def matching_names(expression: str, names: Iterable[str]) -> tuple[str, ...]:
    """The names that the expression matches as a whole, sorted (`refreshRegularExpressions`)."""
    pattern = re.compile(translated(expression))
    return tuple(sorted(name for name in names if pattern.fullmatch(name)))


def translated(expression: str) -> str:
    """The expression for Python's `re`. InvalidExpressionError: RE2 refuses it; UnsupportedExpressionError: it is not known here."""
    reader = _Reader(expression)
    reader.alternatives(inside=False)
    return "".join(reader.out)


class _Reader:
    """Reads an expression from left to right, as RE2's parser does, and writes it for Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.names: set[str] = set()

    def alternatives(self, *, inside: bool) -> None:
        """Up to the end, or inside a group to the parenthesis that closes it."""
        repeatable = False
        repeated: int | None = None  # where the last repetition ends
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == ")":
                if not inside:
                    raise InvalidExpressionError("regexp/syntax: internal error")
                return
            start, counts = self.at, self._counts() if char == "{" else None
            if char == "|":
                self._copy()
                repeatable = False
            elif char in "*+?" or counts is not None:
                self._repetition(counts)
                if repeated == start:
                    raise InvalidExpressionError("invalid nested repetition operator")
                if not repeatable:
                    raise InvalidExpressionError("missing argument to repetition operator")
                repeated = self.at
            else:
                self._atom(char)
                repeatable = True
        if inside:
            raise InvalidExpressionError("missing closing )")

    def _atom(self, char: str) -> None:
        if char == "(":
            self._group()
        elif char == "[":
            self._class()
        elif char == "\\":
            self._escape()
        elif char in ".^$":
            # Without flags: . is any character but a newline, ^ and $ are the ends of the text.
            self.out.append({".": "[^\\n]", "^": r"(?:\A)", "$": r"(?:\Z)"}[char])
            self.at += 1
        else:
            self.out.append(re.escape(char))
            self.at += 1

    def _group(self) -> None:
        self.at += 1
        if self.text.startswith("?", self.at):
            kind = _PLAIN_GROUP.match(self.text, self.at)
            if kind is None and self.text.startswith(("?<", "?P<"), self.at):
                raise InvalidExpressionError("invalid named capture")
            if kind is None:
                raise UnsupportedExpressionError(f"(?... in {self.text!r}")
            name = kind.group(1)
            if name in self.names:
                raise InvalidExpressionError("duplicate capture group name")
            self.names |= {name} if name else set()
            self.at = kind.end()
        self.out.append("(?:")
        self.alternatives(inside=True)
        self._copy()

    def _counts(self) -> tuple[int, int | None] | None:
        """The counts of {n}, {n,} or {n,m}; None: the brace is a character as any other."""
        found = _REPEAT.match(self.text, self.at)
        if found is None:
            return None
        least = int(found.group(1))
        most = None if found.group(2) and not found.group(3) else int(found.group(3) or least)
        return least, most

    def _repetition(self, counts: tuple[int, int | None] | None) -> None:
        if counts is not None:
            least, most = counts
            if least > MOST_REPETITIONS or (most is not None and (most > MOST_REPETITIONS or most < least)):
                raise InvalidExpressionError("invalid repeat count")
            self.out.append(f"{{{least},{'' if most is None else most}}}")
            self.at = self.text.index("}", self.at) + 1
        else:
            self._copy()
        if self.text.startswith("?", self.at):
            self.at += 1  # as few as possible: the same whole names

    def _escape(self) -> None:
        char = self._escaped()
        if char.lower() in _PERL_CLASSES:
            negated = "^" if char.isupper() else ""
            self.out.append(f"[{negated}{_PERL_CLASSES[char.lower()]}]")
        elif char in _CONTROLS:
            self.out.append("\\" + char)
        elif char in "AzbB":
            self.out.append({"A": r"(?:\A)", "z": r"(?:\Z)", "b": r"(?a:\b)", "B": r"(?a:\B)"}[char])
        else:
            self.out.append(re.escape(self._punctuation(char)))

    def _escaped(self) -> str:
        if self.at + 1 == len(self.text):
            raise InvalidExpressionError("trailing backslash at end of expression")
        self.at += 2
        return self.text[self.at - 1]

    def _punctuation(self, char: str) -> str:
        """A character that an escape makes an ordinary one."""
        if char.isalnum() or not char.isascii():
            if char in "pPQxC" or char.isdigit():
                raise UnsupportedExpressionError(f"\\{char} in {self.text!r}")
            raise InvalidExpressionError("invalid escape sequence")
        return char

    def _class(self) -> None:
        r"""A class of characters: [abc], [^a-z], [\w.-]."""
        self.at += 1
        self.out.append("[")
        if self.text.startswith("^", self.at):
            self._copy()
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.text.startswith("[:", self.at):
                raise UnsupportedExpressionError(f"[: in {self.text!r}")
            self._class_member()
            first = False
        self._copy()

    def _class_member(self) -> None:
        low = self._class_character()
        if low is None:
            return
        self.out.append(re.escape(low))
        if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
            self.at += 1
            high = self._class_character()
            if high is None or high < low:
                raise InvalidExpressionError("invalid character class range" if high else "invalid escape sequence")
            self.out.append("-" + re.escape(high))

    def _class_character(self) -> str | None:
        r"""The next character of a class; None: it was a class of its own, such as \d, and is written."""
        if self.at >= len(self.text):
            raise InvalidExpressionError("missing closing ]")
        char = self.text[self.at]
        if char != "\\":
            self.at += 1
            return char
        char = self._escaped()
        if char in _PERL_CLASSES:
            self.out.append(_PERL_CLASSES[char])
            return None
        if char in "DSW":
            raise UnsupportedExpressionError(f"[\\{char}] in {self.text!r}")
        controls = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
        return controls.get(char) or self._punctuation(char)

    def _copy(self) -> None:
        self.out.append(self.text[self.at : self.at + 1])
        self.at += 1
