"""The shipper without a broker: what it sends, and what it does when deliveries fail."""

import gzip
import json
import os

import pytest
from msgspec.structs import replace

from jobs.cli.entry import main
from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.kafka.shipper import ShipSettings
from tests.kafka.shipments import AT_ONCE, Topic, kept, lines_of, ship
from tests.logs.log_makers import START_MS, coordinator, fetch, other, request, write


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


def test_commands_that_cannot_work(tmp_path, capsys):
    write(tmp_path / "server.log", [coordinator(0)])
    secret = tmp_path / "client.properties"
    secret.write_text("sasl.password=x\n")
    secret.chmod(0o644)
    base = ["ship", "--input", str(tmp_path), "--bootstrap", "127.0.0.1:1", "--state", str(tmp_path / "s")]
    for arguments, said in (
        ([*base, "--cluster", "a/b", "--broker", "b"], "--cluster a/b"),
        ([*base, "--cluster", "a", "--broker", "b/c"], "--broker b/c"),
        ([*base, "--cluster", "a", "--broker", "b", "--timezone", "Berlin"], "unknown time zone 'Berlin'"),
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
    assert ShipSettings.of(Settings(timezone="Europe/Berlin")).timezone == "Europe/Berlin"


def test_a_pattern_of_the_brokers_lines(tmp_path):
    """The shipper sends the lines as Kafka's own configuration writes them."""
    own = coordinator(0)
    write(tmp_path / "in/server.log", [own[1:20].replace(b"-", b"/") + b" ;; " + own.partition(b"INFO ")[2]])
    topic = Topic()
    given = ShipSettings.of(Settings(log_format="%d{yyyy/MM/dd HH:mm:ss} ;; %m (%c)%n"))
    ship(tmp_path, topic, settings=replace(AT_ONCE, unwrap=given.unwrap))
    assert [record.text.encode() for _, _, record in topic.records if record.record == "line"] == [own]


def test_a_shipper_in_another_time_zone_than_before_is_refused(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(0)])
    ship(tmp_path, Topic())
    with pytest.raises(UserError, match=r"were read with time zone UTC, not Europe/Berlin, .* give another --state and another topic"):
        ship(tmp_path, Topic(), settings=replace(AT_ONCE, timezone="Europe/Berlin"))


def test_a_pipe_under_the_name_of_a_log_is_named_and_the_others_are_shipped(tmp_path):
    write(tmp_path / "in/server.log", [coordinator(0)])
    os.mkfifo(tmp_path / "in/pipe.log")
    said = []
    assert ship(tmp_path, Topic(), complain=said.append).delivered == 1
    assert said == [f"{tmp_path / 'in/pipe.log'}: cannot be read: it is a named pipe, not a file"]
