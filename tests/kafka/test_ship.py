"""The shipper without a broker: its state, the records it writes, what it does when deliveries fail."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.cli.entry import main
from jobs.common.errors import UserError
from jobs.kafka.finder import Finder
from jobs.kafka.outbox import DeliveryError, StoppedError
from jobs.kafka.ship_state import ShipState, ShipTarget
from jobs.kafka.shipper import Shipper, ShipSettings, settings_with_zone
from jobs.kafka.topic_records import clock_headers, line_headers, line_source, log_headers, record_key
from jobs.logs.bytes import open_log
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from schemas import names
from tests.kafka.topic_reader import RecordError, read_record
from tests.logs.log_makers import START_MS, coordinator, fetch, other, request, write

TARGET = ShipTarget("c", "b", "t")
AT_ONCE = ShipSettings(patience_seconds=0.0, poll_seconds=0.01, retry_seconds=0.0)


class Topic:
    """Stands for the outbox and the topic behind it. Refuses the records whose numbers `refuse` has."""

    topic = "t"

    def __init__(self, partitions=2, refuse=()):
        self.partitions, self.max_bytes = partitions, 1_000
        self.records, self.refuse = [], set(refuse)
        self.sent, self._pending, self._bad, self.renewed = 0, [], False, 0
        self.stop_at = None

    def send(self, value, key, headers, partition=-1):
        self.sent += 1
        if self.sent in self.refuse:
            self._bad = True
            return
        self._pending.append((partition, key, read_record(headers, value)))

    def settle(self):
        if self.stop_at is not None and self.sent >= self.stop_at:
            raise StoppedError
        self.records += self._pending  # some arrived even where others did not
        self._pending = []
        if self._bad:
            raise DeliveryError("no")

    def renew(self):
        self.renewed += 1
        self._pending, self._bad = [], False

    def refresh(self):
        pass

    def lines(self):
        return [r for _, _, r in self.records if r.record == names.LINE]

    def clocks(self):
        return [(p, r) for p, _, r in self.records if r.record == names.CLOCK]

    def distinct(self):
        """Each line once, as a reader makes it: log and position tell it."""
        return {(r.broker, r.origin, r.position): (r.at_ms, r.text, r.fault) for r in self.lines()}


def ship(folder, topic, *, inputs=("in",), once=True, stopped=lambda: False, complain=lambda _: None, settings=AT_ONCE):
    with ShipState(folder / "state.json", TARGET) as state:
        shipper = Shipper(Finder([folder / name for name in inputs], TARGET, complain), state, topic, settings)
        shipper.ship(once=once, stopped=stopped, complain=complain)
    return shipper.counts


def kept(path):
    """What LogReader keeps of one file."""
    found = KeptLines()
    reader = LogReader(lambda: open_log(path), LocalTimes("UTC"))
    while reader.read(found):
        pass
    return {
        p: (a, t.decode(), found.faults.get(i)) for i, (p, a, t) in enumerate(zip(found.positions, found.ats, found.texts, strict=True))
    }


def lines_of(topic, origin):
    return {position: rest for (_, name, position), rest in topic.distinct().items() if name == origin}


# Records.

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(
    TEXTS,
    TEXTS,
    TEXTS,
    st.integers(0, 1 << 50),
    st.none() | st.integers(-1, 1 << 45),
    st.sampled_from(["", "TOO_LONG"]),
    TEXTS | st.just(""),
)
def test_a_line_is_read_as_it_was_written(cluster, broker, origin, position, at_ms, fault, context):
    headers = line_headers(log_headers(cluster, broker, "line", origin), "request", position, at_ms, fault, context)
    record = read_record(headers, "Grüße".encode())
    assert (record.cluster, record.broker, record.origin, record.position) == (cluster, broker, origin, position)
    assert (record.source, record.at_ms, record.fault, record.context) == ("request", at_ms, fault or None, context or None)
    assert (record.record, record.text, record.lines, record.read_ms) == ("line", "Grüße", None, None)


def test_a_clock_is_read_as_it_was_written():
    record = read_record(clock_headers(log_headers("c", "b", "clock", "o"), 7, None, 3, None), b"[]")
    assert (record.record, record.position, record.at_ms, record.lines, record.read_ms, record.text) == ("clock", 7, None, 3, None, "[]")
    assert read_record([*clock_headers(log_headers("c", "b", "clock", "o"), 7, 5, 3, 6), ("new", b"\xff")], b"[]").read_ms == 6


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("position", None, "no header position"),
        ("position", b"x", "no number"),
        ("record", b"other", "record is other"),
        ("at", b"1" * 30, "no number"),
    ],
)
def test_a_record_of_somebody_else_is_told(name, value, said):
    headers = dict(line_headers(log_headers("c", "b", "line", "o"), "request", 1, 2))
    headers.pop(name)
    if value is not None:
        headers[name] = value
    with pytest.raises(RecordError, match=said):
        read_record(list(headers.items()), b"")
    with pytest.raises(RecordError, match="no header cluster"):
        read_record(None, None)


@pytest.mark.parametrize(
    ("broker", "line", "context", "source", "key"),
    [
        ("b", request(0, group="payments"), "", "request", b"payments"),
        ("b", request(0, group='a\\"b'), "", "request", b'a\\"b'),
        ("b", request(0).replace(b"groupId", b"key"), "", "request", b"o"),
        ("b", coordinator(0, "Stabilized group payments generation 1 with 3 members."), "", "coordinator", b"payments"),
        ("b", coordinator(0, "Elected as the coordinator"), "", "coordinator", b"o"),
        ("clients", b'%7|1.000|JOINGROUP|app| [thrd:main]: Group "payments": joining', "", "client", b"payments"),
        ("clients", b"[Consumer clientId=a, groupId=payments] Request joining group due to: x", "", "client", b"payments"),
        ("clients", b"%4|1.000|MAXPOLL|app| [thrd:main]: late", "payments", "client", b"payments"),
        ("poll", b'{"group":"payments"}', "", "poll", b"o"),
    ],
)
def test_lines_of_a_group_have_its_key(broker, line, context, source, key):
    assert line_source(broker, line) == source
    assert record_key(source, line, context, "o") == key


# State.


def test_a_state_is_read_as_it_was_saved(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(i) for i in range(9)])
    ship(tmp_path, Topic())
    with ShipState(tmp_path / "state.json", TARGET) as state:
        (stream,) = state.load()
        assert (stream.mark.line, stream.shipped, stream.label.startswith("server@")) == (9, 9, True)
        state.save([stream])
        before = (tmp_path / "state.json").read_text()
        (again,) = state.load()
        assert (again.mark, again.label, again.fingerprint) == (stream.mark, stream.label, stream.fingerprint)
    assert json.loads(before)["version"] == 1
    assert not list(tmp_path.glob("*.tmp"))


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"version":1,"target":{"cluster":"c"},"streams":[]}', "\x00"])
def test_a_state_that_is_none(tmp_path, text):
    (tmp_path / "state.json").write_text(text)
    with ShipState(tmp_path / "state.json", TARGET) as state, pytest.raises(UserError, match="no state of a shipper"):
        state.load()


def test_a_state_of_something_else(tmp_path):
    path = tmp_path / "state.json"
    with ShipState(path, TARGET) as state:
        state.save([])
    with ShipState(path, ShipTarget("c", "b2", "t")) as state, pytest.raises(UserError, match="broker b, topic t; give another file"):
        state.load()
    path.write_text(path.read_text().replace('"version":1', '"version":9'))
    with ShipState(path, TARGET) as state, pytest.raises(UserError, match="version 9"):
        state.load()


def test_two_shippers_with_one_state(tmp_path):
    with ShipState(tmp_path / "s", TARGET), pytest.raises(UserError, match="another shipper"), ShipState(tmp_path / "s", TARGET):
        pass
    with ShipState(tmp_path / "s", TARGET):
        pass


def test_a_state_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot be written"), ShipState(tmp_path / "file" / "s", TARGET):
        pass


# Shipping.


def test_what_log_reader_keeps_is_shipped_once(tmp_path):
    lines = [(coordinator, other, request, fetch)[i % 4](i * 10) for i in range(400)]
    path = write(tmp_path / "in/server.log", [*lines, b"[2026-13-21 06:00:00,000] broken"])
    topic = Topic()
    done = ship(tmp_path, topic)
    expected = kept(path)
    origin = topic.lines()[0].origin
    assert lines_of(topic, origin) == expected
    assert (done.read, done.delivered, len(topic.lines())) == (401, len(expected), len(expected))
    assert ship(tmp_path, topic).delivered == 0
    assert len(topic.lines()) == len(expected)


def test_ticks_stand_in_every_partition_behind_the_lines_they_cover(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(0), other(1_000), other(5_000)])
    topic = Topic(partitions=3)
    ship(tmp_path, topic)
    assert [p for p, _ in topic.clocks()] == [0, 1, 2]
    clock = topic.clocks()[0][1]
    assert (clock.position, clock.lines, clock.at_ms) == (3, 1, START_MS + 5_000)
    assert json.loads(clock.text) == [START_MS // 1000, START_MS // 1000 + 1, START_MS // 1000 + 5, START_MS // 1000 + 5]
    assert clock.read_ms is None  # what comes after an archive may be of any time
    assert topic.records[0][2].record == "line"


def test_a_log_keeps_its_name_and_its_positions_through_rotation(tmp_path):
    folder = tmp_path / "in"
    topic = Topic()
    path = write(folder / "server.log", [coordinator(i) for i in range(10)])
    ship(tmp_path, topic)
    with path.open("ab") as file:
        file.write(coordinator(10) + b"\n")  # never seen under this name
    path.rename(folder / "server.log.1")
    write(path, [coordinator(i) for i in range(11, 15)])
    ship(tmp_path, topic)
    (folder / "server.log.2.gz").write_bytes(gzip.compress((folder / "server.log.1").read_bytes() + coordinator(99) + b"\n"))
    (folder / "server.log.1").unlink()
    path.rename(folder / "server.log.1")
    write(path, [coordinator(i) for i in range(200, 202)])
    ship(tmp_path, topic)
    by_log = {}
    for line in topic.lines():
        by_log.setdefault(line.origin, []).append(line.position)
    assert sorted(by_log.values(), key=len) == [[1, 2], [1, 2, 3, 4], list(range(1, 13))]
    assert len(topic.lines()) == 18


def test_a_truncated_log_is_a_new_one(tmp_path):
    path = write(tmp_path / "in/server.log", [coordinator(i) for i in range(5)])
    topic = Topic()
    ship(tmp_path, topic)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(coordinator(7) + b"\n")
    ship(tmp_path, topic)
    assert [r.position for r in topic.lines()] == [1, 2, 3, 4, 5, 1]
    assert len({r.origin for r in topic.lines()}) == 2


def test_logs_that_begin_alike_have_names_of_their_own(tmp_path):
    banner = [b"  ___ application ___"] * 200  # 4,200 bytes
    topic = Topic()
    for number in range(2):
        write(tmp_path / "in/app.log", [*banner, coordinator(number)])
        ship(tmp_path, topic)
        os.truncate(tmp_path / "in/app.log", 0)
        ship(tmp_path, topic)
        with (tmp_path / "in/app.log").open("wb") as file:
            file.write(b"%d another\n" % number * 30)
        ship(tmp_path, topic)
        (tmp_path / "state.json").write_text((tmp_path / "state.json").read_text())
    positions = [(r.origin, r.position) for r in topic.lines()]
    assert len(set(positions)) == len(positions)


@pytest.mark.parametrize("refused", [1, 5, 40, 41, 42, 60])
def test_what_was_refused_is_sent_again_and_nothing_is_lost(tmp_path, refused):
    path = write(tmp_path / "in/server.log", [coordinator(i) for i in range(40)])
    topic, said = Topic(refuse=[refused]), []
    rounds = []

    def stopped():
        rounds.append(1)
        return len(topic.distinct()) == 40 and len(rounds) > 20 and len(topic.clocks()) >= 2

    if refused > 42:
        ship(tmp_path, topic)
    else:
        ship(tmp_path, topic, once=False, stopped=stopped, complain=said.append)
        assert (len(said), topic.renewed) == (1, 1)
    assert lines_of(topic, topic.lines()[0].origin) == kept(path)
    assert topic.clocks()[-1][1].lines == 40


def test_once_a_refusal_is_an_error(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(0)])
    with pytest.raises(UserError, match="shipping to"):
        ship(tmp_path, Topic(refuse=[1]))


def test_stopped_before_it_was_acknowledged_it_is_sent_by_the_next_start(tmp_path):
    path = write(tmp_path / "in/server.log", [coordinator(i) for i in range(40)])
    topic, said = Topic(), []
    topic.stop_at = 40
    ship(tmp_path, topic, once=False, complain=said.append)
    assert "the next start sends it again" in said[0]
    assert topic.lines() == []
    topic.stop_at = None
    ship(tmp_path, topic)
    assert lines_of(topic, topic.lines()[0].origin) == kept(path)


@pytest.mark.parametrize("fresh", [True, False])
def test_a_silent_log_is_ticked(tmp_path, fresh):
    settings = replace(AT_ONCE, tick_seconds=0.0, fresh_ms=1 << 50 if fresh else 1_000)
    write(tmp_path / "in/server.log", [coordinator(0)])
    write(tmp_path / "in/server.log.1", [coordinator(-9_000)])
    topic = Topic(partitions=1)
    ship(tmp_path, topic, once=False, stopped=lambda: len(topic.clocks()) >= 4, settings=settings)
    ticks = [r for _, r in topic.clocks()]
    assert [len({t.origin for t in part}) for part in (ticks[:2], ticks[2:])] == [2, 1]  # the rotated one says nothing any more
    assert [t.text for t in ticks[2:]] == ["[]"] * len(ticks[2:])
    assert ticks[-1].read_ms >= ticks[2].read_ms > 0 if fresh else {t.read_ms for t in ticks} == {None}
    assert ticks[-1].at_ms == START_MS


def test_a_line_that_no_record_can_hold_is_cut_and_says_so(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(0, "Stabilized group g " + "x" * 9_000), coordinator(1)])
    topic = Topic()
    topic.max_bytes = 8_000
    ship(tmp_path, topic)
    first, second = topic.lines()
    assert (first.fault, len(first.text), second.fault) == ("TOO_LONG", 4_096, None)


def test_a_damaged_archive_is_told_once_and_is_no_line(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/server.log.1.gz").write_bytes(gzip.compress(b"".join(coordinator(i * i) + b"\n" for i in range(5_000)))[:9_000])
    topic = Topic()
    ship(tmp_path, topic)
    ship(tmp_path, topic)
    damage = [r for r in topic.lines() if r.fault == "DAMAGED_FILE"]
    assert [r.position for r in damage] == [0]
    assert topic.clocks()[-1][1].lines == len(topic.lines()) - 1


# Finding.


def test_a_file_that_is_named_brings_its_rotated_ones(tmp_path):
    for name in ("server.log", "server.log.1", "server.log.2026-11-21-06.gz", "server.log.swp", "kafka-request.log", "server.logs"):
        write(tmp_path / name, [coordinator(0)])
    found = Finder([tmp_path / "server.log"], TARGET, print)()
    assert [f.origin for f in found] == ["server.log", "server.log.1", "server.log.2026-11-21-06.gz"]
    both = Finder([tmp_path, tmp_path / "server.log"], TARGET, print)()
    assert len(both) == 4


def test_logs_of_one_name_in_two_folders(tmp_path):
    paths = [write(tmp_path / name / "server.log", [coordinator(i * 10 + n) for i in range(5 + n)]) for n, name in enumerate("ab")]
    topic = Topic()
    ship(tmp_path, topic, inputs=paths)
    assert {r.origin: r.lines for _, r in topic.clocks()} == {r.origin: 5 + (r.at_ms == START_MS + 51) for _, r in topic.clocks()}
    assert sorted(sorted(kept(p)) for p in paths) == sorted(sorted(lines_of(topic, o)) for o in {r.origin for r in topic.lines()})


def test_logs_long_gone_are_forgotten(tmp_path):
    settings = replace(AT_ONCE, absent_kept=2)
    topic = Topic()
    for number in range(5):
        path = write(tmp_path / "in/server.log", [coordinator(number * 1_000 + i) for i in range(5)])
        ship(tmp_path, topic, settings=settings)
        path.unlink()
    ship(tmp_path, topic, settings=settings)
    write(tmp_path / "in/server.log", [coordinator(0)])
    ship(tmp_path, topic, settings=settings)
    with ShipState(tmp_path / "state.json", TARGET) as state:
        assert len(state.load()) == 3
    assert len(topic.distinct()) == 25 + 1 - 1  # a line of a log that came back, forgotten: the reader knows it


def test_logs_of_applications(tmp_path):
    write(tmp_path / "in/clients/payments/app.log", [b"%4|1795240800.000|MAXPOLL|app| [thrd:main]: Application maximum poll interval"])
    write(tmp_path / "in/server.log", [coordinator(0)])
    topic = Topic()
    ship(tmp_path, topic)
    (client,) = (r for r in topic.lines() if r.source == "client")
    assert (client.broker, client.context, client.at_ms) == ("clients", "payments", START_MS)
    alone = Finder([tmp_path / "in/clients"], ShipTarget("c", "clients", "t"), print)()
    assert [(f.broker, f.origin) for f in alone] == [("clients", "clients/payments/app.log")]


def test_records_of_polls_beside_a_broker(tmp_path):
    write(tmp_path / "in/poll/poll-1.jsonl", [b'{"timestamp":1795242559456,"group":"payments","state":"Stable"}'])
    topic = Topic()
    ship(tmp_path, topic)
    (line,) = topic.lines()
    assert (line.broker, line.source, line.origin.startswith("poll/poll-1@"), line.origin.endswith(".jsonl")) == (
        "poll",
        "poll",
        True,
        True,
    )


def test_a_file_that_may_not_be_read_is_told_once(tmp_path):
    write(tmp_path / "server.log", [coordinator(0)])

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    said = []
    find = Finder([tmp_path], TARGET, said.append, open_file=refuse)
    assert find() == find() == []
    assert len(said) == 1


def test_commands_that_cannot_work(tmp_path, capsys):
    write(tmp_path / "server.log", [coordinator(0)])
    secret = tmp_path / "client.properties"
    secret.write_text("sasl.password=x\n")
    secret.chmod(0o644)
    base = ["ship", "--input", str(tmp_path), "--bootstrap", "127.0.0.1:1", "--state", str(tmp_path / "s")]
    for arguments, said in (
        ([*base, "--cluster", "a/b", "--broker", "b"], "--cluster a/b"),
        ([*base, "--cluster", "a", "--broker", "b/c"], "--broker b/c"),
        ([*base, "--cluster", "a", "--broker", "b", "--timezone", "Berlin"], "--timezone Berlin"),
        ([*base, "--cluster", "a", "--broker", "b", "--input", str(tmp_path / "none")], "no such file or folder"),
        ([*base, "--cluster", "a", "--broker", "b", "--config", str(secret)], "can be read by any user"),
        (["broker", "--topic", "x:0"], "--topic x:0"),
        (["broker", "--version", "1.0", "--dir", str(tmp_path / "k")], "Kafka 1.0 is not known here"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_a_time_zone():
    assert settings_with_zone("Europe/Berlin").timezone == "Europe/Berlin"
