"""What README.md and docs/findings.md promise: their commands run on the recording of the demo and print what stands there."""

import io
import re
import shlex
import subprocess

import pytest

from coordinator_model.diagnosis.titles import TITLES
from jobs.answers.incidents import outages
from jobs.cli import entry
from jobs.common.places import PROJECT

README = (PROJECT / "README.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```\n\$ (.+)\n((?:.*\n)+?)```$", README, re.MULTILINE)
ASKED = re.findall(r"^rebalance ((?:ask|evidence|check)\b[^#\n]*)", README.partition("## Ask questions")[2], re.MULTILINE)


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme") / "lake"
    recording = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1"
    assert entry.main(["explain", str(recording), "--timezone", "America/New_York", "--keep", str(folder)]) == 0
    return folder


def arguments(command, lake):
    return [str(lake) if word == "LAKE" else word for word in shlex.split(command)]


@pytest.mark.parametrize("command", ASKED)
def test_a_command_of_the_readme_has_an_answer(capsys, lake, command):
    assert entry.main(arguments(command, lake)) == 0
    assert len(capsys.readouterr().out.splitlines()) > (1 if command.startswith("ask") else 0)


@pytest.mark.parametrize(("command", "said"), SHOWN, ids=[command for command, _ in SHOWN])
def test_the_readme_shows_what_a_command_prints(capsys, monkeypatch, lake, command, said):
    piped, _, own = command.rpartition(" | ")
    if piped:
        lines = subprocess.run(shlex.split(piped), capture_output=True, check=True, cwd=PROJECT).stdout
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(lines)))
    assert entry.main(arguments(own, lake)[1:]) == 0
    out = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    shown = said.splitlines()
    assert out[: len(shown) - (shown[-1] == "...")] == [line for line in shown if line != "..."]


def test_every_code_that_a_report_prints_first_is_explained():
    page = (PROJECT / "docs" / "findings.md").read_text(encoding="utf-8")
    codes = {*TITLES, *outages._REMEDIES, outages.HELD_UP}
    assert {code for code in codes if f"\n| {code} |" not in page} == set()
