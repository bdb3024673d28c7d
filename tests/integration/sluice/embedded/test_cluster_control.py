"""Control of brokers and topics by a test."""

import asyncio

import pytest

from sluice import Broker
from sluice.broker.network.socket_server import bind
from sluice.errors import SluiceError
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.wire import WireClient


async def leader_of(address: str, name: str) -> int:
    """Return the leader of a topic's first partition from the metadata of the broker at this address."""

    def send() -> int:
        with WireClient(address) as client:
            (topic,) = client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 9).topics
        leader_id: int = topic.partitions[0].leader_id
        return leader_id

    return await asyncio.to_thread(send)


async def test_brokers_stop_start_and_move_leaders() -> None:
    async with Broker(3) as broker:
        addresses, cluster = broker.brokers, broker.cluster
        assert list(addresses) == [1, 2, 3]
        assert broker.bootstrap == ",".join(addresses.values())
        assert broker.admin is None
        await cluster.create_topic("t", assignments={0: (1, 2, 3)})
        assert await leader_of(addresses[3], "t") == 1
        await cluster.stop(1)
        with pytest.raises(ConnectionRefusedError):
            await leader_of(addresses[1], "t")
        assert cluster.partition("t", 0).leader == 2
        assert await leader_of(addresses[3], "t") == 2
        await cluster.start(1)
        assert broker.brokers == addresses
        assert await leader_of(addresses[1], "t") == 2
        await cluster.elect("t", 0)
        assert cluster.partition("t", 0).leader == 1
        await cluster.move_leader("t", 0, 3)
        assert await leader_of(addresses[1], "t") == 3
        await cluster.isolate(1)
        await cluster.move_leader("t", 0, 2)
        assert await leader_of(addresses[1], "t") == 3, "its metadata is stale"
        await cluster.rejoin(1)
        assert await leader_of(addresses[1], "t") == 2
        await cluster.stop(2, controlled=False)
        with pytest.raises(SluiceError, match="broker 2 is stopped"):
            await cluster.stop(2)


async def test_topic_has_the_requested_partitions_and_config() -> None:
    async with Broker(2, config={"num.partitions": 4, "default.replication.factor": "2"}) as broker:
        cluster = broker.cluster
        await cluster.create_topic("by-default")
        assert len(cluster.partition("by-default", 3).replicas) == 2
        await cluster.create_topic("small", 1, replication_factor=1, config={"retention.ms": 5000, "preallocate": True})
        assert len(cluster.partition("small", 0).replicas) == 1
        with pytest.raises(SluiceError, match="partition small-1 does not exist; expected partition 0 to 0"):
            cluster.partition("small", 1)


async def test_broker_starts_after_its_port_becomes_free() -> None:
    async with Broker(2) as broker:
        await broker.cluster.stop(2)
        host, _, port = broker.brokers[2].partition(":")
        taken = bind(host, int(port), 1)
        with taken, pytest.raises(SluiceError, match=f"cannot listen on {host}:{port}"):
            await broker.cluster.start(2)
        await broker.cluster.start(2)
        assert broker.brokers[2] == f"{host}:{port}"
