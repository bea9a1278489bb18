"""Small lakehouses written by hand: no JVM."""

import shutil
import tempfile
from functools import cache
from pathlib import Path

from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED
from coordinator_model.events import BROKER_UNCLEAN
from jobs.lakehouse import tables
from jobs.lakehouse.added_files import LAST
from jobs.lakehouse.folder import Lakehouse
from jobs.pipeline.tracking import track
from jobs.pipeline.tracking.incident_table import IncidentTable
from schemas.names import INGEST
from schemas.tables import FOLDED_TABLES, PROVISIONAL_TABLES
from schemas.tables import TABLES as FINAL_TABLES

TABLES = FINAL_TABLES | PROVISIONAL_TABLES
DAY = 1_795_219_200_000  # 2026-11-21T00:00:00Z
HOSTILE = "\x1b[31mred\x1b[0m\n\u202eevil[bold]\x9b1m" + "x" * 100_000
MEMBER = "app-1-d5592b52-6ee4-419b-a462-b530fc595756"


def row(table, **values):
    """A row of the tracker: what the test does not say is null, or empty where null is not allowed."""
    empty = {"string": "", "bool": False, "int32": 0, "int64": 0, "timestamp[us, tz=UTC]": DAY}
    fields = [field for field in TABLES[table] if field.name not in {"cluster", "batch_id"}]
    full = {field.name: None if field.nullable and str(field.type) in empty else empty.get(str(field.type), []) for field in fields}
    full |= {"evidence": "[]"} if "evidence" in full else {}
    return full | values | {"cluster": "c", "table": table}


def new_lakehouse(folder):
    for name, schema in (TABLES | FOLDED_TABLES).items():
        tables.ensure_table(folder, name, schema)
    return folder


@cache
def _template():
    return new_lakehouse(Path(tempfile.mkdtemp(prefix="empty-lakehouse-")))


def empty_lakehouse(folder):
    """A copy of one lakehouse, which is ten times faster than a new one; all copies have the same table ids."""
    shutil.copytree(_template(), folder, dirs_exist_ok=True)
    return folder


def write(lakehouse, *rows, batch=0, app="test"):
    """Appends rows, and writes the incidents that follow from them."""
    for name in {item["table"] for item in rows}:
        own = [item for item in rows if item["table"] == name]
        tables.append(lakehouse / name, track.to_arrow(own, TABLES[name], batch), app, batch)
    if any(item.get("code") == COORDINATOR_MOVED.code or item.get("kind") == BROKER_UNCLEAN for item in rows):
        IncidentTable(lakehouse).refresh()


def track_is_at(lake, batch, app=INGEST):
    """Checkpoint of a track whose last finished micro-batch ended with this one of ingest; another one is at work."""
    for number, reached, kinds in ((0, batch, ("offsets", "commits")), (1, batch + 1, ("offsets",))):
        for kind in kinds:
            path = Lakehouse(lake).track_checkpoint / kind / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'v1\n{{}}\n{{"{app}": [{reached}, {LAST}]}}')


def line(group="payments", at=0, **values):
    return row("group_events", **{"group_id": group, "occurred_at": DAY + at, "received_at": DAY + at, "broker": "b1"} | values)


def rebalance(group="payments", start=0, total=2_000, **values):
    known = {
        "group_id": group, "started_at": DAY + start, "ended_at": DAY + start + total, "total_ms": total,
        "generation": 1, "cause": "MEMBER_JOINED", "outcome": "COMPLETED", "group_protocol": "classic",
    }  # fmt: skip
    return row("rebalances", **known | values)


def stopped(partition="orders-0", of=None, **values):
    """A partition that stopped with a rebalance, two seconds long unless `of` is its row."""
    of = of or rebalance()
    known = {name: of[name] for name in ("group_id", "generation", "started_at", "ended_at")}
    known |= {"partition": partition, "committed_at": of["started_at"] - 4_000, "committed_offset": 700, "resumed_at": of["ended_at"] + 400}
    return row("rebalance_offsets", **known | values)


def provisional(waits_for="ANSWERS", **values):
    only_open = dict.fromkeys(("awaited", "awaited_unnamed", "limit_ms", "broker", "alarm"))
    return {**rebalance(**values), **only_open, **values, "table": "rebalances_provisional", "waits_for": waits_for}


def open_rebalance(group="payments", start=0, total=0, waits_for="JOIN", **values):
    """What the tracker last told of a rebalance that is open."""
    known = {"outcome": "OPEN", "broker": "b1", "awaited": [MEMBER], "awaited_unnamed": 0, "generation": None, "start_seen": True}
    return provisional(waits_for, group=group, start=start, total=total, **known | values)


def finding(**values):
    known = {"group_id": "payments", "occurred_at": DAY, "code": "SESSION_TIMEOUT", "severity": "ERROR", "details": "{}"}
    return row("findings", **known | {"message": "It went silent.", "advice": "Look at it."} | values)


def transition(to, at, generation, group="payments"):
    values = {"group_id": group, "occurred_at": DAY + at, "to_state": to, "generation": generation}
    return row("group_transitions", **values)
