"""Records for these tests: a hypothesis strategy, and samples that use every field."""

from hypothesis import strategies as st

from sluice.protocol.records.record import Record

NOW_MS = 1_700_000_000_000

contents = st.none() | st.binary(max_size=20) | st.binary(min_size=60, max_size=70) | st.just(b"long " * 2000)
headers = st.lists(st.tuples(st.text(max_size=8), st.none() | st.binary(max_size=8)), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn, min_size: int = 1, first_offset: int = 0) -> list[Record]:
    """Generate records with consecutive offsets, sometimes more than the 64 whose deltas fit in one byte."""
    count = draw(st.integers(min_size, 5) | st.sampled_from((64, 65, 70)))
    one = st.tuples(st.integers(-70_000, 70_000), contents, contents, headers)
    pattern = draw(st.lists(one, min_size=min(count, 5), max_size=min(count, 5)))
    return [
        Record(first_offset + index, NOW_MS + delta, key, value, pairs)
        for index in range(count)
        for delta, key, value, pairs in [pattern[index % len(pattern)]]
    ]


PLAIN = [
    Record(0, NOW_MS, b"key", b"value", (("name", b"content"), ("null", None), ("", b""))),
    Record(1, NOW_MS + 70_000, None, b"x" * 100),
    Record(2, NOW_MS - 5, b"", None),
    Record(3, NOW_MS, b"k" * 64, b"v" * 10_000, (("пример", "日本語".encode()),)),
]
