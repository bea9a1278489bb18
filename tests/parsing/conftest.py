"""Tests of ingest run in the session that ingest makes for itself."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def spark(spark):
    from jobs.pipeline.ingest import own_session

    return own_session(spark)
