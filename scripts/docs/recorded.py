"""A lakehouse of the bundled recording of Kafka 4.2.0, for pages that show one: that of `--lakehouse`, or a new one."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Final

from jobs.cli import entry
from jobs.common.places import PROJECT

RECORDING: Final = PROJECT / "tests" / "data" / "recordings" / "kafka-4.2.0"


@contextmanager
def chosen_lakehouse(description: str | None) -> Iterator[Path]:
    """The lakehouse that the command line names. Without one, it is made first (half a minute, and Java)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lakehouse", type=Path, help="a lakehouse of the recording")
    lakehouse = parser.parse_args().lakehouse
    if lakehouse is not None:
        yield lakehouse.resolve()
        return
    with tempfile.TemporaryDirectory() as name:
        with redirect_stdout(sys.stderr):
            code = entry.main(["run", "--input", str(RECORDING), "--lakehouse", f"{name}/lakehouse", "--once"])
        if code:
            raise SystemExit(code)
        yield Path(name) / "lakehouse"
