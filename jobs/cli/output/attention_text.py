"""The first part of the report: what needs attention, an entry for each incident."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.text import Text

from jobs.answers.attention import AttentionEntry
from jobs.answers.attention_words import CLIENTS_SAY, STYLES, TOO_SHORT, AttentionWords, counts_of, title
from jobs.answers.client_words import Said
from jobs.answers.judgement import Gap, Judgement
from jobs.cli.output.terminal import write
from jobs.common.text import many, printable

_PARAGRAPH: Final = 116  # columns: a longer line is hard to read
_LEAST: Final = 40
_SENTENCES: Final = 600  # characters of a message or of advice
_ORDER: Final = "Broker incidents first, then by cost. Unowned partition time: time without an owner, summed over partitions."
_PROOFS: Final = "`rebalance evidence ID` shows the log lines behind a finding; add --entry for the whole entry."
_PROOFS_IF_KEPT: Final = "With --keep DIR: `rebalance evidence ID --lakehouse DIR` shows the log lines behind a finding."


class AttentionText:
    """Writes entries. `day`: of all times."""

    def __init__(self, console: Console, words: AttentionWords, day: str = "") -> None:
        self._console, self._words, self._day = console, words, day

    def write(
        self, entries: Sequence[AttentionEntry], judgement: Judgement, said: Sequence[Said], limit: int, *, kept: bool = True
    ) -> None:
        """Writes the entries that come first, what clients say, and what could not be judged. `kept`: `rebalance evidence` can be asked."""
        if entries:
            self._entries(entries, limit, kept=kept)
        else:
            write(self._console, printable(self._words.calm(judgement), _SENTENCES), "green" if judgement.all_clear else "yellow")
        write(self._console)
        if said:
            self._said(said, limit)
        if judgement.gaps:
            self._gaps(judgement.gaps, limit)

    def _said(self, said: Sequence[Said], limit: int) -> None:
        write(self._console, f"{CLIENTS_SAY}{self._day}", "bold")
        group = None
        for one in said[:limit]:
            if (one.cluster, one.group_id) != group:
                group = (one.cluster, one.group_id)
                write(self._console, f"  {self._words.name(*group)}")
            if one.left_out:
                write(self._console, f"    … {many(one.left_out, 'line')} in between")
            self._wrapped(self._words.said(one), "    ", " " * 6)
        self._more(len(said), limit)
        write(self._console)

    def _gaps(self, gaps: Sequence[Gap], limit: int) -> None:
        write(self._console, f"Not judged ({len(gaps)})", "bold")
        for gap in gaps[:limit]:
            self._wrapped(self._words.gap(gap), "  ", "    ")
            self._paragraph("Next", gap.next)
        self._more(len(gaps), limit)
        write(self._console)

    def _entries(self, entries: Sequence[AttentionEntry], limit: int, *, kept: bool) -> None:
        write(self._console, f"What needs attention ({counts_of(entries)}){self._day}", "bold")
        self._wrapped(_ORDER, "    ", "    ")
        for number, entry in enumerate(entries[:limit], 1):
            self._entry(number, entry)
        self._more(len(entries), limit)
        write(self._console, f"    {_PROOFS if kept else _PROOFS_IF_KEPT}", "dim")
        if settings := self._words.settings(entries):
            write(self._console, f"\n{TOO_SHORT} ({len(settings)})", "bold")
            for text in settings[:limit]:
                write(self._console, f"  {text}")
            self._more(len(settings), limit)

    def _more(self, count: int, limit: int) -> None:
        if count > limit:
            write(self._console, f"  … and {count - limit} more: --limit {count} shows all")

    def _entry(self, number: int, entry: AttentionEntry) -> None:
        said = self._words.of(entry)
        head = Text(f"{number:>2}. ")
        head.append(f"{entry.severity:<7}", style=STYLES.get(entry.severity, ""))
        head.append(f"  {title(entry)}", "bold")
        head.append(f"\n{'':11}  {entry.code}  {said.subject}  {said.when}")
        others = len(entry.ids) - 1
        head.append(f" (id {entry.gravest['id']}" + (f", {others:,} more)" if others else ")"), style="dim")
        write(self._console, head)
        for label, text in self._words.paragraphs(entry):
            self._paragraph(label, text)
        self._paragraph("Advice", said.advice)

    def _paragraph(self, label: str, text: str) -> None:
        self._wrapped(text, f"    {label:<7} ", " " * 12)

    def _wrapped(self, text: str, first: str, others: str) -> None:
        width = max(min(self._console.width if self._console.is_terminal else _PARAGRAPH, _PARAGRAPH), _LEAST)
        shown = printable(text, _SENTENCES * 2)
        write(self._console, textwrap.fill(shown, width, initial_indent=first, subsequent_indent=others, break_on_hyphens=False))
