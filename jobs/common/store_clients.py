"""The clients of object stores: obstore, delta-rs, S3A and DuckDB. All take credentials, endpoint and region from the same variables."""

from __future__ import annotations

import os
from configparser import ConfigParser
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from obstore.store import S3Store

ENDPOINT: Final = "AWS_ENDPOINT_URL"
REGION: Final = "AWS_REGION"
_STYLE: Final = "AWS_VIRTUAL_HOSTED_STYLE_REQUEST"
_DEFAULT_REGION: Final = "us-east-1"
PATIENCE: Final = "REBALANCE_STORE_SECONDS"
_PATIENCE_SECONDS: Final = 60
_READERS_SECONDS: Final = 3
LONGEST_PAUSE_SECONDS: Final = 1  # between two tries
_OF_PROFILE: Final = {name: name.upper() for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")} | {
    "region": REGION,
    "endpoint_url": ENDPOINT,
}
"""Settings of a profile that are used, and the variable of each."""


def use_profile() -> None:
    """Puts what AWS's files say of a profile into the environment, where all clients of this process and its children find it."""
    os.environ.setdefault("RUST_LOG", "off")  # delta-rs writes pages about credentials that it tried in vain
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        return
    profile = os.environ.get("AWS_PROFILE", "default")
    section = profile if profile == "default" else f"profile {profile}"
    files = {"AWS_SHARED_CREDENTIALS_FILE": ("credentials", profile), "AWS_CONFIG_FILE": ("config", section)}
    for variable, (name, section) in files.items():
        settings = ConfigParser(interpolation=None)
        settings.read(os.environ.get(variable) or Path.home() / ".aws" / name)
        for key, value in settings.items(section) if settings.has_section(section) else ():
            if key in _OF_PROFILE:
                os.environ.setdefault(_OF_PROFILE[key], value)


@lru_cache(maxsize=8)
def bucket_of(bucket: str) -> S3Store:
    """The client of a bucket: it takes the rest from the environment."""
    from obstore.store import S3Store

    return S3Store(bucket, config=config(), client_options=client_options(), retry_config=_retries())


def forget() -> None:
    """Lets the next request read the environment again."""
    bucket_of.cache_clear()
    filesystem.cache_clear()


def config() -> Any:
    """What the environment does not tell obstore."""
    return {"region": os.environ.get(REGION) or os.environ.get("AWS_DEFAULT_REGION") or _DEFAULT_REGION}


def client_options() -> Any:
    """How obstore connects."""
    return {"allow_http": is_plain_http()}


def be_patient() -> None:
    """Lets this process and its children outlive a store that is away for a minute: who reads gets an error after some seconds."""
    if PATIENCE not in os.environ:
        os.environ[PATIENCE] = str(_PATIENCE_SECONDS)
        forget()


def patience_seconds() -> float:
    """How long this process repeats a request that a store did not answer."""
    return float(os.environ.get(PATIENCE, _READERS_SECONDS))


def _retries() -> Any:
    """How long obstore repeats a request. None: as it wants to, which is 2 to 4 s if nothing answers."""
    if PATIENCE not in os.environ:
        return None
    backoff = {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=LONGEST_PAUSE_SECONDS), "base": 2}
    return {"max_retries": 1_000, "retry_timeout": timedelta(seconds=patience_seconds()), "backoff": backoff}


def delta_options() -> dict[str, str]:
    """What the environment does not tell delta-rs."""
    options = {"aws_region": str(config()["region"]), "aws_allow_http": str(is_plain_http()).lower()}
    if PATIENCE in os.environ:
        options |= {"max_retries": "1000", "retry_timeout": f"{os.environ[PATIENCE]}s"}
        options |= {"backoff_config.max_backoff": f"{LONGEST_PAUSE_SECONDS}s"}
    return options


def is_plain_http() -> bool:
    """Whether the endpoint is one without TLS."""
    return os.environ.get(ENDPOINT, "").startswith("http://")


def whereabouts() -> dict[str, str]:
    """Variables that say where the store is, and how long to wait for it. The rest are credentials: each machine has its own."""
    return {name: os.environ[name] for name in (ENDPOINT, REGION, "AWS_DEFAULT_REGION", _STYLE, PATIENCE) if name in os.environ}


def spark_settings() -> dict[str, str]:
    """Settings of Spark that say where the store is. Its client takes the credentials from the environment, too."""
    endpoint = os.environ.get(ENDPOINT)
    settings = {"spark.hadoop.fs.s3a.endpoint.region": str(config()["region"])}
    if endpoint:
        style = os.environ.get(_STYLE, "false").lower() != "true"
        settings |= {"spark.hadoop.fs.s3a.endpoint": endpoint, "spark.hadoop.fs.s3a.path.style.access": str(style).lower()}
    return settings


@lru_cache(maxsize=1)
def filesystem() -> Any:
    """The store for PyArrow and DuckDB. They ask for the size of a file again and again: data files never change."""
    from obstore.fsspec import FsspecStore

    class DataFiles(FsspecStore):
        protocol = "s3"
        cachable = False

        def __init__(self) -> None:
            super().__init__("s3", config=config(), client_options=client_options(), retry_config=_retries())
            self.sizes: dict[str, int] = {}

        async def _info(self, path: str, **options: Any) -> dict[str, Any]:
            path = path.removeprefix("s3://")
            if path not in self.sizes:
                self.sizes[path] = (await super()._info(path, **options))["size"]
            return {"name": path, "size": self.sizes[path], "type": "file"}

        def modified(self, path: str) -> Any:  # noqa: ARG002
            from jobs.common.times import EPOCH

            return EPOCH

    return DataFiles()
