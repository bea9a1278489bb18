"""Every command that logs in, to a real broker with TLS, client certificates, passwords and ACLs: it works, and tells nobody how."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType

from jobs.cli.entry import main
from jobs.common import jars
from jobs.demo.local_broker import LocalBroker
from jobs.kafka.topic_records import clock_headers, line_headers, log_headers
from jobs.lakehouse import reader
from tests.security import hostile
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROJECT = Path(__file__).parents[2]
TOPIC = "group-protocol-logs"
PASSWORD, KEY_PASSWORD = "pass-Wq7xT2m9Lr4v", "key-Hn3dZ8k5Bs6j"
SECRETS = (PASSWORD.encode(), KEY_PASSWORD.encode())
LOGIN = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-only"'
ALLOWED = (
    (ResourceType.TOPIC, TOPIC, AclOperation.WRITE),  # ship
    (ResourceType.TOPIC, TOPIC, AclOperation.READ),  # run --kafka
    (ResourceType.TOPIC, "__consumer_offsets", AclOperation.READ),  # dump-offsets, run --offsets-from
    (ResourceType.GROUP, "*", AclOperation.DESCRIBE),  # poll
)


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_keys(folder):
    """An authority, the broker's key and certificate, and a client's, whose key has a password."""
    (folder / "password").write_text(KEY_PASSWORD)
    new = ["req", "-newkey", "rsa:2048"]
    openssl(folder, *new, "-x509", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca", "-days", "30")
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1")
    for who in ("server", "client"):
        openssl(folder, *new, "-keyout", f"{who}.key", "-out", f"{who}.csr", "-subj", f"/CN={who}", "-nodes")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "san", "-days", "30"]
        openssl(folder, "x509", "-req", "-in", f"{who}.csr", *signed, "-out", f"{who}.pem")
    openssl(folder, "pkcs8", "-topk8", "-passout", "file:password", "-in", "client.key", "-out", "client.encrypted")
    openssl(folder, "pkcs12", "-export", "-passout", "file:password", "-inkey", "client.key", "-in", "client.pem", "-out", "client.p12")
    (folder / "broker.pem").write_text((folder / "server.key").read_text() + (folder / "server.pem").read_text())


def login(keys, user, password, *, java=False):
    """Settings of a client. `java`: its key is in a key store, for Java 17 cannot read the encrypted keys that openssl writes."""
    key = {
        "ssl.certificate.location": str(keys / "client.pem"),
        "ssl.key.location": str(keys / "client.encrypted"),
        "ssl.key.password": KEY_PASSWORD,
    }
    store = {"ssl.keystore.location": str(keys / "client.p12"), "ssl.keystore.password": KEY_PASSWORD}
    return {
        "security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN", "sasl.username": user, "sasl.password": password,
        "ssl.ca.location": str(keys / "ca.pem"), **(store if java else key),
    }  # fmt: skip


USERS = f'user_admin="admin-only" user_reader="{PASSWORD}" user_nobody="{PASSWORD}";'


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder)
    return folder


@pytest.fixture(scope="module")
def broker(keys, tmp_path_factory):
    """Its one listener for clients wants TLS with a certificate, and a password. `reader` may do what docs/security.md says."""
    assert jars.main(["kafka"]) == 0
    settings = {
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{LOGIN} {USERS}",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keys / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(keys / "ca.pem"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin;User:ANONYMOUS",
        "group.initial.rebalance.delay.ms": "0",
    }
    admin = login(keys, "admin", "admin-only")
    with LocalBroker(tmp_path_factory.mktemp("broker"), settings=settings, client=admin) as running:
        running.create_topic(TOPIC, 2)
        client = AdminClient({**admin, "bootstrap.servers": running.bootstrap})
        bindings = [
            AclBinding(kind, name, ResourcePatternType.LITERAL, "User:reader", "*", operation, AclPermissionType.ALLOW)
            for kind, name, operation in ALLOWED
        ]
        for made in client.create_acls(bindings).values():
            made.result(20)
        member = Consumer({**admin, "bootstrap.servers": running.bootstrap, "group.id": "orders-app"})
        member.subscribe([TOPIC])
        wait_until(lambda: (member.poll(0.2), member.assignment()), lambda seen: seen[1])
        member.close()
        yield running


def settings_file(folder, settings, name="client.properties"):
    file = folder / name
    file.touch(0o600)
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return file


@pytest.fixture
def work(tmp_path, keys):
    """A folder for all that commands write, temporary files too, and beside it the file with the secrets."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "work" / "tmp").mkdir(parents=True)
    settings_file(tmp_path / "secret", login(keys, "reader", PASSWORD, java=True), "java.properties")
    return tmp_path / "work", settings_file(tmp_path / "secret", login(keys, "reader", PASSWORD))


def start(work, *arguments):
    environment = {**os.environ, "TMPDIR": str(work / "tmp"), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-m", "jobs.cli", *map(str, arguments)]
    return subprocess.Popen(command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class Watch(threading.Thread):
    """Looks through the process list, as `ps` does, for as long as it lives: `told` are those that give a secret away."""

    def __init__(self):
        super().__init__(daemon=True)
        self.looks, self.told = 0, set()
        self._ended = threading.Event()

    def run(self):
        while not self._ended.is_set():
            for file in (*Path("/proc").glob("[0-9]*/cmdline"), *Path("/proc").glob("[0-9]*/environ")):
                try:
                    text = file.read_bytes()
                except OSError:
                    continue
                if any(secret in text for secret in SECRETS):
                    self.told.add(str(file))
            self.looks += 1
            self._ended.wait(0.2)

    def end(self):
        self._ended.set()
        self.join()
        assert self.looks > 0
        assert self.told == set()


def check_files(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if any(secret in path.read_bytes() for secret in SECRETS)] == []


def run(processes):
    """Whether all of them run; an error tells why one does not."""
    assert [process.communicate() for process in processes if process.poll() is not None] == []
    return True


def send_hostile_records(broker, keys):
    """Records that no shipper of ours would write, by somebody who may write to the topic."""
    producer = Producer({**login(keys, "admin", "admin-only"), "bootstrap.servers": broker.bootstrap})
    line = hostile.lines_of("broker-2/server.log.gz")[-1]
    count = 0
    for name in hostile.NAMES.values():
        told = hostile.as_logged(name).decode()
        shared = log_headers(told, told, "line", told)
        for headers in (
            line_headers(shared, "coordinator", 1, 1_795_242_420_000),
            line_headers(log_headers("c", "b", "line", "o"), told, 1, None, told, told),
            [*shared, ("position", told.encode()), ("at", b"9" * 30)],
            [(told, told.encode()), ("cluster", b"\xff\xfe")],
        ):
            producer.produce(TOPIC, line + told.encode(), told.encode()[:99], headers=headers)
            count += 1
    for heard in (b"[" * 100_000, b"[0,549755813888]", b"\xff"):
        for partition in (0, 1):
            clock = clock_headers(log_headers("c", "b", "clock", "o"), 3, 1_795_242_420_000, 1, None)
            producer.produce(TOPIC, heard, b"o", partition, headers=clock)
    assert producer.flush(30) == 0
    return count


def test_secrets_stay_where_they_are(broker, keys, work, capsys):
    folder, config = work
    logs = folder / "logs" / "broker-2"
    logs.mkdir(parents=True)
    shutil.copy(hostile.RECORDING / "broker-2" / "server.log.gz", logs)
    place = ["--bootstrap", broker.bootstrap, "--config", config]
    watch = Watch()
    watch.start()
    processes = [
        start(folder, "poll", "--out", folder / "polled", "--every", "1s", *place),
        start(folder, "dump-offsets", "--out", folder / "dumped" / "offsets.jsonl", "--follow", "--all", *place),
    ]
    try:
        wait_until(lambda: run(processes) and '"polled"' in "".join(p.read_text() for p in folder.glob("polled/default/poll/*")))
        wait_until(lambda: run(processes) and any('"key"' in p.read_text() for p in folder.glob("dumped/*")))
        for process in processes:
            process.send_signal(signal.SIGTERM)
        said = [process.communicate(timeout=PATIENCE_SECONDS) for process in processes]
        assert [process.returncode for process in processes] == [0, 0], said
    finally:
        for process in processes:
            process.kill()
    assert "orders-app" in "".join(p.read_text() for p in folder.glob("polled/default/poll/*"))
    shipping = start(folder, "ship", "--input", logs, "--cluster", "c", "--broker", "broker-2", "--once", *place)
    said.append(shipping.communicate(timeout=PATIENCE_SECONDS))
    assert shipping.returncode == 0, said[-1]
    assert list(folder.glob("ship-*.json"))
    strange = send_hostile_records(broker, keys)
    of_topic = ["--kafka", broker.bootstrap, "--topic", TOPIC, "--kafka-config", config.with_name("java.properties")]
    (folder / "pipeline.toml").write_text("[pipeline]\nshards = 1\n")
    reading = start(folder, "run", *of_topic, "--lakehouse", folder / "lake", "--config", folder / "pipeline.toml", "--once")
    said.append(reading.communicate(timeout=PATIENCE_SECONDS))
    watch.end()
    assert reading.returncode == 0, said[-1]
    account = reader.account(folder / "lake")
    assert account["rebalances"] >= 16
    assert account["quarantined"] >= strange * 0.75 - len(hostile.NAMES)
    assert account["lines_read"] == account["skipped"] + account["events"] + account["quarantined"] + account.get("repeated", 0)
    for out, err in said:
        assert not hostile.harm_in(err)
        assert PASSWORD not in out + err
        assert KEY_PASSWORD not in out + err
    check_files(folder)
    assert main(["report", "--lakehouse", str(folder / "lake")]) == 0
    assert not hostile.harm_in(capsys.readouterr().out)


def test_who_may_see_no_group_is_told_so(broker, keys, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    file = settings_file(tmp_path, login(keys, "nobody", PASSWORD))
    assert main(["poll", "--out", "out", "--once", "--no-offsets", "--bootstrap", broker.bootstrap, "--config", str(file)]) == 2
    assert "let it DESCRIBE the groups" in capfd.readouterr().err


COMMANDS = {
    "ship": ["ship", "--input", ".", "--cluster", "c", "--broker", "b", "--once", "--bootstrap", "AT", "--config", "FILE"],
    "poll": ["poll", "--out", "out", "--once", "--bootstrap", "AT", "--config", "FILE"],
    "dump-offsets": ["dump-offsets", "--bootstrap", "AT", "--config", "FILE"],
    "run --offsets-from": ["run", "--offsets-from", "AT", "--lakehouse", "lake", "--once", "--client-config", "FILE"],
    "run --kafka": ["run", "--kafka", "AT", "--lakehouse", "lake", "--once", "--kafka-config", "FILE"],
}


@pytest.mark.parametrize("command", list(COMMANDS))
def test_a_wrong_password_is_one_clear_line(broker, keys, tmp_path, monkeypatch, capfd, command):
    monkeypatch.chdir(tmp_path)
    file = settings_file(tmp_path, login(keys, "reader", "wrong-" + PASSWORD))
    assert main([word.replace("FILE", str(file)).replace("AT", broker.bootstrap) for word in COMMANDS[command]]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "Authentication failed" in err
    assert PASSWORD not in err
