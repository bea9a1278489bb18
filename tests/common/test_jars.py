"""jobs/common/jars.py: what is downloaded, when, and what is said about it. Ivy itself is run by make."""

from hashlib import sha256
from pathlib import Path

import pytest

from jobs.cli import entry
from jobs.common import jars
from jobs.common.errors import UserError
from jobs.common.places import COORDINATES

FOUND = ("io.delta_delta-spark_4.0_2.13-4.4.0.jar", "org.apache.hadoop_hadoop-aws-3.4.1.jar", "org.apache.kafka_kafka_2.13-4.4.0.jar")


def files(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch()
    return sorted(folder.iterdir())


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of each set of JARs. What Ivy finds is given; `asked` in it counts nothing but calls."""
    folder = tmp_path / "jars"
    for name in ("REBALANCE_JARS", "REBALANCE_S3_JARS", "REBALANCE_KAFKA_JARS"):
        monkeypatch.setenv(name, str(folder))
    found = files(tmp_path / "found", *FOUND)
    nothing = sha256(b"").hexdigest()
    (tmp_path / jars.SUMS).write_text("".join(f"{nothing}  {name.partition('_')[2]}\n" for name in FOUND))
    monkeypatch.setattr(jars.places, "data_folder", lambda *_: tmp_path)
    monkeypatch.setattr(jars.places, "kept_folder", lambda name: tmp_path / "kept" / name)
    monkeypatch.setattr(jars, "resolve", lambda *_: found)
    return folder


@pytest.mark.parametrize("arguments", [[], ["s3"], ["kafka"]])
def test_a_folder_holds_the_resolved_jars_and_nothing_else(
    target: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    files(target, "old-1.0.jar", "classes.jsa")
    assert jars.main(arguments) == 0
    left = {path.name for path in target.iterdir()}
    assert left > {"resolved.txt"}
    assert not left & {"old-1.0.jar", "classes.jsa"}
    said = capsys.readouterr().out
    assert f"{len(left) - 1} JARs in {target}" in said
    assert said.startswith("downloading ")
    monkeypatch.delattr(jars, "resolve")  # the stamp says that it was done
    assert jars.main(arguments) == 0
    assert {path.name for path in target.iterdir()} == left
    assert capsys.readouterr().out == ""


def test_jars_that_somebody_put_there_are_taken_as_they_are(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files(target, "delta-spark_4.0_2.13-4.4.0.jar", "hadoop-aws-3.4.1.jar", "kafka_2.13-4.4.0.jar")
    monkeypatch.delattr(jars, "resolve")
    said: list[str] = []
    jars.of_spark().ensure(said.append)
    jars.of_s3().ensure(said.append)
    jars.of_broker().ensure(said.append)
    assert said == []


@pytest.mark.parametrize("stamp", ["io.delta:delta-spark_4.0_2.13:4.3.0\n", "unfinished\n"])
def test_those_of_another_version_or_an_interrupted_download_are_replaced(target: Path, stamp: str) -> None:
    files(target, "delta-spark_4.0_2.13-4.3.0.jar")
    (target / "resolved.txt").write_text(stamp)
    jars.of_spark().ensure(lambda _: None)
    assert "delta-spark_4.0_2.13-4.3.0.jar" not in {path.name for path in target.iterdir()}
    assert (target / "resolved.txt").read_text() == "\n".join(COORDINATES) + "\n"


@pytest.mark.parametrize(("name", "instead"), [("delta-spark_4.0_2.13-4.4.0.jar", "e3b0c44298fc"), ("other.jar", "among the known ones")])
def test_a_file_that_is_not_the_known_one_is_not_kept(target: Path, name: str, instead: str) -> None:
    (target.parent / "found" / f"org_{name}").write_text("tampered with")
    with pytest.raises(UserError, match=rf"{name} is not the file that this version knows: its SHA-256 is 239d\w+, not {instead}"):
        jars.check([target.parent / "found" / f"org_{name}"])


def test_a_download_that_was_tampered_with_is_no_set_of_jars(target: Path) -> None:
    (target.parent / "found" / FOUND[0]).write_text("tampered with")
    for _ in range(2):
        with pytest.raises(UserError, match="Nothing was kept"):
            jars.of_spark().ensure(lambda _: None)
    assert {path.name for path in target.iterdir()} == {"resolved.txt"}


def test_a_set_of_which_more_is_left_out_now_is_replaced(target: Path) -> None:
    jars.of_s3().ensure(lambda _: None)
    stamp = (target / "resolved.txt").read_text()
    (target / "resolved.txt").write_text(stamp.replace("without software.amazon.awssdk:bundle\n", ""))
    files(target, "bundle-2.57.8.jar")
    jars.of_s3().ensure(lambda _: None)
    assert (target / "resolved.txt").read_text() == stamp
    assert "bundle-2.57.8.jar" not in {path.name for path in target.iterdir()}


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(target: Path) -> None:
    target.write_text("a file")
    with pytest.raises(UserError, match=rf"cannot keep the JARs .* in {target}: .*REBALANCE_JARS"):
        jars.of_spark().ensure(lambda _: None)


def test_a_release_that_is_not_known(target: Path) -> None:  # noqa: ARG001
    with pytest.raises(UserError, match=r"Kafka 0\.8 is not known here; there are 4\.4\.0, 4\.2\.0, 3\.9\.1"):
        jars.of_broker("0.8").ensure(lambda _: None)


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A spark-submit that answers as Ivy does without a network, and a Java that Spark would run on."""
    programs = {"spark-submit": "echo 'Server access error: java.net.UnknownHostException'; exit 1", "java": "echo 'version \"17.0.1\"'"}
    for name, text in programs.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(jars, "_spark_home", lambda: tmp_path)
    monkeypatch.setattr(jars.time, "sleep", lambda _: None)


@pytest.mark.usefixtures("no_network")
def test_ivy_that_fails_is_tried_again_and_its_reason_told(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(UserError, match=r"cannot download a:b:1 \(host not found: no network\?\).*REBALANCE_IVY_SETTINGS"):
        jars.resolve(["a:b:1"], tmp_path, said.append)
    assert said == [f"attempt {n} of 3 failed (host not found: no network?), trying again ..." for n in (1, 2)]


@pytest.mark.usefixtures("no_network")
def test_a_run_that_cannot_have_its_jars_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path / "jars"))
    monkeypatch.setattr(jars.places, "kept_folder", lambda name: tmp_path / "kept" / name)
    log = tmp_path / "server.log"
    log.write_text("[2026-11-21 01:00:00,000] INFO started (kafka.server.KafkaServer)\n")
    for command in (["run", "--input", str(log), "--lakehouse", str(tmp_path / "lake"), "--once"], ["broker"], ["demo-live"]):
        monkeypatch.setenv("REBALANCE_KAFKA_JARS", str(tmp_path / command[0]))
        assert entry.main(command) == 2
        first, *_, last = capsys.readouterr().err.splitlines()
        assert first.startswith("rebalance: downloading ")
        assert last.startswith("rebalance: cannot download ")
    assert not (tmp_path / "lake").exists()


def of(first: str, *, beside_spark: bool = True) -> jars.JarSet:
    return jars.JarSet("what is wanted", Path(), (), first, beside_spark=beside_spark)


def test_what_spark_brings_itself_is_left_out(tmp_path: Path) -> None:
    files(tmp_path / "spark", "hadoop-client-api-3.4.1.jar")
    resolved = files(tmp_path / "ivy", "org.apache.hadoop_hadoop-client-api-3.4.2.jar", "io.delta_delta-spark_4.0_2.13-4.4.0.jar")
    chosen = of("delta-spark").chosen(resolved, tmp_path / "spark")
    assert chosen == {"delta-spark_4.0_2.13-4.4.0.jar": tmp_path / "ivy" / "io.delta_delta-spark_4.0_2.13-4.4.0.jar"}


def test_jars_without_the_first_are_not_those_that_are_wanted(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="found 0 JARs, but not what is wanted"):
        of("hadoop-aws").chosen([], tmp_path)


@pytest.mark.usefixtures("no_network")
def test_ivy_is_told_what_to_leave_out(tmp_path: Path) -> None:
    (tmp_path / "bin" / "spark-submit").write_text('#!/bin/sh\necho "unresolved dependency: $*"; exit 1\n')
    with pytest.raises(UserError):
        jars.resolve(["a:b:1"], tmp_path, lambda _: None, ["c:d", "e*:*"])
    assert "--packages a:b:1 --exclude-packages c:d,e*:* " in (tmp_path / "resolve.log").read_text()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("delta-storage-4.4.0.jar", "delta-storage"),
        ("delta-spark_4.0_2.13-4.4.0.jar", "delta-spark_4.0_2.13"),
        ("spark-sql-kafka-0-10_2.13-4.0.0.jar", "spark-sql-kafka"),
    ],
)
def test_artifact(name: str, expected: str) -> None:
    assert jars.artifact(name) == expected


def test_a_brokers_jars_get_scalas_library_from_spark(tmp_path: Path) -> None:
    files(tmp_path / "spark", "scala-library-2.13.16.jar")
    resolved = files(tmp_path / "ivy", "org.apache.kafka_kafka_2.13-4.4.0.jar")
    chosen = of("kafka_2.13-", beside_spark=False).chosen(resolved, tmp_path / "spark")
    assert list(chosen) == ["kafka_2.13-4.4.0.jar", "scala-library-2.13.16.jar"]
