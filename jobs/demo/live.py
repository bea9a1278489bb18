"""`rebalance demo-live`: a real Kafka, real consumers that fail, and what the pipeline shows about it while it happens.

Everything runs on this machine and in one folder: a broker with its request log on, a shipper beside it, a topic of log lines on the same
broker, and the pipeline that follows the topic. All processes end with this one.
"""

from __future__ import annotations

import math
import re
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rich.text import Text

from jobs.answers.news import News, NewsText, clock
from jobs.common.errors import QueryFailedError, UserError
from jobs.common.interrupts import Interrupts
from jobs.common.places import KAFKA_VERSION, as_typed
from jobs.demo import scenes
from jobs.demo.children import RebalanceCommand, shipped_lines
from jobs.demo.consumers import CLASSIC, CONSUMER, CONSUMER_GROUP_SETTINGS, JAVA, LIBRDKAFKA, Consumers
from jobs.demo.local_broker import brokers_of
from jobs.demo.scenes import Scene, ScenePlayer, Stage
from jobs.lakehouse import reader
from schemas.names import REBALANCES

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
_STEP_SECONDS: Final = 0.25
_QUIET_SECONDS: Final = 45.0
"""After the scenes, nothing more comes when nothing came for so long. The row of a rebalance in which members left comes 30 s late."""
_READ_SECONDS: Final = 300.0  # at most: a busy machine reads the last lines late


class _StoppedError(Exception):
    """A signal came."""


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

    UserError: it cannot start. QueryFailedError: the shipper, the pipeline or the dashboard ended by itself.
    """
    if folder.exists():
        shutil.rmtree(folder)
    demo = _Demo(console, folder)
    demo.line(f"A real Kafka {KAFKA_VERSION} and real consumers. What is done to them stands beside what the pipeline finds, which")
    demo.line("follows the broker's log. It takes about two minutes; Ctrl-C ends it at any time.")
    demo.line()
    try:
        with Interrupts() as demo.interrupts, ExitStack() as running:
            demo.start(running)
            demo.play([part for part in _PROGRAM if groups is None or part[0] in groups], seconds, rebalances)
            codes = demo.end()
            demo.account()
            if keep:
                demo.keep_dashboard()
    except _StoppedError:
        demo.line()
        demo.line("Stopped; nothing is left running.")
        return 0
    return 1 if any(codes) else 0


class _Demo:
    """The running processes, and a line for each action, rebalance and finding."""

    def __init__(self, console: Console, folder: Path) -> None:
        self.interrupts = Interrupts()
        self._console = console
        self._text = NewsText(ascii_only=console.options.ascii_only)
        self._mark = "." if console.options.ascii_only else "·"
        self._folder = folder
        self._lakehouse = folder / "lakehouse"
        self._state = folder / "ship.json"
        self._news = News(self._lakehouse)
        self._works = False  # whether the pipeline has told a first rebalance
        self._told = 0  # rebalances that have their final row
        self._shown_at = 0.0
        self._commands: dict[str, RebalanceCommand] = {}
        self._dashboard = ""  # its address
        self._delays: list[float] = []
        self._consumers: Consumers  # once there is a broker

    def line(self, text: str | Text = "") -> None:
        """Prints a line."""
        self._console.print(text if isinstance(text, Text) else Text(text), soft_wrap=True)

    def _say(self, text: str) -> None:
        """Prints what the demo does."""
        self.line(Text(f"{clock(datetime.now(timezone.utc))}  {self._mark} {text}", style="dim"))

    def start(self, running: ExitStack) -> None:
        """Starts everything, and waits until the pipeline has told a first rebalance: from then on rows come soon after the events."""
        broker = brokers_of(self._folder / "kafka", 1, settings=_SETTINGS)[0]
        self._say(f"Kafka starts, with the request log of groups on: {as_typed(broker.logs)}")
        running.callback(broker.stop)
        broker.start()
        broker.create_topic(_TOPIC, 6)
        broker.create_topic(_LOGS, 3)

        def command(name: str, *arguments: str) -> None:
            log = self._folder / f"{name}.txt"
            self._commands[name] = running.enter_context(RebalanceCommand(name, *arguments, log=log))

        logs, lakehouse = str(broker.logs), str(self._lakehouse)
        self._say(f"rebalance ship --input {as_typed(broker.logs)} --cluster demo --broker broker-1 --bootstrap {broker.bootstrap}")
        source = ("--input", logs, "--cluster", "demo", "--broker", "broker-1", "--state", str(self._state))
        command("ship", *source, "--bootstrap", broker.bootstrap, "--topic", _LOGS)
        self._say(f"rebalance run --kafka {broker.bootstrap} --lakehouse {as_typed(self._lakehouse)} --lateness-ms {_LATENESS_MS}")
        command("run", "--kafka", broker.bootstrap, "--topic", _LOGS, "--lakehouse", lakehouse, "--lateness-ms", _LATENESS_MS)
        command("dashboard", "--lakehouse", lakehouse, "--port", "0")
        self._until(self._has_dashboard)
        self._say(f"rebalance dashboard --lakehouse {as_typed(self._lakehouse)} --port 0, for a browser: {self._dashboard}")
        self._say(f"Spark starts, and {_FIRST}-1 joins, which shows when it works ...")
        self._consumers = running.enter_context(Consumers(broker.bootstrap, self._folder / "clients"))
        self._consumers.start(LIBRDKAFKA, _FIRST, f"{_FIRST}-1", _TOPIC)
        self._until(lambda: self._works)

    def _has_dashboard(self) -> bool:
        found = _ADDRESS.search(self._commands["dashboard"].log.read_text(encoding="utf-8"))
        self._dashboard = found.group() if found else ""
        return found is not None

    def play(self, parts: Sequence[Part], seconds: float, rebalances: int | None) -> None:
        """Plays the scenes until all rows are shown, or the time is over."""
        began = time.monotonic()
        stages = [
            (Stage(self._consumers, group, _TOPIC, kind, protocol=protocol, say=self._say), scene) for group, kind, protocol, scene in parts
        ]
        player = ScenePlayer(
            (stage.group, _later(began + number * _APART_SECONDS, scene, stage)) for number, (stage, scene) in enumerate(stages)
        )

        def has_played() -> bool:
            try:
                player.step()
            except TimeoutError as error:
                raise UserError(str(error)) from None
            return player.over or self._told == rebalances

        self._until(has_played, began + seconds + BEHIND_SECONDS)
        of_scenes = shipped_lines(self._state)
        self._until(lambda: self._lines_read() >= of_scenes or self._told == rebalances, began + seconds + BEHIND_SECONDS)
        self._shown_at = time.monotonic()
        self._until(lambda: self._told == rebalances or time.monotonic() - self._shown_at > _QUIET_SECONDS, began + seconds)

    def _until(self, holds: Callable[[], bool], at_most: float = math.inf) -> None:
        """Waits, and shows new rows of the tables meanwhile.

        _StoppedError: a signal came. QueryFailedError: a command has ended.
        """
        while not holds() and time.monotonic() < at_most:
            if self.interrupts.happened():
                raise _StoppedError
            for command in self._commands.values():
                if not command.running and not command.stopped:
                    raise QueryFailedError(f"rebalance {command.name}", command.last_line(), command.log)
            self._show()
            time.sleep(_STEP_SECONDS)

    def _show(self) -> None:
        """Shows what is new, unless the last line about it says the same already."""
        for item in self._news.take():
            if item.table == REBALANCES:
                is_first = item.row["group_id"] == _FIRST
                self._works = self._works or is_first
                self._told += item.waits_for is None and not is_first
                if item.replaced is None and not is_first:
                    self._delays.append((datetime.now(timezone.utc) - item.at).total_seconds())
            if item.says_more:
                self._shown_at = time.monotonic()
                self.line(self._text.line(item))

    def _lines_read(self) -> int:
        return reader.account(self._lakehouse)["lines_read"]

    def end(self) -> list[int]:
        """Stops the shipper, and the pipeline when it has read all lines; returns exit codes."""
        self._consumers.kill_all()
        codes = [self._commands["ship"].stop()]
        self._until(lambda: self._lines_read() >= shipped_lines(self._state), time.monotonic() + _READ_SECONDS)
        codes.append(self._commands["run"].stop())
        self._show()
        return codes

    def account(self) -> None:
        """Prints how many lines were shipped and read, and what they gave."""
        totals = reader.account(self._lakehouse)
        self.line()
        self.line(
            f"{shipped_lines(self._state):,} lines shipped, {totals['lines_read']:,} read; "
            f"{totals['rebalances']} rebalances, {totals['findings']} findings."
        )
        if self._delays:
            delays = sorted(self._delays)
            self.line(
                f"From the end of a rebalance to its first row: {delays[len(delays) // 2]:.1f} s (median), {delays[-1]:.1f} s at most."
            )
        self.line(f"All of it:  rebalance report --lakehouse {as_typed(self._lakehouse)}")

    def keep_dashboard(self) -> None:
        """Waits for a signal."""
        self.line(f"In a browser:  {self._dashboard}   (Ctrl-C ends it)")
        with suppress(_StoppedError):
            self._until(lambda: False)


def _later(at: float, scene: Callable[[Stage], Scene], stage: Stage) -> Scene:
    yield lambda: time.monotonic() >= at
    yield from scene(stage)
