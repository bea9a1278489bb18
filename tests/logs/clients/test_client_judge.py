"""Logs of client applications: of which group a line is, and when it was written, whatever the application's pattern."""

from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.bytes import open_log
from jobs.logs.clients.envelopes import client_line
from jobs.logs.clients.judge import ClientJudge
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from tests.logs.log_makers import START_MS, write

EPOCH = START_MS // 1_000


def rd(ms: int, facility: str, sentence: str, name: str = "c1#consumer-1", thread: str = "main") -> bytes:
    return f"%7|{EPOCH + ms // 1000}.{ms % 1000:03d}|{facility}|{name}| [thrd:{thread}]: {sentence}".encode()


def java(ms: int, sentence: str) -> bytes:
    return (
        f"[2026-11-21 06:00:{ms // 1000:02d},{ms % 1000:03d}] INFO [Consumer clientId=c1, groupId=orders] {sentence} (org.apache.kafka.X)"
    ).encode()


MAXPOLL = "Application maximum poll interval (8000ms) exceeded by 5ms (adjust max.poll.interval.ms): leaving group"


def read(path, mark=None, *, zone="UTC", group="", **how):
    kept = KeptLines()
    reader = LogReader(lambda: open_log(path), LocalTimes(zone), mark, judge=partial(ClientJudge, group=group))
    reader.read(kept, **how)
    rows = [(kept.positions[i], kept.ats[i], kept.contexts.get(i), kept.faults.get(i)) for i in range(len(kept))]
    return rows, reader.mark


@pytest.mark.parametrize(
    ("line", "ms"),
    [
        (b"%4|1795240801.250|MAXPOLL|x| [thrd:main]: y", 1_250),
        (b"[2026-11-21 06:00:01,250] WARN x", 1_250),
        (b"2026-11-21 06:00:01,250 WARN x", 1_250),
        (b"2026-11-21 06:00:01.250  WARN 1 --- [main] o.a.k.X : x", 1_250),
        (b"2026-11-21T06:00:01.250Z WARN x", 1_250),
        (b"2026-11-21T07:00:01.250+01:00 WARN x", 1_250),
        (b"2026-11-21T01:30:01.250-0430 WARN x", 1_250),
        (b"06:00:01.250 WARN x", None),
        (b"2026-13-21 06:00:01,250 WARN x", None),
        (b"%4|soon|MAXPOLL|x", None),
        (b"", None),
    ],
)
def test_times(line, ms):
    assert LocalTimes("UTC").read(client_line(line), START_MS) == (None if ms is None else START_MS + ms)


def test_a_time_without_an_offset_is_local_and_one_with_is_not():
    berlin = LocalTimes("Europe/Berlin")
    assert berlin.read(client_line(b"2026-11-21 07:00:01.250 x"), START_MS) == START_MS + 1_250
    assert berlin.read(client_line(b"2026-11-21T06:00:01.250Z x"), START_MS) == START_MS + 1_250


def test_what_matters_is_kept_and_the_rest_is_counted(tmp_path):
    lines = [
        b"starting up",
        java(0, "Subscribed to topic(s): orders"),
        java(1, "Request joining group due to: group is already rebalancing"),
        java(2, "Updating assignment with"),
        b"\tAssigned partitions: []",
        b"2026-11-21 06:00:00,003 INFO com.acme.App - poll timeout has expired, says my own code",
        java(4, "Member c1-x sending LeaveGroup request to coordinator h:9092 (id: 1 rack: null) due to the consumer is being closed"),
        java(5, "Sending LeaveGroup request to coordinator h:9092 (id: 1 rack: null)"),  # 2.1
        b"2026-11-21 06:00:00,006 INFO kafka.coordinator: Starting new heartbeat thread",
        b"2026-11-21 06:00:00,007 INFO kafka.coordinator: Leaving consumer group (orders).",
    ]
    rows, mark = read(write(tmp_path / "app.log", lines))
    assert [position for position, *_ in rows] == [3, 7, 8, 10]
    assert mark.line == 10


def test_a_client_that_does_not_name_its_group_is_of_the_one_it_names_before_or_after(tmp_path):
    lines = [
        rd(0, "MAXPOLL", MAXPOLL),
        rd(1, "CGRPSTATE", 'Group "orders" changed state init -> up (join-state init)'),
        rd(2, "CGRPSTATE", 'Group "with"quote": joins', name="c2#consumer-2"),
        rd(3, "CGRPQUERY", '127.0.0.1:9092/1: Group "billing": querying for coordinator', name="c3#consumer-3"),
        rd(4, "MAXPOLL", MAXPOLL),
        rd(5, "MAXPOLL", MAXPOLL, name="c2#consumer-2"),
        rd(6, "MAXPOLL", MAXPOLL, name="c3#consumer-3"),
        rd(7, "MAXPOLL", MAXPOLL, name="c4#consumer-4"),
    ]
    path = write(tmp_path / "app.log", lines)
    rows, _ = read(path)
    assert [context for _, _, context, _ in rows] == ["orders", "orders", 'with"quote', "billing", None]
    rows, _ = read(path, group="from-the-folder")
    assert [context for _, _, context, _ in rows] == ["orders", "orders", 'with"quote', "billing", "from-the-folder"]


def test_a_client_that_names_two_groups_is_of_neither(tmp_path):
    """librdkafka's clients have the same name in every process that sets no client.id."""
    lines = [
        rd(0, "MAXPOLL", MAXPOLL),
        rd(1, "CGRPSTATE", 'Group "orders" changed state init -> up (join-state init)'),
        rd(2, "CGRPSTATE", 'Group "billing" changed state init -> up (join-state init)'),
        rd(3, "MAXPOLL", MAXPOLL),
    ]
    path = write(tmp_path / "app.log", lines)
    assert [context for _, _, context, _ in read(path)[0]] == [None, None]
    assert [context for _, _, context, _ in read(path, group="from-the-folder")[0]] == ["from-the-folder"] * 2


def test_a_line_that_lost_its_client_names_no_group_for_others(tmp_path):
    """A paste that begins amid a line, with clients of several processes."""
    cut = rd(0, "CGRPQUERY", '127.0.0.1:9092/1: Group "orders": querying for coordinator')[28:]
    write(tmp_path / "app.log", [cut, rd(1, "MAXPOLL", MAXPOLL, name="c2#consumer-1"), rd(2, "MAXPOLL", MAXPOLL, name="")])
    assert [(position, context) for position, _, context, _ in read(tmp_path / "app.log")[0]] == [(2, None), (3, "orders")]


def at(ms: int, text: str) -> bytes:
    return f"2026-11-21 06:00:00,{ms:03d} INFO {text}".encode()


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("Error while fetching metadata with correlation id 7 : {orders=LEADER_NOT_AVAILABLE}", True),
        ("Discovered group coordinator h:9092 (id: 2147483646 rack: null isFenced: false)", False),
        ("Resetting offset for partition orders-1 to position FetchPosition{offset=3}.", False),
    ],
)
def test_a_word_of_trouble_keeps_a_line_of_javas_client(tmp_path, said, is_kept):
    rows, _ = read(write(tmp_path / "app.log", [at(0, f"[Consumer clientId=c, groupId=orders] {said}")]))
    assert bool(rows) == is_kept


def test_a_brace_too_many_of_an_export_hides_nothing(tmp_path):
    entry = b'"groupId":"orders","message":"[Runner] The group is rebalancing, re-joining","memberId":"m-1"'
    line = b'{%s,"timestamp":"2026-11-21T06:00:00.000Z"}}' % entry
    assert len(read(write(tmp_path / "app.log", [line]))[0]) == 1


@pytest.mark.parametrize(
    ("naming", "group"),
    [
        ("kafka.coordinator: (Re-)joining group my orders", "my orders"),
        ("kafka.coordinator: Discovered coordinator 0 for group my orders", "my orders"),
        ("kafka.coordinator: Marking the coordinator dead (node 0) for group my orders: Heartbeat session expired.", "my orders"),
        ("aiokafka: Marking the coordinator dead (node 0)for group my orders.", "my orders"),
        ("kafka.coordinator: SyncGroup for group orders failed due to coordinator rebalance", "orders"),
        ("kafka.coordinator: Heartbeat failed for group my orders because it is rebalancing", "my orders"),
        ("kafka.coordinator: OffsetCommit for group orders failed: [Error 25] UnknownMemberIdError", "orders"),
        ("kafka.cluster - INFO - Group coordinator for orders is BrokerMetadata(nodeId=0, host='h', port=9092, rack=None)", "orders"),
        ("kafka.coordinator.consumer - INFO - Setting newly assigned partitions {TopicPartition(topic='t', partition=3)} for group g", "g"),
        ("kafka.coordinator: Revoking previously assigned partitions set() for group orders on close", "orders"),
        ("kafka.coordinator - DEBUG - Received successful heartbeat response for group orders", "orders"),
        ("o.a.k.c.consumer.ConsumerConfig : ConsumerConfig values: group.id = orders", "orders"),
        ("app: {'bootstrap.servers': 'h:9092', 'group.id': 'orders', 'client.id': 'x'}", "orders"),
        ("app: starting KafkaConsumer(group_id='orders')", "orders"),
        ("[sarama] consumergroup/orders loop check partition number goroutine will exit, topics [t]", "orders"),
        ('{"level":"INFO","logger":"kafkajs","message":"[Consumer] Starting","groupId":"orders"}', "orders"),
        ("[Consumer clientId=c, groupId=orders] Subscribed to topic(s): t", "orders"),
        ("o.a.k.c.consumer.ConsumerConfig : group.id = null", None),
        ("app: order 17 belongs to groupId=42", None),
        ("app: security_group_id: sg-1, consumers: 3", None),
        ("app: asks for group of four", None),
    ],
)
def test_any_line_may_name_the_group(tmp_path, naming, group):
    lines = [at(0, "kafka.coordinator: Heartbeat session expired, marking coordinator dead"), at(1, naming)]
    assert read(write(tmp_path / "app.log", lines))[0][0][2] == group
    assert read(write(tmp_path / "app.log", lines[::-1]))[0][-1][2] == group


def test_the_settings_of_an_application_are_those_of_its_only_client(tmp_path):
    """A client that names no group has the one that nobody in particular names. One that another client names is not its own."""
    settings = b"\tgroup.id = orders"
    path = write(tmp_path / "app.log", [rd(0, "MAXPOLL", MAXPOLL), settings])
    assert [context for _, _, context, _ in read(path)[0]] == ["orders"]
    java_only = [rd(0, "MAXPOLL", MAXPOLL), at(1, "[Consumer clientId=c, groupId=orders] Subscribed to topic(s): t")]
    assert [context for _, _, context, _ in read(write(tmp_path / "app.log", java_only))[0]] == [None]


def test_what_is_appended_counts_from_there_on(tmp_path):
    """A log that is read as it grows is looked through when it is first seen."""
    path = write(tmp_path / "app.log", [rd(0, "MAXPOLL", MAXPOLL)])
    first, mark = read(path)
    with path.open("ab") as log:
        log.write(rd(1, "CGRPSTATE", 'Group "orders": joins') + b"\n" + rd(2, "MAXPOLL", MAXPOLL) + b"\n")
    more, _ = read(path, mark)
    assert [context for _, _, context, _ in [*first, *more]] == [None, "orders"]


def test_too_many_clients_are_told_apart_no_longer(tmp_path):
    lines = [rd(n, "CGRPSTATE", f'Group "g{n}": joins', name=f"c{n}#consumer-1") for n in range(300)]
    lines += [rd(400 + n, "MAXPOLL", MAXPOLL, name=f"c{n}#consumer-1") for n in (0, 255, 256, 299)]
    assert [context for _, _, context, _ in read(write(tmp_path / "app.log", lines))[0]] == ["g0", "g255", None, None]


def test_the_text_of_an_exception_counts_where_it_has_a_time(tmp_path):
    text = "org.apache.kafka.clients.consumer.CommitFailedException: Offset commit cannot be completed since the consumer is not part of"
    lines = [at(0, f"app: commit failed: {text} an active group"), f"Caused by: {text} an active group".encode(), b"group.id=orders"]
    assert read(write(tmp_path / "app.log", lines))[0] == [(1, START_MS, "orders", None)]


@pytest.mark.parametrize(
    ("naming", "nameless"),
    [
        (
            "kafka.coordinator: Successfully joined group my orders with generation 3",
            "kafka.coordinator: Heartbeat poll expired, leaving group",
        ),
        (
            "kafka.coordinator: Successfully joined group my orders <Generation 3 (member_id: m, protocol: range)>",
            "kafka.coordinator.heartbeat: Heartbeat session expired, marking coordinator dead",
        ),
        (
            "aiokafka.consumer.group_coordinator: Joined group 'my orders' (generation 3) with member_id m",
            "aiokafka.consumer.group_coordinator: LeaveGroup request succeeded",
        ),
        (
            "[INFO] joined; group: my orders, member_id: m, generation: 3",
            "[INFO] forced rejoin quitting heartbeat loop; why: from ForceRebalance",
        ),
    ],
)
def test_so_is_a_library_that_names_none(tmp_path, naming, nameless):
    lines = [f"2026-11-21 06:00:00,{ms:03d} INFO {text}".encode() for ms, text in enumerate((nameless, naming, nameless))]
    path = write(tmp_path / "app.log", lines)
    assert [context for _, _, context, _ in read(path)[0]] == ["my orders"] * 3
    other = lines[1].replace(b"my orders", b"billing")
    assert read(write(tmp_path / "two.log", [*lines, other]))[0][0][2] is None


def test_a_line_of_ours_without_a_time_is_told(tmp_path):
    rows, _ = read(write(tmp_path / "app.log", [b"%4|x|MAXPOLL|c#consumer-1| [thrd:main]: " + MAXPOLL.encode(), b"no time, not ours"]))
    assert rows == [(1, None, None, "NO_TIMESTAMP")]


def test_a_damaged_time_is_an_outlier(tmp_path):
    years = 10**9
    lines = [rd(ms, "MAXPOLL", MAXPOLL) for ms in (0, 1, years * 1_000, *range(2, 12))]
    rows, _ = read(write(tmp_path / "app.log", lines))
    assert [fault for *_, fault in rows] == [None, None, "TIMESTAMP_OUTLIER", *[None] * 10]


JOURNAL = [
    rd(0, "CGRPSTATE", 'Group "orders" changed state init -> up'),
    rd(
        500,
        "JOINGROUP",
        "JoinGroup response: GenerationId 1, Protocol range, LeaderId a, my MemberId a, member metadata count 1: (no error)",
    ),
    java(700, "Request joining group due to: group is already rebalancing"),
    b"\xff\x00 not text",
    rd(900, "MAXPOLL", MAXPOLL),
    rd(950, "CGRPSTATE", 'Group "other" changed state init -> up', name="c2#consumer-9"),
    rd(960, "MAXPOLL", MAXPOLL, name="c2#consumer-9"),
    b"",
    rd(2_000, "SESSTMOUT", "Consumer group session timed out", name="c2#consumer-9"),
    b"app-1  | 2026-11-21 06:00:01,100 INFO kafka.coordinator: Successfully joined group orders with generation 3",
    b'{"time":"2026-11-21T06:00:01.200Z","msg":"Heartbeat poll expired, leaving group"}',
    b"2026-11-21T06:00:01.300Z stdout F Heartbeat poll expired, leaving group",
    b"2026-11-21 06:00:01,400 INFO kafka.coordinator: Successfully joined group billing with generation 3",
]


@given(lines=st.lists(st.sampled_from(JOURNAL) | st.binary(max_size=30), max_size=30), cuts=st.lists(st.integers(1, 5), max_size=12))
def test_no_cut_matters(tmp_path_factory, lines, cuts):
    path = write(tmp_path_factory.mktemp("log") / "app.log", [line.replace(b"\n", b"") for line in lines])
    whole, _ = read(path)
    pieces, mark = [], None
    for count in [*cuts, 1 << 60]:
        rows, mark = read(path, mark, max_lines=count)
        pieces += rows
    assert pieces == whole
