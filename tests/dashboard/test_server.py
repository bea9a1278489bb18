"""Where the dashboard listens, what it says about it, and how it ends. No JVM."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from jobs.cli import entry
from jobs.common.errors import UserError
from jobs.dashboard.server import is_local, listening, names
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("10.0.0.7", False)]
)
def test_what_is_for_this_machine_alone(host, local):
    assert is_local(host) is local
    assert (names(host) == ["*"]) is not local


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(UserError, match="another program uses that port"):
            listening("127.0.0.1", other.getsockname()[1])


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(UserError, match=r"cannot listen on 192\.0\.2\.1 port 0"):
        listening("192.0.2.1", 0)


def test_a_folder_of_something_else_is_refused(capsys, tmp_path):
    (tmp_path / "letters.txt").write_text("Dear ...")
    assert entry.main(["dashboard", "--lakehouse", str(tmp_path), "--port", "0"]) == 2
    assert "is no lakehouse" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_who_can_read_it_and_ends_at_a_signal(tmp_path, number):
    command = [sys.executable, "-m", "jobs.cli", "dashboard", "--lakehouse", str(tmp_path / "lake"), "--host", "0.0.0.0", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        address, warning = process.stdout.readline(), process.stdout.readline()
        assert "nobody is asked for a password, and nothing is encrypted" in warning
        port = address.rpartition(":")[2].partition("/")[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=PATIENCE_SECONDS) as answer:
            assert answer.status == 200
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE_SECONDS)
    said = f"rebalance: waiting for the lakehouse {tmp_path / 'lake'}: `rebalance run` makes it\n"
    assert (process.returncode, errors) == (0, said)
    assert not (tmp_path / "lake").exists()
