"""Which logs the shipper finds, and what they are called."""

from __future__ import annotations

from dataclasses import replace

from jobs.kafka.finder import Finder
from jobs.kafka.ship_state import ShipState, ShipTarget
from tests.kafka.shipments import AT_ONCE, TARGET, Topic, kept, lines_of, ship
from tests.logs.log_makers import START_MS, coordinator, write


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
