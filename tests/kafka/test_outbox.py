"""The outbox of a shipper and a cluster that cannot be reached."""

import pytest

from jobs.common.errors import UserError
from jobs.kafka.clients import Cluster
from jobs.kafka.outbox import Outbox

UNREACHABLE = "cannot reach a cluster at 127.0.0.1:1"


def test_once_a_cluster_that_is_away_is_an_error():
    outbox = Outbox(Cluster("127.0.0.1:1"), "t", stopped=lambda: False, complain=print, once=True, metadata_seconds=0.2)
    with pytest.raises(UserError, match=UNREACHABLE):
        outbox.connect()


def test_a_cluster_that_is_away_at_the_start_is_waited_for():
    complaints, looks = [], []

    def stopped():
        looks.append(1)
        return len(looks) > 3

    outbox = Outbox(Cluster("127.0.0.1:1"), "t", stopped=stopped, complain=complaints.append, metadata_seconds=0.2)
    assert not outbox.connect()
    (complaint,) = complaints
    assert complaint.startswith(UNREACHABLE)
    assert complaint.endswith("still trying")
