"""A real Prometheus reads what a pipeline serves, answers all that the dashboards ask, and a real Alertmanager gets alerts on both ways."""

import json
import math
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs.alerts.sender import alerting
from jobs.common.alert_settings import AlertSettings, ReceiverSettings
from jobs.health.batch_health import BatchHealth, measured
from jobs.health.batches import IngestedBatch, TrackedBatch
from jobs.health.group_tally import GroupTally
from jobs.health.metrics import serving
from jobs.health.watch import Watch, _QueryState
from jobs.lakehouse.folder import Lakehouse
from tests.alerts.webhooks import QUICK, finding, found, now_ms, secret_file
from tests.lakehouse.rows import empty_lakehouse, rebalance, row, stopped
from tests.prometheus.servers import alertmanager, get, program, prometheus
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
DASHBOARDS = sorted((PROJECT / "conf" / "grafana").glob("*.json"))
VARIABLES = {"$cluster": ".*", "$group": ".*", "$instance": ".*", "$__rate_interval": "1m", "$__range": "1h"}


def batch(number, **rows):
    at = now_ms()
    summary = {"at_ms": at, "rows": 100, "new_late_events": 1, "groups": 2, "held_events": 0, "state_bytes": 4_000}
    return TrackedBatch(number, rows, {("c", 3): summary})


def happened(number):
    """A micro-batch in which a group rebalanced and had a finding."""
    now = now_ms()
    ended = rebalance("orders", cause="SESSION_TIMEOUT", members_after=3, unavailable_partition_ms=9_000, total_ms=4_000)
    states = [row("group_transitions", group_id=group, to_state=state, occurred_at=now) for group, state in STATES.items()]
    stops = [stopped(of=ended, reread_max=133, lag_added=1_350)]
    return batch(
        number, rebalances=[ended | {"ended_at": now}], rebalance_offsets=stops, findings=[finding("orders")], group_transitions=states
    )


STATES = {"orders": "Stable", "stuck": "PreparingRebalance"}


@contextmanager
def pipeline(lake, receiver, said):
    """What `rebalance run` serves, without Spark: its metrics at a port, and a function that makes something happen."""
    watch = Watch(Lakehouse(lake), once=False, warn=said.append, interrupted=lambda: False)
    watch.groups = GroupTally(10, first_seconds=0.5)
    watch._queries = {name: _QueryState(SimpleNamespace(), lag_events=0) for name in ("ingest", "track")}
    watch._memory = measured(None)
    receivers = AlertSettings(receivers=(receiver,), dashboard_url="http://dash")
    with alerting(Lakehouse(lake), receivers, said.append, QUICK) as alerts, serving("127.0.0.1", 0, watch, alerts) as port:

        def happen(number):
            watch.ingested("ingest")(IngestedBatch(number, {"c": (5, 90, 1)}))
            watch.tracked(happened(number))
            for query in ("ingest", "track"):
                spent = {"latest_offset_ms": 1, "planning_ms": 2, "add_batch_ms": 300, "commit_ms": 4, "lag_ms": 700}
                batch = {"occurred_at": now_ms(), "query": query, "run_id": "run", "batch_id": number, "duration_ms": 700, "input_rows": 96}
                watch.tally.finished(BatchHealth(output_rows=90, **batch, **spent))
            found(lake, finding("orders"))

        yield port, happen


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    """Prometheus and Alertmanager beside a pipeline in which things have happened: their ports."""
    for name in ("prometheus", "prometheus-alertmanager"):
        program(name)
    folder = tmp_path_factory.mktemp("live")
    lake = empty_lakehouse(folder / "lake")
    (lake / "_checkpoints").mkdir()
    said = []
    with alertmanager(folder / "alertmanager") as alert_port:
        url = secret_file(folder, f"http://127.0.0.1:{alert_port}")
        receiver = ReceiverSettings("am", "alertmanager", str(url))
        with pipeline(lake, receiver, said) as (port, happen):
            config = {
                "global": {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"},
                "scrape_configs": [{"job_name": "rebalance", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}],
                "rule_files": [str(PROJECT / "conf" / "prometheus" / "rebalance-alerts.yml")],
                "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alert_port}"]}]}]},
            }
            with prometheus(folder / "prometheus", config) as prometheus_port:
                happen(0)
                counted = "rebalance_group_rebalances_total"
                wait_until(lambda: value(prometheus_port, f"count_over_time({counted}[1h])") >= 2)
                happen(1)
                wait_until(lambda: value(prometheus_port, counted), 2)
                yield prometheus_port, alert_port
    assert said == []


def ask(port, expression):
    """Values of an expression now; those that are no numbers are left out."""
    answer = get(port, "/api/v1/query", query=expression)
    assert answer["status"] == "success"
    values = (float(result["value"][1]) for result in answer["data"]["result"])
    return [value for value in values if math.isfinite(value)]


def value(port, expression):
    return sum(ask(port, expression))


def evaluated_rules(port):
    """The rules, once all of them were evaluated."""
    rules = [rule for group in get(port, "/api/v1/rules")["data"]["groups"] for rule in group["rules"]]
    return rules if all(rule["health"] != "unknown" for rule in rules) else None


def panels(file):
    return [(panel["title"], target["expr"]) for panel in json.loads(file.read_text())["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_every_panel_of_a_dashboard_has_data(live, file):
    assert panels(file)
    for title, asked in panels(file):
        expression = asked
        for name, given in VARIABLES.items():
            expression = expression.replace(name, given)
        assert "$" not in expression
        assert wait_until(lambda expression=expression: ask(live[0], expression)), title


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda file: file.stem)
def test_every_variable_of_a_dashboard_has_values(live, file):
    variables = json.loads(file.read_text())["templating"]["list"]
    asked = [variable["query"]["query"] for variable in variables if variable["type"] == "query"]
    assert asked
    for query in asked:
        series, _, name = query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
        match = series.replace("$cluster", ".*")
        assert get(live[0], f"/api/v1/label/{name}/values", **{"match[]": match})["data"]


def test_what_happens_first_to_a_group_counts(live):
    """The first rebalance and the first finding are more than the 0 before them."""
    port, _ = live
    assert value(port, 'increase(rebalance_group_findings_total{code="SESSION_TIMEOUT"}[1h])') > 1.5
    assert value(port, "rebalance_group_unavailable_partition_seconds_total") == 18
    assert value(port, "rebalance_group_records_reread_max_total") == 266
    assert value(port, "rebalance_group_records_lag_added_total") == 2_700
    assert value(port, 'rebalance_group_state{group="stuck", state="PreparingRebalance"}') == 1


def test_every_rule_can_be_evaluated_and_one_reaches_alertmanager(live):
    prometheus_port, alert_port = live
    rules = wait_until(lambda: evaluated_rules(prometheus_port))
    assert {rule["health"] for rule in rules} == {"ok"}
    (alert,) = wait_until(lambda: get(alert_port, "/api/v2/alerts", filter='alertname="GroupFinding"'))
    assert (alert["labels"]["group"], alert["labels"]["code"]) == ("orders", "SESSION_TIMEOUT")


def test_alertmanager_has_the_findings_that_the_pipeline_posted(live):
    (alert,) = wait_until(lambda: get(live[1], "/api/v2/alerts", filter='source="rebalance"'))
    assert alert["status"]["state"] == "active"
    assert alert["labels"] == {
        "alertname": "SESSION_TIMEOUT", "severity": "error", "cluster": "c", "group": "orders", "client": "payments-1",
        "source": "rebalance",
    }  # fmt: skip
    assert alert["annotations"]["description"] == "The coordinator removed the member."
    assert alert["generatorURL"].startswith("http://dash/group?cluster=c&group=orders&from=")
    assert alert["startsAt"] < alert["endsAt"]
