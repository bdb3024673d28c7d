"""A cluster in one's own event loop: real sockets, and what can be done to its brokers."""

import asyncio
import json
import subprocess
import sys
from urllib.request import Request, urlopen

import pytest

import sluice
from sluice.broker.server import bind
from sluice.broker.topic_rules import NewTopic
from sluice.errors import ConfigError, SluiceError
from sluice.local_cluster import LocalCluster
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.wire import WireClient


async def leader_told(address: str, name: str) -> int:
    """Who leads the first partition of a topic, as the broker at this address says."""

    def ask() -> int:
        with WireClient(address) as client:
            (topic,) = client.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9).topics
        leader_id: int = topic.partitions[0].leader_id
        return leader_id

    return await asyncio.to_thread(ask)


def test_it_is_imported_when_it_is_asked_for() -> None:
    script = "import sluice, sys; assert 'asyncio' not in sys.modules; print(sluice.LocalCluster.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "LocalCluster\n"
    with pytest.raises(AttributeError, match="no attribute 'RemoteCluster'"):
        sluice.RemoteCluster  # noqa: B018


def test_brokers_listen_stop_start_and_hand_over() -> None:
    async def live() -> None:
        async with sluice.LocalCluster(3) as cluster:
            addresses = cluster.brokers
            assert list(addresses) == [1, 2, 3]
            assert cluster.bootstrap == ",".join(addresses.values())
            assert cluster.admin is None
            cluster._running.cluster.create(NewTopic("t", assignments={0: (1, 2, 3)}))
            assert await leader_told(addresses[3], "t") == 1
            await cluster.stop(1)
            with pytest.raises(ConnectionRefusedError):
                await leader_told(addresses[1], "t")
            assert cluster.partition("t", 0).leader == 2
            assert await leader_told(addresses[3], "t") == 2
            await cluster.start(1)
            assert cluster.brokers == addresses
            assert await leader_told(addresses[1], "t") == 2
            await cluster.elect("t", 0)
            assert cluster.partition("t", 0).leader == 1
            await cluster.move_leader("t", 0, 3)
            assert await leader_told(addresses[1], "t") == 3
            await cluster.isolate(1)
            await cluster.move_leader("t", 0, 2)
            assert await leader_told(addresses[1], "t") == 3, "it does not know better"
            await cluster.rejoin(1)
            assert await leader_told(addresses[1], "t") == 2
            await cluster.stop(2, controlled=False)
            with pytest.raises(SluiceError, match="broker 2 is stopped"):
                await cluster.stop(2)

    asyncio.run(live())


def test_a_broker_whose_port_was_taken_can_be_started_when_it_is_free() -> None:
    async def live() -> None:
        async with LocalCluster(2) as cluster:
            await cluster.stop(2)
            host, _, port = cluster.brokers[2].partition(":")
            taken = bind(host, int(port), 1)
            with taken, pytest.raises(SluiceError, match=f"cannot listen on {host}:{port}"):
                await cluster.start(2)
            await cluster.start(2)
            assert cluster.brokers[2] == f"{host}:{port}"

    asyncio.run(live())


def test_what_cannot_be_configured_is_told_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^--override: sluice\.brokers=0: must be an integer from 1 to 100$"):
        LocalCluster(0)


def test_a_cluster_has_an_admin_port_where_that_is_wished() -> None:
    async def live() -> None:
        async with LocalCluster(2, admin_port=0) as cluster:
            assert cluster.admin is not None

            def ask(request: Request) -> object:
                with urlopen(request, timeout=10) as answer:
                    return json.load(answer)

            def described() -> object:
                return ask(Request(f"{cluster.admin}/api/v1/cluster"))

            found = await asyncio.to_thread(described)
            assert isinstance(found, dict)
            assert [broker["listeners"]["PLAINTEXT"] for broker in found["brokers"]] == list(cluster.brokers.values())

    asyncio.run(live())
