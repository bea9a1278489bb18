"""The spool after a crash: nothing is lost, nothing comes twice."""

import os
from pathlib import Path

import pytest

from jobs.logs import slice_rows, spool
from jobs.logs.spool import Spool
from tests.logs.spooling import Consumer, assert_same, brokers, run


class CrashError(Exception):
    pass


def crash_after(monkeypatch, target, name, calls):
    """Lets a function be called so many times, then crashes: before its work, or after."""
    original, seen = getattr(target, name), []

    def wrapped(*args, **kwargs):
        seen.append(1)
        if len(seen) > calls // 2:
            if calls % 2:
                original(*args, **kwargs)
            raise CrashError
        return original(*args, **kwargs)

    monkeypatch.setattr(target, name, wrapped)


@pytest.mark.parametrize("where", [(Path, "replace"), (spool, "write_whole"), (slice_rows.pq, "write_table"), (os, "fsync")])
@pytest.mark.parametrize("calls", range(8))
def test_a_crash_anywhere_loses_and_doubles_nothing(tmp_path, where, calls):
    inputs = brokers(tmp_path / "in", lines=60)
    whole, _ = run(inputs, tmp_path / "whole")
    consumer, out = Consumer(), tmp_path / "out"
    for _ in range(3):
        with pytest.MonkeyPatch.context() as patch:
            crash_after(patch, *where, calls)
            try:
                run(inputs, out, consumer, slice_lines=40)
            except CrashError:
                consumer.take(out)
    run(inputs, out, consumer, slice_lines=40)
    consumer.take(out)
    assert_same(consumer, whole)
    assert [r["record"] for r in consumer.slices[-1]].count("end") == 3
    assert run(inputs, out, consumer)[1] == []


def test_a_state_of_another_version_is_refused(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/state.json").write_text('{"version": 99}')
    with pytest.raises(ValueError, match="version 99"):
        Spool(tmp_path, tmp_path / "out")
