"""Writes conf/jars.sha256 anew: `python -m scripts.build.jar_sums`, after a version in jobs/common/places.py has changed.

It takes what Maven Central has now for the sums that all later downloads have to have: look at the difference before you commit it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from jobs.common import jars
from jobs.common.places import PROJECT


def main() -> None:
    """Fetches each set of JARs, without keeping it."""
    sums: dict[str, str] = {}
    for wanted in (jars.of_spark(), jars.of_s3(), jars.of_clients(), *map(jars.of_broker, jars.BROKERS)):
        with tempfile.TemporaryDirectory() as folder:
            for path in jars.resolve(wanted.coordinates, Path(folder), print, wanted.without):
                name, digest = jars.identity(path)
                if sums.setdefault(name, digest) != digest:
                    raise SystemExit(f"{name}: two files have this name")
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(sums.items()))
    (PROJECT / "conf" / jars.SUMS).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
