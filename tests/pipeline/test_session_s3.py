"""A session with `s3=True` keeps checkpoints and state on a real object store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.common.places import PROJECT
from tests.lab.local_store import ACCESS_KEY, BUCKET, SECRET_KEY
from tests.lab.store_proxy import StoreProxy

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("s3_jars")]
PROGRAM = Path(__file__).with_name("count_words.py")


def test_a_query_goes_on_from_its_checkpoint_though_every_twentieth_request_fails(store, store_prefix, tmp_path):
    def counted(endpoint):
        environment = os.environ | store.environment(endpoint) | {"PYTHONPATH": str(PROJECT)}
        # The JVM alone has to find the credentials: in a profile, as on a machine where a person works.
        del environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
        environment["AWS_SHARED_CREDENTIALS_FILE"] = str(profiles)
        # Path style: the name of the bucket is not a host here.
        environment["PYSPARK_SUBMIT_ARGS"] = "--conf spark.hadoop.fs.s3a.path.style.access=true pyspark-shell"
        command = [sys.executable, str(PROGRAM), str(tmp_path / "in"), f"s3a://{BUCKET}/{store_prefix}/checkpoint"]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert SECRET_KEY not in done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    (tmp_path / "in").mkdir()
    profiles = tmp_path / "credentials"
    profiles.write_text(f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {SECRET_KEY}\n")
    with StoreProxy(store.endpoint, fail_every=20) as proxy:
        (tmp_path / "in" / "1.txt").write_text("a\nb\na\n")
        first = {"0": {"a": 2, "b": 1}}
        assert counted(proxy.endpoint) == first
        (tmp_path / "in" / "2.txt").write_text("a\nc\n")
        assert first | counted(proxy.endpoint) == first | {"1": {"a": 3, "c": 1}}  # Spark may repeat a batch, but not make another of it
        assert {one.fault for one in proxy.requests()} > {None}
        written = {one.path.removeprefix(f"/{BUCKET}/{store_prefix}/checkpoint/") for one in proxy.requests() if one.kind == "PUT"}
    assert {"metadata", "offsets/0", "commits/0", "offsets/1", "commits/1", "state/0/0/1.changelog", "state/0/1/2.changelog"} <= written
