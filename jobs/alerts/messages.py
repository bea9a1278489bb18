"""A message about some findings, in the form that a receiver reads. Names in them are whatever a client sent."""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from coordinator_model.diagnosis.findings import broker_name
from jobs.alerts.finding import COLUMNS, Finding
from jobs.answers.attention_words import title_of
from jobs.common.alert_settings import ReceiverSettings
from jobs.common.text import many, printable, some, who
from jobs.common.times import instant

COLOURS: Final = {"ERROR": "#d32f2f", "WARNING": "#f9a825", "INFO": "#1976d2"}
_ENDED: Final = "#388e3c"
_BLOCKS: Final = 10  # attachments of one chat message
_OPEN_MS: Final = 86_400_000  # Alertmanager: how long an alert stands whose end will be posted
_NAMED: Final = 4  # clients or groups in one attachment
_NAME_CHARS: Final = 80
_TEXT_CHARS: Final = 1_500


class Message(NamedTuple):
    """What is posted. `key`: the same for the same findings, whenever they are posted."""

    body: bytes
    key: str


def message(receiver: ReceiverSettings, findings: Sequence[Finding], dashboard_url: str, now_ms: int | None = None) -> Message:
    """The message about findings to a receiver. `now_ms`: from when on Alertmanager keeps an alert, by default now."""
    now_ms = time.time_ns() // 1_000_000 if now_ms is None else now_ms
    key = hashlib.sha256("|".join(finding.key for finding in findings).encode()).hexdigest()[:32]
    if receiver.format == "slack":
        content: Any = _slack(findings, dashboard_url)
    elif receiver.format == "alertmanager":
        content = _alertmanager(findings, dashboard_url, now_ms, receiver.resolve_after_ms)
    else:
        content = {"version": 1, "source": "rebalance", "key": key, "findings": [_plain(one, dashboard_url) for one in findings]}
    return Message(json.dumps(content).encode(), key)


def _plain(finding: Finding, dashboard_url: str) -> dict[str, Any]:
    own = {name: getattr(finding, name) for name in ("key", "id", "title", *COLUMNS, "open")}
    group, details = own.pop("group_id"), json.loads(finding.details)
    return own | {"group": group, "occurred_at": _iso(finding.occurred_ms), "details": details, "link": finding.link(dashboard_url) or None}


def _alertmanager(findings: Sequence[Finding], dashboard_url: str, now_ms: int, resolve_after_ms: int) -> list[dict[str, Any]]:
    """An alert for each problem of a client of a group: findings of the same labels are one alert, which their newest keeps alive."""
    alerts: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in sorted(findings, key=lambda one: one.occurred_ms):
        labels = {
            "alertname": finding.code,
            "severity": finding.severity.lower(),
            "cluster": finding.cluster,
            "group": finding.group_id,
            "client": finding.client_id or "",
            "source": "rebalance",
        }
        alert = alerts.setdefault(tuple(labels.values()), {"startsAt": _iso(finding.occurred_ms), "annotations": {"findings": "0"}})
        alert["labels"] = {name: value for name, value in labels.items() if value}
        lasts_ms = 0 if finding.open is False else _OPEN_MS if finding.open else resolve_after_ms
        alert["endsAt"] = _iso(max(now_ms, finding.occurred_ms) + lasts_ms)
        alert["annotations"] = {
            "summary": f"{finding.title} (group {finding.group_id} of {finding.cluster})",
            "description": finding.message,
            "advice": finding.advice,
            "client": who(finding.client_id, finding.client_host, finding.member_id),
            "finding": finding.id,
            "key": finding.key,
            "findings": str(int(alert["annotations"]["findings"]) + 1),
        }
        if link := finding.link(dashboard_url):
            alert["generatorURL"] = link
    return list(alerts.values())


def _slack(findings: Sequence[Finding], dashboard_url: str) -> dict[str, Any]:
    """A message with a headline and, for each problem of a group, an attachment: what Slack, Mattermost and others show."""
    problems = _problems(findings)
    shown = [_attachment(problem, dashboard_url) for problem in problems[:_BLOCKS]]
    if rest := problems[_BLOCKS:]:
        more = sum(map(len, rest))
        groups = len({(one.cluster, one.group_id) for problem in rest for one in problem})
        codes = Counter(one.code for problem in rest for one in problem)  # the gravest first, as the problems
        named = ", ".join(f"{_as_text(code, _NAME_CHARS)} {count:,}" for code, count in codes.items())
        text = f"… and {many(more, 'finding')} in {many(groups, 'group')} ({named}): `rebalance report` has all"
        shown.append({"color": "#9e9e9e", "fallback": text, "text": text, "mrkdwn_in": ["text"]})
    return {"text": _headline(findings), "attachments": shown}


def _problems(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings of one code in one group, or of what a broker did to all its groups, in order of time.

    The gravest problems come first; of these those of brokers, as in the report, then the most frequent.
    """
    problems: dict[tuple[str, ...], list[Finding]] = {}
    for one in sorted(findings, key=lambda one: (one.occurred_ms, one.key)):
        place = one.incident["id"] if one.incident else one.group_id
        problems.setdefault((one.cluster, place, one.code), []).append(one)

    def order(problem: Sequence[Finding]) -> tuple[int, bool, int, int]:
        return -max(one.gravity for one in problem), problem[0].incident is None, -len(problem), problem[0].occurred_ms

    return sorted(problems.values(), key=order)


def _headline(findings: Sequence[Finding]) -> str:
    clusters = sorted({finding.cluster for finding in findings})
    groups = {(finding.cluster, finding.group_id) for finding in findings}
    counts = Counter((-finding.gravity, finding.severity) for finding in findings)
    kinds = ", ".join(many(count, severity.lower()) for (_, severity), count in sorted(counts.items()))
    where = f"group {_code(findings[0].group_id)}" if len(groups) == 1 else f"{len(groups)} groups"
    cluster = f" of {_code(clusters[0])}" if len(clusters) == 1 else f" of {len(clusters)} clusters"
    return f"*{kinds}* in {where}{cluster}"


def _attachment(problem: Sequence[Finding], dashboard_url: str) -> dict[str, Any]:
    first, newest = problem[0], problem[-1]
    groups = sorted({one.group_id for one in problem})
    where = broker_name(first.incident["broker"]) if first.incident else f"group {first.group_id}"
    place = f"{_escaped(where, _NAME_CHARS)} of {_escaped(first.cluster, _NAME_CHARS)}"
    title = f"{_escaped(title_of((one.row for one in problem), first.incident))} ({place})  {first.code}"
    clients = sorted({who(one.client_id, one.client_host, one.member_id) for one in problem} - {"-"})
    until = f" to {instant(newest.occurred_ms)[:19]}" if newest.occurred_ms > first.occurred_ms else ""
    span = instant(first.occurred_ms)[:19] + until
    told = newest.incident or newest.row
    lines = [_escaped(told["message"]), *([f"*What to change:* {_escaped(told['advice'])}"] if told["advice"] else [])]
    lines += [f"*Client:* {some([*map(_code, clients)], _NAMED)}"] if clients else []
    lines += [f"*Groups:* {some([*map(_code, groups)], _NAMED)}"] if first.incident else []
    attachment = {
        "color": _ENDED if newest.open is False else COLOURS.get(newest.severity, COLOURS["ERROR"]),
        "fallback": f"{newest.severity}: {title}",
        "title": title,
        "text": "\n".join([*lines, f"*When:* {span} UTC"]),
        "footer": f"rebalance evidence {newest.id}",
        "mrkdwn_in": ["text"],
    }
    return attachment | ({"title_link": link} if (link := first.link(dashboard_url)) else {})


def _iso(at_ms: int) -> str:
    return instant(at_ms).replace(" ", "T") + "Z"


def _escaped(text: str, limit: int = _TEXT_CHARS) -> str:
    """Text that no chat takes for markup of its own, for a link or for the name of somebody to call."""
    return _as_text(text, limit).replace("@", "@\N{ZERO WIDTH SPACE}")


def _code(name: str) -> str:
    """A name in a span of code, in which no chat looks for names to call."""
    return "`" + _as_text(name, _NAME_CHARS).replace("`", "'") + "`"


def _as_text(text: str, limit: int) -> str:
    return printable(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
