"""`rebalance alert`: posts new findings beside a pipeline, tries receivers out, and shows what they would get."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from jobs.cli.output.terminal import tell, warn
from jobs.common import exit_codes, options
from jobs.common.errors import UserError
from jobs.common.stores import Place
from jobs.common.text import many

if TYPE_CHECKING:
    from jobs.common.alert_settings import AlertSettings

_STEP_SECONDS: Final = 0.2
_ONCE_SECONDS: Final = 60.0


@options.command(
    "rebalance alert --test --alert slack=slack.url",
    "rebalance alert --dry-run --lakehouse lake/ --alert slack=slack.url --since 7d",
    "rebalance alert --lakehouse lake/ --config conf/pipeline.toml      posts until Ctrl-C, beside jobs/track.py",
)
@options.lakehouse("Folder whose new findings are posted.", required=False)
@options.settings
@options.alerts
@options.dashboard_url
@click.option("--test", is_flag=True, help="Post a sample to each receiver, print whether it arrived, and end. Needs no lakehouse.")
@click.option("--dry-run", is_flag=True, help="Print what would be posted about findings in the tables. Post nothing.")
@click.option("--since", type=options.SPAN, default="24h", help="With --dry-run: how far to look back from the newest finding.")
@options.once("Post what is new since the last time, and end. The first time, nothing is posted.")
def alert(lakehouse: Place | None, *, config: Path | None, test: bool, dry_run: bool, since: timedelta, once: bool, **given: Any) -> int:
    """Post new findings to webhooks, or try webhooks out.

    `rebalance run` does the same with the same settings while it runs. Findings that were there before the first start are not posted.
    """
    from jobs.common.settings import load

    settings = load(config, **given).alerts
    if not settings.receivers:
        raise UserError("no receiver: give --alert FORMAT=FILE, or --config with [alerts.receivers.NAME] (docs/alerts.md)")
    if not dry_run:
        tell("without --dry-run", "since")
    if test:
        tell("beside --test", "lakehouse", "dry_run", "once")
        return _test(settings)
    if lakehouse is None:
        raise UserError("give --lakehouse, or --test, which needs none")
    if dry_run:
        tell("beside --dry-run", "once")
        _show(lakehouse, settings, since)
        return exit_codes.DONE
    _send(lakehouse, settings, once=once)
    return exit_codes.DONE


def _test(settings: AlertSettings) -> int:
    from jobs.alerts.messages import message
    from jobs.alerts.posting import Webhook
    from jobs.alerts.sender import sample

    failed = False
    for receiver in settings.receivers:
        webhook = Webhook(receiver)
        webhook.address()
        began = time.monotonic()
        outcome = webhook.post(message(receiver, [sample()], settings.dashboard_url))
        failed |= not outcome.delivered
        if outcome.delivered:
            click.echo(f"{receiver.name}: delivered in {time.monotonic() - began:.1f} s ({outcome.text})")
        else:
            warn(f"{receiver.name}: not delivered: {outcome.text}")
    return exit_codes.FAILED if failed else exit_codes.DONE


def _show(lakehouse: Place, settings: AlertSettings, since: timedelta) -> None:
    from jobs.alerts.finding import wanted_by
    from jobs.alerts.messages import message
    from jobs.alerts.queue import past_findings
    from jobs.alerts.sender import MOST_FINDINGS

    findings = past_findings(lakehouse, since)
    for receiver in settings.receivers:
        wanted = [finding for finding in findings if wanted_by(receiver, finding)]
        portions = [wanted[start : start + MOST_FINDINGS] for start in range(0, len(wanted), MOST_FINDINGS)]
        of_all = f"{len(wanted):,} of {many(len(findings), 'finding')}"
        click.echo(f"# {receiver.name} ({receiver.format}): {of_all} in {many(len(portions), 'message')}")
        for portion in portions:
            click.echo(json.dumps(json.loads(message(receiver, portion, settings.dashboard_url).body), indent=2))


def _send(lakehouse: Place, settings: AlertSettings, *, once: bool) -> None:
    from jobs.alerts.sender import PAUSES, alerting
    from jobs.common.interrupts import Interrupts
    from jobs.lakehouse.folder import Lakehouse

    if not Lakehouse(lakehouse).layout.exists():
        raise UserError(f"no lakehouse with its checkpoints at {lakehouse}: alerts are sent where the pipeline works")
    pauses = replace(PAUSES, farewell=_ONCE_SECONDS) if once else PAUSES
    with Interrupts() as interrupts, alerting(Lakehouse(lakehouse), settings, warn, pauses):
        if not once:
            names = ", ".join(f"{one.name} ({one.format})" for one in settings.receivers)
            click.echo(f"new findings of {lakehouse} go to {names}, until Ctrl-C")
        while not once and not interrupts.happened():
            time.sleep(_STEP_SECONDS)
