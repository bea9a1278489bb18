"""Which partition a group lives in, as two Kafka releases measured it."""

import json
from pathlib import Path

import pytest

from coordinator_model.specification.hash_maps import string_hash
from coordinator_model.specification.partition import coordinator_partition

MEASURED = json.loads((Path(__file__).parent.parent / "data" / "traces" / "group_partition.json").read_text("utf-8"))


@pytest.mark.claims("B01")
@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row["group"])
def test_kafkas_partition(row):
    assert string_hash(row["group"]) == row["hash"] % 2**32
    assert coordinator_partition(row["group"]) == row["partition_of_50"]
    assert coordinator_partition(row["group"], 997) == row["partition_of_997"]


def test_the_hash_counts_utf_16_units():
    assert string_hash("\N{GRINNING FACE}") == 0xD83D * 31 + 0xDE00 == 1_772_899
    assert string_hash("\ud83d") == 0xD83D  # half a character is a Java string too
