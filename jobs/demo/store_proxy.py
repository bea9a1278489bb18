"""A proxy before an object store that makes it slow and unreliable, and counts its requests: for tests and benchmarks.

    with StoreProxy(store.endpoint, delay=0.2, fail_every=20) as proxy:
        Lakehouse(..., endpoint=proxy.endpoint)
    print(proxy.counts())

The number of a request decides its fate, never chance. Clients sign the address that they call, so the Host header is passed on as it came.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self

STORE_SECONDS: Final = 60
"""How long the store may take for an answer."""

_HOST: Final = "127.0.0.1"
_OF_ONE_HOP: Final = {"connection", "keep-alive", "transfer-encoding", "content-length"}
_UNAVAILABLE: Final = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"


class Fault(Enum):
    """How a request fails."""

    UNAVAILABLE = "the store answers 503 and does nothing"
    CUT_BEFORE = "the connection ends, and nothing was done"
    CUT_AFTER = "the connection ends, and all was done: only the answer is lost"


class Request(NamedTuple):
    """A request that arrived. `status` is 0 if the connection was cut."""

    method: str
    path: str
    query: str
    status: int
    fault: Fault | None

    @property
    def kind(self) -> str:
        """LIST, else the method."""
        return "LIST" if self.method == "GET" and ("list-type=" in self.query or "prefix=" in self.query) else self.method


class StoreProxy:
    """Use it as a context, or call `start` and `stop`. `delay`, `fail_every` and `faults` may be changed at any time."""

    def __init__(self, target: str, *, delay: float = 0, fail_every: int = 0, faults: Sequence[Fault] = tuple(Fault)) -> None:
        """`target`: the store's endpoint. `delay`: seconds for each request. `fail_every`: one of so many fails, in turn by `faults`."""
        self.delay = delay
        self.fail_every = fail_every
        self.faults = faults
        self._target = urlsplit(target).netloc
        self._requests: list[Request] = []
        self._arrived = 0
        self._lock = threading.Lock()
        self._server: _Server | None = None

    @property
    def endpoint(self) -> str:
        """The URL for clients."""
        assert self._server is not None
        return f"http://{_HOST}:{self._server.server_address[1]}"

    def start(self) -> None:
        """Starts to listen, on a free port."""
        self._server = _Server(self)
        threading.Thread(target=self._server.serve_forever, name="store proxy", daemon=True).start()

    def stop(self) -> None:
        """Stops to listen, and ends all connections."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def requests(self) -> list[Request]:
        """All requests that were answered, or not, in the order of their ends."""
        with self._lock:
            return list(self._requests)

    def counts(self, kind: Callable[[Request], str] = lambda request: request.kind) -> dict[str, int]:
        """How many requests there were of each kind."""
        return dict(sorted(Counter(map(kind, self.requests())).items()))

    def clear(self) -> None:
        """Forgets the requests. The number that decides which one fails goes on."""
        with self._lock:
            self._requests.clear()

    def _next_fault(self) -> Fault | None:
        with self._lock:
            self._arrived += 1
            if not self.fail_every or self._arrived % self.fail_every:
                return None
            return self.faults[self._arrived // self.fail_every % len(self.faults)]

    def _note(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, proxy: StoreProxy) -> None:
        self.proxy = proxy
        self._open: set[socket.socket] = set()
        super().__init__((_HOST, 0), _Handler)

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        assert isinstance(request, socket.socket)
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no error of the proxy."""


class _Handler(BaseHTTPRequestHandler):
    """One connection of a client, which has one of its own to the store."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self._store = http.client.HTTPConnection(self.server.proxy._target, timeout=STORE_SECONDS)  # noqa: SLF001 - of this module

    def finish(self) -> None:
        self._store.close()
        with contextlib.suppress(OSError):
            super().finish()

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()  # the client waits for it before it sends the body
        return True

    def _handle(self) -> None:
        proxy = self.server.proxy
        body = self._body()
        fault = proxy._next_fault()  # noqa: SLF001
        if proxy.delay:
            time.sleep(proxy.delay)
        status = 503 if fault is Fault.UNAVAILABLE else 0
        answer = None
        if fault in {None, Fault.CUT_AFTER}:
            with contextlib.suppress(OSError, http.client.HTTPException):  # a store that is down cuts the connection too
                answer = self._ask_store(body)
        if answer is not None and fault is None:
            status = answer[0].status
        path, _, query = self.path.partition("?")
        proxy._note(Request(self.command, unquote(path), unquote(query), status, fault))  # noqa: SLF001
        if fault is Fault.UNAVAILABLE:
            self._reply(503, [("Content-Type", "application/xml")], _UNAVAILABLE)
        elif fault is None and answer is not None:
            response, content = answer
            self._reply(response.status, response.getheaders(), content)
        else:
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815 - the names that http.server wants

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass
        return b"".join(chunks)

    def _ask_store(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        store = self._store
        if store.sock is not None and select.select([store.sock], [], [], 0)[0]:
            store.close()  # the store ended an idle connection
        try:
            store.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in {*_OF_ONE_HOP, "expect"}:
                    store.putheader(name, value)
            if body or self.command in {"PUT", "POST"}:
                store.putheader("Content-Length", str(len(body)))
            store.endheaders(body or None)
            response = store.getresponse()
            return response, response.read()
        except (OSError, http.client.HTTPException):
            store.close()
            raise

    def _reply(self, status: int, headers: Sequence[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _OF_ONE_HOP:
                self.send_header(name, value)
        length = str(len(content))
        if self.command == "HEAD":  # tells of a body that does not follow
            length = next((value for name, value in headers if name.lower() == "content-length"), length)
        if status not in {204, 304}:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""
