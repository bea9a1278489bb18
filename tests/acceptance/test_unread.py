"""For how long nobody read a partition, beside what was done to its owner and what its client's log says."""

import pytest

from jobs.common.times import epoch_ms
from jobs.lakehouse.reader import table_rows

pytestmark = pytest.mark.slow

NEW, OLD = "recordings/kafka-4.2.0", "recordings/kafka-3.9.1"


@pytest.mark.parametrize(
    ("recording", "group", "generation", "partition", "least", "most"),
    [
        pytest.param(NEW, "billing-worker", 2, "orders-2", 7_071, 9_000, id="killed at 06:11:42.479, read again at 49.550"),
        pytest.param(NEW, "loyalty-points", 5, "orders-5", 6_399, 9_000, id="killed at 06:12:16.080, read again at 22.479"),
        pytest.param(OLD, "rate-loader", 2, "orders-2", 8_767, 10_500, id="killed at 31.683, read again at 40.450"),
        pytest.param(OLD, "rate-loader", 2, "orders-3", 8_767, 10_500, id="... and the answer to its FETCH came at 35.291"),
        pytest.param(OLD, "night-audit", 2, "orders-3", 12_023, 14_000, id="stopped at 27:09.014, dropped by the join phase of another"),
        pytest.param(NEW, "image-resize", 4, "orders-1", 8_000, 8_863, id="stalled at 06:12:05.093, max.poll.interval.ms 8000"),
        pytest.param(NEW, "telemetry-v2", 7, "orders-2", 16_000, 18_000, id="kept it until its group was empty"),
        pytest.param(NEW, "ad-bidder", 3, "orders-4", 16_922, 24_935, id="last heartbeat at 06:15:55.597, lost at 06:16:03.609"),
        pytest.param(NEW, "xml-importer", 19, "orders-1", 9_784, 16_000, id="lost at 06:16:02.725 with its coordinator"),
    ],
)
def test_nobody_reads_from_the_last_sign_of_the_owner_on(recorded_lakehouse, recording, group, generation, partition, least, most):
    of = (group, partition)
    rows = [row for row in table_rows(recorded_lakehouse(recording) / "rebalance_offsets") if (row["group_id"], row["partition"]) == of]
    (row,) = [row for row in rows if row["generation"] == generation]
    assert least <= row["unread_ms"] <= most
    assert all(epoch_ms(other["resumed_at"]) <= epoch_ms(row["started_at"]) for other in rows if other["generation"] < generation)
