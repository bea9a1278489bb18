"""conf/deploy/docker: the compose file follows the Compose specification, and its commands exist; the small image has all that it needs."""

import re
import subprocess
import sys
from copy import deepcopy

import pytest

from scripts.build.package import SOURCES, needed
from tests.deploy.settings import DEPLOY, PROJECT, documents, options_of, problems, schema

DOCKERFILE = (DEPLOY / "docker" / "Dockerfile").read_text(encoding="utf-8")
(COMPOSE,) = documents(DEPLOY / "docker" / "compose.yaml")

LAKEHOUSE = re.search(r"REBALANCE_LAKEHOUSE=(\S+)", DOCKERFILE)[1]

ALONE = """\
import sys
from importlib import metadata
allowed = set(sys.argv[1:])
others = {module for module, names in metadata.packages_distributions().items() if not allowed & {name.lower() for name in names}}
class Absent:
    def find_spec(name, *_):
        if name in others:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent)
from jobs.cli import main
main(["ship", "--help"])
import jobs.kafka.clients, jobs.kafka.finder, jobs.kafka.outbox, jobs.kafka.ship_state, jobs.kafka.shipper
"""


@pytest.fixture(autouse=True)
def environment_of_the_image(monkeypatch):
    monkeypatch.setenv("REBALANCE_LAKEHOUSE", LAKEHOUSE)


def test_the_compose_file_follows_the_specification():
    assert problems(COMPOSE, schema("compose-spec.json")) == []
    wrong = deepcopy(COMPOSE)
    wrong["services"]["shipper"]["read_olny"] = True
    assert problems(wrong, schema("compose-spec.json"))


@pytest.mark.parametrize("name", ["shipper", "pipeline"])
def test_a_service_starts_a_command_that_exists(name):
    service = COMPOSE["services"][name]
    options = options_of(service["command"])
    assert "kafka:19092" in {options.get("bootstrap"), options.get("kafka")}
    mounts = {mount.split(":")[0]: mount.split(":")[1] for mount in service["volumes"]}
    assert set(mounts) <= set(COMPOSE["volumes"])
    assert service["build"]["target"] in re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE)
    if name == "shipper":
        assert str(options["inputs"][0]) == mounts["kafka-logs"]
        assert str(options["state"]).startswith(f"{mounts['shipper']}/")


def test_the_topic_is_the_one_that_is_shipped_to_and_read():
    options = {name: options_of(COMPOSE["services"][name]["command"]) for name in ("shipper", "pipeline")}
    (topic,) = [word.partition("=")[2] for word in COMPOSE["services"]["topic"]["command"] if word.startswith("--topic=")]
    assert options["shipper"]["topic"] == options["pipeline"]["topic"] == topic


def test_the_probe_asks_a_command_that_exists():
    program, *command = COMPOSE["services"]["pipeline"]["healthcheck"]["test"][1:]
    assert program == "rebalance"
    assert options_of(command)
    assert LAKEHOUSE.startswith(COMPOSE["services"]["pipeline"]["volumes"][0].split(":")[1])


def test_the_small_image_installs_all_that_ship_imports():
    """It has neither Spark nor pandas nor PyArrow: here every package that it does not install cannot be imported."""
    stage = DOCKERFILE.partition("AS build-shipper")[2].partition("\nFROM")[0]
    listed = re.search(r"--constraint /constraints.txt (.*?) \\", stage)[1].split()
    installed = {one.metadata["Name"].lower() for one in needed(tuple(listed))}

    def ship(*names):
        done = subprocess.run([sys.executable, "-c", ALONE, *names], cwd=PROJECT, check=False, capture_output=True, text=True)
        return done.returncode, done.stderr.strip().rpartition("\n")[2]

    assert ship("kafka-rebalance", *installed) == (0, "")
    assert ship("kafka-rebalance", *(installed - {"confluent-kafka"})) == (1, "ModuleNotFoundError: confluent_kafka")


def test_the_build_sees_what_the_wheel_is_made_of():
    lines = (DEPLOY / "docker" / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    seen = {line[1:] for line in lines if line.startswith("!")}
    assert seen == {*SOURCES, "requirements.lock"}
