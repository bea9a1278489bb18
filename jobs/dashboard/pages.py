"""The pages: each an empty shell with navigation, filled by the module in assets/ that it names."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

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
"""In the order of the navigation. A page is in it, and has an address, once its module is there."""

TYPES: Final = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


@cache
def assets() -> dict[str, bytes]:
    """All files of assets/, by name."""
    folder = files("jobs.dashboard") / "assets"
    return {item.name: item.read_bytes() for item in folder.iterdir() if item.name[item.name.rfind(".") :] in TYPES}


def pages() -> list[Page]:
    """The pages that there are."""
    return [page for page in PAGES if page.module in assets()]


def shell(page: Page, lakehouse: str) -> str:
    """The page before its data. `lakehouse`: where the data is from, as shown."""
    return _environment().get_template("shell.html").render(page=page, pages=pages(), lakehouse=lakehouse, version=version())


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("jobs.dashboard"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
