"""What tests of `rebalance ship` share: logs that are written and rotated, a shipper beside them, and checks of its topic."""

import gzip
import shutil
import threading
import time
from pathlib import Path

from jobs.demo.children import RebalanceCommand, shipped_lines
from schemas.names import CLOCK, LINE
from tests.kafka.topic_reader import each_line, topic_records
from tests.logs.log_makers import coordinator, heartbeat, other, request
from tests.waiting import PATIENCE_SECONDS

PROJECT = Path(__file__).parents[2]


def arguments(bootstrap, topic, folder, *more):
    place = ["--input", str(folder / "logs"), "--state", str(folder / "state.json")]
    return ["ship", *place, "--cluster", "live", "--broker", "b1", "--bootstrap", bootstrap, "--topic", topic, *more]


class ShipProcess(RebalanceCommand):
    """`rebalance ship` of the folder `logs` beside its state."""

    def __init__(self, bootstrap, topic, folder):
        super().__init__(*arguments(bootstrap, topic, folder), log=folder / "ship.txt")
        self._state = folder / "state.json"

    def output(self):
        """What this shipper and earlier ones of the folder wrote."""
        return self.log.read_text()

    def shipped(self):
        """Lines that the shipper knows to have arrived."""
        return shipped_lines(self._state)

    def end(self):
        """Stops it as systemd does; returns its output."""
        assert self.stop() == 0, self.output()
        return self.output()


def read_back(bootstrap, topic):
    """All records, as (partition, offset, record), each partition in its order. Each heartbeat of a bundle is a record."""
    records = topic_records(bootstrap, topic)
    found = [(message.partition(), message.offset(), line) for message, record in records for line in each_line(record)]
    return sorted(found, key=lambda row: row[:2])


def distinct(records):
    """What a reader makes of it: of one position of one log, one line."""
    lines = {}
    for _, _, record in records:
        if record.record == LINE:
            key = record.cluster, record.broker, record.origin, record.position
            assert lines.setdefault(key, record.text) == record.text
    return lines


def check_ticks(records):
    """Behind a tick no line at or before its position comes that was not there before it; in all partitions, `lines` are there."""
    seen: dict[tuple[int, str], set[int]] = {}
    told: dict[tuple[int, str], int] = {}
    positions: dict[str, set[int]] = {}
    ticks: dict[str, tuple[int, int]] = {}
    for partition, _, record in records:
        place = partition, record.origin
        if record.record == CLOCK:
            told[place] = max(told.get(place, 0), record.position)
            ticks[record.origin] = max(ticks.get(record.origin, (0, 0)), (record.position, record.lines))
        elif record.position:
            assert record.position > told.get(place, 0) or record.position in seen[place]
            seen.setdefault(place, set()).add(record.position)
            positions.setdefault(record.origin, set()).add(record.position)
    for origin, (position, lines) in ticks.items():
        assert sum(p <= position for p in positions.get(origin, ())) == lines
    return ticks


class LogWriter(threading.Thread):
    """Writes numbered lines as a broker does, some of which matter, and rotates as log4j, gzip or copytruncate do."""

    def __init__(self, folder, *, rotate_every=0.0, most_rotations=1_000, pause=0.02):
        super().__init__(daemon=True)
        self.folder, self.rotate_every, self.most_rotations, self.pause = folder, rotate_every, most_rotations, pause
        self.path = folder / "server.log"
        self.written, self.rotations = 0, 0
        self._ended = threading.Event()
        folder.mkdir()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def backlog(self, count):
        """What was written before anybody shipped it."""
        with (self.folder / "server.log.0").open("wb") as file:
            for _ in range(count):
                file.write(
                    coordinator(self.written // 100 - 10_000, f"Stabilized group g generation {self.written} with 3 members.") + b"\n"
                )
                self.written += 1

    def run(self):
        began, rotated = time.time(), time.monotonic()
        file = self.path.open("ab")
        while not self._ended.is_set():
            at = int((time.time() - began) * 1000)
            batch = []
            for _ in range(20):
                group = f"g{self.written % 7}"
                if self.written % 2:
                    batch.append(coordinator(at, f"Stabilized group {group} generation {self.written} with 3 members."))
                elif self.written % 4:
                    batch.append(heartbeat(at, f"member-{self.written % 7}", str(self.written)))
                else:
                    batch.append(request(at, group=group).replace(b'"errorCode":0', b'"n":%d' % self.written))
                self.written += 1
            file.write(b"\n".join([other(at), *batch]) + b"\n")
            file.flush()
            if self.rotate_every and self.rotations < self.most_rotations and time.monotonic() - rotated > self.rotate_every:
                file.close()
                self._rotate()
                rotated = time.monotonic()
                file = self.path.open("ab")
            self._ended.wait(self.pause)
        file.close()

    def _rotate(self):
        self.rotations += 1
        for number in range(self.rotations - 1, 0, -1):
            for end_ in (".gz", ""):
                old = self.folder / f"server.log.{number}{end_}"
                if old.exists():
                    old.rename(self.folder / f"server.log.{number + 1}{end_}")
        if self.rotations % 3 == 0:  # copytruncate
            shutil.copyfile(self.path, self.folder / "server.log.1")
            time.sleep(0.05)
            self.path.write_bytes(b"")
        else:
            self.path.rename(self.folder / "server.log.1")
        plain = self.folder / "server.log.2"
        if plain.exists():
            packed = self.folder.parent / "packed.gz"
            with plain.open("rb") as source, gzip.open(packed, "wb") as target:
                shutil.copyfileobj(source, target)
            packed.rename(self.folder / "server.log.2.gz")  # whole at once: it may be renamed while a busy machine still packs it
            plain.unlink()

    def stop(self):
        self._ended.set()
        self.join(PATIENCE_SECONDS)


def numbers(lines):
    """The numbers of the lines that arrived, one for each, sorted."""
    found = []
    for text in lines.values():
        mark = next(mark for mark in ('"n":', "generation ", '"correlationId":') if mark in text)
        found.append(int(text.partition(mark)[2].partition("}")[0].split()[0]))
    return sorted(found)
