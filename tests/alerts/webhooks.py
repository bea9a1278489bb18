"""A real HTTP server on this machine that plays a receiver of alerts: it answers as it is told, and keeps what it got."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

from jobs.alerts.sender import Pauses
from schemas.names import TRACK
from tests.lakehouse.rows import row, write
from tests.waiting import PATIENCE_SECONDS

SECRET = "T0AB12CD/B0EF34GH/xyzSecretOfTheHook"
QUICK = Pauses(look=0.02, gather=0.05, first=0.02, longest=0.1, farewell=10)


class Hook:
    """`answers`: what the next requests get, as (status, headers, body); then what `judge` says of the content.

    A status of 0: no answer until `release` is set.
    """

    def __init__(self, port):
        self.got = []  # (path, headers, content) of requests, refused ones too
        self.taken = []  # contents that were answered with success
        self.answers = []
        self.release = threading.Event()
        self.port = port
        self.before_answer = lambda: None
        self.judge = lambda _: (200,)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/services/{SECRET}"

    def findings(self, requests=None):
        return [finding for content in (self.taken if requests is None else requests) for finding in content["findings"]]


@contextmanager
def hook(port=0):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = received.answers.pop(0) if received.answers else received.judge(content)
            status, headers, body = (*answer, *({}, b"ok")[len(answer) - 1 :])
            received.got.append((self.path, dict(self.headers), content))
            received.before_answer()
            if status == 0:
                received.release.wait(PATIENCE_SECONDS)
                return
            if 200 <= status < 300:
                received.taken.append(content)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            pass

    server = Server(("127.0.0.1", port), Handler)
    received = Hook(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield received
    finally:
        received.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


def secret_file(folder, text, name="hook.url"):
    file = folder / name
    file.touch(0o600)
    file.write_text(text + "\n")
    return file


_batches = count(1)


def now_ms():
    return time.time_ns() // 1_000_000


def finding(group="payments", **values):
    """A row of the tracker that has just happened."""
    defaults = {
        "group_id": group, "occurred_at": now_ms(), "code": "SESSION_TIMEOUT", "severity": "ERROR",
        "message": "The coordinator removed the member.", "advice": "Find out what stopped the process.",
        "details": '{"session_timeout_ms":45000}', "client_id": "payments-1",
    }  # fmt: skip
    return row("findings", **(defaults | values))


def found(lake, *rows):
    """Writes findings in one commit, as a micro-batch of track does."""
    write(lake, *rows, batch=next(_batches), app=TRACK)
