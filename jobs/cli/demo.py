"""What needs a Kafka on this machine, or a recording of one: `rebalance broker`, `demo` and `demo-live`.

The folder of `rebalance broker` holds `logs/broker-N/server.log` and `kafka-request.log`, as `rebalance ship` and `rebalance run` read
them, and the data of broker N in `broker-N/`. Nothing outside of the folder is written, and a folder can be started again.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from jobs.cli.output.terminal import say, stdout, warn
from jobs.common import options
from jobs.common.disks import told_if_full
from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.common.places import KAFKA_VERSION, OTHER_KAFKA, as_typed, data_folder, kept_folder
from jobs.common.settings import load

if TYPE_CHECKING:
    from jobs.demo.local_broker import LocalBroker

_STEP_SECONDS: Final = 0.2


@options.command(
    "rebalance broker",
    "rebalance broker --dir kafka/ --port 9092 --topic orders:6 --topic group-protocol-logs:3",
    "rebalance broker --dir kafka/ --brokers 3",
    "rebalance broker --version 4.2.0",
)
@click.option(
    "--dir",
    "folder",
    type=options.PATH,
    metavar="DIR",
    help="Folder for all its files. A folder of an earlier start is used again. [default: a new one]",
)
@click.option("--brokers", type=click.Choice(["1", "3"]), default="1", help="Number of brokers.")
@click.option(
    "--version",
    default=KAFKA_VERSION,
    metavar="VERSION",
    help=f"Release of Kafka: {', '.join([KAFKA_VERSION, *OTHER_KAFKA])}. Each is downloaded once. A folder goes on with the same "
    "release or a newer one.",
)
@click.option(
    "--port",
    type=click.IntRange(1, 65_000),
    metavar="N",
    help="Port on 127.0.0.1; with three brokers, the first port. [default: a free one]",
)
@click.option("--topic", "topics", metavar="NAME[:PARTITIONS]", multiple=True, help="Create a topic if it does not exist. Repeatable.")
def broker(folder: Path | None, *, brokers: str, version: str, port: int | None, topics: Sequence[str]) -> int:
    """Run a real Kafka on this machine to try things out.

    Its request log has the requests of consumer groups. Prints the bootstrap address and where its logs are. Ctrl-C stops it.
    """
    from jobs.common.jars import of_broker
    from jobs.demo.local_broker import brokers_of

    wanted = [_topic(text) for text in topics]
    number = int(brokers)
    of_broker(version).ensure(warn)
    folder = (folder or Path(tempfile.mkdtemp(prefix="rebalance-broker-"))).resolve()
    running: list[LocalBroker] = []
    with told_if_full(folder), Interrupts() as interrupts:
        try:
            _check_count(folder, number)
            for member in brokers_of(folder, number, port=port or 0, version=version):
                if interrupts.happened():
                    return 0
                click.echo(f"starting broker {member.node_id} of {number}, Kafka {version} ...")
                running.append(member)
                member.start()
            for name, partitions in wanted:
                _create(running[0], name, partitions)
            click.echo(f"bootstrap: {','.join(member.bootstrap for member in running)}")
            click.echo(f"logs:      {folder / 'logs'}/broker-N/server.log, kafka-request.log")
            click.echo("Ctrl-C stops it.")
            while not interrupts.happened():
                for member in running:
                    if not member.running:
                        raise UserError(f"broker {member.node_id} ended by itself: see {member.logs / 'server.log'}")
                time.sleep(_STEP_SECONDS)
        finally:
            # The controller last: the others sign off with it.
            for member in reversed(running):
                member.stop()
    click.echo("stopped")
    return 0


def _topic(text: str) -> tuple[str, int]:
    """Name and number of partitions: `orders:6`, or `orders` for one partition."""
    name, _, partitions = text.partition(":")
    number = int(partitions) if partitions.isascii() and partitions.isdigit() else 0 if partitions else 1
    if not name or not 1 <= number <= 1000:
        raise UserError(f"--topic {text}: write NAME or NAME:PARTITIONS")
    return name, number


def _check_count(folder: Path, brokers: int) -> None:
    """UserError: the folder holds a cluster of another size."""
    present = len(list(folder.glob("broker-*/data/meta.properties")))
    if present not in {0, brokers}:
        raise UserError(f"{folder} holds a cluster of {present}: give --brokers {present}, or another folder")


def _create(member: LocalBroker, name: str, partitions: int) -> None:
    from confluent_kafka import KafkaError, KafkaException

    try:
        member.create_topic(name, partitions)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise UserError(f"topic {name} cannot be created: {error.args[0].str()}") from None


RECORDING: Final = data_folder("tests/data/recordings/kafka-3.9.1", "README.md")
_TIMEZONE: Final = "America/New_York"  # of the brokers in the recording


@click.command()
def demo() -> int:
    """Run the pipeline on a bundled recording of a real cluster.

    Two brokers, 17 consumer groups and 230 seconds of incidents: expired sessions, slow pollers, rolling restarts.
    """
    from jobs.answers.report import read_report
    from jobs.cli.output.report_text import LIMIT, render
    from jobs.cli.run import run_and_account

    if not RECORDING.is_dir():
        raise UserError(f"there is no recording at {RECORDING} (part of the checkout, and of the wheel)")
    lakehouse = kept_folder("demo") / "lakehouse"
    if lakehouse.exists():
        shutil.rmtree(lakehouse)
    say(f"Logs of a real Kafka 3.9.1 cluster, 2 brokers: {as_typed(RECORDING)}")
    if code := run_and_account(RECORDING, lakehouse, load(timezones=[_TIMEZONE]), once=True):
        return code
    say()
    render(read_report(lakehouse, limit=LIMIT), stdout())
    for line in (
        "",
        f"Everything about one group:  rebalance report --lakehouse {as_typed(lakehouse)} --group fraud-check",
        f"Why did it rebalance:        rebalance ask why --lakehouse {as_typed(lakehouse)} --group fraud-check",
        "Your own logs:               rebalance explain LOGS --timezone ZONE",
        f"How to capture them:         {as_typed(data_folder('conf/capture', 'log4j2.yaml'))}",
    ):
        say(line)
    return 0


@click.command("demo-live")
@click.option("--keep", is_flag=True, help="Keep the dashboard up at the end, until Ctrl-C.")
def demo_live(*, keep: bool) -> int:
    """Run a real Kafka, disturb its consumers, show rebalances.

    The consumers stall, die and fence each other. It takes two minutes. The first time it downloads Kafka. It writes only in the checkout,
    or in the user's cache.
    """
    from jobs.common.jars import of_broker, of_spark
    from jobs.demo.live import run_demo_live

    of_spark().ensure(warn)
    of_broker().ensure(warn)
    return run_demo_live(stdout(), folder=kept_folder("demo-live"), keep=keep)
