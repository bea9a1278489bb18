"""What clients say of the groups of which no broker speaks, in plain words: the evidence itself, where nothing can be concluded from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from coordinator_model import events as e
from coordinator_model.diagnosis.clients_alone import CALLS
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of
from jobs.answers.judgement import Judgement
from jobs.common.places import own_query
from jobs.common.text import printable, short_member, who

_SENTENCE: Final = 200  # characters of a client's words
_PLACE: Final = 60
_SAYS: Final[Mapping[str, str]] = {
    e.CLIENT_JOINED: "has joined",
    e.CLIENT_REJOINS: "rejoins",
    e.CLIENT_LEAVES: "leaves the group",
    e.CLIENT_POLL_TIMEOUT: "leaves the group: the application did not call poll() in time",
    e.CLIENT_SESSION_TIMEOUT: "got no answer from the coordinator within its session timeout",
    e.CLIENT_PUT_OUT: "learns that it is no longer a member",
    e.CLIENT_ROUND_FAILED: "gets no assignment: the next rebalance has begun",
    e.CLIENT_COMMIT_REFUSED: "cannot commit",
    e.CLIENT_ASSIGNED: "has its assignment of connectors and tasks",
    e.CLIENT_STATE: "is",
    e.CLIENT_NOTE: "says",
}
_LIBRARIES: Final = frozenset({"franz-go", "sarama", "kafka-go", "kafkajs"})
"""Those that a sentence shows. Java's first releases, kafka-python and aiokafka share theirs."""
_MEMBER: Final = frozenset({"RECONCILING", "ACKNOWLEDGING", "STABLE"})
"""States of a client that has its epoch from the coordinator (MemberState.java)."""
_STREAMS: Final = "StreamThread"  # may be of the streams protocol
_SENT: Final = re.compile(r"Generation\{generationId=(-?\d+), memberId='.*?', protocol='.*?'\}")


class Said(NamedTuple):
    """What one client says, once or several times on end."""

    cluster: str
    group_id: str
    occurred_at: datetime
    who: str
    says: str
    times: int
    until: datetime  # when it said so last
    apart: tuple[str, ...]  # which of several that share its name, in the order of time; empty if no others do
    left_out: int  # lines of the group before this one that are not told


def said_alone(reader: QuestionReader, values: Mapping[str, Any], judgement: Judgement) -> list[Said]:
    """The first and the last lines of each group that only clients name, in the order of time."""
    alone = judgement.of_clients
    return _folded(reader.found(own_query("said"), {**values, "kinds": list(_SAYS)}), alone) if alone else []


def _folded(rows: Iterable[Row], alone: set[Key]) -> list[Said]:
    told: list[Said] = []
    rows = [row for row in rows if key_of(row) in alone]
    places: dict[tuple[str, str, str], set[str]] = {}  # by client, which several of them its lines tell apart
    for row in rows:
        places.setdefault((*key_of(row), _who(row)), set()).add(_place(row))
    sharing = {name for name, own in places.items() if len(own - {""}) > 1}
    classic: dict[Key, str] = {}  # who joined last by the classic protocol: Java's clients and librdkafka alone say it so
    joined: dict[tuple[Key, str], Row] = {}  # by group.instance.id: as what it joined last
    place = 0
    for row in rows:
        left_out = max(row["place"] - place - 1, 0) if row["place"] > 1 else 0
        place = row["place"]
        one = Said(*key_of(row), row["occurred_at"], _who(row), _says(row), 1, row["occurred_at"], (), left_out)
        if (*key_of(row), one.who) in sharing and (place_of := _place(row)):
            one = one._replace(apart=(place_of,))
        if row["kind"] == e.CLIENT_JOINED and row["instance_id"] and row["member_id"]:
            before = joined.get((key_of(row), row["instance_id"]))
            joined[key_of(row), row["instance_id"]] = row
            if before is not None and before["generation"] == row["generation"] and before["member_id"] != row["member_id"]:
                one = one._replace(says=f"{one.says} under a new member id: it came back without a rebalance")
        if row["kind"] == e.CLIENT_JOINED and (not row["connection"] or "#" in row["connection"]):
            classic[key_of(row)] = one.who
        elif row["kind"] == e.CLIENT_STATE and row["state"] in _MEMBER and _STREAMS not in one.who and (by := classic.pop(key_of(row), "")):
            one = one._replace(says=f"{one.says}: the group is one of the consumer protocol now, and {by} had joined it by the classic one")
        last = told[-1] if told else None
        if last is not None and not left_out and (*key_of(row), one.who, one.says) == (last.cluster, last.group_id, last.who, last.says):
            told[-1] = last._replace(times=last.times + 1, until=one.until, apart=(*dict.fromkeys((*last.apart, *one.apart)),))
        else:
            told.append(one)
    return told


def _place(row: Row) -> str:
    """Which of several clients of one name says something: by its host or process, else its member id, else the excerpt it stands in."""
    member = "" if row["instance_id"] else short_member(row["member_id"])  # a static one keeps its name when it gets another id
    return printable(row["client_host"], _PLACE) or member or (f"excerpt {row['excerpt']}" if row["excerpts"] > 1 else "")


def _who(row: Row) -> str:
    """The client; where no line names it, the library."""
    name = who(row["client_id"], None, None if row["client_id"] else row["member_id"], row["instance_id"])
    library = row["connection"] if row["connection"] in _LIBRARIES else None
    return library or "a client" if name == "-" else name


def _says(row: Row) -> str:
    kind, generation = row["kind"], row["generation"]
    if kind == e.CLIENT_NOTE:
        sentence = _SENT.sub(r"\1", row["reason"] or "")
        return f"says “{printable(sentence, _SENTENCE)}”"
    if kind == e.CLIENT_STATE:
        return f"is {row['state']}, was {row['reason']}"
    first = ", the first of the group" if generation == 1 else ""
    of = f" generation {generation}{first}" if generation is not None and generation >= 0 else ""
    joins = (" in" if kind == e.CLIENT_ASSIGNED else "") + (of or " the group") if kind in (e.CLIENT_JOINED, e.CLIENT_ASSIGNED) else ""
    why = printable((row["reason"] or "").partition(". This means ")[0], _SENTENCE)
    state = f" ({row['state']})" if kind == e.CLIENT_PUT_OUT else ""
    says = _SAYS[kind]
    if kind == e.CLIENT_REJOINS and ("#" in (row["connection"] or "") or row["connection"] == "sarama"):
        says = "gives up its partitions"  # as they begin to, librdkafka says "Group is rebalancing", and sarama why: both may join no more
    elif kind == e.CLIENT_REJOINS and CALLS.search(row["reason"] or ""):
        says = "is told to rejoin"
    return says + joins + state + (f": “{why}”" if why else "")
