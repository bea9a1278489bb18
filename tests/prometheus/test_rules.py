"""The alert rules, read and tried by Prometheus' own tool."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from jobs.health.metrics import described
from tests.prometheus.servers import program

PROJECT = Path(__file__).parents[2]
RULES = PROJECT / "conf" / "prometheus" / "rebalance-alerts.yml"
TESTS = sorted((PROJECT / "tests" / "prometheus").glob("rules*.yml"))


def promtool(*words):
    done = subprocess.run([program("promtool"), *map(str, words)], cwd=PROJECT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def rules():
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def test_prometheus_can_read_the_rules_and_the_example():
    promtool("check", "rules", RULES)
    promtool("check", "config", PROJECT / "conf" / "prometheus" / "prometheus.yml")


@pytest.mark.slow
def test_each_rule_fires_when_it_should_and_not_otherwise():
    promtool("test", "rules", *TESTS)


def test_each_rule_has_a_test_in_which_it_fires():
    tested = [entry for file in TESTS for test in yaml.safe_load(file.read_text())["tests"] for entry in test["alert_rule_test"]]
    assert {entry["alertname"] for entry in tested if entry.get("exp_alerts")} == {rule["alert"] for rule in rules()}


def test_each_rule_names_metrics_that_exist_and_is_explained():
    page = (PROJECT / "docs" / "prometheus.md").read_text(encoding="utf-8")
    known = {*described(), "rebalance_batch_duration_seconds_bucket"}
    for rule in rules():
        assert set(re.findall(r"\brebalance_\w+", rule["expr"])) <= known
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}
        assert f"`{rule['alert']}`" in page
