"""What can be shown of hostile names without Spark: complaints, headers of a topic, CSV, and how long a line may keep us busy."""

import re
import stat

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.events import CLIENT_SOURCE
from jobs.answers.duckdb_views import Answer
from jobs.answers.formats import as_csv
from jobs.cli.entry import cli, main
from jobs.common.text import printable
from jobs.kafka.topic_records import line_headers, log_headers, record_key
from jobs.logs.bytes import open_log
from jobs.logs.clients.judge import ClientJudge, is_consumer_line
from jobs.logs.mark import KeptLines
from jobs.logs.reader import LogReader
from jobs.logs.times import LocalTimes
from jobs.pipeline.gate import Clock, Gate, LogName, Reach
from jobs.sentences.client import CLIENTS
from schemas.names import LINE
from tests.kafka.topic_reader import read_record
from tests.security import hostile

LOG = LogName("c", "b", "server@1.log")
ALL = pytest.mark.parametrize("kind", list(hostile.NAMES))


@ALL
def test_a_name_is_shown_harmless_and_cut(kind):
    shown = printable(hostile.NAMES[kind] + "x" * 100_000, 60)
    assert not hostile.harm_in(shown)
    assert len(shown) == 60
    assert "\n" not in shown


def test_what_looks_like_nothing_is_shown():
    assert printable("a\u3164b\u2800c\ufe0f") == "a\\u3164b\\u2800c\\ufe0f"


def test_marks_are_shown_as_far_as_a_script_needs_them():
    assert printable("e\u0301\u0323\u0336") == "e\u0301\u0323\\u0336"
    assert printable("\u0336x") == "\\u0336x"  # it would go on what we write before the name


@ALL
@pytest.mark.parametrize(
    "command",
    [
        ["report", "--lakehouse", "NAME"],
        ["watch", "--lakehouse", "NAME"],
        ["watch", "--lakehouse", "lake", "--since", "NAME"],
        ["run", "--input", "NAME", "--lakehouse", "NAME", "--once"],
        ["run", "--input", ".", "--lakehouse", "lake", "--config", "NAME"],
        ["ask", "NAME"],
        ["ask", "why", "--lakehouse", "NAME"],
        ["ask", "why", "--lakehouse", "lake", "--set", "NAME=1"],
        ["evidence", "NAME", "--lakehouse", "lake"],
        ["ship", "--input", "NAME", "--cluster", "c", "--broker", "b", "--bootstrap", "127.0.0.1:1"],
        ["ship", "--input", ".", "--cluster", "NAME", "--broker", "b", "--bootstrap", "127.0.0.1:1", "--config", "none"],
        ["poll", "--out", "out", "--cluster", "NAME/x", "--bootstrap", "127.0.0.1:1"],
        ["dump-offsets", "--out", "NAME", "--bootstrap", "127.0.0.1:1"],
        ["broker", "--topic", "NAME:x"],
    ],
    ids=lambda words: " ".join(words)[:60],
)
def test_a_complaint_is_one_harmless_line(tmp_path, monkeypatch, capfd, kind, command):
    monkeypatch.chdir(tmp_path)
    named = hostile.NAMES[kind].replace("\x00", "").replace("/", "_").encode("utf-8", "replace").decode() + "\udcff"
    assert main([word.replace("NAME", named) for word in command]) == 2
    said = capfd.readouterr().err
    assert said.startswith("rebalance: ")
    assert said.count("\n") == 1
    assert not hostile.harm_in(said)


def test_a_long_name_does_not_fill_the_terminal(capsys):
    assert main(["report", "--lakehouse", hostile.LONG]) == 2
    assert len(capsys.readouterr().err) < 3_000


@ALL
def test_a_record_of_a_topic_keeps_its_names_to_itself(kind):
    told = hostile.as_logged(hostile.NAMES[kind]).decode()
    headers = line_headers(log_headers(told, told, LINE, told), "request", 1, 2, "", told)
    record = read_record(headers, told.encode())
    assert (record.cluster, record.broker, record.origin, record.context, record.text) == (told,) * 5
    assert len(record_key("request", told.encode(), told * 100, told)) <= 256


def test_a_clock_of_a_topic_may_hold_anything():
    """One record that stops the reader would stop it for good."""
    for heard in ("[" * 200_000, "[1, 1e999]", "[" + "9" * 5_000 + ",1]", "[0, 549755813888]", "[-5, 1]", '["1", 2]', "[true, true]", "{}"):
        gate = Gate()
        (told,) = gate.clocks((Clock(LOG, partition, Reach(5, 1_000), heard) for partition in (0, 1)), 2)
        assert told.heard == ()
        assert Gate.decode(gate.encode()).encode() == gate.encode()


def test_no_cell_of_csv_begins_a_formula_whatever_separates_cells():
    cells = ["=1+1", " =1", "\uff1d1", "a;=cmd|x", 'a";"=1', "a\t=1", -5, None, True]
    text = as_csv(Answer(("cell",), [(cell,) for cell in cells]))
    assert text.splitlines() == [
        "cell", '"\'=1+1"', '"\' =1"', '"\'\uff1d1"', '"a;=cmd|x"', '"a"";""=1"', '"a\\t=1"', "-5", "", "True",
    ]  # fmt: skip


OF_FACILITY = re.compile(rb"\A%.*\|(?:MAXPOLL|SESSTMOUT|JOINGROUP|REBALANCE|REJOIN|SUBSCRIBE)\|", re.DOTALL)
SENTENCE = re.compile(rb"\A(?!%).*?\[(?:Consumer|Worker) clientId=[^\]]*?groupId=.*?\] (.*)", re.DOTALL)
PARTS = st.sampled_from(
    [b"[Consumer clientId=", b"[Worker clientId=", b"[", b"]", b"] ", b"groupId=", b"a", b", ", b"Request joining group due to: ",
     b"|REJOIN|",
     b"(Re-)joining group", b"%"]
)  # fmt: skip


@given(st.lists(PARTS, max_size=12).map(b"".join))
def test_a_consumers_line_is_told_as_one_pattern_would(line):
    said = SENTENCE.match(line)
    is_told = said is not None and CLIENTS.may_read(said[1].decode().rstrip())
    assert is_consumer_line(line) == (is_told or OF_FACILITY.match(line) is not None)


def test_no_line_of_an_application_keeps_its_reader_busy(tmp_path):
    log = tmp_path / "app.log"
    log.write_bytes(b"".join(line + b"\n" for line in hostile.slow_clients()))
    kept = KeptLines()
    reader = LogReader(lambda: open_log(log), LocalTimes("UTC"), judge=ClientJudge)
    assert reader.read(kept) == len(hostile.slow_clients())
    for line in hostile.slow_clients():
        assert record_key(CLIENT_SOURCE, line, "", "log")


SECRETS = {
    "sasl.password": "s3cr3t", "ssl.key.password": "s3cr3t", "ssl.keystore.password": "s3cr3t", "ssl.key.pem": "s3cr3t",
    "sasl.jaas.config": "s3cr3t", "sasl.oauthbearer.client.secret": "s3cr3t", "sasl.oauthbearer.config": "s3cr3t",
    "sasl.oauthbearer.assertion.private.key.passphrase": "s3cr3t", "SASL.Password": "s3cr3t",
}  # fmt: skip
COMMANDS = {
    "ship": ["ship", "--input", ".", "--cluster", "c", "--broker", "b", "--bootstrap", "127.0.0.1:1", "--config", "FILE"],
    "poll": ["poll", "--out", "out", "--bootstrap", "127.0.0.1:1", "--config", "FILE"],
    "dump-offsets": ["dump-offsets", "--bootstrap", "127.0.0.1:1", "--config", "FILE"],
    "run --offsets-from": ["run", "--offsets-from", "127.0.0.1:1", "--lakehouse", "lake", "--client-config", "FILE"],
    "run --kafka": ["run", "--kafka", "127.0.0.1:1", "--topic", "t", "--lakehouse", "lake", "--kafka-config", "FILE"],
}


def settings_file(folder, mode, name="sasl.password"):
    file = folder / "client.properties"
    file.write_text(f"{name}={SECRETS[name]}\n")
    file.chmod(mode)
    return file


@pytest.mark.parametrize("command", list(COMMANDS))
@pytest.mark.parametrize(
    ("mode", "whom"),
    [(0o644, "read by any user of this machine"), (0o602, "changed by any user of this machine"), (0o660, "changed by its whole group")],
)
def test_every_command_refuses_secrets_that_are_not_kept(tmp_path, monkeypatch, capsys, command, mode, whom):
    monkeypatch.chdir(tmp_path)
    file = settings_file(tmp_path, mode)
    assert main([word.replace("FILE", str(file)) for word in COMMANDS[command]]) == 2
    said = capsys.readouterr().err
    assert said == f"rebalance: {file} holds sasl.password and can be {whom}: chmod 600 {file}\n"


@pytest.mark.parametrize("name", list(SECRETS))
def test_a_secret_is_known_by_its_name(tmp_path, name):
    from jobs.common.errors import UserError
    from jobs.kafka.clients import read_config

    with pytest.raises(UserError, match=re.escape(f"holds {name} and can be read by any user")):
        read_config(settings_file(tmp_path, 0o644, name))
    assert read_config(settings_file(tmp_path, 0o600, name)) == {name: SECRETS[name]}


def test_a_group_may_read_what_root_gave_it(tmp_path):
    import os

    from jobs.common.files import foreign_access

    file = settings_file(tmp_path, 0o640)
    status = list(os.stat(file))  # noqa: PTH116 - its parts
    for owner, whom in ((0, ""), (1_000, "read by its whole group")):
        status[stat.ST_UID] = owner
        assert foreign_access(os.stat_result(status)) == whom


def test_a_client_that_quotes_its_settings_tells_no_secret():
    from jobs.kafka.clients import without_secrets

    settings = {"sasl.oauthbearer.config": "principal=me bogus=hunter2", "sasl.username": "alice"}
    said = without_secrets("Unrecognized sasl.oauthbearer.config beginning at: bogus=hunter2 for alice", settings)
    assert "hunter2" not in said
    assert "alice" in said


def test_no_option_takes_a_secret():
    """Whoever may list processes reads command lines."""
    assert isinstance(cli, click.Group)
    options = {option for command in cli.commands.values() for parameter in command.params for option in parameter.opts}
    assert {"--config", "--kafka-config", "--client-config"} <= options
    assert not [option for option in options if re.search(r"passw|secret|token|credential|user|jaas", option)]
