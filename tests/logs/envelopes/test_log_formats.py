"""Patterns that a user names: the `pattern` of a log4j PatternLayout."""

from functools import partial
from pathlib import Path

import pytest

from jobs.cli import entry
from jobs.common.errors import SettingsError
from jobs.common.exit_codes import UNUSABLE
from jobs.common.settings import load
from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.envelopes import Unwrapper, layouts_named, unwrapped
from jobs.logs.envelopes.patterns import AUTO, BUILT_IN
from jobs.logs.mark import KeptLines
from tests.logs.envelopes.wrapping import CONTAINERS, in_pattern, real_lines
from tests.logs.reading import read, reader, rows

MESSAGE = b"[GroupCoordinator 1]: Stabilized group g generation 7 (__consumer_offsets-3) with 2 members"
LOGGER = b"kafka.coordinator.group.GroupCoordinator"
OWN = b"[2026-11-21 06:09:19,456] INFO " + MESSAGE + b" (" + LOGGER + b")"
EXACT = OWN.replace(b"456]", b"456Z]")


def unwrapper(pattern):
    return Unwrapper(layouts_named("ours", [("ours", pattern)]))


@pytest.mark.parametrize(("pattern", "line", "own"), [
    ("%d{dd MMM yyyy HH:mm:ss.SSS} %p [%t] %c - %m%n", b"21 Nov 2026 06:09:19.456 INFO [a b] " + LOGGER + b" - " + MESSAGE, OWN),
    ("%d{DATE}{UTC} %p %m (%c)%n", b"21 Nov 2026 06:09:19,456 INFO " + MESSAGE + b" (" + LOGGER + b")", EXACT),
    ("%d{COMPACT}|%-5p|%c{1}|%m", b"20261121060919456|INFO |GroupCoordinator|" + MESSAGE, OWN),
    ("%d{ISO8601_BASIC} %level %msg", b"20261121T060919,456 INFO " + MESSAGE, OWN),
    ("%d{dd/MM/yyyy HH:mm:ss.SSSXXX} [%X{trace}] %p %m", b"21/11/2026 07:09:19.456+01:00 [a7] INFO " + MESSAGE, EXACT),
    ("%p;%d{UNIX_MILLIS};%m%n", b"INFO;1795241359456;" + MESSAGE, EXACT),
    ("%highlight{%d{yyyy-MM-dd'T'HH:mm:ss,SSS} %p} %style{%m}{white}%n", b"\x1b[32m2026-11-21T06:09:19,456 INFO\x1b[m " + MESSAGE, OWN),
    ("[%d] %p [%t] %m (%c)%n", b"[2026-11-21 06:09:19,456] INFO [main] " + MESSAGE + b" (" + LOGGER + b")", OWN),
    ("%d %m%n", b"2026-11-21 06:09:19,456 " + MESSAGE, OWN),
    ("100%% %d{ISO8601} %p %m", b"100% 2026-11-21 06:09:19,456 INFO  " + MESSAGE, OWN),
])  # fmt: skip
def test_a_pattern_is_read(pattern, line, own):
    unwrap = unwrapper(pattern)
    assert unwrap(line) == own
    assert unwrap(b"kafka-0  | " + line) == own
    assert unwrap(line[:12]) == line[:12]


def test_what_the_pattern_leaves_out_shows_in_message_and_envelope():
    request = b'Completed request:{"isForwarded":false}'
    unwrap = unwrapper("%m%n")
    assert (
        unwrap(b"2026-11-21T06:09:19.456Z stdout F " + request)
        == b"[2026-11-21 06:09:19,456Z] INFO " + request + b" (kafka.request.logger)"
    )
    java = MESSAGE.replace(b"Coordinator 1]:", b"Coordinator id=1]")
    assert unwrap(b"2026-11-21T06:09:19.456Z " + java).endswith(b"(org.apache.kafka.coordinator.group.GroupMetadataManager)")


@pytest.mark.parametrize("log", ["kafka-3.9.1/broker-2/server.log", "kafka-3.9.1/broker-2/kafka-request.log"])
def test_a_log_that_only_the_user_understands(tmp_path, log):
    lines = real_lines(log)
    ours = in_pattern(lambda d, t, ms, p, m, c: b"<%s> @%s.%s/%s/ %s: %s" % (c, d.replace(b"-", b""), ms, t, p, m))
    unwrap = unwrapper("<%c> @%d{yyyyMMdd.SSS/HH:mm:ss}/ %p: %m%n")
    (tmp_path / "plain.log").write_bytes(b"".join(line + b"\n" for line in lines))
    expected = rows(read(tmp_path / "plain.log")[0])
    for number, wrap in enumerate([ours, lambda line: CONTAINERS["docker json-file"](ours(line)), lambda line: line]):
        path = tmp_path / f"{number}.log"
        path.write_bytes(b"".join(wrap(line) + b"\n" for line in lines))
        log, kept = reader(path, judge=partial(BrokerJudge, unwrap=unwrap)), KeptLines()
        assert log.read(kept) == len(lines)
        log.close()
        assert rows(kept) == expected


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_known_pattern_is_found_without_its_name(name):
    line = {
        "kafka": OWN,
        "strimzi": b"2026-11-21 06:09:19 INFO  [group-3] GroupCoordinator:97 - " + MESSAGE,
        "strimzi-log4j1": OWN[1:24] + OWN[25:] + b" [main]",
        "ttcc": b"2026-11-21 06:09:19,456 [main] INFO  " + LOGGER + b" - " + MESSAGE,
    }[name]
    assert unwrapped(line) == Unwrapper(layouts_named(name, ()))(line) == (OWN.replace(b",456", b",000") if name == "strimzi" else OWN)


def test_auto_tries_all_patterns_of_the_settings(tmp_path):
    file = tmp_path / "ours.toml"
    file.write_text('[log_formats]\nb = "%p;%d;%m%n"\na = "%p/%d/%m%n"\n')
    settings = load(file)
    assert (settings.log_format, settings.log_formats) == (AUTO, (("a", "%p/%d/%m%n"), ("b", "%p;%d;%m%n")))
    unwrap = Unwrapper(layouts_named(settings.log_format, settings.log_formats))
    assert unwrap(b"INFO;2026-11-21 06:09:19,456;" + MESSAGE) == unwrap(b"INFO/2026-11-21 06:09:19,456/" + MESSAGE) == OWN
    assert load(file, log_format="b").log_format == "b"
    assert [layout.name for layout in layouts_named("b", settings.log_formats)] == ["b"]


@pytest.mark.parametrize(("name", "pattern", "said"), [
    ("%d %p", "%d %m", "log format %d %p: the pattern has no %m"),
    ("theirs", "%d %m", "no log format 'theirs': use one of auto, kafka, strimzi-log4j1, strimzi, ttcc, ours"),
    ("ours", "%d %p", "no %m"), ("ours", "%d{HH:mm:ss,SSS} %m", "no year"), ("ours", "%d{ABSOLUTE} %m", "'ABSOLUTE'"),
    ("ours", "%d{yyyy-DDD HH:mm:ss} %m", "'DDD'"), ("ours", "%d{ISO8601}{Asia/Tokyo} %m", "--timezone Asia/Tokyo"),
    ("ours", "%m %m", "twice"),
])  # fmt: skip
def test_what_cannot_be_read_is_refused_in_one_line(name, pattern, said):
    with pytest.raises(SettingsError) as error:
        layouts_named(name, [("ours", pattern)])
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_run_refuses_an_unknown_name_before_it_starts(tmp_path, capsys):
    assert entry.main(["run", "--input", str(tmp_path), "--lakehouse", str(tmp_path / "lake"), "--log-format", "theirs"]) == UNUSABLE
    assert "no log format 'theirs'" in capsys.readouterr().err
    assert not (tmp_path / "lake").exists()


def test_the_settings_name_every_known_pattern():
    assert all(name in Path("conf/pipeline.toml").read_text() for name in BUILT_IN)
