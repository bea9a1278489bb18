"""The spool follows logs that grow, and waits for a consumer that is slow."""

import time
from types import SimpleNamespace

import pytest

from jobs.logs import spool
from jobs.logs.spool import Spool, SpoolSettings
from tests.logs.any_log import HOUR
from tests.logs.log_makers import coordinator, write
from tests.logs.spooling import Consumer, brokers, run


def follow(inputs, folder, steps, consumer=None, **settings):
    """Runs with `steps`, called one after each look."""
    consumer = consumer or Consumer()
    steps = iter(steps)
    s = Spool(inputs, folder, settings=SpoolSettings(poll_seconds=0, **settings))

    def stop():
        step = next(steps, None)
        if step:
            step()
        return step is None

    reports = []
    for report in s.slices(follow=True, stop=stop):
        reports.append(report)
        consumer.take(folder)
    return consumer, reports


def test_follow(tmp_path):
    log = write(tmp_path / "in/b/server.log", [coordinator(i) for i in range(10)])

    def append(data, path=log):
        def step():
            with path.open("ab") as f:
                f.write(data)

        return step

    def rotate():
        log.rename(tmp_path / "in/b/server.log.1")
        write(log, [coordinator(200)])

    steps = [
        append(coordinator(10)[:50]),
        append(coordinator(10)[50:]),
        append(b"\n" + coordinator(5 * HOUR) + b"\n"),  # a jump: not believed yet
        append(b"".join(coordinator(11 + i) + b"\n" for i in range(9))),
        rotate,
        append(coordinator(30) + b"\n", tmp_path / "in/b/server.log.1"),
        lambda: None,
    ]
    consumer, reports = follow(tmp_path / "in", tmp_path / "out", steps)
    assert [r.lines_read for r in reports] == [10, 1, 10, 1, 1]
    assert not consumer.of("end")
    assert [(r["origin"], r["position"]) for r in consumer.of("line")][-2:] == [("b/server.log", 1), ("b/server.log.1", 22)]
    assert [r["position"] for r in consumer.of("line") if r["fault"]] == [12]
    texts = [r["text"] for r in consumer.of("line")]
    assert len(texts) == len(set(texts)) == 23
    # Then once: the input ends, though nothing was added.
    _, [report] = run(tmp_path / "in", tmp_path / "out", consumer)
    assert (report.lines_read, report.last) == (0, True)
    assert consumer.rows[-1]["record"] == "end"


def test_follow_then_once_takes_what_was_waited_for(tmp_path):
    log = write(tmp_path / "in/b/server.log", [coordinator(i) for i in range(10)])
    with log.open("ab") as f:
        f.write(coordinator(5 * 60_000) + b"\n" + coordinator(6 * 60_000))
    consumer, [report] = follow(tmp_path / "in", tmp_path / "out", [lambda: None])
    assert report.lines_read == 10
    _, [report] = run(tmp_path / "in", tmp_path / "out", consumer)
    assert (report.lines_read, report.last) == (2, True)
    assert not any(r["fault"] for r in consumer.rows)


def test_patience(tmp_path):
    write(tmp_path / "in/b/server.log", [coordinator(0), coordinator(1), coordinator(5 * 60_000)])
    _, reports = follow(tmp_path / "in", tmp_path / "out", [lambda: None, lambda: None], patience_seconds=0)
    assert sum(r.lines_read for r in reports) == 3


def test_throttle(tmp_path):
    inputs = brokers(tmp_path / "in")
    most, slept = 0, []
    s = Spool(inputs, tmp_path / "out", settings=SpoolSettings(slice_lines=50, max_pending=2))
    consumer = Consumer()
    waiting = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: (slept.append(seconds), consumer.take(tmp_path / "out")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "time", waiting)
        for _ in s.slices():
            most = max(most, len(list((tmp_path / "out/slices").iterdir())))
    assert most == 3
    assert slept
