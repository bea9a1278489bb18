"""What people paste, with what `rebalance explain -` says of it."""

import io
import json
import re
from pathlib import Path

import pytest

from jobs.cli import entry
from jobs.common import exit_codes

pytestmark = pytest.mark.slow

PASTES = Path(__file__).parents[1] / "data" / "pastes"


@pytest.fixture
def explained(capsys, monkeypatch):
    """The exit code, standard output, and what was said on stderr."""

    def explain(paste: str, *options: str) -> tuple[int, str, str]:
        text = (PASTES / f"{paste}.log").read_bytes() if "\n" not in paste else paste.encode()
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
        code = entry.main(["explain", "-", *options])
        return code, *capsys.readouterr()

    return explain


def test_lines_without_times_are_explained_in_their_order(explained):
    code, out, err = explained("lines-without-time")
    assert code == exit_codes.DONE
    assert "these lines have no times" in err
    assert "SESSION_TIMEOUT  g1  line 1" in out
    assert re.search(r"line 2 +6  SESSION_TIMEOUT  c1 11111111 +- +- +- +- ", out)
    assert re.search(r"g1 +- +- +1  SESSION_TIMEOUT  Empty +0", out)
    assert not re.search(r"1970|UTC|\d ms\b", out)


def test_the_tables_have_no_durations_of_lines_without_times(explained):
    _, out, _ = explained("lines-without-time", "--format", "json")
    told = json.loads(out)
    assert told["without_times"]
    assert [(row["cause"], row["total_ms"], row["started_at"]) for row in told["rebalances"]] == [
        ("SESSION_TIMEOUT", None, "1970-01-01T00:00:00.002Z")
    ]


def test_a_line_without_a_time_beside_others_is_not_dropped(explained):
    code, out, err = explained("some-lines-without-time")
    assert (code, "2 lines about groups without a time" in err) == (exit_codes.DONE, True)
    assert "POLL_TIMEOUT  orders  06:16:04" in out


def test_no_rate_is_told_of_lines_without_times(explained):
    line = (
        "[GroupCoordinator 1]: Preparing to rebalance group g1 in state PreparingRebalance with old generation {} (__consumer_offsets-10) "
    )
    member = "(reason: Adding new member c{}-11111111-1111-1111-1111-111111111111 with group instance id None)"
    stable = "[GroupCoordinator 1]: Stabilized group g1 generation {} (__consumer_offsets-10) with 2 members"
    lines = [text for n in range(5, 25) for text in ((line + member).format(n, n % 2), stable.format(n + 1))]
    _, out, _ = explained("\n".join(lines) + "\n")
    assert "MEMBER_JOINED" in out
    assert "STORM" not in out


def test_lines_that_name_no_group(explained):
    code, out, _ = explained("no-group-connection-errors")
    assert code == exit_codes.DONE
    assert "UNKNOWN_MEMBER  a group that no line names  16:44:31" in out
    assert "--group GROUP" in out
    _, out, _ = explained("no-group-connection-errors", "--group", "orders")
    assert "UNKNOWN_MEMBER  orders  16:44:31" in out


def test_an_exception_that_ends_a_thread_of_streams(explained):
    code, out, _ = explained("stream-thread-ends")
    assert code == exit_codes.DONE
    assert "leaves the group: “exception during processing and the thread is going to shut down:”" in out
    assert "1 line looks like an error, and nothing above explains it" in out


COMMIT_FAILED = (
    "org.apache.kafka.clients.consumer.CommitFailedException: Commit cannot be completed since the group has already rebalanced and"
    " assigned the partitions to another member.\n\tat org.apache.kafka.clients.consumer.KafkaConsumer.commitSync(KafkaConsumer.java:1)\n"
)
FENCED = (
    "2024-03-12 09:14:03.117 ERROR app.Main - failed\norg.apache.kafka.common.errors.FencedInstanceIdException: The broker rejected this"
    " static consumer since another consumer with the same group.instance.id has registered with a different member.id.\n"
)
MIGRATED = (
    "09:14:00.221 [svc-StreamThread-1] WARN StreamThread - stream-thread [svc-StreamThread-1] Detected that the thread is being fenced\n"
    "org.apache.kafka.streams.errors.TaskMigratedException: Consumer committing offsets failed, indicating the corresponding thread is no"
    " longer part of the group; it means all tasks belonging to this thread should be migrated.\n"
)
SARAMA = (
    "[sarama] 2022/01/23 12:54:30 client/coordinator coordinator for consumergroup orders-cg is #2 (kafka-2:9092)\n"
    "2022/01/23 12:54:36 Consumer error: kafka server: The provided member is not known in the current generation.\n"
)
KAFKA_GO = "2024/03/12 09:14:04 kafka: commit failed: [25] Unknown Member ID: the member id is not in the current generation\n"
ENDS = "exception during processing and the thread is going to shut down:"


@pytest.mark.parametrize(
    ("paste", "told"),
    [
        (f'Exception in thread "main" {COMMIT_FAILED}', "ZOMBIE_COMMIT  a group that no line names  line 1"),
        (f"2024-03-12 09:15:40.502 ERROR 1 --- [main] app.Main : failed\nCaused by: {COMMIT_FAILED}", "ZOMBIE_COMMIT"),
        (FENCED, "FENCED_INSTANCE"),
        (MIGRATED, "ZOMBIE_COMMIT"),
        (SARAMA, "UNKNOWN_MEMBER  orders-cg  12:54:36"),
        (KAFKA_GO, "UNKNOWN_MEMBER  a group that no line names  09:14:04"),
        (f"09:14:00.221 ERROR - stream-thread [s-StreamThread-1] Encountered the following {ENDS} \n", f"leaves the group: “{ENDS}”"),
    ],
)
def test_an_exception_counts_without_a_time_and_without_a_word_of_the_client(explained, paste, told):
    code, out, _ = explained(paste)
    assert code == exit_codes.DONE
    assert told in out


def test_an_exception_behind_the_clients_own_words_says_nothing_more(explained):
    line = "2024-03-12 09:15:40.502 WARN [Consumer clientId=c-1, groupId=g] Synchronous auto-commit of offsets {t-0=x} failed: "
    _, out, _ = explained(line + COMMIT_FAILED.partition(": ")[2].partition("\n")[0] + "\n" + COMMIT_FAILED)
    assert "ZOMBIE_COMMIT  g  09:15:40" in out
    assert "Groups (1)" in out
    assert "2 times" not in out


def test_any_program_with_a_member_of_its_own(explained):
    """`[NAME clientId=…, groupId=…]` is how each line of Java's client begins; only consumers have max.poll.records."""
    code, out, _ = explained("schema-registry-client")
    assert "sr-1 was stuck and left the group" in out, "no application polls in a registry"
    assert code == exit_codes.DONE
    assert "POLL_TIMEOUT  g1  18:26:21" in out
    assert "the Schema registry thread that takes part in it was stuck" in " ".join(out.split())
    assert "max.poll.records" not in out


def test_what_stands_behind_a_sentence_is_no_group(explained):
    line = "2026-11-21 06:16:0{},117 WARNING {} {}\n"
    behind = ("[kafka.coordinator.base]", "(base.py:456)", "[MainThread] (base.py)")
    joins = [line.format(n, "(Re-)joining group orders", text) for n, text in enumerate(behind)]
    _, out, _ = explained("".join([*joins, line.format(9, "Heartbeat poll expired, leaving group", behind[0])]))
    assert "POLL_TIMEOUT  orders  06:16:09" in out
    assert "Groups (1)" in out


def test_the_state_in_which_a_member_gets_its_id(explained):
    """It is no all-clear: what came of the join, no line shows."""
    _, out, _ = explained("state-in-join-line")
    told = " ".join(out.split())
    assert told.startswith("No problem found, but too little evidence to call it healthy.")
    assert "Nothing needs attention" not in told
    assert "g1: it was Empty with a new member that had its id but had not joined with it yet (c1 11111111)" in told
    assert "(c2 11111111): it is rebalancing when the lines end" in told
    assert "Empty (1): g1 Not judged and no rebalance, PreparingRebalance (1): g2" in told


def test_a_coordinator_that_a_client_cannot_reach(explained):
    _, out, _ = explained("coordinator-unreachable")
    told = " ".join(out.split())
    assert "COORDINATOR_UNREACHABLE g1 18:35:53" in told
    assert "10.0.0.2:9094 (node 0), for 1 min 1 s, up to its last line about that. It found the same broker each time" in told
    assert "Check that node 0 is running and that the client can reach it" in told


def test_a_client_that_is_told_to_join_and_does_not(explained):
    _, out, _ = explained("schema-registry-client")
    told = " ".join(out.split())
    assert "It had been told of a rebalance 3 min 45 s before, and no line shows that it joined since" in told
    assert "sr-1 is told to rejoin: “group is already rebalancing”" in told
    assert "since: the Schema registry thread may already have stalled." in told


@pytest.mark.parametrize(
    ("program", "stalled", "remedy"),
    [
        ("Consumer", "its poll loop stalled.", "A client rejoins when the application calls poll()."),
        ("Schema registry", "the Schema registry thread stalled.", "No application polls there: find out what that thread waited for"),
        ("Worker", "the worker's thread stalled.", "most often it started or stopped a connector, or read the config topic."),
    ],
)
def test_what_stalled_is_what_takes_part_in_the_group(explained, program, stalled, remedy):
    """In a program of which no application polls, a poll loop is not to blame."""
    line = "[2025-03-01 10:00:{},000] INFO [{} clientId=c1, groupId=g1] Attempt to heartbeat failed since group is rebalancing (x.y.{})\n"
    _, out, _ = explained("".join(line.format(at, program, "SomeCoordinator") for at in ("00", "03", "33")))
    told = " ".join(out.split())
    assert f"The client was told of a rebalance and did not rejoin for 33 s, up to its last line about that: {stalled}" in told
    assert remedy in told
    assert ("poll loop" in told) is (program == "Consumer")


BROKER = "[2025-03-01 10:00:0{},000] INFO [GroupCoordinator {}]{} (kafka.coordinator.group.GroupCoordinator)\n"
JOINED = (
    "2025-03-01 10:00:0{},000 INFO [Consumer instanceId=i1, clientId=c1, groupId=g1] Successfully joined group with generation "
    "Generation{{generationId={}, memberId='i1-{}1111111-1111-1111-1111-111111111111', protocol='range'}}\n"
)
NOT_KNOWN = "kafka server: The provided member is not known in the current generation"
CAME_BACK = "joins group g1 in Stable state. Replacing previously mapped member i1-1 with this groupInstanceId."


@pytest.mark.parametrize(
    ("paste", "told"),
    [
        (BROKER.format(1, "id=0", " [GroupId g1] Converted the classic group to a consumer group."), "converted to the consumer protocol"),
        (
            BROKER.format(1, 0, f": Static member with groupInstanceId=i1 and unknown member id {CAME_BACK}"),
            "it was Stable when the static member i1 came back under a new member id, and no line shows a rebalance",
        ),
        (BROKER.format(1, 0, ": Member m-custom in group g1 has failed, removing it from the group"), "Who m-custom"),
        (JOINED.format(1, 5, 1) + JOINED.format(9, 5, 2), "generation 5 under a new member id: it came back without a rebalance"),
        (JOINED.format(1, 5, 1) + JOINED.format(9, 6, 2), "c1=i1 has joined generation 6 Not judged"),
        (
            f"[sarama] 2025/03/01 10:00:01 consumergroup/g1: lost ownership of map[orders:[0 1]] due to {NOT_KNOWN}\n",
            "sarama learns that it is no longer a member (UNKNOWN_MEMBER_ID): “lost ownership of its partitions”",
        ),
        (JOINED.format(1, 1, 1), "has joined generation 1, the first of the group"),
    ],
)
def test_what_a_single_line_tells(explained, paste, told):
    _, out, _ = explained(paste)
    assert told in " ".join(out.split())


def test_a_page_says_that_lines_have_no_times(explained):
    code, out, _ = explained("lines-without-time", "--format", "html")
    assert code == exit_codes.DONE
    assert "the times of these lines: they have none" in out


def test_a_client_that_was_told_to_join_and_was_put_out_is_one_also_where_one_line_has_no_client_id(explained):
    _, out, _ = explained("kafkajs-console")
    assert "UNKNOWN_MEMBER  g1  13:09:52" in out
    assert "It had been told of a rebalance 39.7 s before, and no line shows that it joined since" in " ".join(out.split())


def test_a_member_is_named_by_its_id_where_several_processes_have_its_client_id(explained):
    _, out, _ = explained("blocks-go-back")
    assert "POLL_TIMEOUT  g1  10:00:38" in out
    assert "Who     consumer-g1-1 11111111\n" in out
    told = " ".join(out.split())
    assert "consumer-g1-1 has joined generation 28 (3 times, from process 101, process 102, process 103)" in told
    assert "10:00:39.377 consumer-g1-1 (process 101) says" in told
    _, out, _ = explained(re.sub(r"INFO \d+ --- \[.*?\]", "INFO", (PASTES / "blocks-go-back.log").read_text()))
    assert "consumer-g1-1 has joined generation 28 (3 times, from excerpt 1, excerpt 2, excerpt 3)" in " ".join(out.split())


@pytest.mark.parametrize(
    ("who", "named"),
    [
        ("payments-{0} | 2025-03-01 10:00:0{1},000 INFO [main] ", "payments-1, payments-2"),
        ("2025-03-01 10:00:0{1},000 INFO pid={0} ", "process 1, process 2"),
        ('{{"time":"2025-03-01T10:00:0{1}.000Z","level":"INFO","host":"h{0}","message":"', "h1, h2"),
    ],
)
def test_processes_that_share_a_client_id_are_told_apart(explained, who, named):
    said = "[Consumer clientId=c1, groupId=g1] {2}" + ('"}}' if who[0] == "{" else "")
    lines = [(which, at, "(Re-)joining group") for which, at in ((1, 1), (1, 2), (2, 3))]
    _, out, _ = explained("".join((who + said).format(*line) + "\n" for line in lines))
    assert f"(3 times, from {named}, until" in " ".join(out.split())


def test_a_join_of_another_process_does_not_end_a_call(explained):
    line = "2025-03-01 10:00:{} INFO {} --- [main] o.a.k.c.c.i.ConsumerCoordinator : [Consumer clientId=c1, groupId=g1] {}\n"
    called = line.format("00.000", 101, "Request joining group due to: group is already rebalancing")
    others = line.format("02.000", 102, "(Re-)joining group") + line.format("03.000", 102, "Successfully joined group with generation 5")
    late = line.format(
        "40.000", 101, "consumer poll timeout has expired. This means the time between subsequent calls to poll() was longer"
    )
    _, out, _ = explained(called + others + late)
    assert "It had been told of a rebalance 40 s before, and no line shows that it joined since" in " ".join(out.split())
