"""conf/deploy/systemd: systemd accepts the units, they are well shut in, and what they start exists."""

import re
import shlex
import shutil
import subprocess

import pytest

from tests.deploy.settings import DEPLOY, options_of

UNITS = DEPLOY / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
MOST_EXPOSED = 2.0
"""Of 10, by systemd's own count: a service without any of these settings has 9.6."""

needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")


@pytest.fixture
def units(tmp_path):
    """The units as they would be installed, with a program that is there. systemd names an instance like its file."""
    for path in UNITS.iterdir():
        text = path.read_text(encoding="utf-8").replace("/opt/rebalance/bin/rebalance", "/bin/true")
        (tmp_path / path.name.replace("@", "@broker-1")).write_text(text, encoding="utf-8")
    return tmp_path


def analyze(*words):
    done = subprocess.run(["systemd-analyze", "--no-pager", *map(str, words)], check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@needs_systemd
def test_systemd_accepts_the_units(units):
    files = sorted([*units.glob("*.service"), *units.glob("*.timer")])
    assert analyze("verify", "--man=no", *files) == (0, "")
    wrong = files[0]
    wrong.write_text(wrong.read_text(encoding="utf-8").replace("[Service]", "[Service]\nRestrat=always"), encoding="utf-8")
    assert "Restrat" in analyze("verify", "--man=no", wrong)[1]


@needs_systemd
@pytest.mark.parametrize("service", [path.name.replace("@", "@broker-1") for path in SERVICES])
def test_a_service_is_shut_in(units, service):
    code, text = analyze("security", "--offline=true", units / service)
    if code and "offline" in text:
        pytest.skip("this systemd cannot judge a file")
    exposed = re.search(r"exposure level for \S+: ([\d.]+)", text)
    assert float(exposed[1]) < MOST_EXPOSED


@pytest.mark.parametrize("path", SERVICES, ids=lambda path: path.name)
def test_what_a_service_starts_exists(path):
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    (line,) = re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)
    given = {"CREDENTIALS_DIRECTORY": "/run/credentials/unit"}
    for name in re.findall(r"^EnvironmentFile=/etc/rebalance/(\S+)$", text, re.MULTILINE):
        example = (UNITS / name.replace("%i", "broker-1")).read_text(encoding="utf-8")
        given |= dict(line.split("=", 1) for line in example.splitlines() if line and not line.startswith("#"))
    words = []
    for word in shlex.split(line.replace("%i", "broker-1").replace("%S", "/var/lib")):
        if word == "$OPTIONS":  # systemd splits this form at blanks, and not the one with braces
            words += given["OPTIONS"].split()
        else:
            words.append(re.sub(r"\$\{(\w+)\}", lambda match: given[match[1]], word))
    assert words[0] == "/opt/rebalance/bin/rebalance"
    lakehouse = ["--lakehouse", "/var/lib/rebalance/lakehouse"] if "REBALANCE_LAKEHOUSE=%S/rebalance/lakehouse" in text else []
    options = options_of([*words[1:], *lakehouse])
    state = options.get("state") or options.get("lakehouse")
    (folder,) = re.findall(r"^StateDirectory=(.*)$", text, re.MULTILINE)
    assert str(state).startswith(f"/var/lib/{folder}/")


def test_all_units_run_as_the_user_that_is_made():
    (user,) = re.findall(r"^u (\S+) ", (UNITS / "rebalance.sysusers.conf").read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for path in SERVICES for name in re.findall(r"^User=(.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)} == {user}
