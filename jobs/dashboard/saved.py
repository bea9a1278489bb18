"""The report as one HTML file: pages of the dashboard with their modules, styles and answers in it.

It needs nothing else. A policy in its head lets the browser load nothing, and run no script but those of this module. Where scripts do not
run, it shows the report as text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from jobs.answers.duckdb_views import Key, QuestionReader, key_of
from jobs.answers.evidence import prove_rows
from jobs.answers.formats import for_browser
from jobs.answers.report import Report
from jobs.common.errors import EvidenceError
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.dashboard.first_page import Incidents, attention, first_page
from jobs.dashboard.group_page import group_page, rebalance_page
from jobs.dashboard.pages import SAVED, Page, shell
from jobs.dashboard.queries import answer, lines_of, rows_of

_PROVEN: Final = 200  # entries
_POINTS: Final = 200  # of the lag of a group
_LINES_BYTES: Final = 800_000  # of log lines: `rebalance evidence` has the others
_IMPORT: Final = re.compile(r'^import (\{[^}]*\}|\* as \w+) from "\./([\w.]+)";$', re.MULTILINE)
_EXPORT: Final = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.MULTILINE)


def saved_report(lakehouse: Place, report: Report, inputs: Sequence[Path], *, limit: int, text: str, why_empty: str = "") -> str:
    """What `rebalance report --format html` prints. `inputs`: where logs were read from; `text`: the report as text.

    `limit`: of how many groups and rebalances it has a page, those that cost most. `why_empty`: what is said in the place of all.
    """
    reader = QuestionReader(lakehouse, keeps=True)
    overview = first_page(reader, report)
    held: dict[str, Any] = {"overview": overview | ({"hint": why_empty, "clusters": []} if why_empty else {})}
    if not (why_empty or report.outside):
        held |= _pages(reader, report, limit)
        held |= _evidence(lakehouse, report, inputs, held.values())
    first = report.groups[0] if report.scope.group and len(report.groups) == 1 else None
    theme, script = _text("theme.js"), _bundle()
    names = ", ".join(printable(row["cluster"], 60) for row in report.clusters[:3]) or "no cluster"
    saved = {
        "answers": _in_script(held),
        "script": script,
        "scripts": " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(each.encode()).digest()).decode()}'" for each in (theme, script)),
        "start": f"/group?{urlencode({'cluster': first['cluster'], 'group': first['group_id']}, errors='replace')}" if first else "/",
        "styles": _text("app.css"),
        "text": text,
        "theme": theme,
    }
    return shell(Page("/", f"Rebalances of {names}", ""), "", saved) + "\n"


def _pages(reader: QuestionReader, report: Report, limit: int) -> dict[str, Any]:
    """What the pages of groups and rebalances show, by what they ask for (assets/api.js)."""
    incidents = Incidents(report.attention)
    rebalanced = [key_of(row) for row in report.groups if row["rebalances"]]
    named = [key for key in (*incidents.groups, *rebalanced) if report.scope.group in (None, key[1])]
    held: dict[str, Any] = {"ask/groups": answer(reader, "groups", {"cluster": report.scope.cluster, "limit": "20000"})}
    chosen = list(dict.fromkeys(named))[:limit]
    for cluster, group in chosen:
        of = f"cluster={cluster}&group={group}"
        held[f"group?{of}"] = group_page(reader, cluster, group)
        held[f"attention?{of}"] = attention(_about(report, incidents, (cluster, group)))
        held[f"rows/lag?{of}"] = rows_of(reader, "lag", cluster=cluster, group=group, limit=_POINTS)
        held[f"ask/silences?{of}"] = answer(reader, "silences", {"cluster": cluster, "group": group})
    own = [row for row in report.rebalances if key_of(row) in set(chosen)]
    own.sort(key=lambda row: (row["startup"], -(row["unavailable_partition_ms"] or 0), -(row["total_ms"] or 0)))
    for row in own[:limit]:
        held[f"rebalance?id={row['id']}"] = rebalance_page(reader, row["id"])
    return held


def _about(report: Report, incidents: Incidents, key: Key) -> Report:
    """What the report says of one group."""
    judgement = replace(
        report.judgement,
        healthy=[each for each in report.judgement.healthy if each == key],
        gaps=[gap for gap in report.judgement.gaps if gap.cluster == key[0] and key[1] in (gap.groups or key)],
    )
    said = [one for one in report.said if (one.cluster, one.group_id) == key]
    clusters = [row for row in report.clusters if row["cluster"] == key[0]]
    return replace(report, attention=incidents.about(key), judgement=judgement, said=said, clusters=clusters)


def _evidence(lakehouse: Place, report: Report, inputs: Sequence[Path], pages: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The log lines that prove each entry, and each rebalance that has a page with the findings on it, as far as there is room."""
    told = [page for page in pages if "rebalance" in page]
    rows = {row["id"]: row for row in (entry.incident or entry.gravest for entry in report.attention[:_PROVEN])}
    known = {row["id"]: row for row in (*report.findings, *report.rebalances)}
    ids = [row["id"] for page in told for row in (page["rebalance"], *page["findings"])]
    rows |= {row_id: known[row_id] for row_id in ids if row_id in known}
    try:
        proven = prove_rows(lakehouse, list(rows.values()), inputs)
    except EvidenceError as error:
        problem = printable(str(error), 600)
        return {f"evidence/{row_id}": {"lines": [], "problem": problem} for row_id in rows}
    held, left = {}, _LINES_BYTES
    for row in proven:
        lines = lines_of([row])
        left -= len(_in_script(lines))
        if left > 0:
            held[f"evidence/{row.id}"] = lines
    return held


def _in_script(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    return for_browser(value).decode().replace("<", "\\u003c")


@cache
def _bundle() -> str:
    """All modules of these pages in one script. Each is made when it is first asked for, in a scope of its own."""
    names, wanted = [], ["shell.js", *(page.module for page in SAVED)]
    while wanted:
        name = wanted.pop()
        if name not in names:
            names.append(name)
            wanted += [found[2] for found in _IMPORT.finditer(_text(name))]
    made = ",\n".join(f"{json.dumps(name)}: async () => {{\n{_module(_text(name))}}}" for name in sorted(names))
    return (
        f'"use strict";\nconst modules = {{\n{made}\n}};\nconst made = new Map();\n'
        "const load = (name) => { if (!made.has(name)) made.set(name, modules[name]()); return made.get(name); };\n"
        'load("shell.js");\n'
    )


def _module(text: str) -> str:
    """A module as the body of a function, which returns what it exports."""
    exported = ", ".join(_EXPORT.findall(text))
    text = _IMPORT.sub(lambda found: f'const {found[1].removeprefix("* as ").replace(" as ", ": ")} = await load("{found[2]}");', text)
    text = text.replace("await import(`./${", "await load(`${")
    return re.sub(r"^export ", "", text, flags=re.MULTILINE) + f"return {{ {exported} }};\n"


@cache
def _text(name: str) -> str:
    return (files("jobs.dashboard") / "assets" / name).read_text(encoding="utf-8")
