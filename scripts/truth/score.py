"""Compares causes, culprits and findings with what was done to the consumers of a recording.

    python -m scripts.truth.score [RECORDING ...]

It makes the tables of each recording (scripts/truth/recordings.py; default: the bundled ones) with each kind of evidence. docs/score.md
says what is right, what each label asks for, and what is required. Exit code 1 if a requirement is not met.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from scripts.truth import rounds, truth
from scripts.truth.recordings import (
    ALL,
    BOTH,
    COORDINATOR_LOG,
    EVIDENCE,
    LOG_AND_CLIENTS,
    REQUEST_LOG,
    Recording,
    Row,
    cluster,
    from_arguments,
    pair,
    tables,
    track,
)
from scripts.truth.truth import Cause, Fact

RIGHT: Final = "right"
AS_LOGGED: Final = "as logged"  # not the whole truth, but all that the coordinator's log shows
UNKNOWN: Final = "unknown"
WRONG: Final = "wrong"
_LOGGED: Final = frozenset({COORDINATOR_LOG, LOG_AND_CLIENTS})
LEAST_FROM_REQUESTS: Final = 0.95
LABEL_OF: Final = {code: label for label, codes in reversed(truth.FINDING_CODES.items()) for code in codes} | {
    "SESSION_TIMEOUT": "SESSION_TIMEOUT",
    "FENCED_INSTANCE": "FENCED",
    "ZOMBIE_COMMIT": "ZOMBIE_COMMIT",
}
"""Finding code: the label under which a false finding counts."""

AFTERMATH: Final = frozenset({"FENCED_INSTANCE", "GROUP_TOO_LARGE"})
"""Findings that the loss of a broker may cause in any group, and need not."""

REMOVALS: Final = frozenset({"SESSION_TIMEOUT", "POLL_TIMEOUT", "SLOW_JOINER", "SYNC_TIMEOUT", "FENCED", "ZOMBIE", "ZOMBIE_COMMIT"})
SAME_MS: Final = 1_000
STANDSTILLS_OF_POLLS: Final = frozenset({"SLOW_JOINER", "SYNC_TIMEOUT"})  # the client then gives POLL_TIMEOUT itself
STANDSTILLS: Final = frozenset({"sigstop", "sigcont", "stall", "kill9", "slow_assignor"})


@dataclass
class Issue:
    """One deviation of the tables from the truth."""

    kind: str
    group: str
    generation: int | None
    at_ms: int
    actual: str
    true: str

    def __str__(self) -> str:
        at = datetime.fromtimestamp(self.at_ms / 1_000, timezone.utc).strftime("%H:%M:%S.%f")[:-3]
        generation = "" if self.generation is None else f" generation {self.generation}"
        return f"{self.kind:<9} {at} {self.group}{generation}: {self.actual}; true: {self.true}"


@dataclass
class Scorecard:
    """How the tables from one kind of evidence compare with the truth of a recording."""

    causes: Counter[str] = field(default_factory=Counter)
    rebalances: int = 0
    culprits: int = 0
    expected: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    issues: list[Issue] = field(default_factory=list)
    on_healthy: list[Issue] = field(default_factory=list)
    skipped: int = 0
    rounds: Counter[str] = field(default_factory=Counter)  # of consumer groups
    wrong_rounds: list[str] = field(default_factory=list)

    def add(self, kind: str, group: str, generation: int | None, at_ms: int, actual: str, true: str) -> Issue:
        """Notes an issue."""
        issue = Issue(kind, group, generation, at_ms, actual, true)
        self.issues.append(issue)
        return issue

    def faults(self, evidence: str) -> list[str]:
        """The requirements of docs/score.md that are not met."""
        right, wrong = self.causes[RIGHT], self.causes[WRONG]
        faults = []
        if evidence in {BOTH, ALL}:
            if right < self.rebalances:
                faults.append(f"causes: {self.rebalances - right} of {self.rebalances} not right")
            if self.culprits < self.rebalances:
                faults.append(f"culprits: {self.rebalances - self.culprits} of {self.rebalances} not right")
            if missed := sum((self.expected - self.found).values()):
                faults.append(f"labels: {missed} of {sum(self.expected.values())} missed")
            if self.false:
                faults.append(f"findings: {sum(self.false.values())} false")
        elif wrong or (evidence in _LOGGED and self.causes[UNKNOWN]):
            faults.append(f"causes: {wrong} wrong, {self.causes[UNKNOWN]} unknown")
        elif evidence == REQUEST_LOG and right < LEAST_FROM_REQUESTS * self.rebalances:
            faults.append(f"causes: only {right} of {self.rebalances} right")
        faults += self.wrong_rounds
        if evidence in {BOTH, ALL} and self.rounds["unknown"]:
            faults.append(f"rounds: {self.rounds['unknown']} of {self.rounds['epochs']} unknown")
        if self.false["MODEL_DIVERGENCE"]:
            faults.append("the specification: it answers otherwise than Kafka")
        if self.on_healthy:
            faults.append(f"healthy groups: {len(self.on_healthy)} findings")
        if self.found["ROLLING_RESTART"] < self.expected["ROLLING_RESTART"] or self.false["ROLLING_RESTART"]:
            faults.append("rolling restarts: not one ROLLING_RESTART each")
        if self.false["STORM"]:
            faults.append("storms: a REBALANCE_STORM where there was none")
        return faults


def compare(recording: Recording, evidence: str, rows: dict[str, list[Row]]) -> Scorecard:
    """Compares the rows of one cluster with the truth. `rows`: by table, times as epoch ms."""
    card = Scorecard()
    true_causes = truth.causes(recording)
    _compare_causes(card, true_causes, recording, evidence, rows["rebalances"])
    card.rounds, card.wrong_rounds = rounds.compare(recording, evidence, rows["rebalance_rounds"])
    facts, card.skipped = truth.facts(recording)
    since = truth.consumer_protocol_since(recording)
    classic = [row for row in rows["findings"] if row["occurred_at"] < since.get(row["group_id"], row["occurred_at"] + 1)]
    pending = _compare_findings(card, recording, facts, true_causes, {**rows, "findings": classic})
    for fact in pending:
        shown = _shown(fact, rows, card)
        card.expected[fact.label] += 1
        card.found[fact.label] += shown
        if not shown:
            who = fact.member_id or fact.instance_id or fact.client_id
            card.add("missed", fact.group, None, fact.at_ms, "nothing", f"{fact.label} ({fact.action} {who})".replace(" )", ")"))
    for label in sorted(truth.unknown_labels(recording)):
        card.expected[label] += 1
        card.add("missed", "-", None, 0, "nothing", f"label {label} has no meaning here: add it to scripts/truth/truth.py")
    card.issues.sort(key=lambda issue: (issue.kind, issue.group, issue.at_ms))
    return card


# Causes and culprits.


def grade(cause: str, true: Cause, evidence: str) -> str:
    """How right a cause is."""
    if cause in true.accepted:
        return RIGHT
    if cause in true.by_log and evidence in _LOGGED:
        return AS_LOGGED
    return UNKNOWN if cause == "UNKNOWN" else WRONG


def _compare_causes(card: Scorecard, causes: Sequence[Cause], recording: Recording, evidence: str, rebalances: Sequence[Row]) -> None:
    pairs, extra = pair(recording.classic, rebalances)
    for true, (logged, row) in zip(causes, pairs, strict=True):
        card.rebalances += 1
        group, generation, at_ms = logged["group"], logged["generation"], logged["preparing_at"]
        names = "/".join(true.accepted)
        if row is None:
            card.causes[WRONG] += 1
            card.add(WRONG, group, generation, at_ms, "no such rebalance", names)
            continue
        grading = grade(row["cause"], true, evidence)
        card.causes[grading] += 1
        culprit = row["member_id"] or ""
        if grading != RIGHT:
            card.add(grading, group, generation, at_ms, f"{row['cause']} by {culprit or '-'}", f"{names} ({true.rule})")
        if true.blames(culprit):
            card.culprits += 1
        else:
            card.add("culprit", group, generation, at_ms, culprit or "nobody", " or ".join(sorted(true.culprits)) or "nobody")
    for row in extra:
        card.causes[WRONG] += 1
        card.rebalances += 1
        card.add(WRONG, row["group_id"], row["generation"], row["started_at"], f"{row['cause']}, invented", "no rebalance")


# Findings.


def _compare_findings(
    card: Scorecard, recording: Recording, facts: list[Fact], causes: Sequence[Cause], rows: dict[str, list[Row]]
) -> list[Fact]:
    """Pairs findings with the facts that ask for one; returns the facts that are left."""
    healthy = truth.healthy_groups(recording)
    pending = [fact for fact in facts if fact.required or _came(fact, recording)]
    matched: list[tuple[Fact, str]] = []
    for row in sorted(rows["findings"], key=lambda row: (row["occurred_at"], row["group_id"], row["code"])):
        fact = _fact_for(row, pending)
        if fact is not None:
            pending.remove(fact)
            matched.append((fact, row["code"]))
            if fact.required:
                card.expected[fact.label] += 1
                card.found[fact.label] += 1
            continue
        why = _repetition(row, matched) or _why_false(row, facts, causes, rows, healthy=row["group_id"] in healthy)
        if why:
            card.false[LABEL_OF.get(row["code"], str(row["code"]))] += 1
            who = row["member_id"] or row["client_id"] or "-"
            issue = card.add("false", row["group_id"], row["generation"], row["occurred_at"], f"{row['code']} {who}", why)
            if row["group_id"] in healthy:
                card.on_healthy.append(issue)
    return [fact for fact in pending if fact.required]


def _came(fact: Fact, recording: Recording) -> bool:
    """Whether a fact happened that need not happen: the group rebalanced."""
    return any(row["group"] == fact.group and fact.at_ms <= row["preparing_at"] <= fact.end_ms for row in recording.classic)


def _matches(row: Row, fact: Fact) -> bool:
    return (
        row["group_id"] == fact.group
        and row["code"] in fact.codes()
        and fact.start_ms <= row["occurred_at"] <= fact.end_ms
        and (bool(truth.OF_GROUPS & {*fact.labels()}) or fact.concerns(row["member_id"], row["client_id"]))
    )


def _fact_for(row: Row, pending: Sequence[Fact]) -> Fact | None:
    """The fact that asks for this finding; of several, the one that the fewest other findings match."""
    return min((fact for fact in pending if _matches(row, fact)), key=lambda fact: (len(fact.codes()), fact.at_ms), default=None)


def _repetition(row: Row, matched: Sequence[tuple[Fact, str]]) -> str:
    """Why a finding is a repetition, empty if it is none. A fact asks for one finding, however long the fact lasts."""
    for fact, code in matched:
        lasting = fact.label in truth.LASTING - truth.OF_GROUPS and row["occurred_at"] > fact.end_ms
        at = {**row, "occurred_at": fact.end_ms} if lasting else row
        if code == row["code"] and _matches(at, fact):
            return f"reported before ({fact.label})"
    return ""


def _why_false(  # noqa: PLR0911 - one answer a rule
    row: Row, facts: Sequence[Fact], causes: Sequence[Cause], rows: dict[str, list[Row]], *, healthy: bool
) -> str:
    """Why a finding that no fact asks for is false; empty if it is true nevertheless. The rules are in docs/score.md."""
    code, group, member_id, at_ms = row["code"], row["group_id"], row["member_id"], row["occurred_at"]
    if any(_matches(row, fact) for fact in facts if fact.required):
        return ""  # a second code for one fact
    around = [fact for fact in facts if fact.group == group and fact.start_ms <= at_ms <= fact.at_ms + truth.FACT_MS]
    concerned = [fact for fact in around if fact.concerns(member_id, row["client_id"])]
    failover = any(truth.FAILOVER in fact.labels() for fact in around)
    if code == "HEARTBEAT_NEAR_MISS" and (failover or any(fact.action in STANDSTILLS for fact in concerned)):
        return ""
    if code == "IDLE_MEMBERS":
        sizes = [r for r in rows["rebalances"] if r["group_id"] == group and r["generation"] == row["generation"]]
        return "" if any((r["members_after"] or 0) > (r["partitions"] or 0) > 0 for r in sizes) else "no more members than partitions"
    if healthy:
        return "nothing, the group is healthy"
    if code in AFTERMATH and failover:
        return ""
    if code == "GROUP_TOO_LARGE" and any(fact.group == group and fact.label == "GROUP_MAX_SIZE" for fact in facts):
        return ""
    done = {label for fact in concerned for label in fact.labels()}
    if code in truth.FINDING_CODES["ZOMBIE"] and (done & REMOVALS or _expelled(member_id, group, at_ms, causes)):
        return ""
    if code == "POLL_TIMEOUT" and done & STANDSTILLS_OF_POLLS:
        return ""
    if any(_broker_says(row, cause) for cause in causes):
        return ""
    return (
        "not asked for (" + (", ".join(sorted({f"{fact.action} {fact.label}" for fact in concerned or around})) or "nothing was done") + ")"
    )


def _expelled(member_id: str | None, group: str, at_ms: int, causes: Sequence[Cause]) -> bool:
    """Whether the broker's account has the removal of this member for its silence."""
    return any(
        cause.rebalance["group"] == group
        and 0 <= at_ms - cause.rebalance["preparing_at"] <= truth.FACT_MS
        and truth.by_reason(cause.rebalance["reason_text"])[0] == "SESSION_TIMEOUT"
        and member_id in cause.culprits
        for cause in causes
    )


def _broker_says(row: Row, cause: Cause) -> bool:
    """Whether the broker's reason for a rebalance confirms the finding."""
    if cause.rebalance["group"] != row["group_id"] or abs(cause.rebalance["preparing_at"] - row["occurred_at"]) > SAME_MS:
        return False
    reason = truth.by_reason(cause.rebalance["reason_text"])[0]
    # The reason names one member; others that ran out of time with it have no reason.

    return row["code"] in {reason, *cause.accepted} and (row["member_id"] in cause.culprits or (cause.of_broker and row["code"] == reason))


# Labels that other tables show.


def _shown(fact: Fact, rows: dict[str, list[Row]], card: Scorecard) -> bool:  # noqa: PLR0911 - one answer a label
    """Whether the tables show a fact that no finding reports."""
    mine = [row for row in rows["rebalances"] if row["group_id"] == fact.group]
    near = [row for row in mine if fact.start_ms <= row["ended_at"] and row["started_at"] <= fact.end_ms]
    if fact.label in truth.REBALANCE_CAUSES:
        return any(
            row["cause"] == truth.REBALANCE_CAUSES[fact.label] and fact.concerns(row["member_id"], row["client_id"]) for row in near
        ) or any(row["cause"] == truth.REBALANCE_CAUSES[fact.label] and not fact.client_id for row in near)
    if fact.label == "JOIN":
        came = any(fact.concerns(None, truth.client_of(member)) for row in near for member in _members(row, "joined"))
        again = fact.action != "start" and any(row["started_at"] <= fact.at_ms + 2_000 for row in near)
        return came or again
    if fact.label == "LEAVE":
        return any(fact.member_id in _members(row, "left") for row in near) or any(
            row["member_id"] == fact.member_id and row["end_kind"] in {"LEFT", "ADMIN_REMOVED"}
            for row in rows["member_sessions"]
            if row["group_id"] == fact.group
        )
    if fact.label == "GROUP_EMPTY":
        return any(row["outcome"] == "EMPTIED" for row in near)
    if fact.label in {"GROUP_DELETED", "OFFSETS_EXPIRED"}:
        late = fact.end_ms if fact.label == "GROUP_DELETED" else sys.maxsize
        dead = [row for row in rows["group_transitions"] if row["group_id"] == fact.group and row["to_state"] == "Dead"]
        return any(fact.start_ms <= row["occurred_at"] <= late for row in dead)
    if fact.label == "ZOMBIE":  # a static member may rejoin by its instance id before a request of it is refused
        return any(
            row["member_id"] == fact.member_id and row["end_kind"] == "REPLACED" for row in rows["member_sessions"] if fact.instance_id
        )
    if fact.label in {"STATIC_REJOIN_NO_REBALANCE", "NONE"}:
        quiet = not any(i.kind == "false" and i.group == fact.group and fact.start_ms <= i.at_ms <= fact.end_ms for i in card.issues)
        back = (
            fact.label == "NONE"
            or fact.action != "start"
            or any(
                row["instance_id"] == fact.instance_id and row["end_kind"] == "REPLACED" and fact.start_ms <= row["ended_at"] <= fact.end_ms
                for row in rows["member_sessions"]
                if row["group_id"] == fact.group
            )
        )
        return quiet and back
    return False


def _members(row: Row, column: str) -> list[str]:
    return [*(row[column] or ()), *([row["member_id"]] if row["member_id"] else ())]


# On paper.


def print_scorecards(name: str, cards: dict[str, Scorecard]) -> bool:
    """Prints the scorecards of one recording by evidence. Returns whether everything holds that must."""
    print(f"\n{name}\n  {'evidence':<17}{'rebalances':>10}{'right':>7}{'as logged':>11}{'unknown':>9}{'wrong':>7}{'culprits right':>16}")
    for evidence, card in cards.items():
        counts = "".join(f"{card.causes[kind]:>{width}}" for kind, width in ((RIGHT, 7), (AS_LOGGED, 11), (UNKNOWN, 9), (WRONG, 7)))
        print(f"  {evidence:<17}{card.rebalances:>10}{counts}{card.culprits:>16}")
    print(f"\n  {'label':<30}" + "".join(f"{evidence:>30}" for evidence in cards))
    print(f"  {'':<30}" + f"{'expected  found missed  false':>30}" * len(cards))
    for label in sorted({label for card in cards.values() for label in (*card.expected, *card.false)}):
        cells = ((r.expected[label], r.found[label], r.expected[label] - r.found[label], r.false[label]) for r in cards.values())
        print(f"  {label:<30}" + "".join(f"{e:>10}{f:>7}{m or '-':>7}{x or '-':>6}" for e, f, m, x in cells))
    holds = True
    for evidence, card in cards.items():
        print(f"\n  {evidence} ({card.skipped} lines of the truth are of the consumer protocol, or of no group)")
        if card.rounds:
            print(f"    rounds of consumer groups: {', '.join(f'{count} {name}' for name, count in card.rounds.items())}")
        for issue in card.issues:
            print(f"    {issue}")
        for fault in card.faults(evidence):
            holds = False
            print(f"    FAULT {fault}")
    return holds


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the pipeline and prints the scorecards; returns the exit code."""
    recordings = from_arguments(argv, "score", __doc__)
    without_truth = [str(recording.folder) for recording in recordings if not recording.truth]
    if without_truth:
        print(f"no truth.jsonl, which says what was done, in {', '.join(without_truth)}", file=sys.stderr)
        return 2
    results = []
    with tempfile.TemporaryDirectory(prefix="score-") as name:
        lakehouse = track(recordings, Path(name))
        for recording in recordings:
            cards = {kind: compare(recording, kind, tables(lakehouse, cluster(recording, kind))) for kind in EVIDENCE}
            results.append(print_scorecards(recording.name, cards))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
