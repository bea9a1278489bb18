"""Metrics as Prometheus reads them, and how they are served."""

import http.client
import socket
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest

from jobs.common.errors import UserError
from jobs.health.metrics import families, serving
from tests.health.metrics_text import read_metrics


class Given(SimpleNamespace):
    """A collector of what its function gives."""

    __hash__ = object.__hash__


NOTHING = Given(collect=list)


def text_of(samples):
    return generate_latest(SimpleNamespace(collect=lambda: families(samples)))


def test_a_metric_is_written_as_prometheus_documents_it():
    assert text_of({"rebalance_lines_total": {("c", "event"): 12}}).decode() == (
        "# HELP rebalance_lines_total Lines of logs by what became of them: skipped, event, quarantined.\n"
        "# TYPE rebalance_lines_total counter\n"
        'rebalance_lines_total{cluster="c",outcome="event"} 12.0\n'
    )


def test_a_metric_without_samples_is_left_out():
    assert text_of({"rebalance_lag_events": {}, "rebalance_lag_bytes": {(): None}}) == b""


@given(st.text(), st.floats(allow_nan=False))
def test_whatever_a_cluster_is_called_its_name_comes_out_as_it_went_in(name, value):
    assert read_metrics(text_of({"rebalance_groups": {(name,): value}})).value("rebalance_groups", cluster=name) == value


def test_half_a_character_in_a_name_does_not_end_a_scrape():
    assert read_metrics(text_of({"rebalance_groups": {("a\ud800",): 1}})).value("rebalance_groups", cluster="a?") == 1


@pytest.fixture
def port():
    scrapes = count(1)
    with serving("127.0.0.1", 0, Given(collect=lambda: families({"rebalance_lag_bytes": {(): next(scrapes)}}))) as free_port:
        yield free_port


def ask(port, method, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read()
    finally:
        connection.close()


def test_each_scrape_is_answered_with_the_values_of_then(port):
    for scrape in (1, 2):
        status, kind, body = ask(port, "GET", "/metrics")
        assert (status, kind) == (200, CONTENT_TYPE_PLAIN_0_0_4)
        assert read_metrics(body).value("rebalance_lag_bytes") == scrape


def test_one_who_connects_and_says_nothing_keeps_nobody_waiting(port):
    with socket.create_connection(("127.0.0.1", port)):
        assert ask(port, "GET", "/metrics")[0] == 200


def test_a_port_that_is_taken_is_an_error_in_one_line(port):
    with pytest.raises(UserError, match=f"cannot serve metrics at 127.0.0.1:{port}: .*--metrics-port"), serving("127.0.0.1", port, NOTHING):
        pass


def test_a_host_that_is_none_is_an_error_in_one_line():
    with pytest.raises(UserError, match=r"cannot serve metrics at no-such-host\.invalid:0"), serving("no-such-host.invalid", 0, NOTHING):
        pass


def test_the_port_is_free_again_afterwards():
    with serving("127.0.0.1", 0, NOTHING) as found:
        pass
    with serving("127.0.0.1", found, NOTHING) as again:
        assert again == found
