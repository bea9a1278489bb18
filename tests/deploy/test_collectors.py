"""conf/deploy/collectors: what Vector and Fluent Bit write is where `rebalance run --input` looks for it, and as it reads it.

Neither program is here. The names of their options were compared with their documentation by hand.
"""

import json
from pathlib import Path

from jobs.logs.envelopes import unwrapped
from jobs.logs.files import discover
from tests.deploy.settings import DEPLOY, documents

LINE = "[2026-11-21 06:16:04,117] INFO [GroupCoordinator 1]: Stabilized group g generation 1 (kafka.coordinator.group.GroupCoordinator)"
LOGS = "/var/lib/rebalance/logs"


def settings(name):
    (document,) = documents(DEPLOY / "collectors" / f"{name}.yaml")
    return document


def found(folder, written):
    """Cluster and broker of a file that a collector writes there."""
    path = folder / Path(written).relative_to(LOGS)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(LINE + "\n", encoding="utf-8")
    return [(log.cluster, log.broker) for log in discover(folder) if log.path == path]


def test_vector_sends_the_logs_of_a_broker_and_writes_them_where_they_are_read(tmp_path):
    agent, aggregator = settings("vector-agent"), settings("vector-aggregator")
    for document in (agent, aggregator):
        assert all(set(sink["inputs"]) <= set(document["sources"]) for sink in document["sinks"].values())
    (sent,), (taken,) = agent["sinks"].values(), aggregator["sources"].values()
    assert (sent["type"], sent["address"].partition(":")[2]) == (taken["type"], taken["address"].partition(":")[2])
    (sink,) = aggregator["sinks"].values()
    assert (sink["type"], sink["encoding"]) == ("file", {"codec": "text"})
    (source,) = agent["sources"].values()
    for file in source["include"]:
        written = sink["path"].replace("{{ host }}", "node-1").replace("{{ file }}", file).replace("%Y-%m-%d", "2026-11-21")
        assert found(tmp_path, written) == [("production", "node-1")]


def test_fluent_bit_sends_the_log_of_a_broker_and_writes_it_where_it_is_read(tmp_path):
    agent, aggregator = (settings(f"fluent-bit-{part}")["pipeline"] for part in ("agent", "aggregator"))
    (tail,), (forward,) = agent["inputs"], agent["outputs"]
    assert (forward["name"], forward["port"]) == (aggregator["inputs"][0]["name"], aggregator["inputs"][0]["port"])
    (file,) = [output for output in aggregator["outputs"] if output["match"] == forward["match"]]
    assert tail["tag"].startswith(forward["match"].removesuffix("*"))
    assert found(tmp_path, f"{file['path']}/{tail['tag']}") == [("production", "broker-1")]
    assert {(output["name"], output["format"], output["template"]) for output in aggregator["outputs"]} == {("file", "template", "{log}")}


def test_a_line_in_a_record_is_read_as_well():
    """Where somebody leaves the default formats: JSON with the line in `log` or `message`."""
    for name in ("log", "message"):
        assert unwrapped(json.dumps({name: LINE, "host": "node-1"}).encode()) == LINE.encode()
