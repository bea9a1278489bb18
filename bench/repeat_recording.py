"""Makes a long log out of a recording: repeated, each time later and with other group names.

Writes OUTPUT/<cluster>/<broker>/<log> as plain files. Line after line is a real broker's, but for its timestamp and the
names of groups, so the repetitions are groups of their own, one set after the other.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

STAMP: Final = "%Y-%m-%d %H:%M:%S,%f"


def group_names(recording: Path) -> list[str]:
    """Groups that the recording names, longest first."""
    with (recording / "rebalances.jsonl").open(encoding="utf-8") as file:
        names = {json.loads(line)["group"] for line in file}
    return sorted(names, key=lambda name: (-len(name), name))


def shifted(lines: Sequence[str], by: timedelta, rename: re.Pattern[str], suffix: str) -> Iterator[str]:
    """The lines, later, with renamed groups. Lines without a timestamp stay as they are."""
    minutes: dict[str, tuple[datetime, str]] = {}
    for line in lines:
        if line[:1] == "[" and line[24:25] == "]":
            minute = line[1:17]
            if minute not in minutes:
                moment = datetime.strptime(minute, "%Y-%m-%d %H:%M") + by  # noqa: DTZ007 - local, as logged
                minutes[minute] = (moment, moment.strftime("%Y-%m-%d %H:%M"))
            line = f"[{minutes[minute][1]}{line[17:]}"  # noqa: PLW2901 - shifts are whole minutes
        yield rename.sub(lambda found: found.group(1) + found.group(2) + suffix, line)


def repeat(recording: Path, output: Path, lines_wanted: int) -> int:
    """Writes about `lines_wanted` lines; returns how many."""
    logs = {path: gzip.decompress(path.read_bytes()).decode().splitlines() for path in sorted(recording.glob("broker-*/*.log.gz"))}
    stamps = [
        datetime.strptime(line[1:24], STAMP)  # noqa: DTZ007 - local, as logged
        for lines in logs.values()
        for line in lines
        if line[:1] == "[" and line[24:25] == "]"
    ]
    minutes = int((max(stamps) - min(stamps)).total_seconds() // 60) + 2
    names = "|".join(map(re.escape, group_names(recording)))
    rename = re.compile(rf'("groupId":"|[Gg]roup |\[GroupId[ =]|metadata for )({names})(?=["\s\].])')
    per_round = sum(map(len, logs.values()))
    rounds = max(round(lines_wanted / per_round), 1)
    for path, lines in logs.items():
        target = output / recording.name / path.parent.name / path.name.removesuffix(".gz")
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("w", encoding="utf-8") as file:
            for number in range(rounds):
                by = timedelta(minutes=minutes * number)
                file.writelines(f"{line}\n" for line in shifted(lines, by, rename, f"-{number:04d}"))
    return rounds * per_round
