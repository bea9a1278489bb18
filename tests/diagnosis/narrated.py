"""Stories of a group of consumers, told once and seen through the coordinator log, the request log, or both.

    group = Group("a", "b")  # two consumers; generation 1 is stable
    group.live(20_000)  # all of them send heartbeats until then
    group.leaves("b")  # LeaveGroup, and the rebalance of those who stay
    findings(group.seen(BOTH))

Times are ms since the start of the story. A verb happens now, and leaves the clock where it ends. Consumers are known by
their client ids; `group[client]` has the rest. What the verbs write is what Kafka 4.x does: the specification, which
follows the request log, would tell MODEL_DIVERGENCE otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event, MemberEntry
from coordinator_model.view.rows import Row
from scripts.docs.findings import RULES
from tests.tracker.story import START_MS, Story, play, table

LOG: Final = "coordinator log"
REQUESTS: Final = "request log"
BOTH: Final = "both logs"
CLIENTS: Final = "client logs alone"
LOG_AND_CLIENTS: Final = "coordinator and client logs"
EVERY: Final = "all logs"
_SOURCES: Final = {
    LOG: ("coordinator",),
    REQUESTS: ("request",),
    BOTH: ("coordinator", "request"),
    CLIENTS: ("client",),
    LOG_AND_CLIENTS: ("coordinator", "client"),
    EVERY: ("coordinator", "request", "client"),
}

in_any_evidence: Final = pytest.mark.parametrize("evidence", [LOG, REQUESTS, BOTH])
where_requests_are_seen: Final = pytest.mark.parametrize("evidence", [REQUESTS, BOTH])
where_the_log_is_seen: Final = pytest.mark.parametrize("evidence", [LOG, BOTH])

HEARTBEAT_MS: Final = 3_000
CLOSED: Final = "the consumer is being closed"
STALLED: Final = "consumer poll timeout has expired."


@dataclass
class Consumer:
    """A client as it runs now, and the member that it is."""

    client: str
    member: str
    connection: str
    instance: str = ""
    topics: tuple[str, ...] = ("orders",)
    owned: tuple[str, ...] = ()
    session_ms: int = 10_000
    patience_ms: int = 30_000  # its rebalance timeout, max.poll.interval.ms
    runs: bool = True  # whether it sends heartbeats, and rejoins

    def who(self) -> dict[str, Any]:
        """What every request of it carries."""
        return {"connection": self.connection, "instance_id": self.instance, "client_id": self.client}


class Group(Story):
    """A group whose consumers do as they are told."""

    def __init__(
        self, *clients: str, static: bool = False, partitions: int = 6, session_ms: int = 10_000, patience_ms: int = 30_000
    ) -> None:
        super().__init__()
        self.session_ms, self.patience_ms = session_ms, patience_ms
        self.generation = 0
        self.consumers: dict[str, Consumer] = {}
        self.now = 0
        self.leader = ""
        self.state = "Empty"
        self.partitions = [f"orders-{number}" for number in range(partitions)]
        self._made = 0
        self._absent: set[str] = set()
        self._latest: dict[str, Consumer] = {}
        if clients:
            for client in clients:
                self.consumers[client] = self._new(client, instance=f"i-{client}" if static else "")
            self.rebalance(
                f"Adding new member {self[clients[0]].member} with group instance id null; client reason: not provided",
                clients[0],
                new=clients,
                ends=3_000,
            )

    def __getitem__(self, client: str) -> Consumer:
        return self.consumers[client]

    def _new(self, client: str, *, instance: str = "", connection: str = "") -> Consumer:
        self._made += 1
        uuid = f"{self._made:08x}-0000-4000-8000-{self._made:012x}"
        connection = connection or f"10.0.0.1:9092-10.0.0.7:{50_000 + self._made}"
        member, times = f"{instance or client}-{uuid}", {"session_ms": self.session_ms, "patience_ms": self.patience_ms}
        self._latest[client] = Consumer(client, member, connection, instance, **times)
        return self._latest[client]

    def is_at(self, ms: int) -> Group:
        """Moves the clock."""
        self.now = ms
        self.at(ms)
        return self

    # what consumers do

    def live(self, until: int) -> Group:
        """Heartbeats of all that run, until then."""
        for ms in range(self.now + 500, until, HEARTBEAT_MS):
            for number, consumer in enumerate(self.running()):
                self.at(ms + 7 * number).heartbeat(consumer.member, self.generation, **consumer.who())
        return self.is_at(until)

    def running(self) -> list[Consumer]:
        """Those that send heartbeats."""
        return [consumer for consumer in self.consumers.values() if consumer.runs]

    def comes(self, client: str, *, connection: str = "", instance: str = "", **how: Any) -> Group:
        """A consumer starts, and joins as a new member."""
        new = self._new(client, instance=instance, connection=connection)
        self.consumers[client] = new
        words = f"Adding new member {new.member} with group instance id {instance or 'null'}; client reason: not provided"
        return self.rebalance(words, client, new=(client,), **how)

    def comes_back(self, client: str) -> Group:
        """The process of a member that is gone joins again as a new one: on its connection, with its group.instance.id."""
        gone = self._latest[client]
        return self.comes(client, connection=gone.connection, instance=gone.instance)

    def commits(self, client: str) -> Group:
        """OffsetCommit, accepted."""
        consumer = self[client]
        self.at(self.now).commit(consumer.member, self.generation, **consumer.who())
        return self

    def begins(self, client: str, error: int = 0) -> Group:
        """OffsetFetch: the application has its partitions, and asks where to begin. The request names no member."""
        consumer = self[client]
        self.at(self.now).request(
            kinds.OFFSET_FETCH, "", took=0, client_id=client, connection=consumer.connection, member_count=2, error_code=error
        )
        return self

    def leaves(self, client: str, reason: str = "", **how: Any) -> Group:
        """LeaveGroup, and the rebalance of the others. `reason`: the client's words (KIP-800)."""
        gone = self.consumers.pop(client)
        self.at(self.now).leave(gone.member, reason, took=0, **gone.who())
        self.log(kinds.MEMBER_LEFT, member_id=gone.member, reason=reason or "not provided")
        return self.rebalance(f"explicit `LeaveGroup` request for ({gone.member}) members.", gone, **how)

    def removed_by_admin(self, client: str) -> Group:
        """kafka-consumer-groups --remove-members of a static member: by its instance id, on a connection of the tool's own."""
        gone = self.consumers.pop(client)
        words = "member was removed by an admin"
        entry = MemberEntry("", gone.instance, 0, words, None)
        self.at(self.now).request(
            kinds.LEAVE_GROUP, "", took=0, members=(entry,), client_id="adminclient-1", connection="10.0.0.1:9092-10.0.0.9:40000"
        )
        self.log(kinds.MEMBER_LEFT, member_id=gone.member, instance_id=gone.instance, reason=words)
        return self.rebalance(f"explicit `LeaveGroup` request for ({gone.member}) members.", gone)

    def dies(self, client: str) -> Group:
        """The process is killed: no more of it, not even a LeaveGroup."""
        self[client].runs = False
        return self

    def expires(self, client: str, **how: Any) -> Group:
        """The session of a member that has fallen silent ends, and the others rebalance."""
        gone = self.consumers.pop(client)
        self.at(self.now).log(kinds.MEMBER_FAILED, member_id=gone.member)
        return self.rebalance(f"removing member {gone.member} on heartbeat expiration", gone, **how)

    def session_ends(self, client: str) -> Group:
        """The others live on until the session of this one, which is silent from now on, is over; then it expires."""
        self.at(self.now).heartbeat(self[client].member, self.generation, took=0, **self[client].who())
        return self.dies(client).live(self.now + self[client].session_ms).expires(client)

    def rejoins(self, client: str, words: str = "", *, topics: tuple[str, ...] | None = None, **how: Any) -> Group:
        """A member joins again by itself. `words`: why, as it says (KIP-800)."""
        consumer = self[client]
        consumer.topics = topics or consumer.topics
        said = words or "not provided"
        text = (
            f"Leader {consumer.member} re-joining group during Stable"
            if consumer.member == self.leader
            else (f"Updating metadata for member {consumer.member} during Stable")
        )
        return self.rebalance(f"{text}; client reason: {said}", client, asks={client: 0}, words={client: words}, **how)

    def writes(self, client: str, kind: str, ms: int | None = None, **fields: Any) -> Group:
        """A line of the client's own log."""
        broker = self.broker
        self.on("clients").at(self.now if ms is None else ms)
        self.add("client", kind, client_id=client, **fields)
        self.on(broker)
        return self.is_at(self.now)

    # what the coordinator does

    def rebalance(
        self,
        reason: str,
        by: str | Consumer,
        *,
        new: Iterable[str] = (),
        asks: dict[str, int] | None = None,
        ends: int = 0,
        words: dict[str, str] | None = None,
        gives: dict[str, tuple[str, ...]] | None = None,
        absent: Iterable[str] = (),
        syncs: bool = True,
    ) -> Group:
        """A whole rebalance. `asks`: when a member's JoinGroup comes, by default at its next heartbeat; `ends`: when the phase ends.

        `absent`: who does not rejoin. They are waited for, `patience_ms` unless it `ends` before; then dynamic members are
        dropped, static ones keep their place.
        """
        start, asks, new, absent = self.now, asks or {}, tuple(new), tuple(absent)
        self._absent = set(absent)
        ends = ends or (self.patience_ms - 1 if absent else 0)
        consumer = self[by] if isinstance(by, str) else by
        if self.generation and consumer.client in new and not consumer.instance:
            self._asks_for_an_id(consumer, start)
        elif not self.generation:
            for number, client in enumerate(new):
                if not self[client].instance:
                    self._asks_for_an_id(self[client], start + asks.get(client, 10 * number))
        self.at(start).log_preparing(self.generation, reason, consumer.member)
        for number, client in enumerate(new):
            self.at(start + 10 * number).log(
                kinds.MEMBER_ADDED,
                member_id=self[client].member,
                instance_id=self[client].instance,
                state="PreparingRebalance" if number else self.state,
            )
        if not self.running():
            self.log(kinds.GROUP_EMPTY, generation=self.generation + 1)
            self.generation += 1
            self.state = "Empty"
            return self
        arrivals = {}
        for number, member in enumerate(self.running()):
            if member.client in absent:
                continue
            if member.client in new:
                arrivals[member.client] = start + asks.get(member.client, 0 if self.generation else 10 * new.index(member.client))
                continue
            arrivals[member.client] = start + asks.get(member.client, 110 + 10 * number)
            if member is not consumer:
                for ms in range(start + 100 + 10 * number, arrivals[member.client], HEARTBEAT_MS):
                    self.at(ms).heartbeat(member.member, self.generation, Error.REBALANCE_IN_PROGRESS, **member.who())
        self._join_phase_ends(max(*arrivals.values(), start + ends) + 1, arrivals, set(new), words or {})
        return self.assigns(gives) if syncs else self

    def _asks_for_an_id(self, consumer: Consumer, ms: int) -> None:
        self.at(ms - 1).id_issued(consumer.member, consumer.session_ms, consumer.patience_ms, **consumer.who())

    def _join_phase_ends(self, ms: int, arrivals: dict[str, int], new: set[str], words: dict[str, str]) -> None:
        dropped = [m for m in self.running() if m.client not in arrivals and not m.instance]
        if dropped:
            entries = tuple(MemberEntry(m.member, "", 0, "", None) for m in dropped)
            self.at(ms).log(kinds.MEMBERS_NOT_REJOINED, members=entries)
            for member in dropped:
                del self.consumers[member.client]
        members = self.running()
        self.generation += 1
        if self.leader not in [m.member for m in members]:
            self.leader = members[0].member
        for member in sorted((m for m in members if m.client in arrivals), key=lambda m: arrivals[m.client]):
            self.at(ms).join(
                member.member,
                self.generation,
                self.leader,
                [m.member for m in members] if member.member == self.leader else (),
                waited=ms - arrivals[member.client],
                asked_as="" if member.instance and member.client in new else None,
                topics=member.topics,
                owned=member.owned,
                session_timeout_ms=member.session_ms,
                rebalance_timeout_ms=member.patience_ms,
                reason=words.get(member.client, ""),
                **member.who(),
            )
        self.log_stabilized(self.generation, len(members))
        self.state = "CompletingRebalance"
        self.is_at(ms)

    def assigns(self, gives: dict[str, tuple[str, ...]] | None = None, *, without: str = "") -> Group:
        """The leader's assignment arrives, and all get theirs, `without` somebody who does not ask for it."""
        self.state = "Stable"
        members = self.running()
        each = gives or {m.client: tuple(self.partitions[number :: len(members)]) for number, m in enumerate(members)}
        given = {m.member: each.get(m.client, ()) for m in members}
        self.at(self.now + 5).log_assignment(self.generation, self.leader, len(members))
        for member in members:
            if member.client in self._absent or member.client == without:
                continue
            whole = given if member.member == self.leader else {member.member: given[member.member]}
            self.at(self.now + 5).sync(member.member, self.generation, whole, **member.who())
        return self.is_at(self.now + 10)

    def moves(self, to: str, after_ms: int = 1_000) -> Group:
        """Another broker coordinates the group now; its members find it `after_ms` later, as their next heartbeats show."""
        self.on(to).at(self.now).log(kinds.GROUP_LOADED, generation=self.generation, member_count=len(self.consumers))
        return self.is_at(self.now + after_ms)

    def elected(self, epoch: int, ms: int | None = None) -> Group:
        """The broker was elected for a partition of __consumer_offsets, of whatever groups. Epoch 0: it was just created."""
        self.at(self.now if ms is None else ms)
        self.add("coordinator", kinds.COORDINATOR_ELECTED, group_id="", generation=epoch, coordinator_partition=7)
        return self.is_at(self.now)

    # how it is seen

    def seen(self, evidence: str = BOTH, until: int | None = None) -> list[Row]:
        """What the tracker makes of one kind of evidence, read to `until` (default: now)."""
        return play([self.evidence(evidence, until)])

    def evidence(self, evidence: str = BOTH, until: int | None = None) -> list[Event]:
        """The events of one kind of evidence, and how far it was read."""
        whole = self.events
        self.events = [event for event in whole if event.source in _SOURCES[evidence]]
        try:
            newest = max((event.at_ms - START_MS for event in self.events), default=0)
            return [*self.events, *self.heard(max(self.now if until is None else until, newest))]
        finally:
            self.events = whole


def findings(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """(code, client) of every finding, in order of time."""
    told = sorted(table(rows, "findings"), key=lambda row: (row["occurred_at"], row["code"], row["client_id"] or ""))
    for row in told:
        assert set(json.loads(row["details"])) <= RULES[row["code"]].keys, row["code"]
    return [(row["code"], row["client_id"] or "") for row in told]


def finding(rows: Iterable[Row], code: str) -> dict[str, Any]:
    """The one finding with this code."""
    (row,) = [row for row in table(rows, "findings") if row["code"] == code]
    return row


def causes(rows: Iterable[Row]) -> list[str]:
    """Why each rebalance began, the first of the group left out."""
    return [row["cause"] for row in sorted(table(rows, "rebalances"), key=lambda row: row["started_at"])][1:]


def ends(rows: Iterable[Row]) -> list[tuple[str, str]]:
    """(client, how it ended) of every membership that is over."""
    return [(row["client_id"] or "", row["end_kind"]) for row in sorted(table(rows, "member_sessions"), key=lambda row: row["ended_at"])]
