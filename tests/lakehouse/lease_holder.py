"""A process that holds the lease of a lakehouse in a store, for a test that kills it or lets it stand still.

    python lease_holder.py FOLDER SECONDS

It writes a mark and a row, says so, and stops itself. If it goes on afterwards, it says of each write whether it came to something.
"""

from __future__ import annotations

import os
import signal
import sys
from functools import partial

import pyarrow as pa

from jobs.common.files import write_whole
from jobs.common.stores import place_of
from jobs.lakehouse import leases, tables

SCHEMA = pa.schema([("number", pa.int32())])


def main() -> None:
    folder = place_of(sys.argv[1])
    table = tables.ensure_table(folder, "numbers", SCHEMA)

    def writes(number):
        return {
            "mark": partial(write_whole, folder / "mark", str(number).encode()),
            "new mark": (folder / "deep" / f"mark-{number}").touch,
            "row": partial(tables.append, table, pa.table({"number": pa.array([number], pa.int32())}), "test", number),
        }

    with leases.held([folder / "_lock"], "another process works here", float(sys.argv[2])):
        for act in writes(0).values():
            act()
        say("written")
        os.kill(os.getpid(), signal.SIGSTOP)
        for name, act in {**writes(1), "deletion": (folder / "deep" / "mark-0").unlink}.items():
            say(f"{name}: {outcome(act)}")


def outcome(act):
    try:
        act()
    except leases.LeaseLostError:
        return "refused"
    return "done"


def say(text):
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
