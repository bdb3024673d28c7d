import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from sluice import testing
from sluice.errors import ArgumentError
from sluice.testing import Link, Network

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


opened: list[Streams] = []


async def connect(host: str, port: int) -> Streams:
    """Open a connection that is closed when the test ends."""
    opened.append(await asyncio.open_connection(host, port))
    return opened[-1]


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Echo received data until the end of the stream."""
    try:
        while data := await reader.read(1 << 20):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def echo_server(host: str = "server") -> AsyncIterator[Network]:
    """Be the host `client`, with `echo` listening on port 7 of `host`."""
    network = testing.network()
    server = await asyncio.start_server(echo, host, 7)
    with network.host("client"):
        yield network
    server.close()
    while opened:
        opened.pop()[1].close()
    network.reset("*")
    await asyncio.sleep(1)  # close open connections


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Network, Streams]]:
    """Be the host `client`, with a connection to `echo` at the host `server`."""
    async with echo_server() as network:
        yield network, await connect("server", 7)


async def took_s(what: Awaitable[object]) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await what
    return round(loop.time() - began, 6)


async def fails(what: Awaitable[object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        await what


async def round_trip(streams: Streams, data: bytes = b"x") -> None:
    reader, writer = streams
    writer.write(data)
    assert await reader.readexactly(len(data)) == data


REFUSALS = {
    "no listener": lambda network: None,
    "the host is unreachable": lambda network: network.refuse("server"),
    "the port is closed": lambda network: network.refuse("server:8"),
}


class TestConnecting:
    async def test_connecting_returns_both_addresses(self) -> None:
        async with echo_server():
            _, writer = await connect("server", 7)
            assert writer.get_extra_info("sockname") == ("10.0.0.2", 32768)
            assert writer.get_extra_info("peername") == ("10.0.0.1", 7)

    async def test_host_is_found_by_its_address(self) -> None:
        async with echo_server():
            found = await asyncio.get_running_loop().getaddrinfo("server", 7)
            await round_trip(await connect(*found[0][4]))

    @pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1"])
    async def test_local_host_is_found_by_each_of_its_names(self, name: str) -> None:
        async with echo_server(host="127.0.0.1"):
            await round_trip(await connect(name, 7))

    async def test_wildcard_listener_is_reachable_by_host(self) -> None:
        with testing.network().host("server"):
            await asyncio.start_server(echo, "0.0.0.0", 7)
        await round_trip(await connect("server", 7))
        with pytest.raises(ConnectionRefusedError):
            await connect("localhost", 7)
        opened.pop()[1].close()

    async def test_connecting_takes_a_round_trip(self) -> None:
        async with echo_server() as network:
            network.link("client", "server", latency_s=0.1)
            assert await took_s(connect("server", 7)) == 0.2

    @pytest.mark.parametrize("spoil", REFUSALS.values(), ids=REFUSALS)
    async def test_refused_connection_fails_after_a_round_trip(self, spoil: Callable[[Network], None]) -> None:
        async with echo_server() as network:
            network.link("client", "server", latency_s=0.1)
            spoil(network)
            refused = fails(connect("server", 8), ConnectionRefusedError, r"Connect call failed \('10.0.0.1', 8\)")
            assert await took_s(refused) == 0.2

    async def test_host_accepts_again_after_refusing(self) -> None:
        async with echo_server() as network:
            network.refuse("server:7")
            with pytest.raises(ConnectionRefusedError):
                await connect("server", 7)
            network.accept("server:7")
            await round_trip(await connect("server", 7))

    async def test_connecting_across_a_partition_times_out(self) -> None:
        async with echo_server() as network:
            network.partition("client", "server")
            assert await took_s(fails(connect("server", 7), TimeoutError, "Connect call failed")) == 127

    async def test_connecting_succeeds_when_the_partition_ends(self) -> None:
        async with echo_server() as network:
            network.partition("client", "server")
            asyncio.get_running_loop().call_later(50, network.heal, "client", "server")
            assert await took_s(connect("server", 7)) == 50

    async def test_cancelled_connect_leaves_nothing_open(self) -> None:
        async with echo_server() as network:
            network.link("*", latency_s=1)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connect("server", 7), 1.5)
            await asyncio.sleep(10)
            assert network.connections() == 0


class TestListening:
    async def test_listening_at_a_used_port_fails(self) -> None:
        async with echo_server():
            with pytest.raises(OSError, match="Address already in use"):
                await asyncio.start_server(echo, "server", 7)

    async def test_port_0_picks_a_free_port(self) -> None:
        async with echo_server():
            servers = [await asyncio.start_server(echo, "server", 0) for _ in range(2)]
            ports: list[int] = [server.sockets[0].getsockname()[1] for server in servers]
            for port in ports:
                await round_trip(await connect("server", port))
            assert ports == [32768, 32769]

    async def test_closed_listener_releases_its_port(self) -> None:
        async with echo_server():
            server = await asyncio.start_server(echo, "server", 8)
            kept = await connect("server", 8)
            server.close()
            await server.wait_closed()
            with pytest.raises(ConnectionRefusedError):
                await connect("server", 8)
            await round_trip(kept)
            await asyncio.start_server(echo, "server", 8)
            await round_trip(await connect("server", 8))


LINKS = {
    "no latency and no limit costs no time": (Link(), 1, 0),
    "latency is added in each direction": (Link(latency_s=0.25), 1, 0.5),
    "bandwidth delays the bytes": (Link(bytes_per_s=1000), 500, 1.0),
    "both are added": (Link(latency_s=0.25, bytes_per_s=1000), 500, 1.5),
}


class TestALink:
    @pytest.mark.parametrize(("link", "size", "expected_s"), LINKS.values(), ids=LINKS)
    async def test(self, link: Link, size: int, expected_s: float) -> None:
        async with connected() as (network, streams):
            network.link("client", "server", latency_s=link.latency_s, bytes_per_s=link.bytes_per_s)
            assert await took_s(round_trip(streams, bytes(size))) == expected_s

    async def test_bandwidth_is_shared_over_pieces(self) -> None:
        async with echo_server() as network:
            network.link("*", bytes_per_s=1_000_000)
            took = await took_s(round_trip(await connect("server", 7), bytes(3_000_000)))
            assert took == pytest.approx(3, abs=0.1), "the first piece returns while the rest is in flight"

    def test_jitter_stays_within_bounds_and_keeps_the_order(self) -> None:
        async def round_trips() -> list[float]:
            async with echo_server() as network:
                network.link("*", latency_s=0.1, jitter_s=0.05)
                streams = await connect("server", 7)
                for number in range(100):
                    streams[1].write(number.to_bytes(2))
                    await asyncio.sleep(0)
                assert await streams[0].readexactly(200) == b"".join(number.to_bytes(2) for number in range(100))
                return [await took_s(round_trip(streams)) for _ in range(100)]

        trips = testing.run(round_trips())
        assert min(trips) > 0.2
        assert max(trips) < 0.3
        assert max(trips) - min(trips) > 0.05
        assert testing.run(round_trips()) == trips, "the same seed gives the same times"
        assert testing.run(round_trips(), seed=1) != trips

    async def test_packet_loss_adds_delay(self) -> None:
        async with connected() as (network, streams):
            network.link("*", loss=0.25)
            trips = [await took_s(round_trip(streams)) for _ in range(400)]
        assert trips.count(0) == pytest.approx(400 * 0.75**2, rel=0.15)
        assert {0.2, 0.4, 0.6} < set(trips)

    async def test_latest_link_setting_applies(self) -> None:
        async with connected() as (network, streams):
            trips = []
            for one, other, latency_s in [("*", "*", 1.0), ("server", "*", 2.0), ("client", "server:7", 3.0)]:
                network.link(one, other, latency_s=latency_s)
                trips.append(await took_s(round_trip(streams)))
            network.link("*", latency_s=5)
            network.link("other", latency_s=7)
            trips.append(await took_s(round_trip(streams)))
            assert trips == [2.0, 4.0, 6.0, 10.0]

    @pytest.mark.parametrize(
        "wrong",
        [{"latency_s": -1}, {"jitter_s": -1}, {"bytes_per_s": 0}, {"segment_bytes": 0}, {"loss": 1}, {"loss": -0.5}],
        ids=str,
    )
    def test_invalid_link_setting_is_rejected(self, wrong: dict[str, float]) -> None:
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            Link(**wrong)  # type: ignore[arg-type]  # one field is an int


class TestAPartition:
    async def test_partition_delays_data_until_it_ends(self) -> None:
        async with connected() as (network, streams):
            network.partition("client")
            asyncio.get_running_loop().call_later(600, network.heal)
            assert await took_s(round_trip(streams)) == 600

    async def test_partition_times_out_after_a_quarter_of_an_hour(self) -> None:
        async with connected() as (network, (reader, writer)):
            network.partition("client", "server")
            writer.write(b"lost")
            took = await took_s(fails(reader.read(), TimeoutError, "Connection timed out"))
            assert (took, network.connections()) == (924.6, 1), "the other end is not notified"

    async def test_partition_does_not_affect_other_hosts(self) -> None:
        async with connected() as (network, streams):
            network.partition("server", "other")
            network.partition("server:8", "client")
            await round_trip(streams)

    async def test_partition_lasts_as_long_as_the_longer_of_two(self) -> None:
        async with connected() as (network, streams):
            network.partition("client", "server")
            network.partition("server")
            loop = asyncio.get_running_loop()
            loop.call_later(10, network.heal, "server", "client")
            loop.call_later(20, network.heal, "server")
            assert await took_s(round_trip(streams)) == 20


class TestOpenConnections:
    async def test_open_connections_can_be_reset(self) -> None:
        async with connected() as (network, (reader, _)):
            count = network.reset("server:7")
            with pytest.raises(ConnectionResetError, match="Connection reset by peer"):
                await reader.read()
            await asyncio.sleep(1)
            assert (count, network.connections()) == (1, 0)

    async def test_idle_connections_are_dropped_by_a_middlebox(self) -> None:
        async with connected() as (network, streams):
            assert network.forget("client", "server") == 1
            network.heal()
            await round_trip(await connect("server", 7))
            assert await took_s(fails(round_trip(streams), TimeoutError, "Connection timed out")) == 924.6

    async def test_open_connections_are_counted_by_place(self) -> None:
        async with echo_server() as network:
            for _ in range(3):
                await connect("server", 7)
            places = [("*", "*"), ("client", "*"), ("server:7", "client"), ("server:8", "*"), ("other", "*")]
            assert [network.connections(*place) for place in places] == [3, 3, 3, 0, 0]


async def test_linger_0_option_resets_on_close() -> None:
    async with echo_server():
        arrived: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

        class Server(asyncio.Protocol):
            def connection_lost(self, exc: Exception | None) -> None:
                arrived.set_result(exc)

        await asyncio.get_running_loop().create_server(Server, "server", 8)
        _, writer = await connect("server", 8)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1] + 7 * [0]))
        writer.close()
        assert isinstance(await arrived, ConnectionResetError)
