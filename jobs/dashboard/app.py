"""The web app: pages, their assets and the API. It answers GET alone, and lets a browser load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from jobs.common.stores import Place
from jobs.common.text import printable
from jobs.dashboard import api
from jobs.dashboard.pages import PAGES, Page, shell
from jobs.dashboard.store import Store

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
