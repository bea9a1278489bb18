"""A second opinion on `rebalances`: a slow, plain reading of a recording's raw lines, which shares no code with the pipeline.

It knows no state machine. For each generation it looks up what the lines say: when the coordinator prepared, stabilized and assigned it,
which members the answer to its leader lists, which partitions the leader gave to whom. Two generations then tell who came, who went, and
what moved. Each column of each row is compared with that; what the lines do not say is not compared.

    python -m scripts.truth.second_opinion [RECORDING ...]

It makes the tables of each recording (default: the bundled ones) with each kind of evidence. Exit code 1 if a column differs.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

from scripts.truth.recordings import EVIDENCE, REQUEST_LOG, Recording, cluster, open_text, read_all, tables, track

Row = Mapping[str, Any]
"""A row of `rebalances`, or a line's JSON."""

_PREPARING: Final = re.compile(
    r"Preparing to rebalance group (?P<group>.+?) in state \w+ with old generation (?P<generation>-?\d+).*\(reason: (?P<reason>.*)"
)
_STABILIZED: Final = re.compile(r"Stabilized group (?P<group>.+?) generation (?P<generation>\d+).* with (?P<members>\d+) members")
_ASSIGNED: Final = re.compile(
    r"Assignment received from leader (?P<leader>.+?) for group (?P<group>.+?) for generation (?P<generation>\d+)\. The group has"
)
_EMPTY: Final = re.compile(r"Group (?P<group>.+?) with generation (?P<generation>\d+) .*is now empty")
_NOT_STORED: Final = "when storing group assignment"
_NEAR_MS: Final = 5_000
"""Two records of one generation are at most so far apart. A group that was removed begins again with generation 1."""
_ANSWERED_MS: Final = 100
"""Requests alone show times of the network threads, a few milliseconds beside those of the coordinator."""
_COMPUTED_MS: Final = 1_000
"""Requests alone do not show the end of a session, whose time is computed from its last heartbeat."""
_FROM_THE_START: Final = frozenset({"started_at", "join_ms", "total_ms"})


@dataclass
class Generation:
    """What the lines say of one generation of one group. Times are epoch ms; None: no line says it."""

    group: str
    number: int
    stabilized_ms: int
    prepared_ms: int | None = None
    assigned_ms: int | None = None
    count: int | None = None
    leader: str | None = None
    protocol: str | None = None
    members: dict[str, str | None] | None = None  # with their instance ids
    owners: dict[str, str] | None = None  # by partition
    follower_ms: int | None = None  # when the coordinator prepared the next one
    before: Generation | None = None


@dataclass
class Opinion:
    """Columns that were compared, and those that differ."""

    checked: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


@dataclass
class _Marks:
    """Lines of the coordinators' logs that belong to no generation yet: (time, group, old generation, reason) and (time, group)."""

    prepared: list[tuple[int, str, int, str]] = field(default_factory=list)
    emptied: list[tuple[int, str]] = field(default_factory=list)


def generations(folder: Path, zone: str) -> list[Generation]:
    """The generations of a recording's classic groups, in order of time."""
    marks = _Marks()
    found: list[Generation] = []
    for path in sorted(folder.glob("broker-*/server.log*")):
        for at_ms, line in _lines(path, zone):
            _read_coordinator(found, marks, at_ms, line)
    for path in sorted(folder.glob("broker-*/kafka-request.log*")):
        for at_ms, line in _lines(path, zone):
            if '"requestApiKeyName":"JOIN_GROUP"' in line or '"requestApiKeyName":"SYNC_GROUP"' in line:
                _read_request(found, at_ms, json.loads(line[line.index("{") : line.rindex("}") + 1]))
    found.sort(key=lambda made: (made.stabilized_ms, made.group))
    last: dict[str, Generation] = {}
    for made in found:
        made.before = last.get(made.group)
        last[made.group] = made
        _place(made, marks)
    return found


def _read_coordinator(found: list[Generation], marks: _Marks, at_ms: int, line: str) -> None:
    if match := _PREPARING.search(line):
        marks.prepared.append((at_ms, match["group"], int(match["generation"]), match["reason"]))
    elif match := _STABILIZED.search(line):
        found.append(Generation(match["group"], int(match["generation"]), at_ms, count=int(match["members"])))
    elif match := _ASSIGNED.search(line):
        made = _of(found, match["group"], int(match["generation"]), at_ms, within_ms=None)
        if made is not None:
            made.assigned_ms, made.leader = at_ms, match["leader"]
    elif match := _EMPTY.search(line):
        marks.emptied.append((at_ms, match["group"]))


def _place(made: Generation, marks: _Marks) -> None:
    """When its rebalance and the next one began, and what was before it."""
    begun = [(at, old, reason) for at, group, old, reason in marks.prepared if group == made.group]
    made.prepared_ms = max((at for at, old, _ in begun if old == made.number - 1 and at <= made.stabilized_ms), default=None)
    later = [(at, reason) for at, old, reason in begun if old == made.number and at >= made.stabilized_ms]
    made.follower_ms, reason = min(later, default=(None, ""))
    if _NOT_STORED in reason:  # it was received, and is lost
        made.assigned_ms = made.owners = None
    if made.prepared_ms is not None and made.before is not None:
        since = made.before.stabilized_ms
        if any(group == made.group and since <= at <= made.prepared_ms for at, group in marks.emptied):
            made.before = Generation(made.group, made.number - 1, since, members={}, owners={})


def _lines(path: Path, zone: str) -> Iterator[tuple[int, str]]:
    with open_text(path) as log:
        for line in log:
            if line[:1] == "[" and line[24:25] == "]":
                at = datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=ZoneInfo(zone))
                yield round(at.timestamp() * 1_000), line


def _of(found: list[Generation], group: str, number: int, at_ms: int, *, within_ms: int | None = _NEAR_MS) -> Generation | None:
    """The generation that a line of this time is about."""
    same = [made for made in found if (made.group, made.number) == (group, number)]
    nearest = min(same, key=lambda made: abs(made.stabilized_ms - at_ms), default=None)
    if nearest is None or (within_ms is not None and abs(nearest.stabilized_ms - at_ms) > within_ms):
        return None
    return nearest


def _read_request(found: list[Generation], at_ms: int, line: Row) -> None:
    request, response = line["request"], line["response"]
    if not request or not response or response["errorCode"] != 0:
        return
    if line["requestHeader"]["requestApiKeyName"] == "JOIN_GROUP":
        made = _of(found, request["groupId"], response["generationId"], at_ms)
        if made is not None and response["members"]:
            made.members = {member["memberId"]: member.get("groupInstanceId") for member in response["members"]}
            made.leader, made.protocol = response["leader"], response["protocolName"]
    elif request["assignments"]:
        made = _of(found, request["groupId"], request["generationId"], at_ms, within_ms=None)
        if made is not None and made.leader in (None, request["memberId"]):
            made.owners = {
                partition: entry["memberId"] for entry in request["assignments"] for partition in _partitions(entry["assignment"])
            }


def _partitions(encoded: str) -> Iterator[str]:
    """ConsumerProtocolAssignment: version, [topic, [partition]], user data."""
    data, at = base64.b64decode(encoded), 2
    if not data:
        return
    (topics,) = struct.unpack_from(">i", data, at)
    at += 4
    for _ in range(topics):
        (length,) = struct.unpack_from(">h", data, at)
        topic = data[at + 2 : at + 2 + length].decode()
        (count,) = struct.unpack_from(">i", data, at + 2 + length)
        at += 6 + length
        yield from (f"{topic}-{number}" for number in struct.unpack_from(f">{count}i", data, at))
        at += 4 * count


def expected(made: Generation) -> dict[str, Any]:
    """The columns of its row in `rebalances`, as far as the lines say them."""
    values: dict[str, Any] = {"joined_at": made.stabilized_ms, "members_after": made.count, "leader_id": made.leader}
    values["protocol"] = made.protocol
    ended = made.assigned_ms if made.assigned_ms is not None else made.follower_ms
    if ended is not None:
        values |= {"ended_at": ended, "sync_ms": ended - made.stabilized_ms}
        values["outcome"] = "COMPLETED" if made.assigned_ms is not None else "SUPERSEDED"
    if made.prepared_ms is not None:
        values |= {"started_at": made.prepared_ms, "join_ms": made.stabilized_ms - made.prepared_ms}
        if ended is not None:
            values["total_ms"] = ended - made.prepared_ms
    if made.owners is not None and made.assigned_ms is not None:
        values["partitions"] = len(made.owners)
    values |= _changes(made)
    return {name: value for name, value in values.items() if value is not None}


def _changes(made: Generation) -> dict[str, Any]:
    before = made.before
    if made.number == 1:
        before = Generation(made.group, 0, 0, members={}, owners={})
    if before is None or before.members is None or made.members is None or before.number != made.number - 1:
        return {}
    # A static member that came back has a new id, and is neither new nor gone.
    instances = {instance: member for member, instance in made.members.items() if instance}
    present = {member: instances.get(instance or "", member) for member, instance in before.members.items()}
    came, went = made.members.keys() - set(present.values()), {old for old, new in present.items() if new not in made.members}
    values: dict[str, Any] = {"joined": sorted(came), "left": sorted(went), "members_before": len(before.members)}
    if before.owners is not None and made.owners is not None and made.assigned_ms is not None:
        # A cooperative rebalance takes partitions away in one round, and gives them to others in the next.
        taken = before.before.owners if before.before is not None and before.before.owners is not None else {}
        owned = {partition: present.get(member, member) for partition, member in {**taken, **before.owners}.items()}
        values["partitions_moved"] = sum(partition in owned and owned[partition] != owner for partition, owner in made.owners.items())
    return values


def compare(found: list[Generation], rows: list[Row], *, exact: bool) -> Opinion:
    """Compares the rows of a recording's `rebalances` with the lines. `exact`: the coordinator's own log gave their times."""
    opinion = Opinion()
    for made in found:
        own = [row for row in rows if (row["group_id"], row["generation"]) == (made.group, made.number) and row["joined_at"] is not None]
        row = min(own, key=lambda row: abs(row["joined_at"] - made.stabilized_ms), default=None)
        name = f"{made.group} generation {made.number}"
        opinion.checked["rebalance"] += 1
        if row is None or abs(row["joined_at"] - made.stabilized_ms) > _NEAR_MS:
            opinion.differences.append(f"{name}: no row")
            continue
        for column, true in expected(made).items():
            told, value = row[column], true
            if told is None:
                continue  # this kind of evidence does not show it
            if column in ("joined", "left") and row[f"{column}_unnamed"]:  # it shows how many, and not who
                told, value = len(told) + row[f"{column}_unnamed"], len(true)
            opinion.checked[column] += 1
            tolerance = 0 if exact else _COMPUTED_MS if column in _FROM_THE_START else _ANSWERED_MS
            if abs(told - value) > tolerance if column.endswith(("_at", "_ms")) else told != value:
                opinion.differences.append(f"{name}: {column} is {told}; the lines say {value}")
    return opinion


def print_opinions(recording: Recording, rows: Mapping[str, list[Row]]) -> bool:
    """Prints how the rows of each kind of evidence compare with the lines. Returns whether none differs."""
    made = generations(recording.folder, recording.zone)
    opinions = {evidence: compare(made, told, exact=evidence != REQUEST_LOG) for evidence, told in rows.items()}
    print(f"\n{recording.name}: rebalances, read a second time from the lines")
    for evidence, opinion in opinions.items():
        columns = ", ".join(f"{count} {column}" for column, count in sorted(opinion.checked.items()))
        print(f"  {evidence}: {columns}; {len(opinion.differences)} differences")
        for difference in opinion.differences:
            print(f"    DIFFERENCE {difference}")
    return not any(opinion.differences for opinion in opinions.values())


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the opinions; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*", type=Path, help="folders of recordings (default: the bundled ones)")
    try:
        recordings = read_all(parser.parse_args(argv).recordings)
    except ValueError as error:
        parser.error(str(error))
    with tempfile.TemporaryDirectory(prefix="opinion-") as name:
        lakehouse = track(recordings, Path(name))
        agree = [
            print_opinions(recording, {kind: tables(lakehouse, cluster(recording, kind))["rebalances"] for kind in EVIDENCE})
            for recording in recordings
        ]
    return 0 if all(agree) else 1


if __name__ == "__main__":
    sys.exit(main())
