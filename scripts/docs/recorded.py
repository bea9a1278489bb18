"""A lakehouse of the bundled recording of Kafka 4.2.0, for pages that show one."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from jobs.common.places import PROJECT
from jobs.common.settings import Settings
from jobs.pipeline import at_once

RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0"


@contextmanager
def lakehouse() -> Iterator[Path]:
    """A new one, which takes half a minute and no Java."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "lake"
        at_once.process(RECORDING, folder, settings=Settings(), most_lines=1 << 30)
        yield folder
