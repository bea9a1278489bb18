"""Groups of one or two members on a given release, and what an outcome shows, for the tests of corners."""

from dataclasses import replace

from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.requests import JoinGroup, SyncGroup
from coordinator_model.states import State

RANGE, RR = ("range", b"v1"), ("rr", b"v1")
JOIN = JoinGroup("", 10_000, 30_000, "consumer", (RANGE,), api_version=3)
STATIC = JOIN._replace(instance_id="i")
WITH_SECOND_QUESTION = JOIN._replace(api_version=4)


def new_group(release, **settings):
    return ClassicGroup("g", replace(CoordinatorConfig.of(release), **{"group_initial_rebalance_delay_ms": 0, **settings}), 0)


def new_coordinator(release, **settings):
    return Coordinator(replace(CoordinatorConfig.of(release), **{"group_initial_rebalance_delay_ms": 0, **settings}), 0, range(50))


def errors(outcome):
    return {reply.ticket: reply.answer.error.name for reply in outcome.replies}


def of_kind(outcome, kind):
    return [effect for effect in outcome.effects if isinstance(effect, kind)]


def completing(release, join=JOIN, **settings):
    """a has joined."""
    group = new_group(release, **settings)
    group.handle(join._replace(fresh_member_id="a"), 0, "join a")
    assert group.state is State.COMPLETING_REBALANCE
    return group


def stable(release, join=JOIN, **settings):
    """a has its assignment."""
    group = completing(release, join, **settings)
    group.handle(SyncGroup("a", 1, (("a", b"P"),), join.instance_id), 0, "sync a")
    assert group.state is State.STABLE
    return group


def two_members(release):
    """a, whose session is the shorter one, and b; Stable."""
    group = stable(release)
    group.handle(JOIN._replace(session_timeout_ms=60_000, fresh_member_id="b"), 0, "join b")
    group.handle(JOIN._replace(member_id="a"), 0, "rejoin a")
    group.handle(SyncGroup("a", 2, (("a", b"P"),)), 0, "sync a")
    group.handle(SyncGroup("b", 2), 0, "sync b")
    assert group.state is State.STABLE
    return group
