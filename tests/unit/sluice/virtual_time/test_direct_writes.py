"""Writes that bypass the transport's buffer against those that pass it: the same events at the same times."""

import asyncio
from unittest.mock import patch

from hypothesis import example, given
from hypothesis import strategies as st

from sluice import testing
from sluice.testing import MemoryTransport
from sluice.virtual_time.transport import WINDOW_BYTES

STEPS = st.tuples(
    st.integers(0, 1),  # the end
    st.one_of(
        st.tuples(
            st.just("write"), st.sampled_from([1, 5, 40_000, 70_000, WINDOW_BYTES - 1, WINDOW_BYTES, WINDOW_BYTES + 9])
        ),
        st.tuples(st.sampled_from(["pause_reading", "resume_reading", "write_eof", "close", "abort"]), st.none()),
        st.tuples(st.sampled_from(["partition", "heal", "slow", "fast"]), st.none()),
        st.tuples(st.just("sleep"), st.sampled_from([0, 0.001, 2])),
    ),
)


class BufferedTransport(MemoryTransport):
    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write as if the path had a delay, which requires the buffer."""
        path, before = self._path, self._path.is_instant
        path.is_instant = False
        try:
            super().write(data)
        finally:
            path.is_instant = before


class Traced(asyncio.Protocol):
    def __init__(self, trace: list[tuple[object, ...]], name: str) -> None:
        self._trace, self._name = trace, name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport
        self.note("made")

    def note(self, *event: object) -> None:
        self._trace.append((asyncio.get_running_loop().time(), self._name, *event))

    def data_received(self, data: bytes) -> None:
        self.note(len(data), data[:1], data[-1:])

    def eof_received(self) -> bool:
        self.note("end")
        return True

    def pause_writing(self) -> None:
        self.note("pause")

    def resume_writing(self) -> None:
        self.note("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.note("lost", repr(exc))


async def trace_of(steps: list[tuple[int, tuple[str, float | None]]]) -> list[tuple[object, ...]]:
    loop, network = asyncio.get_running_loop(), testing.network()
    trace: list[tuple[object, ...]] = []
    servers: list[Traced] = []

    def serve() -> Traced:
        servers.append(Traced(trace, "server"))
        return servers[0]

    server = await loop.create_server(serve, "localhost", 9092)
    with network.host("client"):
        _, client = await loop.create_connection(lambda: Traced(trace, "client"), "localhost", 9092)
    await asyncio.sleep(0)
    for number, (end, (kind, value)) in enumerate(steps):
        transport = (client, servers[0])[end].transport
        match kind:
            case "write":
                try:
                    transport.write(bytes([number % 256]) * int(value or 0))
                except RuntimeError:  # after write_eof
                    trace.append(("refused",))
                trace.append((transport.get_write_buffer_size(),))
            case "partition":
                network.partition("client", "localhost")
            case "heal":
                network.heal()
            case "slow":
                network.link("client", "localhost", latency_s=0.01, bytes_per_s=1e6)
            case "fast":
                network.link("client", "localhost")
            case "sleep":
                await asyncio.sleep(value or 0)
            case _:
                getattr(transport, kind)()
    network.heal()
    await asyncio.sleep(5)
    server.close()
    trace.append((loop.time(),))
    return trace


@example([(0, ("slow", None)), (0, ("write", 70_000)), (0, ("fast", None)), (0, ("write", 5))])
@given(st.lists(STEPS, max_size=40))
def test_direct_writes_have_the_events_of_buffered_ones(steps: list[tuple[int, tuple[str, float | None]]]) -> None:
    direct = testing.run(trace_of(steps))
    with patch("sluice.virtual_time.network.MemoryTransport", BufferedTransport):
        assert testing.run(trace_of(steps)) == direct
