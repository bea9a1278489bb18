"""What clients have said about a group of which no broker has spoken so far (diagnosis/clients_alone.py)."""

from __future__ import annotations

from msgspec import Struct

from coordinator_model.view.rows import Record, Ref


class Trouble(Record, Struct, array_like=True):
    """One trouble of one client, said once or several times in a row. It waits whether a broker speaks of the group."""

    code: str  # of its finding
    client: str  # how its log calls it
    at_ms: int
    last_ms: int
    member_id: str = ""
    client_id: str = ""
    instance_id: str = ""
    settings: str = ""  # whose settings it has: a key of clients_alone.SETTINGS
    times: int = 1
    generation: int = -1
    limit_ms: int = -1  # max.poll.interval.ms, or for how long it heard nothing, where its line says so
    waited_ms: int = -1
    reason: str = ""  # with which it was refused for good
    was_away: bool = False  # clients of the group had not reached its coordinator before
    put_out: bool = False  # it learned afterwards that it was no member any more
    signs: list[Ref] = []
    where: str = ""  # the coordinator that it could not reach, as its lines name it
    ended_ms: int = -1  # when the coordinator answered again, or it joined
    called_ms: int = -1  # since when it had been told that the group rebalances, and had not joined
    place: str = ""  # the container, the host or the process, where its line names one


class Rounds(Struct, array_like=True):
    """Generations that clients joined in close succession."""

    first_ms: int
    last_ms: int
    count: int = 0  # as far as they have numbers
    numbers: list[int] = []  # the latest
    joined: dict[str, int] = {}  # by client: how often it joined a generation whose number its log does not have
    failed: dict[str, int] = {}  # by client: rounds that another rebalance overtook
    clients: dict[str, tuple[str, str, str]] = {}  # as its log calls it: member id, client id, whose settings
    signs: list[Ref] = []


class Said(Struct, array_like=True):
    """All of it."""

    after_brokers: bool = False  # the logs of the group's brokers have ended
    troubles: list[Trouble] = []
    rounds: Rounds | None = None
    reconciling: dict[str, tuple[int, int, Ref]] = {}  # by client: since when, at which epoch, as which line says
