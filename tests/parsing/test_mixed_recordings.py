"""A recording whose brokers' and clients' logs were mixed into one file, in zones of their own: the same events at the same times."""

import re
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from tests.effort import long
from tests.logs.log_makers import write
from tests.logs.survey.mixing import events_of, logs_of, moved, shuffled

pytestmark = pytest.mark.slow

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
ZONE = "America/New_York"  # of both
LOGS = logs_of(RECORDINGS / "kafka-3.9.1")
FEW = {name: log for name, log in LOGS.items() if not name.startswith("clients") or re.search(r"/(?:payments|front|web|city)", name)}
"""The brokers and some of the clients: a file is read once for each."""


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    root = tmp_path_factory.mktemp("plain")
    for name, log in FEW.items():
        write(root / "in/default" / name, [log], b"")
    events, spool = events_of(root / "in/default", root / "out", timezone=ZONE)
    assert spool.notes == []
    return events


def boxes(hours: dict[str, int]) -> dict[str, list[bytes]]:
    """The lines of each container, those of a broker's two logs as they came. `hours`: how far a container is ahead, by its name."""
    found: dict[str, list[tuple[bytes, bytes]]] = {}
    for name, log in FEW.items():
        folder, _, rest = name.partition("/")
        box, last = rest.removesuffix(".log") if folder == "clients" else folder, b""
        by = timedelta(hours=hours.get(box, hours[folder.partition("-")[0]]))
        for line in log.split(b"\n")[:-1]:
            last = line[:24] if line[:2] == b"[2" else last
            found.setdefault(box, []).append((last, moved(line, by)))
    return {box: [line for _, line in (sorted(lines, key=lambda t: t[0]) if "broker" in box else lines)] for box, lines in found.items()}


def compose(box: str) -> bytes:
    return box.encode().ljust(20) + b" | "


def kubectl(box: str) -> bytes:
    return b"[pod/%s-0/main] " % box.encode()


def stern(box: str) -> bytes:
    return b"%s main " % box.encode()


@pytest.mark.parametrize(
    ("prefix", "chunk", "hours"),
    [
        long(compose, 40, {"broker": 0, "clients": 9}),
        long(compose, 5_000, {"broker": 0, "clients": -4}),
        long(kubectl, 300, {"broker": 0, "clients": 0, "payments-core-1": 5, "web-clicks-2": 9}),
        long(stern, 1_000, {"broker": 5, "clients": 9}),
    ],
)
def test_shuffled_by_container(plain, tmp_path, prefix, chunk, hours):
    lines = shuffled({box: [prefix(box) + line for line in lines] for box, lines in boxes(hours).items()}, 7, chunk)
    write(tmp_path / "in/default/out.txt", lines)
    zone = {"timezone": ZONE} if not hours["broker"] else {}  # it is found where it was forgotten: some clients have exact times
    events, spool = events_of(tmp_path / "in/default", tmp_path / "out", **zone, slice_lines=5_000)
    assert difference(events, plain) == []
    assert any("told apart" in note for note in spool.notes)


def test_without_names_of_containers(plain, tmp_path):
    """In the order in which they came. The releases that both write in the same words are nobody's then."""
    timed, hours = [], {"broker": 0, "clients": 9}
    for box, lines in boxes(hours).items():
        at = b""
        for line in lines:
            own = re.match(rb"\[(\d[^\]]*)\]", moved(line, timedelta(hours=0 if "broker" in box else -9)))
            epoch = re.match(rb"%\d\|(\d+)\.(\d{3})", line)
            if own is not None:
                at = own[1]
            elif epoch is not None:
                at = moved_epoch(int(epoch[1])) + b"," + epoch[2]
            timed.append((at, line))
    write(tmp_path / "in/default/out.txt", [line for _, line in sorted(timed, key=lambda t: t[0])])
    events, _ = events_of(tmp_path / "in/default", tmp_path / "out", timezone=ZONE)
    assert difference(without(events), without(plain)) == []


def moved_epoch(seconds: int) -> bytes:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    return datetime.fromtimestamp(seconds, ZoneInfo(ZONE)).strftime("%Y-%m-%d %H:%M:%S").encode()


def without(events: Counter) -> Counter:
    kinds = {("kind", "BROKER_RELEASE"), ("kind", "BROKER_UNCLEAN")}
    return Counter({event: count for event, count in events.items() if not kinds & set(event)})


def difference(events: Counter, expected: Counter) -> list:
    return [*(expected - events).items(), *(events - expected).items()][:3]
