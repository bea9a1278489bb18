"""The pages of sentences beside this module, as templates.

Under each heading of a page stands a block of rows. A row has the kind of event, the releases that write the sentence, the sentence, and
the fields whose values its wording implies, each as name=value; `-` is nothing. A line that begins with `#` is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

from jobs.sentences.language import Template

_PART: Final = re.compile(r"^## ([^\n]+)\n.*?^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def sentences(page: str, *headings: str) -> tuple[Template, ...]:
    """The templates of a page in their order: those under some headings, or all."""
    parts = _parts(page)
    return tuple(template for heading in headings or parts for template in parts[heading])


@cache
def _parts(page: str) -> Mapping[str, tuple[Template, ...]]:
    text = files(__package__).joinpath(f"{page}.md").read_text(encoding="utf-8")
    return {heading: tuple(_template(row) for row in rows.splitlines() if not row.startswith("#")) for heading, rows in _PART.findall(text)}


def _template(row: str) -> Template:
    kind, versions, text, *implied = row.split(" | ")
    fixed = dict(one.split("=", 1) for one in implied)
    return Template("" if kind == "-" else kind, "" if versions == "-" else versions, text, fixed)
