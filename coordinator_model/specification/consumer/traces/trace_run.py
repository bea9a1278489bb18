"""What the runs of all traces share, of classic groups and of consumer groups: how a step is executed, and how a request is made of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.traces.trace_json import KEYS, Json, TraceSymbols

ONE_GROUP_PER_PARTITION: Final = 2**31 - 1
"""Traces move groups, not partitions: with so many partitions each group has its own."""


class Run(ABC):
    """A trace, run by a coordinator, whose outcomes are those of a call."""

    requests: ClassVar[Mapping[str, type[Any]]]
    """The steps that are requests. The others move the clock or the coordinator."""

    def __init__(self, trace: Json, symbols: TraceSymbols, coordinator: Any, owned: Iterable[str]) -> None:
        """`owned`: the groups that the coordinator has from the beginning."""
        self.trace = trace
        self.symbols = symbols
        self.coordinator = coordinator
        self.expects: list[Json] = []
        self.values: dict[str, Callable[[Any], Any]] = {"member": symbols.member_id}
        """What the values of a request mean, by their names."""
        for group_id in owned:
            coordinator.load(coordinator.partition(group_id), 0)

    def run(self) -> None:
        """Run all steps."""
        for index, step in enumerate(self.trace["steps"]):
            self.step(index, step)

    @abstractmethod
    def step(self, index: int, step: Json) -> None:
        """Let time pass until the step, then run it, and add what it leads to."""

    def executed(self, index: int, step: Json) -> Any:
        """The outcome of a step, up to which time has passed."""
        at_ms, op, group_id, coordinator = step["at_ms"], step["op"], step["group"], self.coordinator
        if op in self.requests:
            fresh = self.symbols.member_id(step.get("bind") or f"$x{index}")
            request, error = self.request(op, step.get("req") or {}, fresh), Error[step.get("append_error") or "NONE"]
            return coordinator.handle(group_id, request, at_ms, index, append_error=error)
        if op == "advance":
            return coordinator.advance(at_ms)
        moves = {"unload": coordinator.unload, "load_begin": coordinator.load_begin}
        return moves.get(op, coordinator.load)(coordinator.partition(group_id), at_ms)

    def request(self, op: str, req: Json, fresh_member_id: str) -> Any:
        """The request of a step."""
        return self.made(self.requests[op], req, fresh_member_id=fresh_member_id)

    def made(self, kind: type[Any], req: Json, **others: Any) -> Any:
        """A request, or a part of one. What is absent, or null, has its default; `others` are defaults of this step.

        KeyError: a field is missing that has none.
        """
        values = {}
        for name in kind._fields:
            key = KEYS.get(name, name)
            if req.get(key) is not None:
                values[name] = self.values.get(key, _itself)(req[key])
            elif name in others:
                values[name] = others[name]
            elif name not in kind._field_defaults:
                values[name] = req[key]
        return kind(**values)


def given(settings: Json, names: Mapping[str, str]) -> dict[str, Any]:
    """The settings that a trace has, by their own names. `names`: these, by those in traces."""
    return {name: settings[key] for key, name in names.items() if key in settings}


def _itself(value: Any) -> Any:
    return value
