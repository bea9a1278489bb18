"""A proxy before an object store that makes it slow and unreliable, and counts its requests.

    with StoreProxy(store.endpoint, delay=0.2, fail_every=20) as proxy:
        Lakehouse(..., endpoint=proxy.endpoint)
    print(proxy.counts())

The number of a request decides its fate, never chance. Clients sign the address that they call, so the Host header is passed on as it came.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from contextlib import suppress
from enum import Enum
from typing import NamedTuple
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

_STORE_SECONDS = 60  # so long the store may take for an answer
_OF_ONE_HOP = {"connection", "keep-alive", "transfer-encoding", "expect"}
_ERROR = "<?xml version='1.0'?><Error><Code>{}</Code><Message>{}</Message></Error>"


class Fault(Enum):
    """How a request fails."""

    UNAVAILABLE = "the store answers 503 and does nothing"
    CUT_BEFORE = "the connection ends, and nothing was done"
    CUT_AFTER = "the connection ends, and all was done: only the answer is lost"
    CUT_AMID = "the connection ends in the middle of the answer"
    FAILED = "the store answers 500 and does nothing"
    HANGS = "nothing is answered for a while, then the connection ends, and nothing was done"
    EXPIRED = "the store answers 400, since the credentials have expired: it will not pass"


PASSING = tuple(fault for fault in Fault if fault is not Fault.EXPIRED)
"""The faults that are gone with the next request."""
_REFUSED = {
    Fault.UNAVAILABLE: (503, _ERROR.format("SlowDown", "Please reduce your request rate.").encode()),
    Fault.EXPIRED: (400, _ERROR.format("ExpiredToken", "The provided token has expired.").encode()),
    Fault.FAILED: (500, _ERROR.format("InternalError", "We encountered an internal error. Please try again.").encode()),
}


class Request(NamedTuple):
    """A request that arrived. `status` is 0 if the connection was cut."""

    method: str
    path: str
    query: str
    status: int
    fault: Fault | None

    @property
    def kind(self):
        """LIST, else the method."""
        return "LIST" if self.method == "GET" and ("list-type=" in self.query or "prefix=" in self.query) else self.method


class StoreProxy:
    """Use it as a context, or call `start` and `stop`. `delay`, `fail_every` and `faults` may be changed at any time."""

    def __init__(self, target, *, delay=0.0, fail_every=0, faults=PASSING):
        """`target`: the store's endpoint. `delay`: seconds for each request. `fail_every`: one of so many fails, in turn by `faults`."""
        self.delay, self.fail_every, self.faults = delay, fail_every, faults
        self.hang = 2.0  # seconds
        self.ignores_conditions = False  # a write that the store refuses, because its condition does not hold, seems done
        self.endpoint = ""  # the URL for clients, once it listens
        self._target = target
        self._requests = []
        self._arrived = 0
        self._loop = asyncio.new_event_loop()
        self._ended = asyncio.Event()

    def start(self):
        """Starts to listen, on a free port."""
        listening = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(listening),), daemon=True)
        self._thread.start()
        listening.wait()

    def stop(self):
        """Stops to listen, and ends all connections."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()
        self._loop.close()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def requests(self):
        """All requests that were answered, or not, in the order of their ends."""
        return list(self._requests)

    def counts(self):
        """How many requests there were of each kind."""
        return dict(sorted(Counter(request.kind for request in self.requests()).items()))

    def clear(self):
        """Forgets the requests. The number that decides which one fails goes on."""
        self._requests.clear()

    async def _serve(self, listening):
        to_store = aiohttp.TCPConnector(force_close=True, limit=0)  # a connection that the store has ended meanwhile is no fault
        timeout = aiohttp.ClientTimeout(total=_STORE_SECONDS)
        async with aiohttp.ClientSession(connector=to_store, timeout=timeout, auto_decompress=False) as self._store:
            app = web.Application(client_max_size=0)  # however large
            app.router.add_route("*", "/{path:.*}", self._answer)
            runner = web.AppRunner(app, shutdown_timeout=0, auto_decompress=False, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.endpoint = f"http://127.0.0.1:{runner.addresses[0][1]}"
            listening.set()
            await self._ended.wait()
            await runner.cleanup()

    async def _answer(self, request):
        body = await request.read()
        fault = self._next_fault()
        await asyncio.sleep(self.delay)
        answer = None
        if fault in _REFUSED:
            status, body = _REFUSED[fault]
            answer = web.Response(status=status, body=body, content_type="application/xml")
        elif fault is Fault.HANGS:
            await asyncio.sleep(self.hang)
        elif fault is not Fault.CUT_BEFORE:
            with suppress(aiohttp.ClientError, OSError, asyncio.TimeoutError):  # a store that is down cuts the connection too
                answer = await self._ask_store(request, body)
        if self.ignores_conditions and answer is not None and answer.status in {409, 412}:
            answer = web.Response(headers={"ETag": '"another"'})
        if fault is Fault.CUT_AMID and answer is not None:
            await _begin(request, answer)
        if fault in {Fault.CUT_AFTER, Fault.CUT_AMID}:
            answer = None
        path, _, query = request.raw_path.partition("?")
        self._requests.append(Request(request.method, unquote(path), unquote(query), answer.status if answer else 0, fault))
        if answer is None:
            request.transport.abort()
        return answer or web.Response()

    def _next_fault(self):
        self._arrived += 1
        if not self.fail_every or self._arrived % self.fail_every:
            return None
        return self.faults[self._arrived // self.fail_every % len(self.faults)]

    async def _ask_store(self, request, body):
        headers = _to_pass_on(request)
        url = URL(self._target + request.raw_path, encoded=True)  # as it was signed
        async with self._store.request(request.method, url, headers=headers, data=body, allow_redirects=False) as answer:
            return web.Response(status=answer.status, headers=_to_pass_on(answer), body=await answer.read())


async def _begin(request, answer):
    """Sends the first half of an answer."""
    begun = web.StreamResponse(status=answer.status, headers={**answer.headers, "Content-Length": str(len(answer.body))})
    await begun.prepare(request)
    await begun.write(answer.body[: len(answer.body) // 2])


def _to_pass_on(message):
    return CIMultiDict((name, value) for name, value in message.headers.items() if name.lower() not in _OF_ONE_HOP)
