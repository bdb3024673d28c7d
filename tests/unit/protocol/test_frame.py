"""Frame reading: the same frames for any split of the stream, and memory proportional to received data."""

import mmap
from functools import partial
from itertools import cycle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.client.network.connection import ResponsePool
from sluice.errors import RemoteProtocolError
from sluice.protocol.frame import POOL_FREE_BYTES, SCRATCH_BYTES, FramePool, FrameReader, FrameSizeError

MIB = 1024 * 1024


def reader(pool: FramePool | None = None, most: int = 100 * MIB) -> FrameReader:
    return FrameReader(pool or FramePool(None), most)


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4) + body for body in bodies)


def put(into: FrameReader, data: bytes) -> int:
    """Give the reader as much of `data` as it has room for, like a socket; return that size."""
    buffer = into.get_buffer()
    size = min(len(buffer), len(data))
    assert size, "a reader must always have room: zero bytes would mean that the peer closed"
    buffer[:size] = data[:size]
    into.received(size)
    return size


def take(from_: FrameReader) -> list[bytes]:
    """Return the complete frames, then do a connection's work between reads."""
    frames = []
    while from_.next_frame():
        frames.append(bytes(from_.view[from_.start : from_.end]))
    assert from_.keep_rest()
    return frames


def feed(into: FrameReader, data: bytes) -> list[bytes]:
    """Read all of `data` and return its frames."""
    frames = []
    while data:
        data = data[put(into, data) :]
        frames += take(into)
    return frames


# -- splits ------------------------------------------------------------------------------------------------------------


def test_frames_of_one_read_are_returned_one_by_one() -> None:
    assert feed(reader(), framed(b"a", b"", b"bcd")) == [b"a", b"", b"bcd"]


def test_stream_may_be_split_anywhere() -> None:
    data = framed(b"first", b"", b"second frame", bytes(300))
    wrong = []
    for cut in range(len(data) + 1):
        one = reader()
        if feed(one, data[:cut]) + feed(one, data[cut:]) != [b"first", b"", b"second frame", bytes(300)]:
            wrong.append(cut)
    assert wrong == []


@settings(max_examples=40)
@given(
    sizes=st.lists(st.one_of(st.integers(0, 200), st.integers(SCRATCH_BYTES - 10, 3 * SCRATCH_BYTES)), max_size=5),
    cuts=st.lists(st.integers(1, 2 * SCRATCH_BYTES), min_size=1, max_size=20),
)
def test_frames_of_any_size_arrive_in_pieces_of_any_size(sizes: list[int], cuts: list[int]) -> None:
    bodies = [bytes([number % 251]) * size for number, size in enumerate(sizes)]
    data, one = framed(*bodies), reader()
    frames, position, pieces = [], 0, cycle(cuts)
    while position < len(data):
        piece = max(next(pieces), len(data) // 200)  # byte by byte, megabytes take minutes
        frames += feed(one, data[position : position + piece])
        position += piece
    assert frames == bodies
    one.close()


@pytest.fixture
def pool() -> FramePool:
    return FramePool(None)


def test_readers_with_a_shared_pool_do_not_share_bytes(pool: FramePool) -> None:
    readers = [reader(pool) for _ in range(3)]
    bodies = [bytes([number]) * 5_000 for number in range(3)]
    halves = [framed(body) for body in bodies]
    for one, data in zip(readers, halves, strict=True):
        assert feed(one, data[:2_000]) == []
    assert [feed(one, data[2_000:]) for one, data in zip(readers, halves, strict=True)] == [[body] for body in bodies]


@pytest.fixture
def one() -> FrameReader:
    return reader()


def test_reader_reports_that_a_frame_is_still_incomplete(one: FrameReader) -> None:
    incomplete = []
    for piece in (framed(bytes(300))[:50], bytes(100), bytes(153), bytes(1)):
        buffer = one.get_buffer()
        buffer[: len(piece)] = piece
        incomplete.append(one.received(len(piece)))
        if incomplete[-1]:
            take(one)
    assert incomplete == [True, False, False, True]


def test_frames_after_the_current_one_keep_their_place(one: FrameReader) -> None:
    put(one, framed(b"first", b"second", b"third"))
    assert one.next_frame()
    assert one.has_rest
    one.keep_rest()
    frames = []
    while one.next_frame():
        frames.append(bytes(one.view[one.start : one.end]))
    assert frames == [b"second", b"third"]
    assert not one.has_rest


def test_dropped_frames_are_not_returned(one: FrameReader) -> None:
    put(one, framed(b"first", b"second"))
    assert one.next_frame()
    one.drop_rest()
    assert not one.next_frame()


# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [-1, -(2**31), 101, 2**31 - 1])
def test_invalid_size_is_rejected_when_read(size: int) -> None:
    one = reader(most=100)
    put(one, size.to_bytes(4, signed=True))
    with pytest.raises(FrameSizeError, match=rf"^invalid frame size {size}; expected 0 to 100 bytes \(.*\)$") as error:
        one.next_frame()
    assert isinstance(error.value, RemoteProtocolError)


@pytest.mark.parametrize("size", [0, 1, 100])
def test_sizes_up_to_the_limit_are_accepted(size: int) -> None:
    assert feed(reader(most=100), framed(bytes(size))) == [bytes(size)]


# -- memory ------------------------------------------------------------------------------------------------------------


def own_bytes(one: FrameReader) -> int:
    """Return the size of the reader's own buffer; 0 if it has none."""
    return len(one._buffer) if one._buffer is not None else 0


def test_idle_reader_has_no_buffer(one: FrameReader) -> None:
    feed(one, framed(b"x" * 10_000)[:5_000])
    assert own_bytes(one) >= 5_000
    feed(one, framed(b"x" * 10_000)[5_000:])
    assert own_bytes(one) == 0


def test_buffer_grows_with_received_data_not_with_the_frame_size(one: FrameReader) -> None:
    put(one, (7 * MIB).to_bytes(4))
    take(one)
    came = 4
    while came < 5 * MIB:
        came += put(one, bytes(50_000))
        take(one)
        # Twice the received size, rounded up to a power of two.
        assert own_bytes(one) <= max(4 * came, 4_096), f"{own_bytes(one)} bytes for {came} that came"


def test_frame_too_large_for_the_pool_is_read_into_one_mapping(pool: FramePool) -> None:
    one = reader(pool)
    data = framed(bytes(100 * MIB))
    came = put(one, data[:SCRATCH_BYTES])
    take(one)
    mapping = one.view.obj
    assert isinstance(mapping, mmap.mmap)
    while came < len(data):
        assert one.view.obj is mapping
        came += put(one, data[came : came + MIB])
    assert [len(frame) for frame in take(one)] == [100 * MIB]
    assert own_bytes(one) == 0
    assert not pool._free


def test_after_a_large_frame_the_next_is_read_into_a_buffer_of_that_size(one: FrameReader) -> None:
    feed(one, framed(bytes(MIB)))
    assert len(one.get_buffer()) >= MIB


def test_frame_may_be_replaced_by_one_whose_rest_others_read() -> None:
    of_client = reader(ResponsePool())
    data = framed(bytes(MIB))
    assert feed(of_client, framed(b"first") + data[:10]) == [b"first"]
    assert feed(of_client, data[10 : 2 * SCRATCH_BYTES]) == []
    start, size = of_client.incomplete
    assert (bytes(start), size) == (data[: 2 * SCRATCH_BYTES], len(data))
    of_client.replace(bytearray(framed(b"other".ljust(MIB))))
    assert take(of_client) == [b"other".ljust(MIB)]
    assert feed(of_client, framed(b"next")) == [b"next"]
    assert of_client.get_buffer() is of_client.pool.scratch


def test_small_frame_after_large_ones_returns_to_the_shared_buffer(one: FrameReader) -> None:
    feed(one, framed(bytes(MIB)))
    feed(one, framed(b"small"))
    assert len(one.get_buffer()) == SCRATCH_BYTES


def test_buffer_doubles_up_to_the_shared_one_while_reads_fill_it() -> None:
    one, body = reader(), bytes(65_180)
    data = framed(*[body] * 20)
    feed(one, data[:100])  # the rest of a read, which gives the reader its own buffer
    data, sizes, frames = data[100:], [], []
    while data:
        data = data[put(one, data) :]
        frames += take(one)
        sizes.append(own_bytes(one))
    assert frames == [body] * 20
    assert sizes == [*sorted(sizes[:-1]), 0]
    assert max(sizes) == SCRATCH_BYTES


def test_buffer_of_small_frames_stays_small_while_reads_fill_it() -> None:
    one, data, sizes = reader(), framed(*[bytes(100)] * 20_000), []
    feed(one, data[:50])
    data = data[50:]
    while data:
        data = data[put(one, data) :]
        assert take(one)
        sizes.append(own_bytes(one))
    assert max(sizes) == 4_096


def test_buffer_with_room_left_does_not_grow() -> None:
    one, body = reader(), bytes(20_000)
    feed(one, framed(body)[:100])
    size = own_bytes(one)
    for _ in range(5):
        assert feed(one, framed(body)[100:] + framed(body)[:100]) == [body]
        size = max(size, own_bytes(one))
    assert size <= 2 * len(body)


@pytest.mark.parametrize("sizes", [(90_000, 60_000, 80_000), (3_000_000, 1_000_000, 2_000_000)], ids=["small", "large"])
def test_frames_of_responses_keep_their_bytes_while_views_of_them_are_in_use(sizes: tuple[int, ...]) -> None:
    one = reader(ResponsePool())
    bodies = [bytes([number]) * size for number, size in enumerate(sizes * 10)]
    views, data = [], framed(*bodies)
    while data:
        data = data[put(one, data) :]
        while one.next_frame():
            in_shared = one.view is one.pool.scratch
            views.append(bytes(one.view[one.start : one.end]) if in_shared else one.view[one.start : one.end])
        one.keep_rest()
    assert views == bodies


def test_spare_buffers_are_reused_and_bounded(pool: FramePool) -> None:
    buffers = [pool.take(MIB) for _ in range(20)]
    assert all(len(buffer) == MIB for buffer in buffers)
    for buffer in buffers:
        pool.give(buffer)
    kept = [pool.take(MIB) for _ in range(20)]
    assert sum(any(buffer is one for one in buffers) for buffer in kept) == POOL_FREE_BYTES // MIB


@pytest.mark.parametrize("limit", [1, 4_096, SCRATCH_BYTES])
def test_read_into_the_shared_buffer_may_be_limited(limit: int) -> None:
    assert len(reader().get_buffer(limit)) == limit


# -- budget ------------------------------------------------------------------------------------------------------------


def begin(one: FrameReader, size: int) -> bool:
    """Send the start of a frame of this size; return whether the budget had room."""
    put(one, size.to_bytes(4) + b"begun")
    assert not one.next_frame()
    return one.keep_rest()


def test_large_frames_share_the_budget_and_small_ones_are_exempt() -> None:
    pool = FramePool(2 * MIB)
    first, second, small = reader(pool), reader(pool), reader(pool)
    assert begin(first, 1_500_000)
    assert not begin(second, 1_500_000)
    assert begin(small, SCRATCH_BYTES - 100)
    assert pool.reserved_bytes == 1_500_004


def test_waiters_are_called_in_order_when_the_budget_has_room() -> None:
    pool = FramePool(2 * MIB)
    first, second, third = (reader(pool) for _ in range(3))
    called: list[str] = []
    begin(first, 1_500_000)
    for name, one in (("second", second), ("third", third)):
        assert not begin(one, 1_500_000)
        one.wait_for_room(partial(called.append, name))
    assert called == []
    first.close()
    assert called == ["second", "third"]
    assert second.retry_reservation()
    assert not third.retry_reservation()
    second.close()
    assert called == ["second", "third"], "no waiter is called twice"


def test_frame_larger_than_the_budget_is_read_alone() -> None:
    pool = FramePool(MIB)
    one, other = reader(pool), reader(pool)
    assert begin(one, 5 * MIB)
    assert not begin(other, 5 * MIB)
    one.close()
    assert other.retry_reservation()


def test_budget_without_a_limit_is_unbounded(pool: FramePool) -> None:
    assert all(begin(reader(pool), 100 * MIB) for _ in range(50))


def test_complete_frame_returns_its_share() -> None:
    pool = FramePool(2 * MIB)
    one = reader(pool)
    feed(one, framed(bytes(1_500_000)))
    assert pool.reserved_bytes == 0
