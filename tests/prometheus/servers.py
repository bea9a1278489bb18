"""A real Prometheus and a real Alertmanager on this machine, of Debian's packages (`make debian-packages`)."""

import json
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from contextlib import contextmanager

import pytest

from tests.waiting import PATIENCE_SECONDS, wait_until


def program(name):
    """The path of a program. Without it the test is left out."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: `make debian-packages` installs it on Debian")
    return found


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def get(port, path, **parameters):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}?{urllib.parse.urlencode(parameters)}", timeout=PATIENCE_SECONDS) as answer:
        return json.load(answer)


def is_ready(port):
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=PATIENCE_SECONDS).close()
    except OSError:
        return False
    return True


@contextmanager
def running(folder, port, *command):
    """A server, once it is ready. Its log is in the folder."""
    with (folder / "log").open("wb") as log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=log) as process:
        try:
            wait_until(lambda: is_ready(port) or process.poll() is not None)
            assert process.poll() is None, (folder / "log").read_text()
            yield port
        finally:
            process.terminate()


@contextmanager
def alertmanager(folder):
    binary = program("prometheus-alertmanager")
    port = free_port()
    folder.mkdir()
    (folder / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    listening = [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    with running(folder, port, binary, "--config.file=alertmanager.yml", f"--storage.path={folder / 'data'}", *listening):
        yield port


@contextmanager
def prometheus(folder, config):
    binary = program("prometheus")
    port = free_port()
    folder.mkdir()
    (folder / "prometheus.yml").write_text(json.dumps(config))
    storage = f"--storage.tsdb.path={folder / 'data'}"
    with running(folder, port, binary, "--config.file=prometheus.yml", storage, f"--web.listen-address=127.0.0.1:{port}"):
        yield port
