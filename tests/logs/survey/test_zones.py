"""In which zone the times of a log are: found from lines about the same moments, and used only where they are certain."""

import json
from base64 import b64encode
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.common.errors import UserError
from jobs.logs.spool import Spool, SpoolSettings
from tests.logs.log_makers import START_MS, stamp, write
from tests.logs.spooling import Consumer, at_ms, run
from tests.logs.survey.mixing import moved, shuffled
from tests.logs.survey.test_containers import joined, stabilized

AHEAD = (
    "the clients' times are read as UTC+09:00, as lines about the same moments show, if the brokers' are in UTC: "
    "--timezone clients=UTC+09:00 makes that explicit"
)
LEFT_OUT = "the clients' times cannot be compared with the others': their lines are left out until --timezone clients=ZONE names the zone"
NOTHING = "no line shows in which zone the clients' times are: they are read as the brokers' (UTC); --timezone clients=ZONE names another"


def leaves(ms: int, text: str = "Member {} sending LeaveGroup request to coordinator h:9092 (id: 1 rack: null) due to x") -> bytes:
    member = f"c1-0a1b2c3d-0000-4000-8000-{ms:012d}"
    return f"{stamp(ms)} INFO [Consumer clientId=c1, groupId=g] {text.format(member)} (org.apache.kafka.clients.X)".encode()


def left(ms: int) -> bytes:
    member = f"c1-0a1b2c3d-0000-4000-8000-{ms:012d}"
    sentence = f"[Group g] Member {member} has left group through explicit `LeaveGroup` request; client reason: not provided"
    return f"{stamp(ms)} INFO [GroupCoordinator id=1] {sentence} (org.apache.kafka.coordinator.group.GroupMetadataManager)".encode()


def in_zone(lines: list[bytes], hours: float) -> list[bytes]:
    return [moved(line, timedelta(hours=hours)) for line in lines]


def told(root: Path, **settings: object) -> tuple[list[int], list[str]]:
    """The times of the clients' lines, ms since the first broker's, and what was said of zones."""
    spool = Spool(root / "in", root / "out", settings=SpoolSettings(**settings))  # type: ignore[arg-type]
    consumer = Consumer()
    for _ in spool.slices():
        consumer.take(root / "out")
    times = sorted(at_ms(row) - START_MS for row in consumer.of("line") if row["broker"] == "clients")
    return times, [note for note in spool.notes if "zone" in note]


def lay(root: Path, brokers: list[bytes], *clients: list[bytes]) -> None:
    write(root / "in/b1/server.log", brokers)
    for number, lines in enumerate(clients):
        write(root / f"in/clients/{number}.log", lines)


BROKER = [stabilized(0, 1), stabilized(60_000, 2), stabilized(120_000, 3)]
CLIENT = [joined(20, 1), joined(60_020, 2), joined(120_020, 3)]


def brokers_in(zone: str) -> str:
    return f"the brokers' times are read as {zone}, as lines about the same moments show: --timezone {zone} makes that explicit"


def poll(ms: int) -> bytes:
    return f"{stamp(ms)} INFO [Consumer clientId=c9, groupId=g] Request joining group due to: x (org.apache.kafka.X)".encode()


IN_ORDER = [20, 60_020, 120_020]
SEEM_AHEAD = "check --timezone: beside the other logs, the clients' times seem to be in UTC+09:00 (--timezone clients=UTC+09:00)"
IN_UTC = "the clients' times are read as UTC+00:00, as lines about the same moments show: --timezone clients=UTC+00:00 makes that explicit"


@pytest.mark.parametrize(
    ("brokers", "clients", "settings", "times", "notes"),
    [
        pytest.param(BROKER, in_zone(CLIENT, 9), {}, IN_ORDER, [AHEAD], id="of another zone"),
        pytest.param(BROKER, CLIENT, {}, IN_ORDER, [], id="of the same zone, without a word"),
        pytest.param([left(0), left(60_000)], in_zone([leaves(0), leaves(60_000)], 9), {}, [0, 60_000], [AHEAD], id="a member leaves"),
        pytest.param(BROKER, in_zone(CLIENT[:1], 9), {}, [], [LEFT_OUT], id="one pair alone may be chance"),
        pytest.param(BROKER, in_zone(CLIENT[:2], 9) + in_zone(CLIENT[2:], 3), {}, [], [LEFT_OUT], id="pairs that contradict each other"),
        pytest.param(BROKER, in_zone([poll(0)] * 3, 3), {}, [], [LEFT_OUT], id="no time is shared with the brokers"),
        pytest.param(BROKER, [poll(90_000)], {}, [90_000], [NOTHING], id="nothing shows the zone"),
        pytest.param(BROKER, in_zone(CLIENT, 9), {"timezones": {"clients": "Asia/Seoul"}}, IN_ORDER, [], id="named by a user"),
        pytest.param(
            BROKER, in_zone(CLIENT, 9), {"timezones": {"clients": "Asia/Bangkok", "b1": "UTC"}},
            [7_200_020, 7_260_020, 7_320_020], [SEEM_AHEAD], id="lines show another than the user named",
        ),
        pytest.param(
            in_zone(BROKER, 3), in_zone(CLIENT, 9), {"timezones": {"clients": "Asia/Tokyo"}},
            IN_ORDER, [brokers_in("UTC+03:00")], id="brokers beside clients whose zone is named",
        ),
        pytest.param(
            in_zone(BROKER, -3), CLIENT, {"timezone": "America/Sao_Paulo"}, IN_ORDER, [IN_UTC], id="that of the clients was forgotten",
        ),
    ],
)  # fmt: skip
def test_in_which_zone_clients_are_read(tmp_path, brokers, clients, settings, times, notes):
    lay(tmp_path, brokers, clients)
    assert told(tmp_path, **settings) == (times, notes)


@pytest.mark.parametrize("hours", [-3, 5.5, 5.75, 14])
def test_any_whole_quarter(tmp_path, hours):
    lay(tmp_path, BROKER, in_zone(CLIENT, hours))
    assert told(tmp_path)[0] == IN_ORDER


def test_each_client_has_its_own_zone(tmp_path):
    """One container has TZ set, the other has not: each has pairs of its own."""
    lay(tmp_path, BROKER, in_zone(CLIENT, 9), CLIENT)
    times, _ = told(tmp_path)
    assert times == sorted([20, 60_020, 120_020] * 2)


def test_clients_without_pairs_share_the_zone_on_which_the_others_agree(tmp_path):
    lay(tmp_path, BROKER, in_zone(CLIENT, 9), in_zone([poll(90_000)], 9))
    assert told(tmp_path)[0] == [20, 60_020, 90_000, 120_020]


def test_a_change_to_winter_time_is_none_of_zone(tmp_path):
    """Brokers and clients of one zone, before and after the change: their zone is right for both."""
    days = 86_400_000
    before, after = -28 * days, 0  # 24 October and 21 November
    brokers = in_zone([stabilized(before, 1)], 2) + in_zone([stabilized(after, 2), stabilized(after + 60_000, 3)], 1)
    clients = in_zone([joined(before + 20, 1)], 2) + in_zone([joined(after + 20, 2), joined(after + 60_020, 3)], 1)
    lay(tmp_path, brokers, clients)
    assert told(tmp_path, timezone="Europe/Berlin") == ([before + 20, after + 20, after + 60_020], [])


def test_clients_alone_need_no_zone_of_brokers(tmp_path):
    write(tmp_path / "in/clients/1.log", CLIENT)
    assert told(tmp_path) == ([20, 60_020, 120_020], [])


def exact(line: bytes, behind_ms: int = 4) -> bytes:
    """As `kubectl logs --timestamps` shows a line."""
    at = stamp(int(line[15:17]) * 60_000 + int(line[18:20]) * 1_000 + behind_ms)
    return f"{at[1:11]}T{at[12:20]}.{behind_ms:03d}456789Z ".encode() + line


def test_the_exact_time_before_a_line_shows_the_brokers_zone(tmp_path):
    lines = [stabilized(i * 1_000, i) for i in range(20)]
    write(tmp_path / "in/b1/server.log", [exact(line) + own[len(line) :] for line, own in zip(lines, in_zone(lines, 0), strict=True)])
    assert told(tmp_path) == ([], [])
    (tmp_path / "there").mkdir()
    raw = [exact(line).removesuffix(line) + moved(line, timedelta(hours=-3)) for line in lines]
    write(tmp_path / "there/in/b1/server.log", raw)
    consumer, _ = run(tmp_path / "there/in", tmp_path / "there/out")
    assert [at_ms(row) - START_MS for row in consumer.of("line")] == [i * 1_000 for i in range(20)]
    assert told(tmp_path / "there")[1] == []  # it is said once
    write(tmp_path / "again/in/b1/server.log", raw)
    assert told(tmp_path / "again")[1] == [brokers_in("UTC-03:00")]


@pytest.mark.parametrize("is_behind", [True, False])
def test_a_column_beside_the_lines_of_both_shows_the_clients_zone(tmp_path, is_behind):
    """An export has the time at which it took a line in, without an offset, as `line,time` or `time,line`."""

    def export(lines: list[bytes], hours: float) -> list[bytes]:
        written = in_zone(lines, hours)
        times = [line[1:20] for line in lines]
        return [b"%s,%s.000" % (mine, at) if is_behind else b'%s.000,"%s"' % (at, mine) for mine, at in zip(written, times, strict=True)]

    lay(tmp_path, export([stabilized(0, 1), stabilized(60_000, 2)], 0), export([leaves(1_000), leaves(90_000)], 9))
    assert told(tmp_path) == ([1_000, 90_000], [AHEAD])


def test_an_exact_time_that_is_late_shows_nothing(tmp_path):
    """A collector may have stood still, and sent all lines at once."""
    raw = [exact(stabilized(0, 0)).split(b" ")[0] + b" " + stabilized(i * 60_000, i) for i in range(20)]
    write(tmp_path / "in/b1/server.log", raw)
    assert told(tmp_path)[1] == []


EXACT_ONES = [
    b"%%4|%d.000|MAXPOLL|a#consumer-1| [thrd:main]: Application maximum poll interval (1ms) exceeded by 1ms" % (START_MS // 1_000 + second)
    for second in (5, 110)
]
DOUBT = "check --timezone: beside the other logs, the brokers' times seem to be in UTC-03:00 (--timezone UTC-03:00)"


def test_brokers_whose_logs_begin_and_end_hours_apart_from_exact_ones(tmp_path):
    """librdkafka writes epoch seconds. Without `debug=cgrp` it tells of no moment that a broker tells of too: that is a doubt, no more."""
    lay(tmp_path, in_zone(BROKER, -3), EXACT_ONES)
    assert told(tmp_path) == ([5_000, 110_000], [DOUBT])


def test_clients_that_are_compared_with_doubtful_brokers_are_not_named(tmp_path):
    """They are in UTC. Beside brokers that are taken for UTC they would be in UTC+03:00, and all would be three hours off for good."""
    lay(tmp_path, in_zone(BROKER, -3), EXACT_ONES, CLIENT)
    assert told(tmp_path)[1] == [DOUBT]


def test_records_of_offsets_are_exact(tmp_path):
    """The coordinator writes one for each generation."""
    lines = ['{"format":"rebalance-offsets-1","from":"x","began":"2026-11-21T05:00:00Z"}']
    for generation, at in ((1, 15), (2, 60_015), (3, 120_015)):
        key = b64encode(b"\0\2\0\1g").decode()
        value = b64encode(b"\0\3\0\10consumer" + generation.to_bytes(4, "big") + bytes(30)).decode()
        lines.append(
            json.dumps({"timestamp": START_MS + at, "partition": 9, "offset": at, "key": key, "value": value}, separators=(",", ":"))
        )
    write(tmp_path / "in/c/broker-1/server.log", in_zone(BROKER, -3))
    write(tmp_path / "in/c/offsets/dump.jsonl", [line.encode() for line in lines])
    assert told(tmp_path)[1] == [brokers_in("UTC-03:00")]


def test_both_of_one_zone_that_was_not_named(tmp_path):
    native = [f'%7|{START_MS // 1_000 + at}.020|JOINGROUP|a#consumer-1| [thrd:main]: Group "g": x'.encode() for at in (0, 60)]
    exact = [f"2026-11-21T06:0{n}:00.020Z INFO Successfully joined group g with generation {n + 1}".encode() for n in (0, 1)]
    lay(tmp_path, in_zone(BROKER, -3), in_zone(CLIENT, -3), [*native, *exact])
    times, notes = told(tmp_path)
    assert times == [0, 20, 20, 60_020, 60_020, 120_020] or notes
    assert notes == ["all times are read as UTC-03:00, as lines about the same moments show: --timezone UTC-03:00 makes that explicit"]


def test_a_zone_that_was_found_is_kept(tmp_path):
    lay(tmp_path, BROKER, in_zone(CLIENT, 9))
    assert told(tmp_path)[1] == [AHEAD]
    with (tmp_path / "in/clients/0.log").open("ab") as file:
        file.write(moved(joined(180_020, 4), timedelta(hours=9)) + b"\n")
    write(tmp_path / "in/clients/new.log", in_zone([joined(240_020, 5, "c2")], 9))
    assert told(tmp_path)[0] == [180_020, 240_020]


def test_a_zone_that_is_named_later_must_be_the_one_that_was_found(tmp_path):
    lay(tmp_path, BROKER, in_zone(CLIENT, 9))
    told(tmp_path)
    spool = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(timezones={"clients": "UTC+09:00"}))
    spool.check_zones("x")
    spool = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(timezones={"clients": "Europe/Berlin"}))
    with pytest.raises(UserError, match="with time zone UTC"):
        spool.check_zones("x")


@pytest.mark.parametrize("name", ["b1", "clients", "in"])
def test_names_that_have_a_zone(tmp_path, name):
    lay(tmp_path, BROKER, in_zone(CLIENT, 9))
    told(tmp_path, timezones={name: "UTC"}, zones_asked=[name])


def test_a_name_that_no_log_has(tmp_path):
    lay(tmp_path, BROKER)
    with pytest.raises(UserError, match=r"--timezone b7=…: no log here is of b7, but of b1, in"):
        told(tmp_path, timezones={"b7": "UTC"}, zones_asked=["b7"])
    told(tmp_path, timezones={"b7": "UTC"})  # of a file of settings, which may be for other input


def test_a_zone_for_one_broker(tmp_path):
    write(tmp_path / "in/broker-1/server.log", in_zone(BROKER, 9))
    two = [line.replace(b"GroupCoordinator 1", b"GroupCoordinator 2") for line in BROKER]
    write(tmp_path / "in/broker-2/server.log", two)
    consumer, _ = run(tmp_path / "in", tmp_path / "out", timezones={"broker-1": "Asia/Tokyo"})
    assert {(row["broker"], at_ms(row) - START_MS) for row in consumer.of("line")} == {
        (broker, at) for broker in ("broker-1", "broker-2") for at in (0, 60_000, 120_000)
    }


def strimzi(minute: int) -> str:
    thread = "[data-plane-kafka-request-handler-1] GroupCoordinator:123"
    sentence = f"[GroupCoordinator 2]: Stabilized group orders generation {minute} (__consumer_offsets-9) with 2 members"
    return f"2026-11-21 06:{minute:02}:00 INFO  {thread} - {sentence}"


def spring(minute: int) -> str:
    logger = "o.a.k.c.c.internals.ConsumerCoordinator  : [Consumer clientId=o-1, groupId=orders]"
    sentence = f"Successfully joined group with generation Generation{{generationId={minute}, memberId='o-1-0a1b2c3d', protocol='range'}}"
    return f"2026-11-21 09:{minute:02}:00.012  INFO 1 --- [ntainer#0-0-C-1] {logger} {sentence}"


FORMS = {
    "stern": lambda pod, name, line: f"{pod} {name} {line}",
    "kubectl": lambda pod, name, line: f"[pod/{pod}/{name}] {line}",
    "kubectl with times": lambda pod, name, line: f"[pod/{pod}/{name}] 2026-11-21T10:00:00.123456789Z {line}",
    "kubetail": lambda pod, _, line: f"[{pod}] {line}",
    "Fluent Bit": lambda pod, name, line: json.dumps({"log": line, "kubernetes": {"pod_name": pod, "container_name": name}}),
    "Filebeat": lambda pod, _, line: json.dumps(
        {"@timestamp": "2026-11-21T10:00:00Z", "kubernetes": {"pod": {"name": pod}}, "message": line}
    ),
    "journal": lambda pod, name, line: f"Nov 21 06:00:00 {pod} {name}[12]: {line}",
    "docker service": lambda pod, name, line: f"{name}.1.x7f3@{pod}    | {line}",
    "grep": lambda pod, name, line: f"logs/{pod}/{name}.log:{line}",
    "nothing": lambda _, __, line: line,
}


@pytest.mark.parametrize("form", FORMS)
def test_other_patterns_in_all_that_tells_containers_apart(tmp_path, form):
    """Strimzi's broker and Spring's client, three hours ahead, and a database."""
    boxes = {
        ("kafka-2", "kafka"): [strimzi(n) for n in range(1, 9)],
        ("orders-6f7d9c-x2x", "app"): [spring(n) for n in range(1, 9)],
        ("pg-0", "postgres"): [f"2026-11-21 07:{n:02}:00.1 UTC [1] LOG: checkpoint" for n in range(1, 9)],
    }
    logs = {pod: [FORMS[form](pod, name, line).encode() for line in lines] for (pod, name), lines in boxes.items()}
    write(tmp_path / "in/all.txt", shuffled(logs, 5, 1 if form in ("kubetail", "nothing") else 4))
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    minutes = [n * 60_000 for n in range(1, 9)]
    for broker, late in (("broker-2", 0), ("clients", 12)):
        assert sorted(at_ms(row) - START_MS for row in consumer.of("line") if row["broker"] == broker) == [at + late for at in minutes]
    assert consumer.counts() == {"all.txt": 24}


def test_lines_that_are_left_out_are_counted(tmp_path):
    lay(tmp_path, BROKER, [*in_zone(CLIENT[:1], 9), b"", b"other line"])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    assert consumer.counts() == {"b1/server.log": 3, "clients/0.log": 3}
    assert [row["broker"] for row in consumer.of("line")] == ["b1"] * 3
