"""A dashboard that runs in this process, and what it answers."""

import json
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from urllib.parse import urlencode

import uvicorn

from jobs.dashboard.server import build_app, listening, names
from tests.waiting import PATIENCE_SECONDS


class Served:
    """A dashboard at an address."""

    def __init__(self, url):
        self.url = url

    def get(self, path, headers=(), **values):
        """Status, headers and body."""
        address = self.url + path + (f"?{urlencode(values)}" if values else "")
        try:
            with urllib.request.urlopen(urllib.request.Request(address, headers=dict(headers)), timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def json(self, path, **values):
        return json.loads(self.get(f"/api/{path}", **values)[2])

    def ask(self, question, **values):
        """The rows of a question, each by column name."""
        answer = self.json(f"ask/{question}", **values)
        return [dict(zip(answer["columns"], row, strict=True)) for row in answer["rows"]]


@contextmanager
def serving(lakehouse, host="127.0.0.1"):
    """Serves a lakehouse until the block ends."""
    with listening(host, 0) as socket:
        config = uvicorn.Config(build_app(lakehouse, names(host)), log_level="warning", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]})
        thread.start()
        try:
            yield Served(f"http://127.0.0.1:{socket.getsockname()[1]}")
        finally:
            server.should_exit = True
            thread.join()
