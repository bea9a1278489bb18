"""`rebalance explain`: from a few lines of a log to the report, in one command."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coordinator_model.events import NAMELESS_GROUP
from jobs.cli.output.terminal import say, stderr, warn, warn_nothing_understood
from jobs.cli.piped import as_file, is_pipe
from jobs.cli.report import fail_on_option, form_option, limit_option, show
from jobs.common import exit_codes, options
from jobs.common.alert_settings import AlertSettings
from jobs.common.disks import told_if_full
from jobs.common.errors import QueryFailedError, UserError
from jobs.common.interrupts import removing_on_sigterm
from jobs.common.settings import Settings, load
from jobs.common.stores import Place

if TYPE_CHECKING:
    from jobs.pipeline.run_progress import RunResult


@options.command(
    "rebalance explain server.log",
    "rebalance explain app.log --timezone Europe/Berlin",
    "pbpaste | rebalance explain -                            what was copied (Linux: xclip -o, wl-paste)",
    "kubectl logs kafka-0 | rebalance explain -",
    "rebalance explain logs/ --format html > out.html",
    "rebalance explain broker-1/*.log app.log",
    "rebalance explain server.log --keep lake/                then `rebalance ask --lakehouse lake/`",
    "rebalance explain server.log --fail-on error",
)
@click.argument("paths", type=click.Path(path_type=Path, allow_dash=True), nargs=-1, required=True, metavar="PATH...|-")
@form_option
@click.option(
    "--keep",
    type=options.PATH,
    metavar="DIR",
    help="Keep the tables in this new folder, for `rebalance ask`, `evidence` and the other commands that take --lakehouse.",
)
@fail_on_option
@options.timezones
@options.log_format
@options.lateness
@options.settings
@options.texts(options.SCOPE)
@limit_option
def explain(
    paths: tuple[Path, ...],
    *,
    form: str,
    keep: Path | None,
    fail_on: str | None,
    timezones: Sequence[str],
    log_format: str | None,
    lateness_ms: int | None,
    config: Path | None,
    limit: int | None,
    **typed: str | None,
) -> int:
    """Explain the rebalances in a log, or in a few lines of one.

    PATH is a broker's or an application's log, or a folder or archive of such logs. Several are explained together; - reads standard input.
    It is `rebalance run` and `rebalance report` in one command, for logs that do not grow. Up to 50,000 lines take seconds and need no
    Java; more start Spark.
    """
    from msgspec.structs import replace

    from jobs.answers.duckdb_views import QuestionReader
    from jobs.answers.report import Scope
    from jobs.cli.output.account_text import warn_of_refused, write_evidence
    from jobs.cli.output.not_understood import WHAT_IS_READ, reasons
    from jobs.lakehouse.folder import Lakehouse, known_inputs, remember_input
    from jobs.logs.envelopes import layouts_named

    group = typed["group"] or NAMELESS_GROUP
    settings = load(config, timezones=timezones, lateness_ms=lateness_ms, log_format=log_format)
    settings = replace(settings, half_lines=True, client_group=group)
    layouts_named(settings.log_format, settings.log_formats)  # says before the start what is wrong with them
    notes: list[str] = []
    with (
        ExitStack() as last,
        removing_on_sigterm(),
        as_file(paths[0]) if len(paths) == 1 else _linked(paths) as (source, name),
        _lakehouse(keep) as lakehouse,
        told_if_full(lakehouse),
    ):
        last.callback(lambda: [*map(warn, notes)])  # of the input, so that the answer stands first
        result = _processed(source, name, lakehouse, settings, notes.append)
        if result.signal is not None:
            warn("stopped before the end of the input")
            return exit_codes.ENDED_BY_SIGNAL + result.signal
        if not result.understood:
            if result.added["quarantined"]:
                warn_of_refused(result, lakehouse, kept=keep is not None)
                warn(WHAT_IS_READ)
            else:
                first, *more = reasons(source)
                warn_nothing_understood(name, first)
                for text in more:
                    warn(text)
            return exit_codes.NOTHING_UNDERSTOOD
        if not result.after["lines_read"]:
            raise UserError(f"{name} is empty")
        if keep is not None and len(paths) == 1 and source != paths[0]:
            _keep_input(source, lakehouse)
        if len(paths) > 1:
            (house := Lakehouse(lakehouse)).inputs.unlink()  # of links, which go with this command
            remember_input(house, Path(name))
        inputs = known_inputs(lakehouse)
        scope, kept, vain = Scope(**typed), keep is not None, exit_codes.NOTHING_UNDERSTOOD
        reader = QuestionReader(lakehouse)
        code = show(lakehouse, scope, limit=limit, form=form, inputs=inputs, fail_on=fail_on, reader=reader, kept=kept, of_nothing=vain)
        if form == "text" and not result.after["events"] and not result.after["quarantined"] and source.is_file():
            for text in [*reasons(source)][1:]:
                warn(text)
        warn_of_refused(result, lakehouse, kept=keep is not None)
        if form == "text" and result.after["events"]:
            say()
            write_evidence(reader)
        if form == "text" and keep is not None:
            say(f"Kept in {keep}: `rebalance ask --lakehouse {keep}` lists the questions.")
    return code or (exit_codes.PARTLY_READ if result.unread else exit_codes.DONE)


def _processed(source: Path, name: str, lakehouse: Place, settings: Settings, told: Callable[[str], None]) -> RunResult:
    """Processes the input: here, or on Spark if it is large. Says what of it was not read. `told`: takes what can wait for the answer."""
    from msgspec.structs import replace

    from jobs.cli.output.progress import Progress
    from jobs.logs.files import left_out_in
    from jobs.pipeline import at_once

    def note(text: str) -> None:
        told(text.replace(str(source), name))

    settings = replace(settings, alerts=AlertSettings())  # an old incident is no news
    with Progress(stderr()) as progress:
        most = at_once.MOST_LINES
        result = at_once.process(source, lakehouse, settings=settings, most_lines=most, show=progress.show, warn=note)
        if result is None:
            warn(f"{name} has more than {most:,} lines: Spark reads them, as in `rebalance run`")
            from jobs.pipeline import run

            result = run.run(source, lakehouse, settings=settings, once=True, show=progress.show, warn=note)
    for line in (*result.troubles, left_out_in(source)):
        if line:
            note(line)
    return result


@contextmanager
def _linked(paths: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """An image of the folder in which all of these lie, with links to nothing else, and the name of that folder."""
    if missing := next((path for path in paths if not path.exists()), None):
        raise UserError("- is standard input and must be the only path" if str(missing) == "-" else f"no such file or folder: {missing}")
    if pipe := next(filter(is_pipe, paths), None):
        raise UserError(f"{pipe} is a pipe and must be the only path")
    given = dict.fromkeys(path.absolute() for path in paths)
    common = Path(os.path.commonpath([path.parent for path in given]))
    with tempfile.TemporaryDirectory(prefix="rebalance-explain-") as folder:
        image = Path(folder, common.name or "logs")  # a cluster is called like the folder of its brokers
        for path in (path for path in given if given.keys().isdisjoint(path.parents)):
            link = image / path.relative_to(common)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path)
        yield image, str(common)


@contextmanager
def _lakehouse(keep: Path | None) -> Iterator[Path]:
    """The folder of the tables: a new one that stays, or one for this command alone."""
    from jobs.lakehouse.folder import is_lakehouse

    if keep is not None:
        if is_lakehouse(keep):
            raise UserError(f"--keep {keep}: there is already a lakehouse; give a new folder")
        yield keep
        return
    with ExitStack() as stack:
        folder = tempfile.mkdtemp(prefix="rebalance-explain-")
        stack.callback(partial(shutil.rmtree, folder, ignore_errors=True))
        try:
            yield Path(folder)
        except QueryFailedError as error:
            if error.log is not None:
                stack.pop_all()  # the log of Spark lies there
            raise


def _keep_input(file: Path, lakehouse: Place) -> None:
    """Keeps the lines of standard input in the lakehouse, where `rebalance evidence` finds them."""
    from jobs.lakehouse.folder import Lakehouse, remember_input

    house = Lakehouse(lakehouse)
    house.given.mkdir(exist_ok=True)
    remember_input(house, Path(shutil.copy(file, house.given)))
