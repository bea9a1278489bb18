"""Runs recorded traces through the specification, for `rebalance trace`.

A trace is a list of requests and clock steps with the time of each, in the format of tests/data/traces/FORMAT.md. The result
is the same object with the specification's `expect` in every step: the answer, its time, the step in which it came, and the
group after the step. The release is the trace's `measured_on`, unless another one is given. Traces of consumer groups have a format of
their own: consumer/trace.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, Final, TextIO

from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.consumer.traces.trace import FORMAT as CONSUMER_FORMAT
from coordinator_model.specification.consumer.traces.trace import ConsumerTraceRun, episodes_of_trace
from coordinator_model.specification.consumer.traces.trace_json import Json, TraceSymbols, by_number, told
from coordinator_model.specification.consumer.traces.trace_run import ONE_GROUP_PER_PARTITION, Run, given
from coordinator_model.specification.coordinator import Coordinator, CoordinatorOutcome
from coordinator_model.specification.effects import Effect, ExceptionThrown
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.releases import is_newer
from coordinator_model.specification.requests import (
    Answer,
    DeleteGroup,
    Heartbeat,
    JoinAnswer,
    JoinGroup,
    LeaveAnswer,
    LeaveGroup,
    LeavingMember,
    OffsetCommit,
    SyncAnswer,
    SyncGroup,
)

_SETTINGS: Final = {
    "session_min_ms": "group_min_session_timeout_ms",
    "session_max_ms": "group_max_session_timeout_ms",
    "initial_rebalance_delay_ms": "group_initial_rebalance_delay_ms",
    "group_max_size": "group_max_size",
    "new_member_join_timeout_ms": "new_member_join_timeout_ms",
    "offsets_retention_minutes": "offsets_retention_minutes",
    "offsets_retention_check_ms": "offsets_retention_check_interval_ms",
}


def run_trace(trace: Json, kafka: str | None = None) -> Json:
    """The trace with the specification's `expect` in every step, by the rules of the release `kafka`, or of the trace's own."""
    run = ConsumerTraceRun(trace, kafka) if trace.get("format") == CONSUMER_FORMAT else TraceRun(trace, kafka)
    run.run()
    steps = [{**step, "expect": expect} for step, expect in zip(trace["steps"], run.expects, strict=True)]
    return {**trace, "steps": steps}


class TraceRun(Run):
    """One trace of classic groups, run by their coordinator."""

    requests: ClassVar = {
        "join": JoinGroup,
        "sync": SyncGroup,
        "heartbeat": Heartbeat,
        "leave": LeaveGroup,
        "offset_commit": OffsetCommit,
        "delete_group": DeleteGroup,
    }

    def __init__(self, trace: Json, kafka: str | None = None) -> None:
        if not (release := kafka or trace.get("measured_on")):
            raise ValueError('it does not say its release: "measured_on", or --kafka')
        self.kafka: str = release
        self.config = _config(CoordinatorConfig.of(self.kafka), trace["config"])
        symbols = TraceSymbols(trace.get("ids") or {}, {})
        super().__init__(trace, symbols, Coordinator(self.config, 0, ()), trace["config"]["owned_groups"])
        self.values |= {
            "members": lambda entries: tuple(self.made(LeavingMember, entry) for entry in entries),
            "protocols": lambda entries: tuple((entry["name"], entry["metadata"].encode()) for entry in entries),
            "assignments": lambda entries: tuple((symbols.member_id(one["member"]), one["assignment"].encode()) for one in entries),
        }
        self.sent_ms: list[int] = []
        self.effects: list[tuple[str, Effect]] = []

    def step(self, index: int, step: Json) -> None:
        """The answers to this step and to earlier ones, and the group."""
        self.sent_ms.append(step["at_ms"])
        expect: Json = {"response": None} if step["op"] in self.requests else {}
        self.expects.append(expect)
        # In random traces only an explicit advance is a separate step. Other timers fire during the step before.
        passing = index - 1 if "seed" in self.trace and step["op"] != "advance" else index
        self._note(passing, self.coordinator.advance(step["at_ms"]))
        outcome = self.executed(index, step)
        self._note(index, outcome)
        threw = [effect.exception for _, effect in outcome.effects if isinstance(effect, ExceptionThrown)]
        if threw:
            expect["exception"] = threw[0]
        expect["group_after"] = _snapshot(self.coordinator.groups.get(step["group"]), self.symbols)

    def executed(self, index: int, step: Json) -> Any:
        """The coordinator may start anew, too."""
        if step["op"] == "restart":
            self.config = _config(self.config, step["config"])
            return self.coordinator.restart(self.config, step["at_ms"])
        return super().executed(index, step)

    def _note(self, index: int, outcome: CoordinatorOutcome) -> None:
        self.effects.extend(outcome.effects)
        for reply in outcome.replies:
            step = int(reply.ticket)
            expect = self.expects[step]
            key = "response" if expect["response"] is None else "duplicate_response"
            expect[key] = {
                "at_ms": reply.at_ms,
                "during_step": index,
                "delayed": index != step or reply.at_ms != self.sent_ms[step],
                "error": reply.answer.error.name,
                **_fields(reply.answer, self.symbols),
            }


def _fields(answer: Answer, symbols: TraceSymbols) -> Json:
    if isinstance(answer, JoinAnswer):
        joined = {symbols.member(member.member_id): member for member in answer.members}
        members = [
            {**told(joined[symbol], "member_id instance_id", symbols), "metadata": joined[symbol].metadata.decode()}
            for symbol in sorted(joined, key=by_number)
        ]
        values = told(answer, "generation leader protocol_type protocol skip_assignment", symbols)
        return {"member_id": symbols.member(answer.member_id), **values, "members": members}
    if isinstance(answer, SyncAnswer):
        return {**told(answer, "protocol_type protocol", symbols), "assignment": answer.assignment.decode()}
    if isinstance(answer, LeaveAnswer):
        return {"members": [told(entry, "member_id instance_id error", symbols) for entry in answer.members]}
    return {}


def _snapshot(group: ClassicGroup | None, symbols: TraceSymbols) -> Json:
    if group is None:
        return {"state": "None"}
    return {
        **told(group, "state generation protocol_type protocol leader", symbols),
        "members": symbols.members(group.members),
        "static": {instance: symbols.member(member_id) for instance, member_id in sorted(group.static_members.items())},
        "pending": symbols.members(group.pending_members),
        "awaiting_join": symbols.members(group.awaiting_join),
        "awaiting_sync": symbols.members(group.awaiting_sync),
        "pending_sync": symbols.members(group.pending_sync_members),
    }


def _config(config: CoordinatorConfig, settings: Json) -> CoordinatorConfig:
    return replace(config, offsets_topic_num_partitions=ONE_GROUP_PER_PARTITION, **given(settings, _SETTINGS))


def run_lines(lines: Iterable[str], out: TextIO, kafka: str | None, newer: Callable[[str], None], *, episodes: bool = False) -> None:
    """Run one trace for each line: the command `rebalance trace`. `episodes`: only tell the rebalances of consumer groups.

    `newer` is called once with each release that is newer than those whose rules are known. ValueError: a line is no trace that can be
    followed; it says which line, and why.
    """
    told: set[str] = set()
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                trace = json.loads(line)
                release = kafka or trace.get("measured_on")
                if release and release not in told and is_newer(release):
                    told.add(release)
                    newer(release)
                answered = episodes_of_trace(trace, kafka) if episodes else run_trace(trace, kafka)
            except KeyError as error:
                raise ValueError(f"line {number}: a name is missing or unknown: {error}") from error
            except (AttributeError, IndexError, TypeError) as error:
                raise ValueError(f"line {number}: a value has another form than in the format: {error}") from error
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
            json.dump(answered, out, separators=(",", ":"))
            out.write("\n")
