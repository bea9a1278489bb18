"""The pages: each an empty shell with navigation, filled by the module in assets/ that it names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from jobs.common.places import version


class Page(NamedTuple):
    """A page. `module`: the file in assets/ whose `draw` fills it. `place`: its name in the navigation; empty: it has none."""

    path: str
    title: str
    module: str
    place: str = ""


PAGES: Final = (
    Page("/", "Clusters at a glance", "glance.js", "At a glance"),
    Page("/groups", "Groups", "groups.js", "Groups"),
    Page("/group", "Group", "group.js"),
    Page("/rebalance", "Rebalance", "rebalance.js"),
    Page("/members", "Members and clients", "members.js", "Members"),
    Page("/findings", "Findings", "findings.js", "Findings"),
    Page("/questions", "Questions", "questions.js", "Questions"),
)
"""In the order of the navigation."""

SAVED: Final = tuple(page for page in PAGES if page.path in {"/", "/groups", "/group", "/rebalance"})
"""Those that a saved report has."""


def shell(page: Page, lakehouse: str, saved: Mapping[str, Any] | None = None) -> str:
    """The page before its data. `lakehouse`: where the data is from, as shown. `saved`: what a page holds that is a file of its own."""
    shown = SAVED if saved else PAGES
    modules = json.dumps({each.path: each.module for each in shown})
    template = _environment().get_template("shell.html")
    return template.render(page=page, pages=shown, modules=modules, lakehouse=lakehouse, version=version(), saved=saved)


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("jobs.dashboard"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
