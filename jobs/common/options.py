"""Options of the command line, each written once: for the commands of `rebalance` and for the jobs that spark-submit starts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any, Final

import click

from jobs.common import exit_codes
from jobs.common.errors import UserError
from jobs.common.stores import place_of
from jobs.common.text import printable
from jobs.common.times import parse_span

CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "show_default": True}
LINE_CHARS: Final = 2_000  # of an error message

Command = Callable[..., Any]
Option = Callable[[Command], Command]


class Span(click.ParamType[timedelta]):
    """A duration: 500ms, 60s, 5m, 24h, 7d, 26w."""

    name = "time"

    def convert(self, value: str | timedelta, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:  # noqa: ARG002
        """UserError: not a duration."""
        return value if isinstance(value, timedelta) else parse_span(value, name=param.opts[0] if param else "duration")


PATH: Final = click.Path(path_type=Path)
PLACE: Final = click.types.FuncParamType(place_of)
"""A folder, or a prefix in an object store: s3://BUCKET/PREFIX."""
SPAN: Final = Span()


class _SparkJob(click.Command):
    """A command that returns normally, so that spark-submit sees what ended it. Errors for users have exit code 2, as wrong options do."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]  # Click has two overloads
        try:
            return super().main(args, **(extra | {"standalone_mode": False}))
        except UserError as error:
            click.UsageError(printable(str(error), LINE_CHARS)).show()
        except click.ClickException as error:
            error.show()
        except click.Abort:
            raise KeyboardInterrupt from None
        sys.exit(2)


spark_job = click.command(cls=_SparkJob, context_settings=CONTEXT)
"""A job that spark-submit starts."""


def command(*examples: str, before: str = "") -> Callable[[Command], click.Command]:
    """A command of `rebalance`. Its help ends with `before`, these examples, and the exit codes that mean something special to it."""

    def decorate(function: Command) -> click.Command:
        codes = exit_codes.line(function.__name__) if function.__name__ in exit_codes.SPECIAL else ""
        epilog = [before, "\b", "Examples:", *(f"  {example}" for example in examples), "", codes]
        return click.command(epilog="\n".join(epilog))(function)

    return decorate


LAKEHOUSE: Final = "REBALANCE_LAKEHOUSE"
"""Environment variable: the lakehouse in use, so that it need not be named in every command."""


def lakehouse(text: str = "Folder that `rebalance run` wrote.", *, required: bool = True) -> Option:
    """`--lakehouse`."""
    return click.option("--lakehouse", type=PLACE, metavar="DIR", required=required, envvar=LAKEHOUSE, show_envvar=True, help=text)


def output_format(*forms: str, text: str = "For people or for programs.") -> Option:
    """`--format`, the first form by default."""
    return click.option("--format", "form", type=click.Choice(forms), default=forms[0], help=text)


def logs_read(what: str = "The logs") -> Option:
    """`--input`, of a command that shows lines of logs."""
    return click.option(
        "--input", "source", type=PATH, metavar="PATH", help=f"{what} that `rebalance run` read. [default: where it read them]"
    )


def once(text: str) -> Option:
    """`--once`."""
    return click.option("--once", is_flag=True, help=text)


def client_settings(flag: str, what: str) -> Option:
    """A file of librdkafka's settings."""
    text = f"Settings of {what}, a line each: security.protocol=SASL_SSL, sasl.username=NAME (librdkafka's names)."
    return click.option(flag, type=PATH, metavar="FILE", help=text)


SCOPE: Final = {
    "cluster": ("NAME", "Only this cluster."),
    "group": ("NAME", "Only this consumer group."),
    "since": ("TIME", "From this time on: ISO 8601 in UTC, or a duration back from --until (90s, 15m, 24h, 7d)."),
    "until": ("TIME", "Up to this time. [default: the newest time in the tables, not this machine's clock]"),
}
"""Which rows a command shows: metavar and help text of each option."""


def texts(given: Mapping[str, tuple[str, str]]) -> Option:
    """Options that are taken as typed, by name: metavar and help text."""
    return _together(*(click.option(f"--{name}", metavar=metavar, help=text) for name, (metavar, text) in given.items()))


def _together(*options: Option) -> Option:
    """Several options, in their order."""
    return lambda command: reduce(lambda inner, option: option(inner), reversed(options), command)


settings = click.option("--config", type=PATH, metavar="FILE", help="TOML file of settings, such as conf/pipeline.toml.")
timezones = click.option(
    "--timezone",
    "timezones",
    metavar="ZONE",
    multiple=True,
    help="Time zone of the log timestamps, which carry none: ZONE for all, NAME=ZONE for a cluster, a broker, a folder, a container, or "
    "`clients`. Several with commas; repeatable. [default: what the lines show, else UTC]",
)
lateness = click.option("--lateness-ms", type=int, metavar="N", help="How far the lines of one broker may be out of order. [default: 5000]")
log_format = click.option(
    "--log-format",
    metavar="NAME",
    help="Pattern of the brokers' log lines: kafka, strimzi, strimzi-log4j1, ttcc, a name of [log_formats] in --config, or the pattern "
    "itself, such as '%d %p [%t] %c - %m%n'. [default: auto]",
)
alerts = click.option(
    "--alert",
    "alerts",
    metavar="FORMAT=FILE",
    multiple=True,
    help="Post new findings (ERROR) to a webhook: slack, alertmanager or json, and the file that holds its URL (chmod 600). "
    "Repeatable; [alerts] in --config has more settings (docs/alerts.md).",
)
dashboard_url = click.option("--dashboard-url", metavar="URL", help="Address of `rebalance dashboard`, to which alerts link.")
bootstrap = click.option("--bootstrap", metavar="HOST:PORT", required=True, help="Brokers to connect to first.")
topic = click.option("--topic", default="group-protocol-logs", metavar="TOPIC", help="Topic of the log lines.")


def topic_input(*, required: bool = False) -> Option:
    """Which topic of log lines to read. The names of the parameters are those of `TopicInput`, but for `kafka` and `kafka_config`."""
    return _together(
        click.option(
            "--kafka",
            metavar="HOST:PORT",
            required=required,
            help="Read log lines from a topic of this cluster, where `rebalance ship` writes them.",
        ),
        topic,
        click.option(
            "--starting",
            type=click.Choice(["earliest", "latest"]),
            default="earliest",
            help="Where to begin in a topic that this lakehouse has not read yet.",
        ),
        click.option(
            "--max-offsets",
            type=click.IntRange(min=1),
            metavar="N",
            help="Records of the topic per micro-batch. [default: as many as hold about 500000 lines, at most 100000]",
        ),
        client_settings("--kafka-config", "the client that reads the topic"),
        click.option("--accept-loss", is_flag=True, help="Continue although the topic deleted records before they were read."),
    )
