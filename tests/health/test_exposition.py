"""Metrics as Prometheus reads them, and how they are served."""

from __future__ import annotations

import http.client
import math
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.common.errors import UserError
from jobs.health.exposition import CONTENT_TYPE, COUNTER, GAUGE, HISTOGRAM, Histogram, Metric, Sample, render
from jobs.health.metrics_server import serving
from tests.health.exposition_parser import parse


def test_a_metric_is_written_as_prometheus_documents_it():
    metric = Metric("rebalance_batches_total", COUNTER, "Micro-batches.", (Sample(12, {"query": "track", "cluster": "c"}),))
    assert render([metric]) == (
        "# HELP rebalance_batches_total Micro-batches.\n"
        "# TYPE rebalance_batches_total counter\n"
        'rebalance_batches_total{query="track",cluster="c"} 12\n'
    )


def test_a_metric_without_samples_is_left_out():
    assert render([Metric("rebalance_lag_events", GAUGE, "Rows that wait.", ())]) == ""


@given(st.text(), st.text(), st.floats(allow_nan=False))
def test_whatever_a_cluster_is_called_its_name_comes_out_as_it_went_in(name, told, value):
    families = parse(render([Metric("rebalance_groups", GAUGE, told, (Sample(value, {"cluster": name}), Sample(1)))]))
    assert families["rebalance_groups"].value(cluster=name) == value


def test_numbers_that_are_none_are_written_as_prometheus_writes_them():
    text = render([Metric("m", GAUGE, "", (Sample(math.nan, {"a": "1"}), Sample(math.inf, {"a": "2"}), Sample(-math.inf, {"a": "3"})))])
    assert [line.split()[1] for line in text.splitlines()[2:]] == ["NaN", "+Inf", "-Inf"]


def test_a_histogram_counts_what_is_no_greater_than_each_bound():
    histogram = Histogram((1, 5))
    for seconds in (0.5, 1.0, 3.0, 7.25):
        histogram.observe(seconds)
    found = parse(render([Metric("m_seconds", HISTOGRAM, "", tuple(histogram.samples({"query": "track"})))]))["m_seconds"]
    assert [found.value("_bucket", query="track", le=bound) for bound in ("1", "5", "+Inf")] == [2, 3, 4]
    assert found.value("_sum", query="track") == 11.75
    assert found.value("_count", query="track") == 4


@pytest.mark.parametrize(("name", "label"), [("a-b", "x"), ("1a", "x"), ("a\n", "x"), ("a", "x-y"), ("a", "__x"), ("a", "x\n")])
def test_a_name_that_is_none_is_refused(name, label):
    with pytest.raises(ValueError, match="no name"):
        Metric(name, GAUGE, "", (Sample(1, {label: ""}),))


@pytest.fixture
def port():
    scrapes = iter(range(1, 100))
    with serving("127.0.0.1", 0, lambda: f"m {next(scrapes)}\n\ud800") as found:
        yield found


def ask(port, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read()
    finally:
        connection.close()


def test_each_scrape_is_answered_with_what_is_true_then(port):
    assert ask(port, "GET", "/metrics") == (200, CONTENT_TYPE, b"m 1\n?")  # half a character is no reason to say nothing
    assert ask(port, "GET", "/metrics?name[]=m") == (200, CONTENT_TYPE, b"m 2\n?")
    assert ask(port, "HEAD", "/metrics") == (200, CONTENT_TYPE, b"")


def test_anything_else_is_refused(port):
    assert ask(port, "GET", "/")[0] == 404
    assert ask(port, "GET", "/metrics/../etc")[0] == 404
    assert ask(port, "POST", "/metrics")[0] == 501


def test_one_who_connects_and_says_nothing_keeps_nobody_waiting(port):
    with socket.create_connection(("127.0.0.1", port)):
        assert ask(port, "GET", "/metrics")[0] == 200


def test_a_port_that_is_taken_is_an_error_in_one_line(port):
    with pytest.raises(UserError, match=f"cannot serve metrics at 127.0.0.1:{port}: .*--metrics-port"), serving("127.0.0.1", port, str):
        pass


def test_a_host_that_is_none_is_an_error_in_one_line():
    with pytest.raises(UserError, match=r"cannot serve metrics at no-such-host\.invalid:0"), serving("no-such-host.invalid", 0, str):
        pass


def test_the_port_is_free_again_afterwards():
    with serving("127.0.0.1", 0, str) as found:
        pass
    with serving("127.0.0.1", found, str) as again:
        assert again == found
