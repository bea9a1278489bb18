"""`rebalance demo-live`: a real Kafka, real consumers that fail, and what the pipeline shows about it while it happens.

Everything runs on this machine and in one folder: a broker with its request log on, a shipper beside it, a topic of log lines on the same
broker, and the pipeline that follows the topic. All processes end with this one.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.text import Text

from jobs.answers.news import News, NewsItem
from jobs.answers.news_text import NewsText, clock
from jobs.common.errors import QueryFailedError, UserError
from jobs.common.interrupts import Interrupts
from jobs.common.places import KAFKA_VERSION
from jobs.demo import scenes
from jobs.demo.children import RebalanceCommand, shipped_lines
from jobs.demo.consumers import CLASSIC, CONSUMER, CONSUMER_GROUP_SETTINGS, JAVA, LIBRDKAFKA, Consumers
from jobs.demo.local_broker import LocalBroker, brokers_of
from jobs.demo.scenes import Scene, ScenePlayer, Stage
from jobs.lakehouse import opening, reader
from schemas.names import INPUT_LINES, REBALANCES

if TYPE_CHECKING:
    from rich.console import Console

SECONDS: Final = 100
"""How long the demo watches consumers and pipeline."""
BEHIND_SECONDS: Final = 200
"""How much longer it waits for a pipeline that is behind, as on a busy machine."""

_TOPIC: Final = "orders"
_LOGS: Final = "group-protocol-logs"
_SETTINGS: Final = {"group.initial.rebalance.delay.ms": "1000", **CONSUMER_GROUP_SETTINGS}
_LATENESS_MS: Final = "1000"  # the two logs of one broker are seldom further apart
Part: TypeAlias = tuple[str, str, str, Callable[[Stage], Scene]]
"""A group, the kind of its second consumer, the group.protocol of both, and what happens to it."""
_PROGRAM: Final[tuple[Part, ...]] = (
    ("checkout", LIBRDKAFKA, CLASSIC, scenes.leaves),
    ("billing", JAVA, CLASSIC, scenes.is_killed),
    ("shipping", LIBRDKAFKA, CONSUMER, scenes.revokes_slowly),
    ("search", LIBRDKAFKA, CLASSIC, scenes.stalls),
    ("pricing", JAVA, CLASSIC, scenes.is_frozen),
    ("refunds", JAVA, CLASSIC, scenes.is_fenced),
    ("parcels", JAVA, CONSUMER, scenes.is_killed),
    ("catalog", LIBRDKAFKA, CLASSIC, scenes.becomes_a_consumer_group),
    ("returns", LIBRDKAFKA, CONSUMER, scenes.has_a_growing_topic),
    ("loyalty", LIBRDKAFKA, CONSUMER, scenes.comes_back_static),
    ("audit", LIBRDKAFKA, CONSUMER, scenes.becomes_a_classic_group),
)
_APART_SECONDS: Final = 5.0
"""From the start of one scene to the next, so that a person can follow."""
_FIRST: Final = "warm-up"
"""The group whose first rebalance shows that the pipeline works. The JVM compiles what it runs meanwhile, which takes its time."""
_ADDRESS: Final = re.compile(r"http://\S+/")
_STEP_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 0.5
_QUIET_SECONDS: Final = 45.0
"""After the scenes, nothing more comes when nothing came for so long. The row of a rebalance in which members left comes 30 s late."""
_READ_SECONDS: Final = 300.0  # at most: a busy machine reads the last lines late


def run_demo_live(
    console: Console,
    *,
    folder: Path,
    seconds: float = SECONDS,
    groups: Sequence[str] | None = None,
    rebalances: int | None = None,
    keep: bool = False,
) -> int:
    """Plays all scenes, or those of these groups; returns the exit code.

    `rebalances`: it ends early when it has shown so many. `keep`: the dashboard stays until a signal comes.

    UserError: it cannot start. QueryFailedError: the shipper or the pipeline ended by itself.
    """
    if folder.exists():
        shutil.rmtree(folder)
    screen = _Screen(console)
    screen.line(f"A real Kafka {KAFKA_VERSION} and real consumers. What is done to them stands beside what the pipeline finds, which")
    screen.line("follows the broker's log. It takes about two minutes; Ctrl-C ends it at any time.")
    screen.line()
    with Interrupts() as interrupts, ExitStack() as running:
        demo = _Demo(screen, folder, interrupts, running)
        demo.start()
        demo.wait_for_spark()
        demo.play([part for part in _PROGRAM if groups is None or part[0] in groups], seconds, rebalances)
        codes = demo.end()
        if interrupts.signal is not None:
            screen.line()
            screen.line("Stopped; nothing is left running.")
            return 0
        demo.account()
        if keep:
            demo.keep_dashboard()
    return 1 if any(codes) else 0


class _Screen:
    """Prints a line for each action, rebalance and finding."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._news = NewsText(ascii_only=console.options.ascii_only)
        self._mark = "." if console.options.ascii_only else "·"
        self.shown_at = time.monotonic()

    def line(self, text: str | Text = "") -> None:
        """Prints a line."""
        self._console.print(text if isinstance(text, Text) else Text(text), soft_wrap=True)

    def action(self, text: str) -> None:
        """Prints what the demo does."""
        self.line(Text(f"{clock(datetime.now(timezone.utc))}  {self._mark} {text}", style="dim"))

    def item(self, item: NewsItem) -> None:
        """Prints a rebalance or a finding."""
        self.shown_at = time.monotonic()
        self.line(self._news.line(item))


class _Demo:
    """The running processes, and their progress."""

    def __init__(self, screen: _Screen, folder: Path, interrupts: Interrupts, running: ExitStack) -> None:
        self._screen = screen
        self._folder = folder
        self._interrupts = interrupts
        self._running = running
        self._lakehouse = folder / "lakehouse"
        self._state = folder / "ship.json"
        self._news = News(self._lakehouse)
        self._input: tuple[str, int] | None = None  # the log of what the pipeline has read
        self._works = False  # whether the pipeline has told a first rebalance
        self._told = 0  # rebalances that have their final row
        self._commands: list[RebalanceCommand] = []
        self._read = 0
        self._dashboard = ""  # its address
        self._looked = 0.0
        self._to_read = -1  # lines of the scenes, once these are over
        self._delays: list[float] = []
        self._consumers: Consumers  # once there is a broker

    def _is_stopped(self) -> bool:
        return self._interrupts.signal is not None

    def start(self) -> None:
        """Starts the broker, the shipper and the pipeline."""
        if self._is_stopped():
            return
        broker = brokers_of(self._folder / "kafka", 1, settings=_SETTINGS)[0]
        self._screen.action(f"Kafka starts, with the request log of groups on: {_shown(broker.logs)}")
        self._running.callback(broker.stop)
        broker.start()
        broker.create_topic(_TOPIC, 6)
        broker.create_topic(_LOGS, 3)
        self._screen.action(f"rebalance ship --input {_shown(broker.logs)} --cluster demo --broker broker-1 --bootstrap {broker.bootstrap}")
        self._command(broker, "ship", "--input", str(broker.logs), "--cluster", "demo", "--broker", "broker-1", "--state", str(self._state))
        self._screen.action(f"rebalance run --kafka {broker.bootstrap} --lakehouse {_shown(self._lakehouse)} --lateness-ms {_LATENESS_MS}")
        self._command(broker, "run", "--lakehouse", str(self._lakehouse), "--lateness-ms", _LATENESS_MS)
        self._start_dashboard()
        self._consumers = self._running.enter_context(Consumers(broker.bootstrap, self._folder / "clients"))

    def _start_dashboard(self) -> None:
        """Starts it, and waits for its address. QueryFailedError: it has ended."""
        arguments = ("dashboard", "--lakehouse", str(self._lakehouse), "--port", "0")
        command = self._running.enter_context(RebalanceCommand(*arguments, log=self._folder / "dashboard.txt"))
        while not self._is_stopped():
            if address := _ADDRESS.search(command.log.read_text(encoding="utf-8")):
                self._dashboard = address.group()
                self._screen.action(f"rebalance dashboard --lakehouse {_shown(self._lakehouse)} --port 0, for a browser: {self._dashboard}")
                return
            if not command.running:
                raise QueryFailedError("rebalance dashboard", command.last_line(), command.log)
            time.sleep(_STEP_SECONDS)

    def _command(self, broker: LocalBroker, name: str, *arguments: str) -> None:
        address = "--bootstrap" if name == "ship" else "--kafka"
        command = RebalanceCommand(name, address, broker.bootstrap, "--topic", _LOGS, *arguments, log=self._folder / f"{name}.txt")
        self._commands.append(self._running.enter_context(command))

    def wait_for_spark(self) -> None:
        """Waits until the pipeline has told a first rebalance: from then on rows come soon after the events."""
        if self._is_stopped():
            return
        self._screen.action(f"Spark starts, and {_FIRST}-1 joins, which shows when it works ...")
        self._consumers.start(LIBRDKAFKA, _FIRST, f"{_FIRST}-1", _TOPIC)
        while not self._is_stopped() and not self._works:
            self._look()
            time.sleep(_STEP_SECONDS)

    def play(self, parts: Sequence[Part], seconds: float, rebalances: int | None) -> None:
        """Plays the scenes until all rows are shown, the time is over, or it is stopped."""
        if self._is_stopped():
            return
        began = time.monotonic()
        stages = [
            (Stage(self._consumers, group, _TOPIC, kind, protocol=protocol, say=self._screen.action), scene)
            for group, kind, protocol, scene in parts
        ]
        player = ScenePlayer(
            (stage.group, _later(began + number * _APART_SECONDS, scene, stage)) for number, (stage, scene) in enumerate(stages)
        )
        while not self._is_stopped() and time.monotonic() < began + seconds + (BEHIND_SECONDS if self._is_behind() else 0):
            if player.over and self._to_read < 0:
                self._to_read = shipped_lines(self._state)
            if self._told == rebalances:
                break
            if self._is_behind():
                self._screen.shown_at = time.monotonic()
            elif time.monotonic() - self._screen.shown_at > _QUIET_SECONDS:
                break
            try:
                player.step()
            except TimeoutError as error:
                raise UserError(str(error)) from None
            self._look()
            time.sleep(_STEP_SECONDS)

    def _is_behind(self) -> bool:
        """Whether the scenes are not over, or the pipeline has not read all their lines."""
        return not 0 <= self._to_read <= self._read

    def _look(self) -> None:
        """Shows new rows of the tables. QueryFailedError: the shipper or the pipeline has ended."""
        for command in self._commands:
            if not command.running and not command.stopped:
                raise QueryFailedError(f"rebalance {command.name}", command.last_line(), command.log)
        if time.monotonic() - self._looked < _LOOK_SECONDS:
            return
        self._looked = time.monotonic()
        for item in self._news.take():
            self._show(item)
        if (log := opening.version_of(self._lakehouse / INPUT_LINES)) != self._input:
            self._input, self._read = log, reader.account(self._lakehouse)["lines_read"]

    def _show(self, item: NewsItem) -> None:
        """Shows what is new, unless the last line about it says the same already."""
        if item.table == REBALANCES:
            is_first = item.row["group_id"] == _FIRST
            self._works = self._works or is_first
            self._told += item.waits_for is None and not is_first
            if item.replaced is None and not is_first:
                self._delays.append((datetime.now(timezone.utc) - item.at).total_seconds())
        if item.says_more:
            self._screen.item(item)

    def end(self) -> list[int]:
        """Stops all processes, the pipeline only when it has read all lines; returns exit codes."""
        if not self._commands:
            return []
        self._consumers.kill_all()
        ship, run = self._commands
        codes = [ship.stop()]
        until = time.monotonic() + _READ_SECONDS
        while not self._is_stopped() and self._read < shipped_lines(self._state) and time.monotonic() < until:
            self._look()
            time.sleep(_STEP_SECONDS)
        codes.append(run.stop())
        self._looked = 0.0
        self._look()
        return codes

    def account(self) -> None:
        """Prints how many lines were shipped and read, and what they gave."""
        line, totals = self._screen.line, reader.account(self._lakehouse)
        line()
        line(
            f"{shipped_lines(self._state):,} lines shipped, {self._read:,} read; "
            f"{totals['rebalances']} rebalances, {totals['findings']} findings."
        )
        if self._delays:
            delays = sorted(self._delays)
            line(f"From the end of a rebalance to its first row: {delays[len(delays) // 2]:.1f} s (median), {delays[-1]:.1f} s at most.")
        line(f"All of it:  rebalance report --lakehouse {_shown(self._lakehouse)}")

    def keep_dashboard(self) -> None:
        """Waits for a signal."""
        self._screen.line(f"In a browser:  {self._dashboard}   (Ctrl-C ends it)")
        while not self._is_stopped():
            time.sleep(_STEP_SECONDS)


def _later(at: float, scene: Callable[[Stage], Scene], stage: Stage) -> Scene:
    yield lambda: time.monotonic() >= at
    yield from scene(stage)


def _shown(path: Path) -> str:
    """A path as a user would type it."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
