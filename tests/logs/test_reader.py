"""One log: what is kept, what is skipped, what is wrong, and that it does not matter how it is cut."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobs.logs import faults
from jobs.logs.bytes import UNREADABLE, open_log
from jobs.logs.jumps import Jump, LogEnd
from jobs.logs.lines import LineLimits
from jobs.logs.mark import KeptLines, Mark
from jobs.logs.reader import FOREVER, LogReader
from jobs.logs.times import NEVER, LocalTimes
from tests.logs.log_makers import START_MS, coordinator, fetch, other, request, stamp, write

HOUR = 3_600_000
YEARS = 900 * 365 * 24 * HOUR
REPEATED = -(20 * 24 + 5) * HOUR  # 2026-11-01 01:00, which New York has twice


def reader(path, mark=None, zone="UTC", **options):
    return LogReader(lambda: open_log(path), LocalTimes(zone), mark, **options)


def read(path, **options):
    kept = KeptLines()
    lines = LogReader.read(r := reader(path, **options), kept)
    r.close()
    return kept, lines


def rows(kept):
    return [
        (position, at, text, kept.faults.get(i, ""))
        for i, (position, at, text) in enumerate(zip(kept.positions, kept.ats, kept.texts, strict=True))
    ]


def judged(tmp_path, lines, end=b"\n", **options):
    """Position, fault of the lines kept."""
    kept, count = read(write(tmp_path / "a.log", lines, end), **options)
    assert count == len(lines)
    return [(position, fault) for position, _, _, fault in rows(kept)]


# What is kept.


@pytest.mark.parametrize(
    "api",
    [
        "JOIN_GROUP",
        "SYNC_GROUP",
        "HEARTBEAT",
        "LEAVE_GROUP",
        "OFFSET_COMMIT",
        "TXN_OFFSET_COMMIT",
        "OFFSET_FETCH",
        "DELETE_GROUPS",
        "FIND_COORDINATOR",
    ],
)
def test_group_requests_are_kept(tmp_path, api):
    line = request(1, api)
    kept, count = read(write(tmp_path / "a.log", [line]))
    assert (rows(kept), count) == ([(1, START_MS + 1, line, "")], 1)


def test_other_requests_are_skipped(tmp_path):
    assert judged(tmp_path, [fetch(1), request(2, "METADATA", 3), request(3, "SHARE_NEWS_2", 199), request(4)]) == [(4, "")]


def test_info_level_and_a_thread_name_before_the_request(tmp_path):
    line = request(1).replace(b"] DEBUG ", b"] INFO [data-plane-kafka-request-handler-3] ")
    assert judged(tmp_path, [line]) == [(1, "")]


def test_damaged_requests_are_kept(tmp_path):
    good = request(1)
    lines = [
        good,
        good.replace(b'"requestApiKeyName":"HEARTBEAT"', b'"requestApiKeyN:"HEARTBEAT"'),
        good.replace(b"HEARTBEAT", b"HEARTbEAT"),
        good.replace(b"HEARTBEAT", b"HEARTBEAU"),  # a name, but its number is that of HEARTBEAT
        good[:150],
        fetch(1)[:190] + good,  # a line cut, and the next written behind it
        good.replace(b"Completed", b"Cmpleted"),
        good[:40],
        good[:33],
        good[26:],
        b"junk",
        b"",
        good,
    ]
    assert judged(tmp_path, lines) == [
        (1, ""),
        (2, ""),
        (3, faults.BAD_API_NAME),
        (4, faults.BAD_API_NAME),
        (5, ""),
        (6, ""),
        (7, faults.NOT_A_REQUEST),
        (8, faults.NOT_A_REQUEST),
        (9, faults.NOT_A_REQUEST),
        (10, faults.NO_TIMESTAMP),
        (11, faults.NO_TIMESTAMP),
        (13, ""),
    ]


def test_first_line_of_a_request_log_is_judged_by_those_that_follow(tmp_path):
    assert judged(tmp_path, [b"half of a line", *[fetch(i) for i in range(9)]]) == [(1, faults.NO_TIMESTAMP)]


def test_text_form_before_kafka_2_8(tmp_path):
    old = "{} DEBUG Completed request:RequestHeader(apiKey={}, apiVersion=3) -- {{group_id=g}} (kafka.request.logger)"
    lines = [old.format(stamp(i), api).encode() for i, api in enumerate(["JOIN_GROUP", "FETCH", "LEAVE_GROUP"])]
    assert judged(tmp_path, lines) == [(1, ""), (3, "")]


def test_server_log(tmp_path):
    scala = f"{stamp(0)} INFO Loaded member MemberMetadata(x) in group g (kafka.coordinator.group.GroupMetadata$)".encode()
    runtime = f"{stamp(0)} INFO [{{}} id=1] Scheduling (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
    lines = [
        other(0),
        coordinator(0),
        coordinator(0)[:60],  # cut
        coordinator(0)[40:],  # its beginning lost
        scala,
        runtime.format("GroupCoordinator").encode(),
        runtime.format("ShareCoordinator").encode(),
        b"",
        stamp(1).encode() + b" INFO KafkaConfig values: ",
        b"\tadvertised.listeners = null",
        b"\tgroup.consumer.assignors = [org.apache.kafka.coordinator.group.assignor.UniformAssignor]",
        b" (kafka.server.KafkaConfig)",
        stamp(1).encode() + b" ERROR Unexpected (kafka.server.KafkaApis)",
        b"java.lang.IllegalStateException: no",
        b"\tat org.apache.kafka.coordinator.group.GroupMetadataManager.replay(GroupMetadataManager.java:12)",
        b"Caused by: org.apache.kafka.coordinator.group.GroupMetadataManager.Oops: no",
        b"\t... 12 more",
        request(1)[25:],
        b"[2026-11-21 06:09:61,000] INFO [GroupCoordinator 1]: x (kafka.coordinator.group.GroupCoordinator)",
    ]
    assert judged(tmp_path, lines) == [
        (2, ""),
        (3, ""),
        (4, faults.NO_TIMESTAMP),
        (5, ""),
        (6, ""),
        (18, faults.NO_TIMESTAMP),
        (19, faults.BAD_TIMESTAMP),
    ]


def test_one_file_for_all_loggers(tmp_path):
    """As a container writes it: nothing in it is damaged, though most of its lines are requests."""
    lines = [
        other(0),
        *[fetch(i) for i in range(5)],
        stamp(6).encode() + b" INFO KafkaConfig values: ",
        b"\tadvertised.listeners = null",
        b" (kafka.server.KafkaConfig)",
        request(7),
        coordinator(8),
        *[fetch(i) for i in range(9, 15)],
        other(15),
        b"java.lang.IllegalStateException: no",
        b"\tat kafka.Kafka.main(Kafka.scala:1)",
        fetch(16),
        b"junk",
    ]
    assert judged(tmp_path, lines) == [(10, ""), (11, ""), (len(lines), faults.NO_TIMESTAMP)]


# Bytes.


def test_line_ends(tmp_path):
    lines = [request(1), coordinator(2), b"", request(3)]
    kept, count = read(write(tmp_path / "a.log", lines, b"\r\n"))
    assert [(p, t) for p, _, t, _ in rows(kept)] == [(1, lines[0]), (2, lines[1]), (4, lines[3])]
    assert count == 4
    write(tmp_path / "b.log", lines, b"\n").write_bytes(b"\n".join(lines))  # no end of the last line
    assert read(tmp_path / "b.log") == (kept, 4)


def test_no_text(tmp_path):
    good = request(1)
    lines = [good, good.replace(b"c", b"\xff", 1), fetch(2) + b"\0", other(3) + b"\x1b[0m", "é".join(["x"] * 9).encode(), good]
    kept, _ = read(write(tmp_path / "a.log", lines))
    faulty = [(p, f) for p, _, _, f in rows(kept) if f]
    assert faulty == [(2, "NOT_TEXT"), (3, "NOT_TEXT"), (4, "NOT_TEXT"), (5, "NO_TIMESTAMP")]
    assert b"\\xff" in kept.texts[1]
    assert kept.texts[2].endswith(b"\\x00")
    assert all(at is not None for at in kept.ats[:4])
    assert all(text.decode().isprintable() for text in kept.texts)


def test_non_ascii_text_is_text(tmp_path):
    line = request(1, group="Grüße-日本")
    assert rows(read(write(tmp_path / "a.log", [line]))[0]) == [(1, START_MS + 1, line, "")]


def test_long_lines(tmp_path):
    limits = LineLimits(block_bytes=1000, line_bytes=20_000)
    long = request(2, group="g" * 40_000)
    fits = request(4, group="g" * 19_000)
    exact = fits + b"x" * (20_000 - len(fits))
    lines = [request(1), long, request(3), fits, exact, exact + b"x", fetch(5) + b"y" * 50_000, request(6)]
    path = write(tmp_path / "a.log", lines)
    kept, count = read(path, limits=limits)
    assert count == len(lines)
    assert [(p, f) for p, _, _, f in rows(kept)] == [
        (1, ""), (2, "TOO_LONG"), (3, ""), (4, ""), (5, ""), (6, "TOO_LONG"), (7, "TOO_LONG"), (8, "")
    ]  # fmt: skip
    assert kept.texts[3:5] == [fits, exact]
    assert kept.texts[1] == long[:4096]
    r = reader(path, limits=limits)
    r.read(KeptLines())
    assert r.mark.offset == path.stat().st_size
    path.write_bytes(long)  # without an end
    assert [f for *_, f in rows(read(path, limits=limits)[0])] == ["TOO_LONG"]


def test_a_megabyte_is_a_line(tmp_path):
    line = request(1, group="g" * 1_000_000)
    kept, _ = read(write(tmp_path / "a.log", [fetch(0), line, request(2)]))
    assert kept.texts == [line, request(2)]


def test_empty_and_binary_files(tmp_path):
    empty = write(tmp_path / "a.log", [])
    assert read(empty) == (KeptLines(), 0)
    (tmp_path / "b.log").write_bytes(bytes(range(256)) * 40)
    kept, count = read(tmp_path / "b.log")
    assert count == 41
    assert len(kept) == 41
    assert set(kept.faults.values()) == {"NOT_TEXT"}


def test_gzip_is_told_by_content(tmp_path):
    data = b"".join(request(i) + b"\n" for i in range(500))
    plain = tmp_path / "plain.log.gz"
    plain.write_bytes(data)
    packed = tmp_path / "packed.log"
    packed.write_bytes(gzip.compress(data[:20_000]) + gzip.compress(data[20_000:]) + b"\0" * 512)
    assert read(plain) == read(packed)
    assert read(plain)[1] == 500


def test_damaged_gzip(tmp_path):
    data = gzip.compress(b"".join(request(i, group=str(i * i)) + b"\n" for i in range(2000)))
    for name, damaged in [("cut", data[: len(data) // 2]), ("flipped", data[:9000] + b"\0" * 99 + data[9099:])]:
        path = tmp_path / f"{name}.log"
        path.write_bytes(damaged)
        r, kept = reader(path), KeptLines()
        count = r.read(kept)
        assert 0 < count < 2000
        assert r.tell_damage(kept)
        assert not r.tell_damage(kept)
        assert rows(kept)[-1][3] == "DAMAGED_FILE"
        assert b"gzip data" in kept.texts[-1]


def test_other_compressions_are_named(tmp_path):
    (tmp_path / "a.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"\n" * 100)
    r, kept = reader(tmp_path / "a.log.zst"), KeptLines()
    assert r.read(kept) == 0
    assert r.tell_damage(kept)
    assert b"zstd" in kept.texts[0]


# Times that do not fit.


def test_outlier_in_the_middle(tmp_path):
    lines = [request(i) for i in range(20)]
    lines[10] = fetch(YEARS)
    kept, _ = read(write(tmp_path / "a.log", lines))
    assert [r for r in rows(kept) if r[3]] == [(11, None, lines[10], "TIMESTAMP_OUTLIER")]
    assert [r[1] for r in rows(kept) if not r[3]] == [START_MS + i for i in range(20) if i != 10]


@pytest.mark.parametrize("far", [YEARS, -YEARS])
def test_outlier_first(tmp_path, far):
    lines = [request(far), *[request(i) for i in range(10)]]
    assert judged(tmp_path, lines)[:2] == [(1, "TIMESTAMP_OUTLIER"), (2, "")]


def test_outlier_last(tmp_path):
    assert judged(tmp_path, [request(0), request(YEARS)]) == [(1, ""), (2, "TIMESTAMP_OUTLIER")]
    assert judged(tmp_path, [request(0), request(HOUR)]) == [(1, ""), (2, "")]


def test_two_outliers_together(tmp_path):
    lines = [request(0), request(YEARS), request(YEARS // 2), request(1), request(2)]
    assert [f for _, f in judged(tmp_path, lines)] == ["", "TIMESTAMP_OUTLIER", "TIMESTAMP_OUTLIER", "", ""]


def test_a_silence_is_no_outlier(tmp_path):
    lines = [request(i * 5 * HOUR) for i in range(20)]
    assert all(not fault for _, fault in judged(tmp_path, lines)[:-1])  # the last has nothing to confirm it


def test_a_silence_is_no_outlier_though_a_damaged_line_follows(tmp_path):
    lines = [request(0), *[request(HOUR * 9 + i) for i in range(9)]]
    lines.insert(4, request(-YEARS))
    assert all(not fault for _, fault in judged(tmp_path, lines))


def test_outlier_while_the_clock_is_behind(tmp_path):
    """The broker's clock was set back by a day: what comes is behind, and a damaged line must not carry time away."""
    lines = [*[request(24 * HOUR + i) for i in range(9)], *[request(i) for i in range(20)]]
    lines[20] = request(YEARS)
    kept, _ = read(write(tmp_path / "a.log", lines))
    assert [p for p, _, _, f in rows(kept) if f] == [21]


def test_older_lines_keep_their_time_and_move_none(tmp_path):
    path = write(tmp_path / "a.log", [request(HOUR), request(0), request(HOUR + 1)])
    r, kept = reader(path), KeptLines()
    r.read(kept)
    assert kept.ats == [START_MS + HOUR, START_MS, START_MS + HOUR + 1]
    assert r.mark.newest_ms == START_MS + HOUR + 1


def test_an_open_jump_waits_for_its_followers(tmp_path):
    path = write(tmp_path / "a.log", [*[request(i) for i in range(9)], request(5 * HOUR)])
    r, kept = reader(path, final=False), KeptLines()
    assert r.read(kept, log_end=LogEnd.HOLD) == 9
    assert r.read(kept, log_end=LogEnd.IDLE) == 0  # too far to be believed alone, and the log may go on
    assert r.read(kept, log_end=LogEnd.HOLD, witness_ms=START_MS + 5 * HOUR) == 1
    r = reader(path, final=False)
    assert r.read(kept := KeptLines(), log_end=LogEnd.END) == 10
    assert list(kept.faults.values()) == ["TIMESTAMP_OUTLIER"]


def test_berlin_in_october(tmp_path):
    lines = [b"[2026-10-25 02:59:59,000] DEBUG x", b"[2026-10-25 02:00:00,000] DEBUG x", b"[2026-10-25 03:00:00,000] DEBUG x"]
    path = write(tmp_path / "a.log", [line + request(0)[30:] for line in lines])
    r, kept = LogReader(lambda: open_log(path), LocalTimes("Europe/Berlin")), KeptLines()
    r.read(kept)
    first = kept.ats[0]
    assert [at - first for at in kept.ats] == [0, 1000, HOUR + 1000]


# Cutting.

JUNK = st.one_of(
    st.sampled_from([b"", b" ", b"\tat x.Y(Z.java:1)", b"junk", b"\xff\0", b"[2026-99-99 00:00:00,000] INFO x", b"a\rb"]),
    st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")),
)


@st.composite
def logs(draw):
    """Lines of a log, most of them in order, some damaged."""
    at, lines = draw(st.sampled_from([0, 0, REPEATED - HOUR])), []
    for _ in range(draw(st.integers(0, 40))):
        at += draw(st.sampled_from([0, 1, 500, 20_000, 70_000, HOUR // 3, 5 * HOUR]))
        make = draw(st.sampled_from([request, request, fetch, coordinator, other]))
        wrong = draw(st.sampled_from([0] * 8 + [YEARS, -YEARS, 90_000, -90_000, -HOUR]))
        line = make(at + wrong)
        match draw(st.integers(0, 9)):
            case 0:
                line = line[: draw(st.integers(0, len(line)))]
            case 1:
                position = draw(st.integers(0, len(line) - 1))
                line = line[:position] + draw(st.binary(max_size=2)).replace(b"\n", b"") + line[position + 1 :]
            case 2:
                line = draw(JUNK)
        lines.append(line)
    return lines


@given(
    lines=logs(),
    end=st.sampled_from([b"\n", b"\r\n"]),
    ended=st.booleans(),
    cuts=st.lists(st.tuples(st.integers(1, 9), st.booleans(), st.integers(0, 10**7)), max_size=30),
    block=st.sampled_from([37, 300, 5000]),
    packed=st.booleans(),
    zone=st.sampled_from(["UTC", "America/New_York"]),
)
def test_any_log_is_accounted_for_and_no_cut_matters(tmp_path_factory, lines, end, ended, cuts, block, packed, zone):
    data = end.join(lines) + (end if ended and lines else b"")
    assume(packed or not data.startswith(tuple(start for start, _ in UNREADABLE)))
    want_lines = data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]
    path = tmp_path_factory.mktemp("log") / "a.log"
    path.write_bytes(gzip.compress(data) if packed else data)
    whole, count = read(path, zone=zone)
    assert count == len(want_lines)
    assert whole.positions == sorted(set(whole.positions))
    for position, at, text, fault in rows(whole):
        assert fault or (at is not None and text == want_lines[position - 1].removesuffix(b"\r"))
        assert len(text.decode()) <= 4096 or not fault

    kept, mark, total = KeptLines(), Mark(), 0
    for lines_at_once, fresh, until in [*cuts, (FOREVER, True, 1 << 60)]:
        if fresh or total == 0:
            r = reader(path, mark, zone, limits=LineLimits(block_bytes=block))
        total += r.read(kept, max_lines=lines_at_once, until_ms=START_MS + until)
        mark = r.mark
    assert rows(kept) == rows(whole)
    assert total == count
    assert mark.offset == len(data)
    assert r.peek() == (FOREVER, Jump.TRUE)


def test_peek_does_not_move(tmp_path):
    path = write(tmp_path / "a.log", [b"junk", request(YEARS), request(5), request(6)])
    r = reader(path)
    assert r.peek()[0] == START_MS + 5
    assert r.mark == Mark(requests=3, others=1)
    assert r.read(KeptLines()) == 4
    assert reader(write(tmp_path / "b.log", [b"junk"] * 3)).peek()[0] == NEVER
