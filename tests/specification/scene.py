"""Transcripts inside tests: the language of transcripts/ (see test_transcripts.py), on any release, checked where it matters.

    settled("3.9.1", "A", "B").play('''
        > 2000 B leave
          2000 group: B-1 removed: leave
          2000 group: Stable -> PreparingRebalance, generation 2: leave (B-1)
          2000 B <- Leave: NONE
        > 2100 A heartbeat
          2100 A <- Heartbeat: REBALANCE_IN_PROGRESS
        > 2200 A join
    ''')

A line that begins with > is a command. The lines below it are all that happens until it is done; what falls together may
come in any order, since the order of members differs between releases. `nothing`: nothing may happen, which is how a parked
request looks. A command without lines below it is not checked.

More options than in the files: `as=B-1`, `generation=7`, `instance=i`, `type=connect` put other values into a request,
`error=NOT_ENOUGH_REPLICAS` is the error of every write to the log that the request attempts. A `join` that names no
version speaks JoinGroup v3, or what the release has: the newest in which a dynamic member joins in one step.
"""

from dataclasses import replace

import pytest

from coordinator_model.clients.client_version import ClientVersion
from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.effects import MemberRemoved, Transition
from coordinator_model.specification.releases import release_numbers
from coordinator_model.specification.requests import LeaveGroup
from coordinator_model.states import State
from tests.specification import play
from tests.specification.test_transcripts import Client, Story

RELEASES = tuple(sorted({*play.RELEASES, "1.1.1", "2.1.0", "2.7.2", "3.0.0", "3.1.2", "3.3.2"}, key=release_numbers))
"""Every release that changed a rule, and the last before it where that matters."""


def since(release):
    """The releases from `release` on."""
    return tuple(name for name in RELEASES if release_numbers(name) >= release_numbers(release))


def before(release):
    """The releases before `release`."""
    return tuple(name for name in RELEASES if release_numbers(name) < release_numbers(release))


def each(releases=RELEASES):
    """Run a test on each of these releases."""
    return pytest.mark.parametrize("release", releases)


def over_time(names, changes):
    """Run a test on each release with what held then: `changes` says from which release on something holds.

    What holds may be None: the thing did not exist, and the test does not run.
    """
    cases = []
    for release in RELEASES:
        held = [value for first, value in changes.items() if release_numbers(release) >= release_numbers(first)]
        if held and held[-1] is not None:
            values = held[-1] if isinstance(held[-1], tuple) else (held[-1],)
            cases.append((release, *values))
    return pytest.mark.parametrize(f"release, {names}", cases)


_FIELDS = {"as": "member_id", "generation": "generation", "instance": "instance_id", "type": "protocol_type"}


class Scene(Story):
    """A group on one release, and what has happened in it."""

    def __init__(self, release, delay_ms=0, **settings):
        super().__init__(release, delay_ms)
        config = replace(CoordinatorConfig.of(release), group_initial_rebalance_delay_ms=delay_ms, **settings)
        self.coordinator = Coordinator(config, 0, range(50))
        self.join_version = f"v{min(3, ClientVersion.of(release).join_version)}"
        self.effects = []

    @property
    def group(self):
        """The group, None if it does not exist."""
        return self.coordinator.groups.get("g")

    @property
    def state(self):
        """What the group's state is called; `absent` if it does not exist."""
        return self.group.state.value if self.group else "absent"

    def rebalances(self):
        """When and why rebalances began, all so far."""
        moves = [effect for effect in self.effects if isinstance(effect, Transition)]
        return [(move.at_ms, move.trigger.value) for move in moves if move.to_state is State.PREPARING_REBALANCE]

    def removed(self):
        """Who was removed when, all so far."""
        return {effect.member_id: effect.at_ms for effect in self.effects if isinstance(effect, MemberRemoved)}

    def states(self):
        """The states that the group went through, from the first to the present one."""
        moves = [effect for effect in self.effects if isinstance(effect, Transition)]
        return [moves[0].from_state.value, *(move.to_state.value for move in moves)] if moves else []

    def play(self, text):
        """Run commands, and compare what is written below them; the scene, for what comes next."""
        command, told = None, []
        for line in [*text.splitlines(), "> "]:
            words = " ".join(line.split())
            if not words or words.startswith("#"):
                continue
            if not words.startswith(">"):
                told.append(words)
                continue
            if command:
                self._check(command, told)
            command, told = words[1:].strip(), []
        return self

    def _check(self, command, told):
        happened = [" ".join(line.split()) for line in self.tell(command)]
        if told:
            assert sorted(happened) == sorted(told if told != ["nothing"] else []), f"> {command}"

    def tell(self, command):
        """As Story does, with the options of this language."""
        at, *words = command.split()
        if not words or words[0] == "coordinator":
            yield from super().tell(command)
            return
        name, verb, *options = words
        yield from self.lines(self.coordinator.advance(int(at)))
        client = self.clients.setdefault(name, Client(name))
        fields = {_FIELDS[key]: value for key, _, value in (option.partition("=") for option in options) if key in _FIELDS}
        errors = [option[len("error=") :] for option in options if option.startswith("error=")]
        options = [option for option in options if option.partition("=")[0] not in {*_FIELDS, "error"}]
        if verb in ("join", "restart"):
            named = any(option[0] == "v" and option[1:].isdigit() for option in options)
            static = "static" in options or client.join.instance_id is not None
            options += [] if named else ["v9"] if static else [self.join_version]
        request = _with(client.request(verb, options), fields)
        error = Error[errors[0]] if errors else Error.NONE
        yield from self.lines(self.coordinator.handle("g", request, int(at), name, append_error=error))

    def lines(self, outcome):
        """As Story does, and remembers."""
        self.effects += [effect for _, effect in outcome.effects]
        return super().lines(outcome)


def _with(request, fields):
    if "generation" in fields:
        fields = {**fields, "generation": int(fields["generation"])}
    if isinstance(request, LeaveGroup):
        return LeaveGroup((request.members[0]._replace(**fields),))
    return request._replace(**fields)


def settled(release, *clients, **settings):
    """A Stable group of `clients`, one generation each, led by the first. With a name may come options: "A session=30000".

    Nobody is heard of after 1000, so that sessions, unless a test says otherwise, end at 11000.
    """
    scene = Scene(release, **settings)
    names = [client.split()[0] for client in clients]
    for number, client in enumerate(clients):
        for member in (client, *names[:number]):
            name, _, options = member.partition(" ")
            scene.play(f"> {10 * number} {name} join {options}")
        for member in names[: number + 1]:
            scene.play(f"> {10 * number + 5} {member} sync")
    for name in names:
        scene.play(f"> 1000 {name} heartbeat")
    assert (scene.state, scene.group.generation, len(scene.group.members)) == ("Stable", len(names), len(names))
    return scene
