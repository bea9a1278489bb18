"""Posts a message to a webhook, and says what became of it without a word of the secrets in its URL.

urllib of the standard library is enough: it knows proxies (`https_proxy`) and checks certificates (`SSL_CERT_FILE` adds an authority).
"""

from __future__ import annotations

import http.client
import os
import re
import ssl
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from jobs.alerts.messages import Message
from jobs.common.alert_settings import ReceiverSettings
from jobs.common.errors import SettingsError
from jobs.common.files import foreign_access
from jobs.common.places import version
from jobs.common.stores import is_web_address
from jobs.common.text import printable

_REFUSED: Final = frozenset({400, 413, 415, 422})
"""Answers that say that the message itself is wrong: another attempt may change nothing."""

_ANSWER_BYTES: Final = 1_000
_SECRET_PIECE: Final = 6
"""An answer that repeats so many characters of a secret in a row is not shown."""
_ALERTMANAGER: Final = "/api/v2/alerts"


@dataclass(frozen=True)
class Outcome:
    """What became of a post. `text`: for people, in one line."""

    delivered: bool
    text: str
    reason: str  # of a failure, as the metrics name it: the status, timeout, or connection
    refused: bool = False
    pause_s: float = 0.0  # for which the receiver asks not to be called


class Webhook:
    """The address of a receiver. The files with its secrets are read at each post, so that they may be replaced."""

    def __init__(self, settings: ReceiverSettings) -> None:
        self._settings = settings
        self._opener = build_opener(_NoRedirect)

    def post(self, message: Message) -> Outcome:
        """Posts a message. The receiver has it once it answers with a status of success."""
        try:
            url, authorization = self.address()
        except SettingsError as error:
            return Outcome(delivered=False, text=str(error), reason="settings")
        own = {"Idempotency-Key": message.key, "Content-Type": "application/json", "User-Agent": f"rebalance/{version()}"}
        request = Request(url, message.body, own | authorization, method="POST")  # noqa: S310 - `address` lets only HTTP through
        try:
            with self._opener.open(request, timeout=self._settings.timeout_ms / 1_000) as answer:
                return Outcome(delivered=True, text=_status(answer.status), reason="")
        except HTTPError as error:
            return self._failure(error, url, authorization)
        except (OSError, http.client.HTTPException, ValueError) as error:
            return _without_address(error)

    def _failure(self, error: HTTPError, url: str, authorization: Mapping[str, str]) -> Outcome:
        said = ""
        with error, suppress(OSError, http.client.HTTPException):
            said = error.read(_ANSWER_BYTES).decode("utf-8", "replace").strip()
        shown = f": {printable(said, 200)}" if said and not _tells(said, [url, *authorization.values()]) else ""
        text, refused = f"{_status(error.code)}{shown}", error.code in _REFUSED
        return Outcome(delivered=False, text=text, reason=str(error.code), refused=refused, pause_s=_retry_after(error))

    def address(self) -> tuple[str, dict[str, str]]:
        """The URL and the header of the login. SettingsError: the files cannot be read, others can read them too, or they hold no such."""
        settings = self._settings
        url = _secret(settings.name, settings.url_file)
        if not is_web_address(url):
            raise SettingsError(f"alerts to {settings.name}: {settings.url_file} holds no URL of one line, such as https://HOST/PATH")
        parts = urlsplit(url)
        if parts.username is not None:
            raise SettingsError(f"alerts to {settings.name}: put the login of {settings.url_file} into a token_file")
        if settings.format == "alertmanager" and not parts.path.endswith(_ALERTMANAGER):
            url = urlunsplit(parts._replace(path=parts.path.rstrip("/") + _ALERTMANAGER))
        if not settings.token_file:
            return url, {}
        token = _secret(settings.name, settings.token_file)
        if not token.isascii() or not token.isprintable():
            raise SettingsError(f"alerts to {settings.name}: {settings.token_file} holds no token of one line")
        return url, {"Authorization": token if token.startswith(("Bearer ", "Basic ")) else f"Bearer {token}"}


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: urllib would turn the POST into a GET, whose answer says nothing about the message."""

    def redirect_request(self, *_: object) -> None:
        """None: the redirect is an error."""


def _secret(name: str, file: str) -> str:
    path = Path(file)
    try:
        with path.open(encoding="utf-8") as opened:
            text, status = opened.read().strip(), os.fstat(opened.fileno())
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise SettingsError(f"alerts to {name}: cannot read {path}: {reason}") from None
    if os.name == "posix" and (access := foreign_access(status)):
        raise SettingsError(f"alerts to {name}: {path} holds a secret and can be {access}: chmod 600 {path}")
    return text


def _status(code: int) -> str:
    return f"HTTP {code} {http.client.responses.get(code, '')}".rstrip()


def _without_address(error: Exception) -> Outcome:
    """Why there was no answer. Only texts of the system: messages of http.client quote the address."""
    reason = error.reason if isinstance(error, URLError) and isinstance(error.reason, Exception) else error
    if isinstance(reason, TimeoutError):
        return Outcome(delivered=False, text="no answer in time", reason="timeout")
    text = f"no HTTP answer ({type(reason).__name__})"
    if isinstance(reason, ssl.SSLCertVerificationError):
        text = f"its certificate cannot be verified: {reason.verify_message}"
    elif isinstance(reason, OSError) and reason.strerror:
        text = reason.strerror
    return Outcome(delivered=False, text=text, reason="connection")


def _tells(said: str, secrets: Iterable[str]) -> bool:
    """Whether a text repeats a piece of a secret. The host of a URL is none."""
    hidden = " ".join(re.sub("^https?://[^/?]*", "", secret, flags=re.IGNORECASE) for secret in secrets).lower()
    words = [word for word in re.split(r"[/?&=\s]+", f"{hidden} {unquote(hidden)}") if word not in {"bearer", "alerts"}]
    pieces = (word[start : start + _SECRET_PIECE] for word in words for start in range(len(word) - _SECRET_PIECE + 1))
    return any(piece in said.lower() for piece in pieces)


def _retry_after(error: HTTPError) -> float:
    """Seconds that `Retry-After` asks for: a number, or a time. 0: it asks for nothing."""
    asked = str(error.headers.get("Retry-After", "0"))
    try:
        return max(float(asked) if asked.strip().isdigit() else parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return 0.0
