"""Lines of a file by their numbers, as the reader of logs counts them."""

import gzip

import pytest

from jobs.logs.lines import LineLimits, numbered_lines


@pytest.mark.parametrize("ends", [b"\n", b""])
@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_counted_as_ingest_counts_them(tmp_path, ends, compressed):
    content = b"first\r\n\n" + b"x" * 50 + b"\nlast" + ends
    path = tmp_path / "a.log"
    path.write_bytes(gzip.compress(content) if compressed else content)
    limits = LineLimits(block_bytes=7)
    assert dict(numbered_lines(path, [1, 2, 3, 4, 5], limits)) == {1: b"first", 2: b"", 3: b"x" * 50, 4: b"last"}
    assert dict(numbered_lines(path, [3], limits)) == {3: b"x" * 50}
    assert dict(numbered_lines(path, [], limits)) == {}
    assert dict(numbered_lines(tmp_path / "none", [1], limits)) == {}


def test_a_line_without_end_takes_no_more_memory_than_is_shown(tmp_path):
    (tmp_path / "a.log").write_bytes(b"y" * 10_000)
    ((_, text),) = numbered_lines(tmp_path / "a.log", [1], LineLimits(block_bytes=1_000, line_bytes=2_500))
    assert text == b"y" * 2_500
