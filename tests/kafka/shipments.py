"""A shipper over a folder of logs, a topic that takes its records, and what LogReader keeps of the same logs."""

from jobs.kafka.finder import Finder
from jobs.kafka.outbox import DeliveryError, StoppedError
from jobs.kafka.ship_state import ShipState, ShipTarget
from jobs.kafka.shipper import Shipper, ShipSettings
from schemas import names
from tests.kafka.topic_reader import each_line, read_record
from tests.logs.reading import read, rows

TARGET = ShipTarget("c", "b", "t")
AT_ONCE = ShipSettings(patience_seconds=0.0, poll_seconds=0.01, retry_seconds=0.0)


class Topic:
    """Stands for the outbox and the topic behind it. Refuses the records whose numbers `refuse` has."""

    topic = "t"

    def __init__(self, partitions=2, refuse=()):
        self.partitions, self.max_bytes = partitions, 1_000
        self.records, self.refuse = [], set(refuse)
        self.sent, self._pending, self._bad, self.renewed = 0, [], False, 0
        self.stop_at = self.killed_at = None

    def send(self, value, key, headers, partition=-1):
        self.sent += 1
        if self.sent in self.refuse:
            self._bad = True
            return
        self._pending.append((partition, key, read_record(headers, value)))

    def settle(self):
        if self.stop_at is not None and self.sent >= self.stop_at:
            raise StoppedError
        self.records += self._pending  # some arrived even where others did not
        self._pending = []
        if self._bad:
            raise DeliveryError("no")
        if self.killed_at is not None and self.sent >= self.killed_at:
            raise StoppedError  # what was sent has arrived, and the shipper does not know

    def renew(self):
        self.renewed += 1
        self._pending, self._bad = [], False

    def refresh(self):
        pass

    def lines(self):
        """Each line, those of bundles among them."""
        return [line for _, _, r in self.records if r.record != names.CLOCK for line in each_line(r)]

    def bundles(self):
        return [r for _, _, r in self.records if r.record == names.HEARTBEATS]

    def clocks(self):
        return [(p, r) for p, _, r in self.records if r.record == names.CLOCK]

    def distinct(self):
        """Each line once, as a reader makes it: log and position tell it."""
        return {(r.broker, r.origin, r.position): (r.at_ms, r.text, r.fault) for r in self.lines()}


def ship(folder, topic, *, inputs=("in",), once=True, stopped=lambda: False, complain=lambda _: None, settings=AT_ONCE):
    with ShipState(folder / "state.json", TARGET) as state:
        shipper = Shipper(Finder([folder / name for name in inputs], TARGET, complain), state, topic, settings)
        shipper.ship(once=once, stopped=stopped, complain=complain)
    return shipper.counts


def kept(path):
    """What LogReader keeps of one file."""
    lines, _ = read(path)
    return {position: (at_ms, text.decode(), fault or None) for position, at_ms, text, fault in rows(lines)}


def lines_of(topic, origin):
    return {position: rest for (_, name, position), rest in topic.distinct().items() if name == origin}
