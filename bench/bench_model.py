"""How fast the specification is, on one core.

Steady heartbeats, a join and sync of a whole group, decode and encode of a stored group, and how the cost of an event
grows with the members of a group and with the groups of a coordinator.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from time import perf_counter

from coordinator_model.specification.codec import decode, encode
from coordinator_model.specification.config import CoordinatorConfig
from coordinator_model.specification.coordinator import Coordinator
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.requests import Heartbeat, JoinGroup, SyncGroup

CONFIG = CoordinatorConfig.of("4.2.0")
SESSION_MS, REBALANCE_MS, HEARTBEAT_MS = 45_000, 300_000, 3_000
PROTOCOLS = (
    ("range", b"\0\1\0\0\0\1\0\6orders" + bytes(20)),
    ("cooperative-sticky", b"\0\1\0\0\0\1\0\6orders" + bytes(40)),
)


def member_id(number: int) -> str:
    """An id as Kafka makes them."""
    return f"consumer-orders-{number}-6f3a{number:08x}-1d2c-4b7e-9a51-0c8e7f64{number:04x}"


def join_all(group: ClassicGroup, members: int, now_ms: int) -> int:
    """Let every member join a new group and sync; the time when it is Stable."""
    for number in range(members):
        request = JoinGroup("", SESSION_MS, REBALANCE_MS, "consumer", PROTOCOLS, fresh_member_id=member_id(number))
        group.handle(request, now_ms, number)
        group.handle(request._replace(member_id=member_id(number)), now_ms, number)
    now_ms += 2 * CONFIG.group_initial_rebalance_delay_ms
    leader = member_id(0)
    group.advance(now_ms)
    assignments = tuple((member_id(number), b"orders-%d" % number) for number in range(members))
    for number in range(members):
        group.handle(SyncGroup(member_id(number), 1, assignments if member_id(number) == leader else ()), now_ms, number)
    return now_ms


def stable_group(members: int, group_id: str = "orders") -> tuple[ClassicGroup, int]:
    """A Stable group."""
    group = ClassicGroup(group_id, CONFIG, 0)
    return group, join_all(group, members, 0)


def rejoin_all(group: ClassicGroup, members: int, now_ms: int) -> None:
    """A rebalance of a Stable group that the leader starts: all join, all sync."""
    generation = group.generation + 1
    for number in range(members):
        group.handle(JoinGroup(member_id(number), SESSION_MS, REBALANCE_MS, "consumer", PROTOCOLS), now_ms, number)
    assignments = tuple((member_id(number), b"orders-%d" % number) for number in range(members))
    for number in range(members):
        group.handle(SyncGroup(member_id(number), generation, assignments if number == 0 else ()), now_ms, number)


def seconds(run: Callable[[], None], repeat: int) -> float:
    """The shortest of `repeat` runs."""
    best = float("inf")
    for _ in range(repeat):
        start = perf_counter()
        run()
        best = min(best, perf_counter() - start)
    return best


def heartbeats_per_second(members: int, rounds: int) -> float:
    """Every member of a group heartbeats every 3 seconds."""
    group, now_ms = stable_group(members)
    requests = [Heartbeat(member_id(number), 1) for number in range(members)]

    def run() -> None:
        nonlocal now_ms
        handle = group.handle
        for _ in range(rounds):
            now_ms += HEARTBEAT_MS
            for request in requests:
                handle(request, now_ms)

    return members * rounds / seconds(run, 5)


def coordinator_heartbeats_per_second(groups: int) -> float:
    """The same through a coordinator, one heartbeat each of three members of many groups."""
    coordinator = Coordinator(CONFIG, 0, range(CONFIG.offsets_topic_num_partitions))
    names = [f"group-{number}" for number in range(groups)]
    for name in names:
        group = coordinator.groups[name] = ClassicGroup(name, CONFIG, 0)
        join_all(group, 3, 0)
    now_ms = 6_000
    requests = [Heartbeat(member_id(number), 1) for number in range(3)]

    def run() -> None:
        nonlocal now_ms
        now_ms += HEARTBEAT_MS
        for name in names:
            for request in requests:
                coordinator.handle(name, request, now_ms)

    return 3 * groups / seconds(run, 5)


def measure(*, quick: bool) -> dict[str, float]:
    """All figures, by name."""
    figures: dict[str, float] = {"heartbeats_per_s": heartbeats_per_second(50, 20 if quick else 400)}
    group, now_ms = stable_group(50)
    figures["join_and_sync_of_50_members_ms"] = 1e3 * seconds(lambda: void(stable_group(50)), 5)
    figures["rejoin_and_sync_of_50_members_ms"] = 1e3 * seconds(lambda: rejoin_all(group, 50, now_ms), 5)
    blob = encode(group)
    figures["blob_of_50_members_bytes"] = len(blob)
    figures["decode_and_encode_of_50_members_us"] = 1e6 * seconds(lambda: void(encode(decode(blob, CONFIG))), 50)
    for members in (10, 100) if quick else (10, 100, 1_000, 10_000):
        rate = heartbeats_per_second(members, max(1, 20_000 // members))
        figures[f"heartbeat_of_{members}_members_us"] = 1e6 / rate
        per_join = seconds(lambda size=members: void(stable_group(size)), 1) / members  # type: ignore[misc]
        figures[f"join_and_sync_per_member_of_{members}_us"] = 1e6 * per_join
    for groups in (10, 100) if quick else (10, 1_000, 10_000):
        figures[f"heartbeat_among_{groups}_groups_us"] = 1e6 / coordinator_heartbeats_per_second(groups)
    return figures


def void(_: object) -> None:
    """Drop a result."""


def main() -> int:
    """Print the figures, and fail if one misses its target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, no judgement")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    figures = measure(quick=options.quick)
    if options.json:
        print(json.dumps(figures))
    else:
        for name, figure in figures.items():
            print(f"{name:45} {figure:12,.1f}")
    good = (
        figures["heartbeats_per_s"] >= 250_000
        and figures["join_and_sync_of_50_members_ms"] <= 3
        and figures["decode_and_encode_of_50_members_us"] <= 100
    )
    return 0 if good or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
