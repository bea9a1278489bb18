"""A Hypothesis strategy: logs whose lines are mostly in order, some of them damaged."""

from hypothesis import strategies as st

from tests.logs.log_makers import api_versions, coordinator, fetch, other, request

HOUR = 3_600_000
YEARS = 900 * 365 * 24 * HOUR
REPEATED = -(20 * 24 + 5) * HOUR  # 2026-11-01 01:00, which New York has twice

JUNK = st.one_of(
    st.sampled_from([b"", b" ", b"\tat x.Y(Z.java:1)", b"junk", b"\xff\0", b"[2026-99-99 00:00:00,000] INFO x", b"a\rb"]),
    st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")),
)


def upgraded(ms: int) -> bytes:
    """An answer to ApiVersions of the next release."""
    return api_versions(ms, 33)


@st.composite
def logs(draw):
    """Lines of a log, most of them in order, some damaged."""
    at, lines = draw(st.sampled_from([0, 0, REPEATED - HOUR])), []
    for _ in range(draw(st.integers(0, 40))):
        at += draw(st.sampled_from([0, 1, 500, 20_000, 70_000, HOUR // 3, 5 * HOUR]))
        make = draw(st.sampled_from([request, request, fetch, coordinator, other, api_versions, upgraded]))
        wrong = draw(st.sampled_from([0] * 8 + [YEARS, -YEARS, 90_000, -90_000, -HOUR]))
        line = make(at + wrong)
        match draw(st.integers(0, 9)):
            case 0:
                line = line[: draw(st.integers(0, len(line)))]
            case 1:
                position = draw(st.integers(0, len(line) - 1))
                line = line[:position] + draw(st.binary(max_size=2)).replace(b"\n", b"") + line[position + 1 :]
            case 2:
                line = draw(JUNK)
        lines.append(line)
    return lines
