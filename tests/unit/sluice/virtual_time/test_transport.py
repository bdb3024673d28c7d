import asyncio

import pytest

from sluice import testing
from sluice.testing import MemoryTransport, Network
from sluice.virtual_time.transport import HIGH_WATER_BYTES, WINDOW_BYTES


class Noted(asyncio.Protocol):
    """A protocol that records its events."""

    def __init__(self) -> None:
        self.events: list[object] = []
        self.received = bytearray()
        self.keeps_open = False
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.events.append(len(data))

    def eof_received(self) -> bool:
        self.events.append("end")
        return self.keeps_open

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(type(exc).__name__ if exc else "lost")
        self.lost.set_result(exc)


class Buffered(asyncio.BufferedProtocol):
    """A protocol with a read buffer of 4 bytes."""

    def __init__(self) -> None:
        self.buffer = bytearray(4)
        self.reads: list[bytes] = []

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.reads.append(bytes(self.buffer[:nbytes]))


async def connected() -> tuple[Network, Noted, Noted]:
    """Return the network and both ends of a connection, the client's first."""
    loop = asyncio.get_running_loop()
    servers: list[Noted] = []

    def serve() -> Noted:
        servers.append(Noted())
        return servers[-1]

    await loop.create_server(serve, "server", 7)
    _, client = await loop.create_connection(Noted, "server", 7)
    await asyncio.sleep(0)
    return testing.network(), client, servers[0]


async def settle() -> None:
    await asyncio.sleep(1)


async def test_bytes_arrive_in_order() -> None:
    _, client, server = await connected()
    sent = bytes(range(256)) * 8192
    for start in range(0, len(sent), 100_000):
        client.transport.write(memoryview(sent)[start : start + 100_000])
    client.transport.writelines([b"the", bytearray(b" "), memoryview(b"end")])
    await settle()
    assert server.received == sent + b"the end"
    assert client.transport.get_write_buffer_size() == 0


async def test_written_buffer_may_be_reused() -> None:
    _, client, server = await connected()
    buffer = bytearray(b"first")
    client.transport.write(buffer)
    buffer[:] = b"other"
    await settle()
    assert bytes(server.received) == b"first"


async def test_buffered_protocol_reads_as_much_as_its_buffer_holds() -> None:
    _, client, server = await connected()
    buffered = Buffered()
    server.transport.set_protocol(buffered)
    assert server.transport.get_protocol() is buffered
    client.transport.write(b"ten bytes.")
    await settle()
    assert buffered.reads == [b"ten ", b"byte", b"s."]


async def test_link_may_limit_the_size_of_segments() -> None:
    network, client, server = await connected()
    network.link("*", jitter_s=1, segment_bytes=3)
    client.transport.write(b"12345678")
    await asyncio.sleep(10)
    assert server.received == b"12345678"
    assert server.events == ["made", 3, 3, 2]


async def test_protocol_is_called_on_the_host_of_its_connection() -> None:
    hosts: list[str] = []

    class Hosts(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            hosts.append(testing.network().current_host)

        def connection_lost(self, exc: Exception | None) -> None:
            hosts.append(testing.network().current_host)

    network, loop = testing.network(), asyncio.get_running_loop()
    with network.host("server"):
        await loop.create_server(Hosts, "server", 7)
    with network.host("client"):
        transport, _ = await loop.create_connection(Hosts, "server", 7)
    transport.write(b"x")
    await settle()
    network.abort()
    await settle()
    assert hosts == ["server", "client", "server"]


WRITE_LIMITS = [
    (None, None, (16384, 65536)),
    (1000, None, (250, 1000)),
    (None, 1000, (1000, 4000)),
    (1000, 1, (1, 1000)),
    (0, None, (0, 0)),
]


class TestBackPressure:
    async def test_writer_is_paused_while_the_reader_does_not_read(self) -> None:
        _, client, server = await connected()
        server.transport.pause_reading()
        assert not server.transport.is_reading()
        client.transport.write(bytes(WINDOW_BYTES + HIGH_WATER_BYTES))
        await settle()
        assert client.events == ["made"]
        client.transport.write(b"x")
        assert client.events == ["made", "pause"]
        assert client.transport.get_write_buffer_size() == HIGH_WATER_BYTES + 1
        await settle()
        assert server.received == b""
        server.transport.resume_reading()
        await settle()
        assert client.events == ["made", "pause", "resume"]
        assert len(server.received) == WINDOW_BYTES + HIGH_WATER_BYTES + 1

    @pytest.mark.parametrize(("high", "low", "expected"), WRITE_LIMITS)
    async def test_write_limits_apply(self, high: int | None, low: int | None, expected: tuple[int, int]) -> None:
        _, client, _ = await connected()
        client.transport.set_write_buffer_limits(high, low)
        assert client.transport.get_write_buffer_limits() == expected

    async def test_invalid_write_limits_are_rejected(self) -> None:
        _, client, _ = await connected()
        with pytest.raises(ValueError, match=r"high \(1\) must be >= low \(2\)"):
            client.transport.set_write_buffer_limits(high=1, low=2)


class TestAnEnd:
    async def test_close_flushes_written_data(self) -> None:
        _, client, server = await connected()
        client.transport.write(b"last")
        client.transport.close()
        assert client.transport.is_closing()
        await settle()
        assert (client.events, server.events) == (["made", "lost"], ["made", 4, "end", "lost"])

    async def test_half_close_leaves_the_other_direction_open(self) -> None:
        _, client, server = await connected()
        server.keeps_open = True
        assert client.transport.can_write_eof()
        client.transport.write_eof()
        with pytest.raises(RuntimeError, match="write_eof"):
            client.transport.write(b"more")
        await settle()
        server.transport.write(b"answer")
        server.transport.close()
        await settle()
        assert server.events == ["made", "end", "lost"]
        assert client.events == ["made", 6, "end", "lost"]

    async def test_eof_waits_for_a_paused_reader(self) -> None:
        _, client, server = await connected()
        server.transport.pause_reading()
        client.transport.write(b"last")
        client.transport.close()
        await settle()
        assert server.events == ["made"]
        server.transport.resume_reading()
        await settle()
        assert server.events == ["made", 4, "end", "lost"]

    async def test_abort_drops_buffered_data(self) -> None:
        _, client, server = await connected()
        server.transport.pause_reading()
        client.transport.write(bytes(10 * WINDOW_BYTES))
        client.transport.abort()
        assert client.transport.get_write_buffer_size() == 0
        assert client.events == ["made", "pause"], "connection_lost is called in the next event-loop iteration"
        await settle()
        assert client.events == ["made", "pause", "lost"]
        server.transport.resume_reading()
        await settle()
        assert server.events[-2:] == ["end", "lost"]
        assert len(server.received) == WINDOW_BYTES

    async def test_close_with_unread_data_resets(self) -> None:
        _, client, server = await connected()
        server.transport.pause_reading()
        client.transport.write(b"unread")
        await settle()
        server.transport.close()
        assert isinstance(await client.lost, ConnectionResetError)

    async def test_writing_to_a_closed_peer_resets(self) -> None:
        _, client, server = await connected()
        client.keeps_open = True
        server.transport.close()
        await settle()
        client.transport.write(b"into the void")
        await settle()
        assert client.events == ["made", "end"], "it has read to the end and stopped reading"
        client.transport.write(b"again")
        await settle()
        assert client.events == ["made", "end", "ConnectionResetError"]

    async def test_reset_is_not_seen_while_reading_is_paused(self) -> None:
        network, client, _ = await connected()
        client.transport.pause_reading()
        network.reset("server")
        await settle()
        assert client.events == ["made"]
        client.transport.resume_reading()
        await settle()
        assert client.events == ["made", "ConnectionResetError"]

    @pytest.mark.parametrize("method", ["data_received", "eof_received"])
    async def test_protocol_error_closes_the_connection(self, method: str, caplog: pytest.LogCaptureFixture) -> None:
        def fails(*data: object) -> None:
            raise KeyError("a mistake")

        _, client, server = await connected()
        setattr(server, method, fails)
        client.transport.write(b"x")
        client.transport.write_eof()
        await settle()
        assert server.events[-1] == "KeyError"
        assert "lost" in str(client.events) or "ConnectionResetError" in client.events
        assert "a mistake" in caplog.text

    async def test_connection_lost_is_called_once(self) -> None:
        network, client, _ = await connected()
        for _ in range(2):
            client.transport.close()
            client.transport.abort()
        client.transport.write(b"ignored")
        client.transport.write_eof()
        client.transport.resume_reading()
        network.reset("server")
        await settle()
        assert client.events == ["made", "lost"]

    async def test_close_across_a_partition_is_not_seen(self) -> None:
        network, client, server = await connected()
        network.partition("server")
        client.transport.close()
        await settle()
        assert client.events == ["made", "lost"]
        assert server.events == ["made"]
        network.heal()
        await settle()
        assert server.events == ["made", "end", "lost"]
        assert network.connections() == 0
