"""`rebalance run`: runs the pipeline and prints the account of its lines."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jobs.cli.output.terminal import partly_read, say, stdout, tell, warn, warn_nothing_understood
from jobs.common import exit_codes, options
from jobs.common.disks import told_if_full
from jobs.common.settings import Settings, load
from jobs.common.stores import Place

if TYPE_CHECKING:
    from jobs.kafka.offsets_capture import OffsetsFrom
    from jobs.pipeline.topic_input import TopicInput


@options.command(
    "rebalance run --input logs/ --lakehouse lake/ --once",
    "rebalance run --input logs/ --lakehouse lake/ --once --timezone Europe/Berlin",
    "rebalance run --input /var/log/kafka --lakehouse lake/          follows the logs until Ctrl-C",
    "rebalance run --kafka broker:9092 --lakehouse lake/             reads what `rebalance ship` writes to a topic",
    "rebalance run --offsets-from broker:9092 --lakehouse lake/      needs no logs: reads __consumer_offsets",
)
@click.option(
    "--input",
    "source",
    type=options.PATH,
    metavar="PATH",
    help="Folder <cluster>/<broker>/ of logs (server.log, kafka-request.log) with clients/, offsets/ and poll/ beside the brokers; "
    "or any folder, archive (zip, tar) or single log. Logs may have any name and any compression.",
)
@options.topic_input()
@options.lakehouse("Folder of the tables. It is created, or continued: lines that an earlier run has read are not read twice.")
@options.once("Stop at the end of the input. Without it: follow new lines and files.")
@options.timezones
@options.settings
@click.option("--slice-lines", type=int, metavar="N", help="Input lines per micro-batch. [default: 1000000]")
@options.lateness
@options.log_format
@click.option(
    "--offsets-from", metavar="HOST:PORT", help="Read __consumer_offsets of this cluster, with logs or without (docs/capture-managed.md)."
)
@click.option("--offsets-cluster", default="default", metavar="NAME", help="Name of that cluster in the tables.")
@click.option(
    "--offsets-commits",
    is_flag=True,
    help="Also read committed offsets. They show how far each group was when it rebalanced, and are most of the topic.",
)
@options.client_settings("--client-config", "the client that reads __consumer_offsets")
@click.option(
    "--metrics-port", type=click.IntRange(1, 65_535), metavar="N", help="Serve metrics for Prometheus at this port, such as 9404."
)
@click.option("--metrics-host", default="127.0.0.1", metavar="HOST", help="Address at which to serve the metrics.")
@options.alerts
@options.dashboard_url
def run(
    source: Path | None,
    lakehouse: Place,
    *,
    once: bool,
    config: Path | None,
    offsets_from: str | None,
    offsets_cluster: str,
    offsets_commits: bool,
    client_config: Path | None,
    metrics_port: int | None,
    metrics_host: str,
    kafka: str | None,
    topic: str,
    starting: str,
    kafka_config: Path | None,
    max_offsets: int | None,
    accept_loss: bool,
    **given: Any,
) -> int:
    """Read broker logs and track every consumer group in them.

    Stop it at any time, in any way; the same command continues where it stopped. `rebalance report` shows what it found.
    """
    from jobs.kafka.offsets_capture import OffsetsFrom
    from jobs.logs.envelopes import layouts_named
    from jobs.logs.files import discover, left_out_in
    from jobs.pipeline.topic_input import TopicInput

    _tell_without_effect(source, lakehouse, kafka=kafka is not None, offsets=offsets_from is not None)
    if metrics_port is None:
        tell("without --metrics-port", "metrics_host")
    settings = load(config, **given)
    if not settings.alerts.receivers:
        tell("without --alert, or a receiver in --config", "dashboard_url")
    layouts_named(settings.log_format, settings.log_formats)  # says before the start what is wrong with them
    offsets = None if offsets_from is None else OffsetsFrom(offsets_from, offsets_cluster, client_config, offsets_commits)
    lines = None if kafka is None else TopicInput(kafka, topic, starting, kafka_config, max_offsets, accept_loss)
    if source is None and offsets is None and lines is not None and max_offsets is not None:
        tell("beside --max-offsets", "slice_lines")
    metrics = None if metrics_port is None else (metrics_host, metrics_port)
    with suppress(OSError):
        if source is not None and discover(source) and (left := left_out_in(source)):  # without logs, the error says what is there
            say(left)
    return run_and_account(source, lakehouse, settings, once=once, offsets=offsets, topic=lines, metrics=metrics)


def _tell_without_effect(source: Path | None, lakehouse: Place, *, kafka: bool, offsets: bool) -> None:
    """Says which options about the input have no effect."""
    from jobs.lakehouse.folder import Lakehouse

    if not kafka:
        tell("without --kafka", "topic", "starting", "max_offsets", "kafka_config", "accept_loss")
    elif (Lakehouse(lakehouse).topic_checkpoint / "offsets").is_dir():
        tell(f"on {lakehouse}, which has read the topic: it goes on where it stopped", "starting")
    if not offsets:
        tell("without --offsets-from", "offsets_cluster", "offsets_commits", "client_config")
    if source is None:
        tell("without --input: lines of a topic have times (`rebalance ship` has this option)", "timezones")
        tell("without --input: it is about the lines of log files", "log_format")


def run_and_account(
    source: Path | None,
    lakehouse: Place,
    settings: Settings,
    *,
    once: bool,
    offsets: OffsetsFrom | None = None,
    topic: TopicInput | None = None,
    metrics: tuple[str, int] | None = None,
) -> int:
    """Runs the pipeline and prints the account; returns the exit code."""
    from jobs.cli.output.account_text import warn_of_refused, write_account, write_evidence
    from jobs.cli.output.progress import Progress
    from jobs.pipeline import run as pipeline

    with told_if_full(lakehouse), Progress(stdout()) as progress:
        result = pipeline.run(
            source, lakehouse, settings=settings, once=once, offsets=offsets, topic=topic, metrics=metrics, show=progress.show, warn=warn
        )
    names = [str(source) if source else None, f"topic {topic.topic}" if topic else None, offsets.bootstrap if offsets else None]
    read = " and ".join(name for name in names if name)
    write_account(result, read)
    if result.understood:
        write_evidence(lakehouse)
    warn_of_refused(result, lakehouse)
    if result.signal is not None and once:
        warn("stopped before the end of the input; the same command continues")
        return exit_codes.ENDED_BY_SIGNAL + result.signal
    if not once:
        return exit_codes.DONE
    if not result.understood:
        warn_nothing_understood(read)
        if source is not None:
            warn(f"`rebalance inspect {source}` shows what its lines are")
        return exit_codes.NOTHING_UNDERSTOOD
    if result.unread:
        warn(partly_read(result.unread, read))
        return exit_codes.PARTLY_READ
    return exit_codes.DONE
