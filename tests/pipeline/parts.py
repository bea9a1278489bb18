"""A real log that grows part by part, and runs over what there is of it."""

import gzip
from functools import cache
from pathlib import Path

from jobs.common.settings import Settings
from jobs.pipeline import run as pipeline

LOG = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1" / "broker-2" / "kafka-request.log.gz"
PARTS = 4
SETTINGS = Settings(timezone="America/New_York", slice_lines=550, shards=8)


@cache
def lines():
    """Those of the whole log."""
    return gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)


def logs(folder, part):
    """The input, as far as this part was written."""
    file = folder / "logs" / "c" / "broker-2" / "kafka-request.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(lines()[: len(lines()) * part // PARTS]))
    return folder / "logs"


def run(spark, source, lake):
    return pipeline.run(source, lake, settings=SETTINGS, once=True, spark=spark)
