"""A broker whose clock is set back while it writes: its lines keep their order, in files that are there and in those that grow."""

import pytest

from jobs.common.times import epoch_ms
from jobs.logs.spool import Spool, SpoolSettings
from tests.logs.log_makers import START_MS, coordinator, heartbeat, write
from tests.logs.spooling import Consumer, run

BACK_MS = 20_000
STEPPED = "the clock of broker-1 stepped back by 20 s at 2026-11-21 06:00:29 UTC"


def beats(begin: int, end: int, back_ms: int = 0, first_port: int = 50_000) -> list[bytes]:
    """Heartbeats on three connections, one each 100 ms."""
    own = "10.0.0.1:9092-10.0.0.9:{}-0-1"
    return [heartbeat(n * 100 - back_ms, number=str(n // 3 + 1), connection=own.format(first_port + n % 3)) for n in range(begin, end)]


def times(consumer: Consumer, origin: str) -> list[int]:
    """Of the lines of a file, in its order."""
    rows = sorted((row["position"], row["at"]) for row in consumer.of("line") if row["origin"].endswith(origin))
    return [epoch_ms(at) - START_MS for _, at in rows]


BEFORE, AFTER = beats(0, 300), beats(300, 900, BACK_MS)
IN_ORDER = [n * 100 for n in range(900)]


@pytest.mark.parametrize("slice_lines", [7, 100, 100_000])
def test_all_logs_of_a_broker_step_at_once(tmp_path, slice_lines):
    """The few lines of server.log show no step: one of them is right behind it."""
    write(tmp_path / "in/c/broker-1/kafka-request.log", [*BEFORE, *AFTER])
    server = [coordinator(ms) for ms in (1_000, 29_500, 30_500 - BACK_MS, 80_000 - BACK_MS)]
    write(tmp_path / "in/c/broker-1/server.log", server)
    consumer, _ = run(tmp_path / "in", tmp_path / "out", slice_lines=slice_lines)
    assert times(consumer, "request.log") == IN_ORDER
    assert times(consumer, "server.log") == [1_000, 29_500, 30_500, 80_000]


@pytest.mark.parametrize(("behind", "expected"), [(AFTER, IN_ORDER), (beats(100, 300), [*IN_ORDER[:300], *IN_ORDER[100:300]])])
def test_a_log_that_is_followed_waits_for_a_proof(tmp_path, behind, expected):
    path = write(tmp_path / "in/c/broker-1/kafka-request.log", BEFORE)
    consumer = Consumer()
    spool = Spool(tmp_path / "in", tmp_path / "out", settings=SpoolSettings(poll_seconds=0.01, patience_seconds=0.1))
    left = list(behind)

    def stop():
        with path.open("ab") as log:
            log.write(b"".join(line + b"\n" for line in left[:30]))
        del left[:30]
        consumer.take(tmp_path / "out")
        return spool.streams[0].reached.line == len(BEFORE) + len(behind)

    for _ in spool.slices(follow=True, stop=stop):
        pass
    consumer.take(tmp_path / "out")
    assert times(consumer, "request.log") == expected


def test_a_step_is_told_once(tmp_path):
    write(tmp_path / "in/c/broker-1/kafka-request.log", [*BEFORE, *AFTER])
    write(tmp_path / "in/c/broker-1/server.log", [coordinator(ms) for ms in (1_000, 29_500, 30_500 - BACK_MS)])
    spool = Spool(tmp_path / "in", tmp_path / "out")
    for _ in spool.slices():
        pass
    assert [note.partition(": ")[0] for note in spool.notes] == [STEPPED]


@pytest.mark.parametrize(
    "behind",
    [
        beats(100, 900),  # the log before it, or a copy
        beats(0, 300, first_port=60_000),  # of other clients
        [*beats(300, 301, BACK_MS), *beats(301, 900)],  # a damaged time
    ],
)
def test_what_goes_back_for_another_reason_keeps_its_time(tmp_path, behind):
    write(tmp_path / "in/c/broker-1/kafka-request.log", [*BEFORE, *behind])
    consumer, _ = run(tmp_path / "in", tmp_path / "out")
    written = {line.decode()[:25] for line in (*BEFORE, *behind)}
    assert {row["text"][:25] for row in consumer.of("line")} == written
    assert all(at <= 90_000 for at in times(consumer, "request.log"))
