"""Protocol transcripts: what a Kafka engineer would see on the wire and in the broker's log, as text.

Each file in transcripts/ is a story. Lines that begin with > are what clients do and when; the lines below each are
what the coordinator did until then, with the times. After a change run with REWRITE_TRANSCRIPTS=1 and read the
difference: keep it only if you know why it is right.

    > 0 A join                     A sends JoinGroup v9 (`v3`: another version), with the member id that it knows
    > 0 A restart                  A forgets its member id and joins
    > 0 A sync                     the leader assigns P-<member> to each member
    > 0 A heartbeat | leave | commit
    > 0 A zombie                   a process that still has A's first member id heartbeats
    > 9000                         time passes
    > 0 coordinator unload | load

Options of join: `static`, `session=10000`, `rebalance=60000`, `range=v1 rr=v1` (protocols in order, with their
metadata).
"""

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification import requests
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.effects import LeaderChanged, MemberAdded, MemberRemoved, StaticMemberReplaced, Transition
from tests.specification.retelling import assert_goes_as_it_is_told

FOLDER = Path(__file__).parent / "transcripts"


class Client:
    def __init__(self, name):
        self.name = name
        self.member_id = ""
        self.generation = -1
        self.leads = ()
        self.join = requests.JoinGroup("", 10_000, 30_000, "consumer", (("range", b"v1"),))
        self.lives = 0

    def request(self, verb, options):
        if verb in ("join", "restart"):
            if verb == "restart":
                self.member_id, self.generation = "", -1
            return self.join_request(options)
        if verb == "sync":
            assignments = tuple((member_id, f"P-{member_id}".encode()) for member_id in self.leads)
            return requests.SyncGroup(self.member_id, self.generation, assignments, self.join.instance_id)
        if verb == "heartbeat":
            return requests.Heartbeat(self.member_id, self.generation, self.join.instance_id)
        if verb == "zombie":
            return requests.Heartbeat(f"{self.name}-1", self.generation, self.join.instance_id)
        if verb == "leave":
            return requests.LeaveGroup((requests.LeavingMember(self.member_id, self.join.instance_id),))
        assert verb == "commit", verb
        return requests.OffsetCommit(self.member_id, self.generation, self.join.instance_id)

    def join_request(self, options):
        protocols = []
        for option in options:
            name, _, value = option.partition("=")
            if name == "static":
                self.join = self.join._replace(instance_id=f"instance-{self.name}")
            elif name == "session":
                self.join = self.join._replace(session_timeout_ms=int(value))
            elif name == "rebalance":
                self.join = self.join._replace(rebalance_timeout_ms=int(value))
            elif name.startswith("v"):
                self.join = self.join._replace(api_version=int(name[1:]))
            else:
                protocols.append((name, value.encode()))
        if protocols:
            self.join = self.join._replace(protocols=tuple(protocols))
        if not self.member_id:
            self.lives += 1
        fresh = f"{self.name}-{self.lives}"
        return self.join._replace(member_id=self.member_id, fresh_member_id=fresh)

    def hear(self, answer):
        if isinstance(answer, requests.JoinAnswer) and answer.error in (Error.NONE, Error.MEMBER_ID_REQUIRED):
            self.member_id = answer.member_id
            self.generation = answer.generation
            self.leads = tuple(member.member_id for member in answer.members)


class Story:
    """Executes the commands of one transcript."""

    def __init__(self, release, initial_delay_ms):
        config = replace(CoordinatorConfig.of(release), group_initial_rebalance_delay_ms=initial_delay_ms)
        self.coordinator = Coordinator(config, 0, range(50))
        self.clients = {}

    def tell(self, command):
        at, *words = command.split()
        at_ms = int(at)
        yield from self.lines(self.coordinator.advance(at_ms))
        if not words:
            return
        name, verb, *options = words
        if name == "coordinator":
            yield from self.lines(getattr(self.coordinator, verb)(self.coordinator.partition("g"), at_ms))
            return
        client = self.clients.setdefault(name, Client(name))
        yield from self.lines(self.coordinator.handle("g", client.request(verb, options), at_ms, name))

    def lines(self, outcome):
        happened = [(effect.at_ms, effect) for _, effect in outcome.effects]
        told = [(reply.at_ms, reply) for reply in outcome.replies]
        for at_ms, what in sorted(happened + told, key=lambda entry: entry[0]):
            line = self.line(what)
            if line:
                yield f"{at_ms:>6}  {line}"

    def line(self, what):  # noqa: PLR0911
        if isinstance(what, Transition):
            who = f" ({what.member_id})" if what.member_id else ""
            states = f"{what.from_state.value} -> {what.to_state.value}"
            return f"group: {states}, generation {what.generation}: {what.trigger.value}{who}"
        if isinstance(what, MemberAdded):
            return f"group: {what.member_id} added"
        if isinstance(what, MemberRemoved):
            return f"group: {what.member_id} removed: {what.cause.value}"
        if isinstance(what, LeaderChanged):
            return f"group: {what.leader or 'nobody'} leads instead of {what.old_leader}"
        if isinstance(what, StaticMemberReplaced):
            return f"group: {what.member_id} replaces {what.old_member_id} as {what.instance_id}"
        if hasattr(what, "ticket"):
            self.clients[what.ticket].hear(what.answer)
            return f"{what.ticket} <- {self.answer(what.answer)}"
        return ""

    def answer(self, answer):
        name = type(answer).__name__.removesuffix("Answer")
        if isinstance(answer, requests.LeaveAnswer) and answer.members:
            return f"{name}: {answer.members[0].error.name}"
        if answer.error is Error.MEMBER_ID_REQUIRED:
            return f"{name}: MEMBER_ID_REQUIRED {answer.member_id}"
        if isinstance(answer, requests.JoinAnswer) and answer.error is Error.NONE:
            text = f"{name}: {answer.member_id} generation {answer.generation}, {answer.protocol}, led by {answer.leader}"
            if answer.members:
                text += ", members " + " ".join(sorted(member.member_id for member in answer.members))
            return text + (", skip assignment" if answer.skip_assignment else "")
        if isinstance(answer, requests.SyncAnswer) and answer.error is Error.NONE:
            return f"{name}: {answer.assignment.decode() or 'nothing assigned'}"
        return f"{name}: {answer.error.name}"


def begin(line):
    """The story of a line `kafka <release> … <delay>`."""
    _, release, _, delay = line.split()
    return Story(release, int(delay))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_the_story_goes_as_it_is_told(path):
    assert_goes_as_it_is_told(path, begin)
