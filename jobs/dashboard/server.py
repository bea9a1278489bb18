"""The web app: pages, their assets and the API. It answers GET alone, and lets a browser load nothing from elsewhere."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.dashboard import api
from jobs.dashboard.pages import PAGES, Page, shell
from jobs.dashboard.store import Store

_ANY: Final = "*"
_WAITING: Final = 128  # connections that are not accepted yet
_PATIENCE_S: Final = 2  # with answers that are still sent when a signal comes
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""What a browser may load and run: this process's own files, and no script that is in a page."""

_HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",  # a browser asks again, with the tag of what it has
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

NOT_FOUND: Final = Page("", "Not found", "not_found.js")


def build_app(lakehouse: Place, hosts: Sequence[str]) -> Starlette:
    """The app over one lakehouse, which need not be there yet.

    `hosts`: the names by which browsers may call it. A page elsewhere that points its own name to this machine is refused.
    """
    store = Store(lakehouse)
    shown = printable(str(lakehouse), 120)
    page_routes = [Route(page.path, _page(page, shown)) for page in PAGES]
    return Starlette(
        routes=[*page_routes, Mount("/assets", StaticFiles(packages=[("jobs.dashboard", "assets")])), *api.routes(store)],
        middleware=[
            Middleware(BaseHTTPMiddleware, dispatch=_with_headers),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False),
        ],
        exception_handlers={404: lambda _request, _error: HTMLResponse(shell(NOT_FOUND, shown), 404)},
    )


async def _with_headers(request: Request, call_next: RequestResponseEndpoint) -> Response:
    """Adds the headers of all answers: they keep a browser from loading anything else."""
    response = await call_next(request)
    response.headers.update(_HEADERS)
    return response


def _page(page: Page, lakehouse: str) -> Callable[[Request], Response]:
    text = shell(page, lakehouse)
    return lambda _: HTMLResponse(text)


def is_local(host: str) -> bool:
    """Whether only this machine can reach what listens on the address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def names(host: str) -> list[str]:
    """The names by which browsers may call it: on this machine its own, else any."""
    return [*_LOCAL_NAMES, f"[{host}]" if ":" in host else host] if is_local(host) else [_ANY]


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens. UserError: the port is taken, or the address is not this machine's."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(_WAITING)
    except OSError as error:
        hint = "another program uses that port: give --port N, or --port 0 for any free one" if error.errno == 98 else error.strerror
        raise UserError(f"cannot listen on {host} port {port}: {hint}") from None
    return found


def serve(lakehouse: Place, host: str, port: int, say: Callable[[str], None]) -> None:
    """Serves until a signal comes. `say` gets the lines for the user. `port` 0: any free one."""
    with listening(host, port) as found:
        port = found.getsockname()[1]
        shown = "localhost" if is_local(host) else socket.gethostname() if host in {"0.0.0.0", "::"} else host  # noqa: S104 - compared
        say(f"Dashboard of {lakehouse}: http://{f'[{shown}]' if ':' in shown else shown}:{port}/   (Ctrl-C ends it)")
        if not is_local(host):
            say(
                f"Anybody who can reach {host} port {port} can read it, with the names of groups, clients and hosts and the log lines:"
                " nobody is asked for a password, and nothing is encrypted. Leave --host out to serve this machine alone."
            )
        app = build_app(lakehouse, names(host))
        quiet: dict[str, Any] = {"log_level": "warning", "access_log": False, "server_header": False, "date_header": False}
        config = uvicorn.Config(app, lifespan="off", ws="none", timeout_graceful_shutdown=_PATIENCE_S, **quiet)
        with Interrupts():  # uvicorn sends a signal again once it has ended: it is no error
            uvicorn.Server(config).run(sockets=[found])
