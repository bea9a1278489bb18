"""A client of a given release, taken to where a test begins, and its heartbeats."""

from dataclasses import replace

from coordinator_model.clients.client import Client, ClientConfig, MemberState
from coordinator_model.errors import Error
from coordinator_model.specification.requests import Heartbeat, HeartbeatAnswer, JoinAnswer, SyncAnswer, SyncGroup

OLD, THREAD, OVERLAP, NEW = "0.10.0.1", "0.10.2.2", "2.7.2", "4.2.0"
ALL = (OLD, THREAD, OVERLAP, NEW)
SINCE_THREAD = (THREAD, OVERLAP, NEW)


def assign(members):
    return tuple((member.member_id, b"P") for member in members)


def new_client(release, **settings):
    return Client(replace(ClientConfig.of(release, "c"), **settings), assign)


def joined(release, **settings):
    """JoinGroup answered at 100, SyncGroup sent."""
    client = new_client(release, **settings)
    client.poll(0)
    (sync,) = client.take_answer(JoinAnswer(Error.NONE, "c-1", 1, "other", "consumer", "range"), 100)
    assert isinstance(sync, SyncGroup)
    return client


def stable(release, **settings):
    """SyncGroup answered at 200."""
    client = joined(release, **settings)
    assert client.take_answer(SyncAnswer(Error.NONE, assignment=b"P"), 200) == []
    assert client.state is MemberState.STABLE
    return client


def heartbeat(client):
    return Heartbeat(client.member_id, client.generation, client.config.group_instance_id)


def beat(client, error, now_ms=3_300):
    """A heartbeat and its answer. At 3300 the first one is due, of whatever release."""
    assert client.poll(now_ms) + client.tick(now_ms) == [heartbeat(client)]
    client.take_answer(HeartbeatAnswer(error), now_ms + 1)


def beats_until(client, end_ms):
    """The heartbeats of the thread before `end_ms`, each answered well. When they were sent."""
    sent = []
    while client.next_tick_ms() < end_ms:
        sent.append(client.next_tick_ms())
        assert client.tick(sent[-1]) == [heartbeat(client)]
        client.take_answer(HeartbeatAnswer(Error.NONE), sent[-1] + 1)
    return sent
