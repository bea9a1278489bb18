"""Random lives of a group: a script of small numbers that plays against a group or a coordinator.

A script is plain data, so that a failing one can be read and shrunk. It names members by position among the ids that
have been issued so far, so that most requests make sense, and some never do. Half of them are what a well-behaved
client would send next: without these hardly any script would get as far as an assignment.
"""

from typing import NamedTuple

from hypothesis import strategies as st

from coordinator_model.errors import Error
from coordinator_model.specification import requests
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.effects import ExceptionThrown, MemberAdded, StaticMemberReplaced
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.timers import INITIAL_DELAY_KEY, JOIN_KEY, SESSION, SYNC_KEY
from coordinator_model.states import State
from tests.specification.choices import chosen

RELEASES = (
    "0.9.0.1", "0.10.0.1", "0.10.2.2", "0.11.0.3", "1.0.2", "2.0.1", "2.1.1", "2.2.2", "2.3.1", "2.4.1", "2.5.1", "2.6.3",
    "2.8.2", "3.2.3", "3.9.1", "4.2.0",
)  # fmt: skip

PROTOCOLS = (
    (("range", b"v1"),),
    (("range", b"v2"),),
    (("range", b"v1"), ("rr", b"v1")),
    (("rr", b"v1"), ("range", b"v1")),
    (("rr", b"v2"),),
)


class Step(NamedTuple):
    """One request, described by small numbers."""

    wait_ms: int
    api: str
    who: int  # position among the ids issued so far, from the newest; past the end: ""
    instance: int  # 0: dynamic
    protocols: int
    generation: int  # offset to the group's own
    session_ms: int
    rebalance_ms: int
    api_version: int
    append_error: Error


def steps(min_size=20, max_size=60):
    return st.lists(
        chosen(
            Step,
            wait_ms=(0, 0, 1, 10, 300, 1_000, 3_000, 7_000, 20_000),
            api=(*["next"] * 8, *["join"] * 3, "sync", "sync", "heartbeat", "leave", "commit", "delete"),
            who=range(7),
            instance=(0, 0, 0, 1, 2),
            protocols=range(len(PROTOCOLS)),
            generation=(0, 0, 0, 0, 0, -1, 1),
            session_ms=(1_000, 6_000, 10_000, 400_000),
            rebalance_ms=(500, 5_000, 60_000),
            api_version=(0, 3, 4, 8, 9),
            append_error=(*[Error.NONE] * 12, Error.NOT_ENOUGH_REPLICAS, Error.REQUEST_TIMED_OUT),
        ),
        min_size=min_size,
        max_size=max_size,
    )


def configs():
    return st.builds(
        lambda release, delay, size: CoordinatorConfig.of(release).__class__(
            **{**CoordinatorConfig.of(release).__dict__, "group_initial_rebalance_delay_ms": delay, "group_max_size": size}
        ),
        st.sampled_from(RELEASES),
        st.sampled_from((0, 500, 3_000)),
        st.sampled_from((1, 2, 3, 100)),
    )


class Player:
    """Plays a script against a group and keeps what comes out."""

    def __init__(self, config):
        self.group = ClassicGroup("g", config, 0)
        self.now_ms = 0
        self.ids = []
        self.replies = []
        self.effects = []
        self.asked = 0
        # As the group was when the last request was handled:
        self.state, self.generation, self.leader, self.members = self.group.state, 0, None, []

    @property
    def threw(self):
        return any(isinstance(effect, ExceptionThrown) for effect in self.effects)

    def note(self, outcome):
        self.replies += outcome.replies
        self.effects += outcome.effects
        for effect in outcome.effects:
            if isinstance(effect, MemberAdded | StaticMemberReplaced) and effect.member_id not in self.ids:
                self.ids.append(effect.member_id)
        for reply in outcome.replies:
            answer = reply.answer
            if isinstance(answer, requests.JoinAnswer) and answer.error is Error.MEMBER_ID_REQUIRED:
                self.ids.append(answer.member_id)

    def request(self, step):  # noqa: PLR0911
        member_id = self.ids[-1 - step.who] if step.who < len(self.ids) else ""
        instance = f"i{step.instance}" if step.instance else None
        generation = self.generation + step.generation
        if step.api == "next" and self.members:
            return self.next_request(self.members[step.who % len(self.members)])
        if step.api in ("join", "next"):
            return requests.JoinGroup(
                member_id, step.session_ms, step.rebalance_ms, "consumer", PROTOCOLS[step.protocols], instance,
                step.api_version, fresh_member_id=f"{instance or 'c'}-{self.asked}",
            )  # fmt: skip
        if step.api == "sync":
            assignments = tuple((member_id, b"p%d" % step.protocols) for member_id in self.ids[-3:])
            return requests.SyncGroup(member_id, generation, assignments, instance)
        if step.api == "heartbeat":
            return requests.Heartbeat(member_id, generation, instance)
        if step.api == "leave":
            entries = (requests.LeavingMember(member_id, instance), requests.LeavingMember(self.ids[-1] if self.ids else "x", None))
            return requests.LeaveGroup(entries[: 1 + step.protocols % 2 if self.group.version.batched_leave else 1])
        if step.api == "commit":
            return requests.OffsetCommit(member_id, generation if step.protocols else -1, instance, step.api_version)
        return requests.DeleteGroup()

    def next_request(self, member):
        """What this member sends if it behaves well."""
        member_id, instance = member.member_id, member.instance_id
        if self.state is State.PREPARING_REBALANCE:
            timeouts = (member.session_timeout_ms, member.rebalance_timeout_ms)
            return requests.JoinGroup(member_id, *timeouts, "consumer", member.protocols, instance)
        if self.state is State.COMPLETING_REBALANCE:
            assigned = tuple((other.member_id, other.member_id.encode()) for other in self.members)
            return requests.SyncGroup(member_id, self.generation, assigned if member_id == self.leader else (), instance)
        return requests.Heartbeat(member_id, self.generation, instance)

    def step(self, step):
        self.now_ms += step.wait_ms
        ticket = self.asked
        outcome = self.group.handle(self.request(step), self.now_ms, ticket, append_error=step.append_error)
        self.asked += 1
        group = self.group
        self.state, self.generation, self.leader = group.state, group.generation, group.leader
        self.members = list(group.members.values())
        self.note(outcome)
        return outcome, ticket

    def advance(self, now_ms):
        self.now_ms = now_ms
        self.note(self.group.advance(now_ms))


def check_books(group):
    """What holds of every group at every moment."""
    members = group.members
    assert group.awaiting_join.keys() <= members.keys()
    assert group.awaiting_sync.keys() <= members.keys()
    assert not group.awaiting_sync or group.state is State.COMPLETING_REBALANCE
    assert not group.pending_members.keys() & members.keys()
    assert group.static_members == {m.instance_id: m.member_id for m in members.values() if m.instance_id}
    assert (group.leader in members) if members else group.leader is None
    assert sorted(group.map_order.keys(members)) == sorted(members)
    counts = {}
    for member in members.values():
        for name, _ in member.protocols:
            counts[name] = counts.get(name, 0) + 1
    assert counts == {name: count for name, count in group.supported_protocols.items() if count}
    if group.state in (State.STABLE, State.COMPLETING_REBALANCE) and group.generation:
        assert members
        # 2.3 and 2.4 do not ask what a restarted static member supports.
        asks = group.version.static_restart_is_stored or not group.version.static_members
        assert not asks or group.protocol in group.candidate_protocols()
    if group.state is State.EMPTY:
        assert not members


def check_timers(group):
    """Nobody is waited for without an end."""
    running = group.timers.deadlines
    if group.state is State.DEAD:
        assert not running
        return
    assert all(deadline > group.now_ms for deadline in running.values())
    sessions = {member_id for kind, member_id, _ in running if kind == SESSION}
    assert group.pending_members.keys() <= sessions
    for member in group.members.values():
        parked = group.is_parked(member.member_id)
        assert member.member_id in sessions or (parked and not (member.is_new and group.version.new_member_timeout))
    preparing = group.state is State.PREPARING_REBALANCE
    assert (JOIN_KEY in running) + (INITIAL_DELAY_KEY in running) == preparing
    synced = group.state in (State.COMPLETING_REBALANCE, State.STABLE) and bool(group.pending_sync_members)
    assert (SYNC_KEY in running) == synced
    if group.version.one_session_timer_per_member:
        assert sessions <= members_and_pending(group)


def members_and_pending(group):
    return group.members.keys() | group.pending_members.keys()
