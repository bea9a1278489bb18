"""Serves metrics to Prometheus: GET /metrics, and nothing else. Reads nothing of a request but its path."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Final

from jobs.common.errors import UserError
from jobs.health.exposition import CONTENT_TYPE

PATH: Final = "/metrics"
_TIMEOUT_SECONDS: Final = 10  # for one that connects and says nothing


@contextmanager
def serving(host: str, port: int, text: Callable[[], str]) -> Iterator[int]:
    """Serves what `text` returns, for as long as this lasts; the port (a free one if `port` is 0). UserError: the port cannot be had."""

    class Handler(BaseHTTPRequestHandler):
        timeout = _TIMEOUT_SECONDS
        server_version = "rebalance"
        sys_version = ""

        def do_GET(self) -> None:
            self._answer()

        def do_HEAD(self) -> None:
            self._answer()

        def _answer(self) -> None:
            if self.path.partition("?")[0] != PATH:
                self.send_error(HTTPStatus.NOT_FOUND, explain=f"the metrics are at {PATH}")
                return
            body = text().encode("utf-8", errors="replace")
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", CONTENT_TYPE)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """A scrape every few seconds is nothing to write down."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def server_bind(self) -> None:
            """Without HTTPServer's look for the host's full name, which may wait for a name server for long."""
            TCPServer.server_bind(self)
            self.server_name, self.server_port = host, self.server_address[1]

        def handle_error(self, *_: object) -> None:
            """A client that went away in the middle is nobody's trouble."""

    try:
        server = Server((host, port), Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"cannot serve metrics at {host}:{port}: {reason}; give another --metrics-port or --metrics-host") from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
