"""jobs/parsing/runs/heartbeat_runs.py tells members apart by their columns: as tuples of their values would."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.parsing.runs import heartbeat_runs

VALUES = st.tuples(st.sampled_from([None, "", "a", "b"]), st.sampled_from([None, 0, 1]), st.sampled_from([None, "a"]))


@pytest.mark.parametrize("most", [3, 1 << 62], ids=["numbered anew at each column", "numbered once"])
@given(st.lists(VALUES))
def test_rows_with_the_same_values_have_the_same_number(most, keys):
    types = pa.string(), pa.int32(), pa.string()
    beats = pa.table({f"column {n}": pa.array([key[n] for key in keys], own) for n, own in enumerate(types)})
    numbers: dict[tuple[object, ...], int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heartbeat_runs, "_MOST_NUMBERS", most)
        found = heartbeat_runs.numbered(beats, beats.column_names)
    assert found.tolist() == [numbers.setdefault(key, len(numbers)) for key in keys]
