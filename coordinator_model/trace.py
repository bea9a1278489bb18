"""Run a trace through the specification: `rebalance trace < steps.jsonl > answers.jsonl`.

A trace is a list of requests and clock steps with the time of each, in the format of tests/data/traces/FORMAT.md. Out comes
the same object with every step's `expect` replaced by what the specification answers: the answer with its time and the step
in which it came, and the group after the step. The release is the trace's `measured_on`, or the one given.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TextIO

from coordinator_model.config import CoordinatorConfig
from coordinator_model.coordinator import Coordinator, CoordinatorOutcome
from coordinator_model.effects import Threw
from coordinator_model.errors import Error
from coordinator_model.group import ClassicGroup
from coordinator_model.requests import (
    Answer,
    Answered,
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

_ONE_GROUP_PER_PARTITION: Final = 2**31 - 1
"""Traces move groups, not partitions: with so many partitions each group has its own."""


def run_trace(trace: Json, kafka: str | None = None) -> Json:
    """The trace with the specification's own `expect` in every step."""
    run = _Run(trace, kafka or trace["measured_on"])
    for index, step in enumerate(trace["steps"]):
        run.step(index, step)
    steps = [{**step, "expect": expect} for step, expect in zip(trace["steps"], run.expects)]
    return {**trace, "measured_on": run.kafka, "steps": steps}


class _Run:
    """One trace on its way through a coordinator."""

    def __init__(self, trace: Json, kafka: str) -> None:
        self.kafka = kafka
        self.ids: dict[str, str] = trace.get("ids") or {}
        self.symbols = {member_id: symbol for symbol, member_id in self.ids.items()}
        self.config = _config(CoordinatorConfig.of(kafka), trace["config"])
        self.random = "seed" in trace
        self.asked_ms: list[int] = []
        self.expects: list[Json] = []
        self.coordinator = Coordinator(self.config, 0, ())
        self.coordinator.owned = {self.coordinator.partition(group) for group in trace["config"]["owned_groups"]}
        self.coordinator.restart(self.config, 0)

    def step(self, index: int, step: Json) -> None:
        """Let time pass until the step, then execute it."""
        at_ms, group_id = step["at_ms"], step["group"]
        self.asked_ms.append(at_ms)
        expect: Json = {"response": None} if step["op"] in _PARSERS else {}
        self.expects.append(expect)
        # In random traces only an explicit advance is a step: other timers fire during the step before.
        passing = index - 1 if self.random and step["op"] != "advance" else index
        self._note(passing, self.coordinator.advance(at_ms))
        outcome = self._execute(index, step)
        self._note(index, outcome)
        threw = [effect.exception for _, effect in outcome.effects if isinstance(effect, Threw)]
        if threw:
            expect["exception"] = threw[0]
        expect["group_after"] = self._snapshot(self.coordinator.groups.get(group_id))

    def _execute(self, index: int, step: Json) -> CoordinatorOutcome:
        at_ms, op = step["at_ms"], step["op"]
        partition = self.coordinator.partition(step["group"])
        if op == "advance":
            return self.coordinator.advance(at_ms)
        if op == "unload":
            return self.coordinator.unload(partition, at_ms)
        if op == "load_begin":
            return self.coordinator.load_begin(partition, at_ms)
        if op in ("load", "load_end"):
            return self.coordinator.load(partition, at_ms)
        if op == "restart":
            self.config = _config(self.config, step["config"])
            return self.coordinator.restart(self.config, at_ms)
        error = Error[step["append_error"]] if step.get("append_error") else Error.NONE
        request = self._request(index, step)
        return self.coordinator.handle(step["group"], request, at_ms, index, append_error=error)

    # Symbols stand for member ids, because a coordinator's ids are new in every run.

    def _id(self, symbol: str) -> str:
        return self.ids.get(symbol, symbol)

    def _symbol(self, member_id: str | None) -> str | None:
        return None if member_id is None else self.symbols.get(member_id, member_id)

    def _symbols(self, member_ids: Iterable[str]) -> list[str]:
        return sorted((self.symbols.get(member_id, member_id) for member_id in member_ids), key=_by_number)

    # Requests.

    def _request(self, index: int, step: Json) -> Request:
        return _PARSERS[step["op"]](self, step.get("req") or {}, self._id(step.get("bind") or f"$x{index}"))

    def _join(self, req: Json, fresh_member_id: str) -> Request:
        return JoinGroup(
            self._id(req["member"]),
            req["session_timeout_ms"],
            req["rebalance_timeout_ms"],
            req["protocol_type"],
            tuple((protocol["name"], protocol["metadata"].encode()) for protocol in req["protocols"]),
            req["instance"],
            req["api_version"],
            req.get("client_id") or "",
            "",
            fresh_member_id,
        )

    def _sync(self, req: Json, _: str) -> Request:
        assignments = tuple((self._id(entry["member"]), entry["assignment"].encode()) for entry in req["assignments"])
        member_id = self._id(req["member"])
        return SyncGroup(
            member_id, req["generation"], assignments, req["instance"], req["protocol_type"], req["protocol"]
        )

    def _heartbeat(self, req: Json, _: str) -> Request:
        return Heartbeat(self._id(req["member"]), req["generation"], req["instance"])

    def _leave(self, req: Json, _: str) -> Request:
        return LeaveGroup(tuple(LeavingMember(self._id(entry["member"]), entry["instance"]) for entry in req["members"]))

    def _offset_commit(self, req: Json, _: str) -> Request:
        return OffsetCommit(self._id(req["member"]), req["generation"], req["instance"], req["api_version"])

    def _delete_group(self, req: Json, _: str) -> Request:
        return DeleteGroup()

    # Answers.

    def _note(self, index: int, outcome: CoordinatorOutcome) -> None:
        for answered in outcome.answers:
            asked = int(answered.ticket)
            expect = self.expects[asked]
            key = "response" if expect["response"] is None else "duplicate_response"
            expect[key] = self._response(index, asked, answered)

    def _response(self, index: int, asked: int, answered: Answered) -> Json:
        at_ms, answer = answered.at_ms, answered.answer
        delayed = index != asked or at_ms != self.asked_ms[asked]
        response = {"at_ms": at_ms, "during_step": index, "delayed": delayed, "error": answer.error.name}
        response.update(self._fields(answer))
        return response

    def _fields(self, answer: Answer) -> Json:
        if isinstance(answer, JoinAnswer):
            members = [
                {"member": self._symbol(member.member_id), "instance": member.instance_id, "metadata": member.metadata.decode()}
                for member in answer.members
            ]
            return {
                "member_id": self._symbol(answer.member_id),
                "generation": answer.generation,
                "leader": self._symbol(answer.leader),
                "protocol_type": answer.protocol_type,
                "protocol": answer.protocol,
                "skip_assignment": answer.skip_assignment,
                "members": sorted(members, key=lambda member: _by_number(str(member["member"]))),
            }
        if isinstance(answer, SyncAnswer):
            assignment = answer.assignment.decode()
            return {"protocol_type": answer.protocol_type, "protocol": answer.protocol, "assignment": assignment}
        if isinstance(answer, LeaveAnswer):
            return {
                "members": [
                    {"member": self._symbol(entry.member_id), "instance": entry.instance_id, "error": entry.error.name}
                    for entry in answer.members
                ]
            }
        return {}

    def _snapshot(self, group: ClassicGroup | None) -> Json:
        if group is None:
            return {"state": "None"}
        static = {instance: self._symbol(member_id) for instance, member_id in sorted(group.static_members.items())}
        return {
            "state": group.state.value,
            "generation": group.generation,
            "protocol_type": group.protocol_type,
            "protocol": group.protocol,
            "leader": self._symbol(group.leader),
            "members": self._symbols(group.members),
            "static": static,
            "pending": self._symbols(group.pending_members),
            "awaiting_join": self._symbols(group.awaiting_join),
            "awaiting_sync": self._symbols(group.awaiting_sync),
            "pending_sync": self._symbols(group.pending_sync_members),
        }


_PARSERS: Final[dict[str, Callable[[_Run, Json, str], Request]]] = {
    "join": _Run._join,
    "sync": _Run._sync,
    "heartbeat": _Run._heartbeat,
    "leave": _Run._leave,
    "offset_commit": _Run._offset_commit,
    "delete_group": _Run._delete_group,
}


def _by_number(symbol: str) -> tuple[int, str]:
    """The order of the recordings: $m2 comes before $m10."""
    return len(symbol), symbol


def _config(config: CoordinatorConfig, settings: Json) -> CoordinatorConfig:
    known = {name: settings[key] for key, name in _SETTINGS.items() if key in settings}
    return replace(config, offsets_topic_num_partitions=_ONE_GROUP_PER_PARTITION, **known)


def run_lines(lines: Iterable[str], out: TextIO, kafka: str | None) -> None:
    """Run one trace per line."""
    for line in lines:
        if line.strip():
            json.dump(run_trace(json.loads(line), kafka), out, separators=(",", ":"))
            out.write("\n")


def main(argv: Sequence[str] | None = None) -> int:
    """The command `rebalance trace`."""
    parser = argparse.ArgumentParser(prog="rebalance trace", description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("--kafka", metavar="VERSION", help="the Kafka release to follow, instead of the trace's own")
    options = parser.parse_args(argv)
    run_lines(sys.stdin, sys.stdout, options.kafka)
    return 0


if __name__ == "__main__":
    sys.exit(main())
