"""In which time zone the times of a log are, as its lines show it beside those of other logs.

The same event stands in the logs of a broker and of a client: that a generation was made and joined, that a member left. Where several such
pairs are apart by the same whole quarters of an hour, that is the difference of their zones. And where an exact time stands before a line's
own (`kubectl logs --timestamps`), each line shows the zone. What is not certain is not used.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.common.expressions import expression
from jobs.common.times import EPOCH, zone_named
from jobs.logs.envelopes.instants import EXACT_TIME, stamp_of
from jobs.logs.slices import UNCLEAR
from jobs.logs.survey.block_times import TIME, lines_with
from jobs.logs.survey.owners import JOINED
from jobs.logs.times import NEVER, UTC, LocalTimes, utc_ms

_QUARTER_MS: Final = 900_000
_NEAR_MS: Final = 5_000  # between the lines of two logs about one event, apart from their zones
_AGREEING_MS: Final = 120_000  # logs of the same incident begin and end within this time of each other
_FARTHEST: Final = 14 * 4  # quarters of an hour from UTC
_LEAST: Final = 2  # lines that agree
_TO_ONE: Final = 20  # lines that agree, to one that does not: one of these may be chance
_KEPT: Final = 5_000  # events of a log
_TIMES_KEPT: Final = 8  # of an event
_SAID_WITHIN: Final = 1_024  # bytes: a hostile line would take minutes
_SAMPLED: Final = 500  # lines that have two times

_JOINS: Final = (b"JOIN_GROUP",)
_SIGNS: Final = (
    *_JOINS,
    *(b"Stabilized group ", b"Assignment received from leader ", b"oined", b"LeaveGroup"),
    *(b"left the ", b"eaving ", b"leave group", b"given member-id", b"new member id ", b'"AAIA'),
)
"""What lines of events have."""
_GENERATION: Final = expression(
    rb"Stabilized group (.+?) generation (\d+)|Assignment received from leader.*? for group (.+?) for generation (\d+)"
    rb"|groupId=([^\]]+)\] Successfully joined group with generation (?:Generation\{generationId=)?(\d+)"
    rb"|Successfully joined group (.+?) (?:with generation |<Generation )(\d+)"
    rb"|Joined group '(.+?)' \(generation (\d+)\)|Joined group (.+?) as member .+ in generation (\d+)"
    rb"|joined[^;]{0,80}; group: (.+?), .*?generation: (\d+)"
)
"""Group and generation, in the words of coordinators, Java's client, kafka-python, aiokafka, kafka-go and franz-go."""
_RECORD: Final = expression(rb'"key": ?"(AAIA[\w+/=]+)", ?"value": ?"([\w+/=]+)"')
"""A record of __consumer_offsets that the coordinator writes for each generation: GroupMetadataKey, version 2, and GroupMetadataValue."""
_OF_MEMBER: Final = expression(rb"LeaveGroup|left the |[Ll]eaving |leave group|(new member id |given member-id)")
"""That a member leaves, or (a group) got its id: `Created a new member id …`, `need to re-join with the given member-id: …`."""
_MEMBER: Final = expression(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<=ember )[\w-]{22}(?![\w-])")
"""What is unique in a member's id."""
_EXACT: Final = expression(EXACT_TIME)
_COLUMN: Final = expression(rb'^"?(%s)"?(?:[;\t]|,(?!\d))|[,;\t]"?(%s)"?\r?$' % ((TIME.pattern + rb"(?:[.,]\d{1,9})?",) * 2), re.MULTILINE)
"""A time in a column of its own: an export has that at which each line was taken in."""
_DATE: Final = expression(TIME.pattern + rb"|%\d\|\d{9,11}\.\d{3}\|")
_FIRST_BYTES: Final = 4 << 10
_END_BYTES: Final = 16 << 10


class Moments:
    """When a log says that things happened of which other logs tell as well: epoch ms, `local` ones as if its zone were UTC."""

    def __init__(self, bare: Callable[[bytes], bytes], times: type[LocalTimes]) -> None:
        """`bare`, `times`: of its kind of log."""
        self.local: dict[bytes, list[int]] = {}
        self.exact: dict[bytes, list[int]] = {}
        self.span: tuple[int, int] | None = None  # of local times
        self.exact_span: tuple[int, int] | None = None
        self.ahead: Counter[int | None] = Counter()  # quarters of an hour by which lines are ahead of the exact time before them
        self.beside: Counter[int | None] = Counter()  # the same of a time in a column beside them, of which no zone is known
        self._bare = bare
        self._times, self._others = times("UTC"), times("Etc/GMT-1")

    def look_at(self, text: bytes, *, only_requests: bool = False) -> None:
        """Looks at a block of lines."""
        for sign, count in ((_EXACT, self.ahead), (_COLUMN, self.beside)):
            if count.total() < _SAMPLED and sign.search(text, 0, _FIRST_BYTES) is not None:
                for line in text[1 : 1 << 16].split(b"\n")[:-1]:
                    self._compare(line, sign, count)
        for line in _dated_ends(text):
            self._read(line)
        signs = () if len(self.local) + len(self.exact) >= _KEPT else _JOINS if only_requests else _SIGNS
        for line in lines_with(text, signs):
            key = _event(line) if signs is _SIGNS or JOINED.search(line) is not None else b""
            at, is_exact = self._read(line) if key else (None, False)
            if at is not None:
                times = (self.exact if is_exact else self.local).setdefault(key, [])
                if at not in times and len(times) < _TIMES_KEPT:
                    times.append(at)

    def _read(self, line: bytes) -> tuple[int | None, bool]:
        """The time of a line, and whether it is exact."""
        bare = self._bare(line)
        at = self._times.read(bare, NEVER)
        is_exact = at is not None and self._others.read(bare, NEVER) == at
        if at is not None and is_exact:
            self.exact_span = _widened(self.exact_span, at)
        elif at is not None:
            self.span = _widened(self.span, at)
        return at, is_exact

    def _compare(self, line: bytes, sign: re.Pattern[bytes], count: Counter[int | None]) -> None:
        found = sign.search(line)
        stamp = stamp_of(found[found.lastindex or 0]) if found is not None else None
        written = UTC.read(stamp, NEVER) if stamp is not None else None
        at, is_exact = self._read(line) if written is not None else (None, False)
        if at is not None and written is not None and not is_exact:
            count[_quarters(at - written)] += 1

    def set_back(self, by_ms: int) -> None:
        """Learns that the log's clock was set back: the lines behind that are of so much later a time."""
        for times in self.local.values():
            times += [at + by_ms for at in times]

    @property
    def has_lines(self) -> bool:
        """Whether some line has a time."""
        return bool(self.span or self.exact_span)

    def shown(self) -> int | None:
        """The quarters of an hour by which the log is ahead of UTC, as the exact times before nearly all of its lines show; else None."""
        return _agreed(self.ahead, _LEAST + 1)


def _agreed(count: Counter[int | None], least: int) -> int | None:
    """What nearly all say, if there are so many; else None."""
    (most, number), *_ = count.most_common(1) or [(None, 0)]
    return most if number >= least and _TO_ONE * (count.total() - number) < number else None


def _widened(span: tuple[int, int] | None, at: int) -> tuple[int, int]:
    first, last = span or (at, at)
    return min(first, at), max(last, at)


def _dated_ends(text: bytes) -> Iterator[bytes]:
    """The first and the last line of a text that has a date."""
    first = _DATE.search(text)
    if first is None:
        return
    yield text[text.rfind(b"\n", 0, first.start()) + 1 : text.find(b"\n", first.start())]
    end, least = len(text), max(first.start(), len(text) - _END_BYTES)
    while end > least:
        start = text.rfind(b"\n", 0, end) + 1
        if _DATE.search(text, max(start, least), end) is not None:
            yield text[start:end]
            return
        end = start - 1


def _event(line: bytes) -> bytes:
    """What happened, as a key; empty if nothing did that other logs tell of."""
    made = _GENERATION.search(line, 0, _SAID_WITHIN) or JOINED.search(line)
    if made is not None:
        group, generation = [part for part in made.groups() if part is not None][:2]
        return b"%s %s" % (group, generation)
    record = _RECORD.search(line) if line[:1] == b"{" else None
    if record is not None:
        return _recorded(b64decode(record[1] + b"=="), b64decode(record[2] + b"=="))
    said = _OF_MEMBER.search(line)
    member = _MEMBER.search(line) if said is not None else None
    return b"" if said is None or member is None else member[0] + (b" new" if said[1] else b"")


def _recorded(key: bytes, value: bytes) -> bytes:
    """Behind two bytes of its version, the key has the group, the value the type of protocol and the generation."""
    group, generation = key[4 : 4 + int.from_bytes(key[2:4], "big")], 4 + int.from_bytes(value[2:4], "big")
    return b"%s %d" % (group, int.from_bytes(value[generation : generation + 4], "big"))


def _quarters(apart: int) -> int | None:
    """A difference in whole quarters of an hour; None if it is none between two zones."""
    quarters = round(apart / _QUARTER_MS)
    return quarters if abs(apart - quarters * _QUARTER_MS) <= _NEAR_MS and abs(quarters) <= _FARTHEST else None


def zone_ahead(quarters: int) -> str:
    """The zone that is so far ahead of UTC."""
    hours, minutes = divmod(abs(quarters) * 15, 60)
    return f"UTC{'-' if quarters < 0 else '+'}{hours:02}:{minutes:02}"


@dataclass
class Dated:
    """A log whose zone is to be found. `zone`: in which it is read; `is_named`: a user named it, so that it stays."""

    is_client: bool
    moments: Moments
    zone: str
    is_named: bool
    votes: Counter[int | None] = field(default_factory=Counter)  # events by the quarters by which it is ahead of UTC; None: as its zone
    is_told: bool = False  # its lines show the zone
    is_relative: bool = False  # as far as that of the logs beside it is right
    doubt: str = ""  # the zone that its lines show instead of the one that a user named

    def take(self, quarters: int | None) -> None:
        """Reads it in the zone that its lines show."""
        self.is_told = True
        if quarters is not None and self.is_named:
            self.doubt = zone_ahead(quarters)
        elif quarters is not None:
            self.zone = zone_ahead(quarters)

    def vote(self, known: Mapping[bytes, Sequence[int]]) -> None:
        """Takes the events whose true times are known."""
        for key, times in self.moments.local.items():
            pairs = [(at, utc) for at in times for utc in known.get(key, ())]
            if any(abs(_utc(at, self.zone) - utc) <= _NEAR_MS for at, utc in pairs):
                self.votes[None] += 1
            elif len(found := {_quarters(at - utc) for at, utc in pairs} - {None}) == 1:
                self.votes.update(found)


def find_zones(logs: Sequence[Dated]) -> None:
    """Finds the zones of the logs of a cluster: those of brokers first, then those of clients beside them."""
    for log in logs:
        shown = log.moments.shown()
        if shown is not None:
            is_same = all(at - _utc(at, log.zone) == shown * _QUARTER_MS for at in log.moments.span or ())
            log.take(None if is_same else shown)
    _read_columns(logs)
    names_brokers = any(log.is_named and not log.is_client for log in logs)
    for of_clients in (False, True):
        now = [log for log in logs if log.is_client == of_clients and not log.is_told]
        known: dict[bytes, list[int]] = {}
        for log in logs if now else ():
            is_known = log.is_told or (of_clients and not log.is_client) or (not of_clients and log.is_named and not names_brokers)
            for key, times in log.moments.exact.items():
                known.setdefault(key, []).extend(times)
            for key, times in log.moments.local.items() if is_known else ():
                known.setdefault(key, []).extend(_utc(at, log.zone) for at in times)
        for log in now:
            log.vote(known)
        _decide([log for log in now if not log.is_named])
        _decide([log for log in now if log.is_named and log.votes])
    clients, brokers = ([log for log in logs if log.is_client == is_client] for is_client in (True, False))
    _part_those_apart([log for log in clients if not log.is_named and not log.is_told], brokers)
    _doubt_brokers(brokers, [log.moments.exact_span for log in clients if log.moments.exact_span])


def _read_columns(logs: Sequence[Dated]) -> None:
    """Finds the zones of clients' logs by a column of times that stands beside the brokers' lines, too."""
    beside = {id(log): _agreed(log.moments.beside, _LEAST) for log in logs}
    brokers = [log for log in logs if not log.is_client and beside[id(log)] is not None and log.moments.span]
    apart = {(at - _utc(at, log.zone)) // _QUARTER_MS - (beside[id(log)] or 0) for log in brokers for at in log.moments.span or ()}
    for log in logs if len(apart) == 1 else ():
        ahead = beside[id(log)]
        if log.is_client and not log.is_told and ahead is not None:
            quarters = ahead + min(apart)
            is_same = all(at - _utc(at, log.zone) == quarters * _QUARTER_MS for at in log.moments.span or ())
            log.take(None if is_same else quarters)
            log.is_relative = True


def _decide(logs: Sequence[Dated]) -> None:
    every: Counter[int | None] = sum({id(log.moments): log.votes for log in logs}.values(), Counter())
    for log in logs:
        votes = log.votes or every
        (most, count), *_ = votes.most_common(1) or [(None, 0)]
        if count and _TO_ONE * (votes.total() - count) <= count and every[most] >= _LEAST:
            log.take(most)
            log.is_relative = True
        elif most is not None and log.is_client and log.moments.span and not log.is_named:
            log.zone = UNCLEAR


def _part_those_apart(clients: Sequence[Dated], brokers: Sequence[Dated]) -> None:
    """Nothing can be said of the zone of clients that shared no time with the brokers, unless they were in another one."""
    spans = [(_utc(log.moments.span[0], log.zone), _utc(log.moments.span[1], log.zone)) for log in brokers if log.moments.span]
    if not spans or any(log.votes for log in clients):
        return
    begin, end = min(span[0] for span in spans), max(span[1] for span in spans)
    for log in clients:
        if log.moments.span is not None:
            first, last = (_utc(at, log.zone) for at in log.moments.span)
            apart = max(first - end, begin - last)
            log.zone = UNCLEAR if _QUARTER_MS - _NEAR_MS < apart <= 2 * _FARTHEST * _QUARTER_MS else log.zone


def _doubt_brokers(brokers: Sequence[Dated], exact: Sequence[tuple[int, int]]) -> None:
    """Logs of one incident begin and end at about the same times: brokers that do so hours apart from clients may be of another zone."""
    spans = [(_utc(log.moments.span[0], log.zone), _utc(log.moments.span[1], log.zone)) for log in brokers if log.moments.span]
    if not spans or not exact or any(log.is_told for log in brokers):
        return
    apart = [least(one[end] for one in spans) - least(one[end] for one in exact) for end, least in ((0, min), (1, max))]
    quarters = {round(one / _QUARTER_MS) for one in apart}
    if len(quarters) == 1 and all(abs(one - round(one / _QUARTER_MS) * _QUARTER_MS) <= _AGREEING_MS for one in apart) and quarters != {0}:
        for log in brokers:
            at = log.moments.span[0] if log.moments.span else 0
            log.doubt = zone_ahead(round((at - _utc(at, log.zone)) / _QUARTER_MS) + next(iter(quarters)))


def _utc(local_ms: int, zone: str) -> int:
    return utc_ms((EPOCH + timedelta(milliseconds=local_ms)).replace(tzinfo=None), zone_named(zone))


def zone_notes(zone: str, cluster: str, logs: Sequence[tuple[str, Dated]]) -> list[tuple[str, str]]:
    """What a user should know of the zones of logs, each with its container, and the value of --timezone that says so for good.

    `zone`: that of their cluster. `cluster`: its name, if there are others.
    """
    doubted = any(one.doubt and not one.is_client for _, one in logs)  # then clients beside them are as far off
    every = [
        (name, one, one.doubt or one.zone)
        for name, one in logs
        if one.moments.has_lines and not (doubted and one.is_client and one.is_relative and not one.is_named)
    ]
    kinds: list[tuple[str, list[str], bool | None]] = [("the brokers'", [cluster], False), (f"the {CLIENTS}'", [CLIENTS], True)]
    if len({(shown, one.is_named, one.is_told) for _, one, shown in every}) == 1 and len({one.is_client for _, one, _ in every}) > 1:
        kinds = [("all", [cluster], None)]
    notes = []
    assumed = not any(one.is_named or one.is_told for _, one in logs if not one.is_client)  # in which zone the brokers are
    for who, name_of_all, is_client in kinds:
        own = [one for one in every if is_client in (None, one[1].is_client)]
        for found, is_doubt in sorted(
            {(shown, bool(one.doubt)) for _, one, shown in own if one.doubt or not one.is_named} - {(zone, False)}
        ):
            names = {name for name, _, shown in own if shown == found}
            is_all = "" in names or all(shown == found for _, _, shown in own)
            whose = f"{who} times" if is_all else f"the times of {', '.join(sorted(names))}"
            to = name_of_all if is_all else sorted(names)
            option = ",".join(f"{name}={'ZONE' if found == UNCLEAR else found}".lstrip("=") for name in to)
            if found == UNCLEAR:
                said = f"{whose} cannot be compared with the others': their lines are left out until --timezone {option} names the zone"
            elif is_doubt:
                said = f"check --timezone: beside the other logs, {whose} seem to be in {found} (--timezone {option})"
            else:
                relative = assumed and is_client and all(one.is_relative for _, one, shown in own if shown == found)
                condition = f", if the brokers' are in {zone}" if relative else ""
                said = (
                    f"{whose} are read as {found}, as lines about the same moments show{condition}: --timezone {option} makes that explicit"
                )
            notes.append((said, "" if is_doubt else option))
    clients = [one for _, one in logs if one.is_client and one.moments.span]
    has_brokers = any(not one.is_client and one.moments.span for _, one in logs)
    if clients and has_brokers and not any(one.is_told or one.is_named or one.zone != zone for one in clients):
        said = f"no line shows in which zone the clients' times are: they are read as the brokers' ({zone})"
        notes.append((f"{said}; --timezone {CLIENTS}=ZONE names another", ""))
    return notes
