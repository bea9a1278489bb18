"""Long lines that a container's runtime stores in pieces are read as one line, wherever a read ends and another begins."""

import json

from hypothesis import given
from hypothesis import strategies as st

from jobs.logs.lines import LineLimits
from jobs.logs.mark import KeptLines
from tests.logs.log_makers import START_MS, coordinator, fetch, request, write
from tests.logs.reading import read, reader, rows

LONG = request(2, group="g" * 40_000)
AT = b"2026-11-21T06:00:00.002345678Z"
SIZE = 16 << 10


def cri(line, size=SIZE, stream=b"stdout"):
    """As containerd writes it."""
    cut = [line[at : at + size] for at in range(0, len(line), size)] or [b""]
    return [b"%s %s %s %s" % (AT, stream, b"F" if number == len(cut) else b"P", text) for number, text in enumerate(cut, 1)]


def docker(line):
    """As dockerd writes it: a buffer of 16 kB at a time, with the line end in the last piece."""
    cut = [(line + b"\n")[at : at + SIZE] for at in range(0, len(line) + 1, SIZE)]
    return [json.dumps({"log": text.decode(), "stream": "stdout", "time": AT.decode()}, separators=(",", ":")).encode() for text in cut]


def texts(kept):
    return [(at, text, fault) for _, at, text, fault in rows(kept)]


def test_pieces_are_one_line_that_stands_where_its_first_piece_does(tmp_path):
    lines = [request(1), LONG, coordinator(3)]
    for number, wrap in enumerate((cri, docker)):
        wrapped = [piece for line in lines for piece in wrap(line)]
        kept, count = read(write(tmp_path / f"{number}.log", wrapped))
        assert len(wrapped) == count == 5
        assert rows(kept) == [(1, START_MS + 1, lines[0], ""), (2, START_MS + 2, LONG, ""), (5, START_MS + 3, lines[2], "")]


def test_a_line_of_another_stream_may_stand_between_them(tmp_path):
    first, second, third = cri(LONG)
    between = cri(coordinator(3), stream=b"stderr")
    lines = [first, *between, second, third, *cri(coordinator(4))]
    kept, _ = read(write(tmp_path / "a.log", lines))
    assert [(position, text) for position, _, text, _ in rows(kept)] == [(1, LONG), (2, coordinator(3)), (5, coordinator(4))]


def test_a_line_waits_for_its_last_piece_while_a_log_grows(tmp_path):
    first, second, third = cri(LONG)
    path = write(tmp_path / "a.log", [*cri(request(1)), first, second])
    growing, kept = reader(path, final=False), KeptLines()
    growing.read(kept)
    assert (growing.mark.line, len(kept)) == (1, 1)
    growing.close()
    write(path, [*cri(request(1)), first, second, third])
    growing.read(kept)
    assert texts(kept) == texts(read(path)[0])
    assert (growing.mark.line, growing.mark.offset) == (4, path.stat().st_size)


def test_what_follows_an_end_that_was_final_is_the_rest_of_that_line(tmp_path):
    """As of a last line without its end: the file was taken for whole."""
    first, second, third = cri(LONG)
    path = write(tmp_path / "a.log", [*cri(request(1)), first, second])
    early, kept = reader(path), KeptLines()
    early.read(kept)
    assert (early.mark.line, early.mark.inside_pieces) == (3, "stdout")
    write(path, [*cri(request(1)), first, second, third, *cri(request(4))])
    later = reader(path, early.mark)
    assert later.read(rest := KeptLines()) == 2
    assert rows(rest) == [(5, START_MS + 4, request(4), "")]


def test_a_full_buffer_alone_makes_no_piece_of_other_json(tmp_path):
    """Collectors write the same fields in another order, and no line end."""
    line = json.dumps({"log": LONG.decode(), "time": AT.decode(), "stream": "stdout"}).encode()
    kept, _ = read(write(tmp_path / "a.log", [line, line]))
    assert [text for _, text, _ in texts(kept)] == [LONG, LONG]


@given(
    st.lists(st.tuples(st.sampled_from(["request", "coordinator", "fetch"]), st.integers(20, 500)), min_size=1, max_size=20),
    st.lists(st.integers(1, 5), min_size=1),
    st.integers(200, 3_000),
    st.booleans(),
)
def test_it_does_not_matter_how_it_is_cut(tmp_path_factory, kinds, steps, block_bytes, two_streams):
    folder = tmp_path_factory.mktemp("pieces")
    make = {"request": request, "coordinator": coordinator, "fetch": fetch}
    lines = [make[kind](number) for number, (kind, _) in enumerate(kinds)]
    streams = [b"stderr" if two_streams and number % 3 == 0 else b"stdout" for number in range(len(lines))]
    wrapped = [piece for line, (_, size), stream in zip(lines, kinds, streams, strict=True) for piece in cri(line, size, stream)]
    expected, _ = read(write(folder / "plain.log", lines))
    path = write(folder / "wrapped.log", wrapped)
    limits = LineLimits(block_bytes, 1 << 20)
    mark, kept, turn = None, KeptLines(), 0
    while True:
        part = reader(path, mark, limits=limits)
        count = part.read(kept, max_lines=steps[turn % len(steps)])
        mark, turn = part.mark, turn + 1
        part.close()
        if not count:
            break
    assert texts(kept) == texts(expected)
    assert (mark.line, mark.offset) == (len(wrapped), path.stat().st_size)
