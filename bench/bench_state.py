"""What tracking costs that is not an event: groups that nothing happens to, members of a group, and age of the state.

    python -m bench.bench_state [--groups 10000] [--members 5] [--idle 100000] [--sample 5] [--large 10000]

Events go to the function that Spark calls for each shard, without Spark, and the state passes through its stored form after each batch.
All figures are processor time. Shards are independent and alike: `--sample` of the 50 are measured, and the figures are those of all.

The first table has batches of three seconds in which none, a hundredth or all of the groups have a heartbeat of each member, without and
with groups that have no members. The second has groups that had more and more rebalances, the third one group whose members all join again.
"""

from __future__ import annotations

import argparse
import gc
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

import pandas as pd
from msgspec import msgpack

from coordinator_model.events import CLOCK, Event
from coordinator_model.specification.partition import coordinator_partition
from coordinator_model.view.settings import TrackerSettings
from jobs.pipeline.tracking.shards import expanded, shard_function
from jobs.pipeline.tracking.spread import Spread
from tests.tracker.story import START_MS, Story, as_numbers

SHARDS: Final = 50
STEP_MS: Final = 3_000
JOIN_MS: Final = 2_000
WARM, MEASURED = 4, 8
"""Batches: before the measurement, until every event of the beginning is handled; and of it. Sessions last longer than both."""
TURNS: Final = 5
SESSION_MS: Final = 45_000
BROKER: Final = "broker-1"


@dataclass
class State:
    """Spark's GroupState, as far as the tracker uses it."""

    get: tuple[Any, ...] = ()

    @property
    def exists(self) -> bool:
        """Whether there was a batch before."""
        return bool(self.get)

    def update(self, value: tuple[Any, ...]) -> None:
        """Keeps what this batch leaves."""
        self.get = value


FOLLOW: Final = shard_function(Spread(SHARDS, tasks=1), TrackerSettings())


def batch(shard: int, state: State, events: Sequence[Event], until_ms: int) -> float:
    """Processor seconds of one shard in one batch, whose lines were read up to a time."""
    base = until_ms - STEP_MS
    clock = Event(BROKER, "clock", "", 0, until_ms, base, CLOCK, beats=(0, STEP_MS // 1_000))
    packet = msgpack.encode((*as_numbers([*events, clock]), [], len(events) + 1))
    frame = pd.DataFrame({"cluster": ["c"], "shard": [shard], "events": [packet]})
    begun = time.process_time()
    for _ in FOLLOW(("c", shard), iter([frame]), state):  # type: ignore[arg-type]
        pass
    return time.process_time() - begun


def members_of(group: str, count: int) -> list[str]:
    """Ids as long as Kafka's."""
    return [f"consumer-{group}-{number}-6f3a{number:08x}-1d2c-4b7e-9a51-0c8e7f64{number:04x}" for number in range(count)]


def joined(group: str, count: int, at_ms: int = 0, generation: int = 1, story: Story | None = None) -> Story:
    """All members of a group join within JOIN_MS, and get a partition each: the first of them is the leader, and asks first."""
    story, everybody = story or Story(group, BROKER), members_of(group, count)
    leader, end_ms = everybody[0], at_ms + JOIN_MS
    for number, member in enumerate(everybody):
        waited = JOIN_MS - 700 - number % 1_000 if number else JOIN_MS
        story.at(end_ms).join(member, generation, leader, () if number else everybody, waited=waited, session_timeout_ms=SESSION_MS)
    given = {member: (f"orders-{place}",) for place, member in enumerate(everybody)}
    for number, member in enumerate(everybody):
        story.at(end_ms + 10).sync(member, generation, {member: given[member]} if number else given)
    return story


def beats(groups: Sequence[str], members: int, at_ms: int, generation: int = 1) -> list[Event]:
    """A heartbeat of each member."""
    made = []
    for place, group in enumerate(groups):
        story = Story(group, BROKER)
        for number, member in enumerate(members_of(group, members)):
            story.at(at_ms + (37 * place + 11 * number) % STEP_MS).heartbeat(member, generation)
        made += story.events
    return made


def names(prefix: str, count: int, shard: int) -> list[str]:
    """The groups of one shard, of so many groups."""
    return [name for number in range(count) if coordinator_partition(name := f"{prefix}-{number}", SHARDS) == shard]


def states(shard: int, busy: Sequence[str], members: int, idle: Sequence[str]) -> State:
    """A shard some seconds after its groups began. The idle ones came and went before."""
    state = State()
    for first in range(0, len(idle), 500):
        events = []
        for group in idle[first : first + 500]:
            story = joined(group, 1, -600_000)
            events += story.at(-590_000).leave(members_of(group, 1)[0]).events
        batch(shard, state, events, START_MS - 580_000)
    batch(shard, state, [event for group in busy for event in joined(group, members).events], START_MS + STEP_MS)
    for number in range(1, WARM):
        batch(shard, state, beats(busy, members, number * STEP_MS), START_MS + (number + 1) * STEP_MS)
    return state


def costs(shard: int, befores: Sequence[State], active: Sequence[str], members: int, generation: int = 1) -> list[float]:
    """Processor seconds of a batch after each state: the mean of some, in the best of some turns: a machine's speed changes."""
    made = [beats(active, members, number * STEP_MS, generation) for number in range(WARM, WARM + MEASURED)]
    untils = range(START_MS + (WARM + 1) * STEP_MS, START_MS + (WARM + MEASURED + 1) * STEP_MS, STEP_MS)
    gc.collect()
    gc.freeze()  # what the benchmark itself holds is not searched for garbage
    turns: list[list[float]] = [[] for _ in befores]
    for _ in range(TURNS):
        for state, own_turns in zip(befores, turns, strict=True):
            own = State(state.get)
            own_turns.append(sum(batch(shard, own, events, until_ms) for events, until_ms in zip(made, untils, strict=True)))
    gc.unfreeze()
    return [min(own_turns) / MEASURED for own_turns in turns]


def by_activity(groups: int, members: int, idle: int, sample: int) -> None:
    """Prints core seconds of a batch of all shards, without and with idle groups, and the size of the state."""
    kinds = {"no group": slice(0), "a hundredth of the groups": slice(None, None, 100), "all groups": slice(None)}
    seconds = {kind: [0.0, 0.0] for kind in kinds}
    sizes = [0, 0]
    for shard in range(sample):
        busy = names("busy", groups, shard)
        both = [states(shard, busy, members, ()), states(shard, busy, members, names("idle", idle, shard))]
        sizes = [size + len(state.get[0]) for size, state in zip(sizes, both, strict=True)]
        for kind, part in kinds.items():
            of_both = costs(shard, both, busy[part], members)
            seconds[kind] = [total + more for total, more in zip(seconds[kind], of_both, strict=True)]
    scale = SHARDS / sample
    print(f"{groups:,} groups of {members} members in {SHARDS} shards; beside: {idle:,} more that have no members")
    print(f"{'a batch of 3 s in which heartbeats come from':50} {'core s':>8} {'beside':>8} {'adds':>7}")
    for kind, (alone, beside) in seconds.items():
        print(f"{kind:50} {scale * alone:8.2f} {scale * beside:8.2f} {beside / alone - 1:7.1%}")
    print(f"{'state, MB':50} {scale * sizes[0] / 1e6:8.1f} {scale * sizes[1] / 1e6:8.1f}\n")


def aged(rebalances: int) -> str:
    """Twenty groups of one shard, each after so many rebalances, one a minute."""
    state, members = State(), 5
    groups = names("aged", 20 * SHARDS, 0)
    for number in range(rebalances):
        at_ms = (number - rebalances) * 60_000
        events = [event for group in groups for event in joined(group, members, at_ms, number + 1).events]
        batch(0, state, events, START_MS + at_ms + STEP_MS)
    for number in range(WARM):
        batch(0, state, beats(groups, members, number * STEP_MS, rebalances), START_MS + (number + 1) * STEP_MS)
    (seconds,) = costs(0, [state], groups, members, rebalances)
    return f"{rebalances:>19,} rebalances {1e3 * seconds / len(groups):11.2f} {len(expanded(state.get[0])) / len(groups) / 1e3:9.1f}"


def large(members: int) -> str:
    """One group: its members join, heartbeat, are told to join again, and do. In a process of its own, whose memory is its own."""
    story, everybody = joined("orders", members), members_of("orders", members)
    state = State()
    batch(0, state, story.events, START_MS + STEP_MS)
    for number in range(1, WARM):
        batch(0, state, beats(["orders"], members, number * STEP_MS), START_MS + (number + 1) * STEP_MS)
    at_ms = WARM * STEP_MS
    again = Story("orders", BROKER).at(at_ms)
    again.log_preparing(1, f"Leader {everybody[0]} re-joining group during Stable; client reason: rebalance", everybody[0])
    for member in everybody[1:]:
        again.at(at_ms + 500).heartbeat(member, 1, error=27)
    again.at(at_ms + JOIN_MS).log_stabilized(2, members)
    joined("orders", members, at_ms, 2, again)
    begun = time.process_time()
    batch(0, state, again.events, START_MS + at_ms + STEP_MS)
    for number in range(WARM + 1, WARM + 5):  # until it is told
        batch(0, state, (), START_MS + (number + 1) * STEP_MS)
    seconds, peak_mb = time.process_time() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{members:>22,} members {seconds:8.2f} {peak_mb:9.0f} {len(state.get[0]) / 1e6:9.2f}"


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--members", type=int, default=5, help="of each group")
    parser.add_argument("--idle", type=int, default=100_000, help="groups without members")
    parser.add_argument("--sample", type=int, default=5, help=f"shards that are measured, of {SHARDS}")
    parser.add_argument("--large", type=int, default=10_000, help="members of the large group")
    options = parser.parse_args()
    by_activity(options.groups, options.members, options.idle, options.sample)
    print(f"{'a group after':30} {'ms a batch':>11} {'state kB':>9}")
    print(*map(aged, (1, 10, 100)), "", sep="\n")
    print(f"{'one group, a full rebalance':30} {'core s':>8} {'peak MB':>9} {'state MB':>9}")
    for members in (options.large // 100, options.large // 10, options.large):
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            print(pool.submit(large, members).result(), flush=True)


if __name__ == "__main__":
    main()
