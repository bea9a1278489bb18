"""Runs the app: which addresses it listens on, and by which names it may be called."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Any, Final

import uvicorn

from jobs.common.errors import UserError
from jobs.common.interrupts import Interrupts
from jobs.common.stores import Place
from jobs.dashboard.app import build_app

_ANY: Final = "*"
_WAITING: Final = 128  # connections that are not accepted yet
_PATIENCE_S: Final = 2  # with answers that are still sent when a signal comes
_LOCAL_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")


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
