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
from typing import Any, Final, TextIO

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.consumer.traces.trace import FORMAT as CONSUMER_FORMAT
from coordinator_model.specification.consumer.traces.trace import ConsumerTraceRun, episodes_of_trace
from coordinator_model.specification.consumer.traces.trace_json import TraceSymbols, by_number
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
    Request,
    SyncAnswer,
    SyncGroup,
)

Json = dict[str, Any]

_SETTINGS: Final = {
    "session_min_ms": "group_min_session_timeout_ms",
    "session_max_ms": "group_max_session_timeout_ms",
    "initial_rebalance_delay_ms": "group_initial_rebalance_delay_ms",
    "group_max_size": "group_max_size",
    "new_member_join_timeout_ms": "new_member_join_timeout_ms",
    "offsets_retention_minutes": "offsets_retention_minutes",
    "offsets_retention_check_ms": "offsets_retention_check_interval_ms",
}

_REQUESTS: Final = frozenset({"join", "sync", "heartbeat", "leave", "offset_commit", "delete_group"})
"""The steps that are requests. The others move the clock or the coordinator."""
_ONE_GROUP_PER_PARTITION: Final = 2**31 - 1
"""Traces move groups, not partitions: with so many partitions each group has its own."""


def run_trace(trace: Json, kafka: str | None = None) -> Json:
    """The trace with the specification's `expect` in every step, by the rules of the release `kafka`, or of the trace's own."""
    run = ConsumerTraceRun(trace, kafka) if trace.get("format") == CONSUMER_FORMAT else TraceRun(trace, kafka)
    run.run()
    steps = [{**step, "expect": expect} for step, expect in zip(trace["steps"], run.expects, strict=True)]
    return {**trace, "steps": steps}


class TraceRun:
    """One trace, run by a coordinator."""

    def __init__(self, trace: Json, kafka: str | None = None) -> None:
        self.trace = trace
        if not (release := kafka or trace.get("measured_on")):
            raise ValueError('it does not say its release: "measured_on", or --kafka')
        self.kafka: str = release
        self.symbols = TraceSymbols(trace.get("ids") or {}, {})
        self.config = _config(CoordinatorConfig.of(self.kafka), trace["config"])
        self.random = "seed" in trace
        self.sent_ms: list[int] = []
        self.expects: list[Json] = []
        self.effects: list[tuple[str, Effect]] = []
        self.coordinator = Coordinator(self.config, 0, ())
        for group_id in trace["config"]["owned_groups"]:
            self.coordinator.load(self.coordinator.partition(group_id), 0)

    def run(self) -> None:
        """Run all steps."""
        for index, step in enumerate(self.trace["steps"]):
            self.step(index, step)

    def step(self, index: int, step: Json) -> None:
        """Let time pass until the step, then run it."""
        at_ms, group_id = step["at_ms"], step["group"]
        self.sent_ms.append(at_ms)
        expect: Json = {"response": None} if step["op"] in _REQUESTS else {}
        self.expects.append(expect)
        # In random traces only an explicit advance is a separate step. Other timers fire during the step before.
        passing = index - 1 if self.random and step["op"] != "advance" else index
        self._note(passing, self.coordinator.advance(at_ms))
        outcome = self._execute(index, step)
        self._note(index, outcome)
        threw = [effect.exception for _, effect in outcome.effects if isinstance(effect, ExceptionThrown)]
        if threw:
            expect["exception"] = threw[0]
        expect["group_after"] = _snapshot(self.coordinator.groups.get(group_id), self.symbols)

    def _execute(self, index: int, step: Json) -> CoordinatorOutcome:
        at_ms, op = step["at_ms"], step["op"]
        coordinator = self.coordinator
        partition = coordinator.partition(step["group"])
        if op in _REQUESTS:
            fresh = self.symbols.member_id(step.get("bind") or f"$x{index}")
            request = _request(op, step.get("req") or {}, self.symbols, fresh)
            error = Error[step.get("append_error") or "NONE"]
            return coordinator.handle(step["group"], request, at_ms, index, append_error=error)
        if op == "restart":
            self.config = _config(self.config, step["config"])
            return coordinator.restart(self.config, at_ms)
        if op == "advance":
            return coordinator.advance(at_ms)
        moves = {"unload": coordinator.unload, "load_begin": coordinator.load_begin}
        return moves.get(op, coordinator.load)(partition, at_ms)

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


def _request(op: str, req: Json, symbols: TraceSymbols, fresh_member_id: str) -> Request:
    if op == "delete_group":
        return DeleteGroup()
    if op == "leave":
        members = [LeavingMember(symbols.member_id(entry["member"]), entry["instance"]) for entry in req["members"]]
        return LeaveGroup(tuple(members))
    member_id, instance_id = symbols.member_id(req["member"]), req["instance"]
    if op == "heartbeat":
        return Heartbeat(member_id, req["generation"], instance_id)
    if op == "offset_commit":
        return OffsetCommit(member_id, req["generation"], instance_id, req["api_version"])
    if op == "sync":
        assignments = tuple((symbols.member_id(entry["member"]), entry["assignment"].encode()) for entry in req["assignments"])
        return SyncGroup(member_id, req["generation"], assignments, instance_id, req["protocol_type"], req["protocol"])
    return JoinGroup(
        member_id,
        req["session_timeout_ms"],
        req["rebalance_timeout_ms"],
        req["protocol_type"],
        tuple((protocol["name"], protocol["metadata"].encode()) for protocol in req["protocols"]),
        instance_id,
        req["api_version"],
        req.get("client_id") or "",
        fresh_member_id=fresh_member_id,
    )


def _fields(answer: Answer, symbols: TraceSymbols) -> Json:
    if isinstance(answer, JoinAnswer):
        joined = {symbols.member(member.member_id): member for member in answer.members}
        members = [
            {"member": symbol, "instance": joined[symbol].instance_id, "metadata": joined[symbol].metadata.decode()}
            for symbol in sorted(joined, key=by_number)
        ]
        return {
            "member_id": symbols.member(answer.member_id),
            "generation": answer.generation,
            "leader": symbols.member(answer.leader),
            "protocol_type": answer.protocol_type,
            "protocol": answer.protocol,
            "skip_assignment": answer.skip_assignment,
            "members": members,
        }
    if isinstance(answer, SyncAnswer):
        assignment = answer.assignment.decode()
        return {"protocol_type": answer.protocol_type, "protocol": answer.protocol, "assignment": assignment}
    if isinstance(answer, LeaveAnswer):
        members = [
            {"member": symbols.member(entry.member_id), "instance": entry.instance_id, "error": entry.error.name}
            for entry in answer.members
        ]
        return {"members": members}
    return {}


def _snapshot(group: ClassicGroup | None, symbols: TraceSymbols) -> Json:
    if group is None:
        return {"state": "None"}
    static = {instance: symbols.member(member_id) for instance, member_id in sorted(group.static_members.items())}
    return {
        "state": group.state.value,
        "generation": group.generation,
        "protocol_type": group.protocol_type,
        "protocol": group.protocol,
        "leader": None if group.leader is None else symbols.member(group.leader),
        "members": symbols.members(group.members),
        "static": static,
        "pending": symbols.members(group.pending_members),
        "awaiting_join": symbols.members(group.awaiting_join),
        "awaiting_sync": symbols.members(group.awaiting_sync),
        "pending_sync": symbols.members(group.pending_sync_members),
    }


def _config(config: CoordinatorConfig, settings: Json) -> CoordinatorConfig:
    known = {name: settings[key] for key, name in _SETTINGS.items() if key in settings}
    return replace(config, offsets_topic_num_partitions=_ONE_GROUP_PER_PARTITION, **known)


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
