import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import pytest

from sluice import testing
from sluice.testing import MemoryTransport, Network
from sluice.virtual_time.transport import HIGH_WATER_BYTES, WINDOW_BYTES

T = TypeVar("T")


class Noted(asyncio.Protocol):
    """Notes what it is told."""

    def __init__(self) -> None:
        self.told: list[object] = []
        self.received = bytearray()
        self.keeps_open = False
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, MemoryTransport)
        self.transport = transport
        self.told.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.told.append(len(data))

    def eof_received(self) -> bool:
        self.told.append("end")
        return self.keeps_open

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append(type(exc).__name__ if exc else "lost")
        self.lost.set_result(exc)


class Buffered(asyncio.BufferedProtocol):
    """Reads into a buffer of 4 bytes."""

    def __init__(self) -> None:
        self.buffer = bytearray(4)
        self.reads: list[bytes] = []

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.reads.append(bytes(self.buffer[:nbytes]))


def with_pair(test: Callable[[Network, Noted, Noted], Coroutine[object, object, T]]) -> T:
    """Runs a test with the two ends of a connection, the client's first."""

    async def main() -> T:
        loop = asyncio.get_running_loop()
        servers: list[Noted] = []

        def serve() -> Noted:
            servers.append(Noted())
            return servers[-1]

        await loop.create_server(serve, "server", 7)
        _, client = await loop.create_connection(Noted, "server", 7)
        await asyncio.sleep(0)
        return await test(testing.network(), client, servers[0])

    return testing.run(main())


async def settle() -> None:
    await asyncio.sleep(1)


def test_bytes_arrive_in_their_order() -> None:
    async def test(network: Network, client: Noted, server: Noted) -> None:
        sent = bytes(range(256)) * 8192
        for start in range(0, len(sent), 100_000):
            client.transport.write(memoryview(sent)[start : start + 100_000])
        client.transport.writelines([b"the", bytearray(b" "), memoryview(b"end")])
        await settle()
        assert server.received == sent + b"the end"
        assert client.transport.get_write_buffer_size() == 0

    with_pair(test)


def test_what_was_given_to_write_may_be_used_again() -> None:
    async def test(network: Network, client: Noted, server: Noted) -> bytes:
        buffer = bytearray(b"first")
        client.transport.write(buffer)
        buffer[:] = b"other"
        await settle()
        return bytes(server.received)

    assert with_pair(test) == b"first"


def test_a_buffered_protocol_reads_as_much_as_it_has_room_for() -> None:
    async def test(network: Network, client: Noted, server: Noted) -> list[bytes]:
        buffered = Buffered()
        server.transport.set_protocol(buffered)
        assert server.transport.get_protocol() is buffered
        client.transport.write(b"ten bytes.")
        await settle()
        return buffered.reads

    assert with_pair(test) == [b"ten ", b"byte", b"s."]


class TestBackPressure:
    def test_pauses_the_writer_while_the_reader_does_not_read(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            server.transport.pause_reading()
            assert not server.transport.is_reading()
            client.transport.write(bytes(WINDOW_BYTES + HIGH_WATER_BYTES))
            await settle()
            assert client.told == ["made"]
            client.transport.write(b"x")
            assert client.told == ["made", "pause"]
            assert client.transport.get_write_buffer_size() == HIGH_WATER_BYTES + 1
            await settle()
            assert server.received == b""
            server.transport.resume_reading()
            await settle()
            assert client.told == ["made", "pause", "resume"]
            assert len(server.received) == WINDOW_BYTES + HIGH_WATER_BYTES + 1

        with_pair(test)

    @pytest.mark.parametrize(
        ("high", "low", "expected"),
        [
            (None, None, (16384, 65536)),
            (1000, None, (250, 1000)),
            (None, 1000, (1000, 4000)),
            (1000, 1, (1, 1000)),
            (0, None, (0, 0)),
        ],
    )
    def test_is_felt_where_it_was_said(self, high: int | None, low: int | None, expected: tuple[int, int]) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> tuple[int, int]:
            client.transport.set_write_buffer_limits(high, low)
            return client.transport.get_write_buffer_limits()

        assert with_pair(test) == expected

    def test_cannot_be_felt_between_limits_that_are_none(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            client.transport.set_write_buffer_limits(high=1, low=2)

        with pytest.raises(ValueError, match=r"high \(1\) must be >= low \(2\)"):
            with_pair(test)


class TestAnEnd:
    def test_comes_after_what_was_written(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> tuple[list[object], list[object]]:
            client.transport.write(b"last")
            client.transport.close()
            assert client.transport.is_closing()
            await settle()
            return client.told, server.told

        assert with_pair(test) == (["made", "lost"], ["made", 4, "end", "lost"])

    def test_of_one_direction_leaves_the_other(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            server.keeps_open = True
            assert client.transport.can_write_eof()
            client.transport.write_eof()
            with pytest.raises(RuntimeError, match="write_eof"):
                client.transport.write(b"more")
            await settle()
            server.transport.write(b"answer")
            server.transport.close()
            await settle()
            assert server.told == ["made", "end", "lost"]
            assert client.told == ["made", 6, "end", "lost"]

        with_pair(test)

    def test_waits_for_a_reader_who_paused(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            server.transport.pause_reading()
            client.transport.write(b"last")
            client.transport.close()
            await settle()
            assert server.told == ["made"]
            server.transport.resume_reading()
            await settle()
            assert server.told == ["made", 4, "end", "lost"]

        with_pair(test)

    def test_that_is_an_abort_drops_what_is_buffered(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> int:
            server.transport.pause_reading()
            client.transport.write(bytes(10 * WINDOW_BYTES))
            client.transport.abort()
            assert client.transport.get_write_buffer_size() == 0
            assert client.told == ["made", "pause"], "it is told in the loop's next turn"
            await settle()
            assert client.told == ["made", "pause", "lost"]
            server.transport.resume_reading()
            await settle()
            assert server.told[-2:] == ["end", "lost"]
            return len(server.received)

        assert with_pair(test) == WINDOW_BYTES

    def test_with_something_unread_is_a_reset(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            server.transport.pause_reading()
            client.transport.write(b"unread")
            await settle()
            server.transport.close()
            assert isinstance(await client.lost, ConnectionResetError)

        with_pair(test)

    def test_is_told_to_who_writes_on_by_a_reset(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            client.keeps_open = True
            server.transport.close()
            await settle()
            client.transport.write(b"into the void")
            await settle()
            assert client.told == ["made", "end"], "it has read to the end, and reads no more"
            client.transport.write(b"again")
            await settle()
            assert client.told == ["made", "end", "ConnectionResetError"]

        with_pair(test)

    def test_that_is_a_reset_is_not_seen_while_reading_is_paused(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            client.transport.pause_reading()
            network.reset("server")
            await settle()
            assert client.told == ["made"]
            client.transport.resume_reading()
            await settle()
            assert client.told == ["made", "ConnectionResetError"]

        with_pair(test)

    @pytest.mark.parametrize("method", ["data_received", "eof_received"])
    def test_comes_when_a_protocol_raises(self, method: str, caplog: pytest.LogCaptureFixture) -> None:
        def fails(*data: object) -> None:
            raise KeyError("a mistake")

        async def test(network: Network, client: Noted, server: Noted) -> None:
            setattr(server, method, fails)
            client.transport.write(b"x")
            client.transport.write_eof()
            await settle()
            assert server.told[-1] == "KeyError"
            assert "lost" in str(client.told) or "ConnectionResetError" in client.told

        with_pair(test)
        assert "a mistake" in caplog.text

    def test_is_told_once(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> list[object]:
            for _ in range(2):
                client.transport.close()
                client.transport.abort()
            client.transport.write(b"ignored")
            client.transport.write_eof()
            client.transport.resume_reading()
            network.reset("server")
            await settle()
            return client.told

        assert with_pair(test) == ["made", "lost"]

    def test_behind_a_partition_is_not_heard_of(self) -> None:
        async def test(network: Network, client: Noted, server: Noted) -> None:
            network.partition("server")
            client.transport.close()
            await settle()
            assert client.told == ["made", "lost"]
            assert server.told == ["made"]
            network.heal()
            await settle()
            assert server.told == ["made", "end", "lost"]
            assert network.connections() == 0

        with_pair(test)
