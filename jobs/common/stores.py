"""Places of a lakehouse: a path on disk, or a key in an object store (`s3://BUCKET/PREFIX`), with what pathlib has of operations.

An object is written as a whole or not at all, and has no folder. Credentials, endpoint and region come from the environment, under the
names that all clients of S3 know (docs/stores.md): no place, no option of Spark and no task holds them.
"""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, TypeAlias, TypeVar
from urllib.parse import urlsplit

from jobs.common import store_clients
from jobs.common.errors import StoreError, UserError
from jobs.common.text import printable

if TYPE_CHECKING:
    from types import TracebackType

    from duckdb import DuckDBPyConnection
    from obstore.store import S3Store

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/)")  # Path turns the two slashes of a URL into one
_REASON_CHARS: Final = 300
_OF_MACHINES: Final = "169.254.169.254"
"""Where a machine of EC2 gets its credentials: clients ask there last."""
_NO_CREDENTIALS: Final = "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
_DETAILS: Final = "Debug source:"
"""What obstore writes behind its reason: fields such as `retry_timeout`, whatever went wrong."""
_NO_REASON: Final = "400 Bad Request"
"""What S3 answers, without a reason, to HEAD with credentials that have expired."""
_ARROWS: Final = re.compile("\x1b\\[[0-9;]*m|\u21b3")
_REASON: Final = re.compile(r"(<Message>.*?</Message>|error sending request|failed to load.*)")


_PASSES: Final = re.compile(
    r"(?i)error sending request|response body|decoding|connection|timed? ?out|reset|InternalError|SlowDown|broken pipe"
)
"""What clients say where the store may do the next time what it did not do now."""
_DELTA_RS: Final = "_internal"
"""The module of delta-rs's own errors."""
_FIRST_PAUSE_SECONDS: Final = 0.1
T = TypeVar("T")


class Stat(NamedTuple):
    """What is known of an object."""

    st_size: int


class StorePath:
    """An object, or all objects whose keys begin with a prefix. Immutable; it can be sent to other processes."""

    __slots__ = ("_known", "bucket", "key")

    def __init__(self, bucket: str, key: str, known: Stat | None = None) -> None:
        self.bucket = bucket
        self.key = key.strip("/")
        self._known = known  # of an entry of a listing

    def __truediv__(self, name: object) -> StorePath:
        return StorePath(self.bucket, f"{self.key}/{name}")

    def __str__(self) -> str:
        return f"s3://{self.bucket}/{self.key}"

    def __repr__(self) -> str:
        return f"StorePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorePath) and str(self) == str(other)

    def __lt__(self, other: StorePath) -> bool:
        return str(self) < str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> Any:
        return StorePath, (self.bucket, self.key)

    def client(self) -> S3Store:
        """The client of its bucket, for what pathlib has not."""
        return store_clients.bucket_of(self.bucket)

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> StorePath:
        """What is one part shorter."""
        return StorePath(self.bucket, self.key.rpartition("/")[0])

    def with_name(self, name: str) -> StorePath:
        """A sister."""
        return self.parent / name

    def absolute(self) -> StorePath:
        """Itself."""
        return self

    def resolve(self) -> StorePath:
        """Itself."""
        return self

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a store has no folders."""

    def exists(self) -> bool:
        """Whether there is such an object, or one below it."""
        return self.is_file() or self.is_dir()

    def is_file(self) -> bool:
        """Whether there is such an object."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Whether there is an object below it."""
        return asked(self, lambda: any(True for _ in self.client().list(f"{self.key}/", chunk_size=1)))

    def stat(self) -> Stat:
        """Size and date. FileNotFoundError: there is no such object."""
        return self._known or asked(self, lambda: Stat(self.client().head(self.key)["size"]))

    def iterdir(self) -> Iterator[StorePath]:
        """The objects and prefixes one part below, by name."""
        found = asked(self, lambda: self.client().list_with_delimiter(f"{self.key}/"))
        folders = [StorePath(self.bucket, prefix) for prefix in found["common_prefixes"]]
        objects = [StorePath(self.bucket, entry["path"], Stat(entry["size"])) for entry in found["objects"]]
        yield from sorted([*folders, *(one for one in objects if one != self)])  # S3A marks folders by empty objects of their names

    def glob(self, pattern: str) -> Iterator[StorePath]:
        """Those below that match, part by part."""
        first, _, rest = pattern.partition("/")
        if not any(sign in first for sign in "*?["):
            below = [self / first]
        else:
            below = [path for path in self.iterdir() if fnmatchcase(path.name, first)]
        for path in below:
            if rest:
                yield from path.glob(rest)
            elif path.is_listed() or path.exists():
                yield path

    def is_listed(self) -> bool:
        """Whether it is an object of a listing."""
        return self._known is not None

    def read_bytes(self) -> bytes:
        """The object. FileNotFoundError: there is none."""
        return asked(self, lambda: self.client().get(self.key).bytes().to_bytes())

    def read_text(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """The object as a text."""
        return self.read_bytes().decode(encoding, errors)

    def write_bytes(self, data: bytes) -> int:
        """Writes or replaces the object. LeaseLostError: another process works there."""
        check_guards(self)
        asked(self, lambda: self.client().put(self.key, data))
        return len(data)

    def touch(self) -> None:
        """Writes an empty object."""
        self.write_bytes(b"")

    def unlink(self, *, missing_ok: bool = False) -> None:  # noqa: ARG002 - to delete what is missing is no error of a store
        """Deletes the object."""
        check_guards(self)
        with suppress(FileNotFoundError):
            asked(self, lambda: self.client().delete(self.key))

    def open(self, mode: str = "rb") -> BinaryIO:
        """The object as a file: to read all of it, or to write it when the file is closed."""
        return io.BytesIO(self.read_bytes()) if mode == "rb" else _Upload(self)


Place: TypeAlias = Path | StorePath


class _Upload(io.BytesIO):
    """Is written to the store when it is closed, unless an error closes it."""

    def __init__(self, place: StorePath) -> None:
        super().__init__()
        self._place: StorePath | None = place

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._place = None
        super().__exit__(kind, error, trace)

    def close(self) -> None:
        place, self._place = self._place, None
        if place is not None:
            place.write_bytes(self.getvalue())
        super().close()


def place_of(text: str) -> Place:
    """The place that a user named. UserError: a store of a kind that was not tried."""
    url = _URL.match(text)
    if url is None:
        return Path(text)
    bucket, _, key = text[url.end() :].lstrip("/").partition("/")
    if url[1].lower() not in {"s3", "s3a"}:
        raise UserError(f"{url[1]}: only s3://BUCKET/PREFIX has been tried (docs/stores.md)")
    if not bucket or not key.strip("/"):
        raise UserError(f"{text}: give a bucket and a prefix in it, s3://BUCKET/PREFIX")
    store_clients.use_profile()
    if (endpoint := os.environ.get(store_clients.ENDPOINT)) and not is_web_address(endpoint):
        raise UserError(f"{store_clients.ENDPOINT}: give a URL, such as http://127.0.0.1:9000")
    return StorePath(bucket, key)


def is_web_address(text: str) -> bool:
    """Whether a text is the URL of a host, by HTTP or HTTPS."""
    try:
        parts = urlsplit(text)
        is_url = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or too high
        return False
    return is_url and text.isprintable() and " " not in text


def is_store(place: Place) -> bool:
    """Whether it lies in an object store."""
    return isinstance(place, StorePath)


def remove_tree(place: Place) -> None:
    """Deletes a folder and all that is in it, if it is there."""
    if isinstance(place, Path):
        shutil.rmtree(place, ignore_errors=True)
        return
    check_guards(place)
    pages = asked(place, lambda: list(place.client().list(f"{place.key}/")))
    for page in pages:
        asked(place, partial(place.client().delete, [entry["path"] for entry in page]))


def copy_tree(source: Place, target: Place, *, without: Callable[[str], bool] = lambda _: False) -> None:
    """Copies all files of a folder, between disk and store too. `without`: names of files and folders to leave out."""
    target.mkdir(parents=True, exist_ok=True)
    for entry in source.iterdir():
        if without(entry.name):
            continue
        if entry.is_dir() if isinstance(entry, Path) else not entry.is_listed():
            copy_tree(entry, target / entry.name, without=without)
        elif isinstance(entry, Path) and isinstance(target, Path):
            shutil.copy2(entry, target / entry.name)
        else:
            (target / entry.name).write_bytes(entry.read_bytes())


def readable(place: Place) -> Any:
    """What PyArrow reads a Parquet file from: of an object only the parts that are asked for are fetched."""
    if isinstance(place, Path):
        return place
    return store_clients.filesystem().open(f"{place.bucket}/{place.key}", "rb")


def asked(place: Place, ask: Callable[[], T]) -> T:
    """What a store answers, whichever client asks. A disk is asked once.

    What failed is repeated while this process is patient, if the store may do it yet; so a change first looks whether it was made.
    StoreError: says in a line what the store refuses, or that it cannot be reached. Other errors of delta-rs are about a table.
    """
    until, pause = time.monotonic() + store_clients.patience_seconds(), _FIRST_PAUSE_SECONDS
    while True:
        try:
            return ask()
        except (FileNotFoundError, UserError):
            raise
        except Exception as error:
            client = type(error).__module__.partition(".")[0]
            if isinstance(place, Path) or not (client in {"obstore", _DELTA_RS} or isinstance(error, OSError)):
                raise
            words = " ".join(_ARROWS.sub(" ", str(error)).partition(_DETAILS)[0].split())
            passes = _PASSES.search(words) is not None
            if client == _DELTA_RS and not passes:
                raise
            if not passes or time.monotonic() > until:
                raise _refusal(place, words) from error
        time.sleep(pause)
        pause = min(2 * pause, store_clients.LONGEST_PAUSE_SECONDS)


def _refusal(place: Place, words: str) -> StoreError:
    reason = re.sub("</?Message>", "", found[1]) if (found := _REASON.search(words)) else words
    reason = _NO_CREDENTIALS if _OF_MACHINES in words else reason
    reason = f"{_NO_REASON}: the credentials may have expired" if _NO_REASON in reason else reason
    return StoreError(errno.EIO, f"cannot use {place}: {printable(reason, _REASON_CHARS)} (docs/stores.md)", str(place))


def delta_options(place: Place) -> dict[str, str] | None:
    """The options of delta-rs: what the environment does not tell it."""
    if isinstance(place, Path):
        return None
    return store_clients.delta_options()


def for_duckdb(connection: DuckDBPyConnection, folder: Place, sizes: Mapping[str, int]) -> None:
    """Lets a DuckDB connection read the files of a folder. `sizes`: their bytes by name, for which it need not ask a store."""
    if isinstance(folder, StorePath):
        store_clients.filesystem().sizes.update({f"{folder.bucket}/{folder.key}/{name}": size for name, size in sizes.items()})
        if "s3" not in connection.list_filesystems():
            connection.register_filesystem(store_clients.filesystem())


_GUARDS: Final[list[tuple[str, Callable[[], None]]]] = []
"""Prefixes of lakehouses, each with what raises an error if this process may not write there any more."""


@contextmanager
def guarded(place: StorePath, check: Callable[[], None]) -> Iterator[None]:
    """Calls `check` before each write below a place."""
    guard = f"{place}/", check
    _GUARDS.append(guard)
    try:
        yield
    finally:
        _GUARDS.remove(guard)


def check_guards(place: Place) -> None:
    """Raises an error if this process may not write to a place any more."""
    for check in [check for prefix, check in _GUARDS if f"{place}/".startswith(prefix)]:
        check()
