import asyncio
import random

import pytest

from sluice import Broker, testing
from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.errors import SluiceError


async def draw() -> list[float]:
    return [random.random() for _ in range(3)]


def test_run_returns_the_coroutines_result() -> None:
    async def main() -> str:
        return "done"

    assert testing.run(main()) == "done"


def test_same_seed_draws_the_same_numbers() -> None:
    assert testing.run(draw(), seed=1) == testing.run(draw(), seed=1)
    assert testing.run(draw(), seed=1) != testing.run(draw(), seed=2)


def test_run_restores_the_global_random_state() -> None:
    random.seed(5)
    expected = random.random()
    random.seed(5)
    testing.run(draw(), seed=1)
    assert random.random() == expected


def test_network_exists_only_in_virtual_time() -> None:
    async def main() -> None:
        testing.network()

    testing.run(main())
    with pytest.raises(SluiceError, match=r"no event loop runs in virtual time; call it within sluice.testing.run\(\)"):
        asyncio.run(main())


async def cluster(*overrides: str) -> ClusterServer:
    """Return a cluster with a listening broker."""
    loop = asyncio.get_running_loop()
    server = ClusterServer(Config.load(None, overrides), LoopClock(loop), random.Random(0), loop)
    await server.start()
    return server


class TestABroker:
    @pytest.mark.parametrize("host", ["127.0.0.1", "kafka-1", "0.0.0.0"])
    async def test_broker_listens_on_the_network(self, host: str) -> None:
        server = await cluster(f"listeners=PLAINTEXT://{host}:9092")
        _, writer = await asyncio.open_connection("localhost" if host == "0.0.0.0" else host, 9092)
        writer.close()
        await server.stop()

    async def test_broker_reports_an_unavailable_address(self) -> None:
        await cluster("listeners=PLAINTEXT://kafka-1:9092")
        with pytest.raises(SluiceError, match=r"^cannot listen on kafka-1:9092: Address already in use$"):
            await cluster("listeners=PLAINTEXT://kafka-1:9092")

    async def test_broker_keeps_its_port_exclusively(self) -> None:
        server = (await cluster("listeners=PLAINTEXT://kafka-1:9092")).servers[1]
        accept = server.refuse("PLAINTEXT")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("kafka-1", 9092)
        with pytest.raises(OSError, match="Address already in use"):
            testing.network().bind("kafka-1", 9092)
        accept()
        await asyncio.sleep(0)
        _, writer = await asyncio.open_connection("kafka-1", 9092)
        writer.close()

    def test_broker_has_no_admin_port(self) -> None:
        async def main() -> None:
            async with Broker(admin_port=0):
                pass

        problem = r"^admin HTTP port: not available in virtual time, which has no sockets$"
        with pytest.raises(SluiceError, match=problem):
            testing.run(main())

    async def test_stopped_broker_releases_its_port(self) -> None:
        for _ in range(2):
            async with Broker(config={"listeners": "PLAINTEXT://kafka-1:9092"}):
                pass
