"""Follower fetching (KIP-392): racks, preferred replicas, and consumers that read from followers."""

from typing import Any

import pytest

from sluice.broker.metadata.topic import FollowerLag
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sluice.protocol.apis.fetch import FetchRequest, PartitionData
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, fetch, fetched, produce, records_of, values
from tests.support.virtual_broker import VirtualBroker

RACKS = ("sluice.brokers=3", "broker.rack=a,b,c")
RACK_AWARE = "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector"


def cluster(*overrides: str) -> VirtualBroker:
    """Return three brokers in racks a, b and c, and a record in t-0, which broker 1 leads."""
    broker = VirtualBroker(*RACKS, *overrides)
    broker.topic(assignments={0: (1, 2, 3)})
    append(broker)
    return broker


def append(broker: VirtualBroker) -> None:
    assert broker.client(node_id=1).call(produce(9, batch(b"v")), 9).responses[0].partition_responses[0].error_code == 0


def request(offset: int = 0, rack: str = "", **fields: Any) -> FetchRequest:
    found = fetch(offset, **fields)
    found.rack_id = rack
    return found


def read(broker: VirtualBroker, node_id: int, offset: int = 0, rack: str = "", version: int = 11) -> PartitionData:
    return fetched(broker.client(node_id=node_id).call(request(offset, rack), version))


@pytest.mark.parametrize("racks", ["a,b,c", "a,b"], ids=["one each", "in turn"])
def test_clients_receive_the_racks(racks: str) -> None:
    broker = VirtualBroker("sluice.brokers=3", f"broker.rack={racks}")
    client = broker.client()
    expected = (racks.split(",") * 2)[:3]
    assert [node.rack for node in client.call(MetadataRequest(topics=[]), 9).brokers] == expected
    assert [node.rack for node in client.call(DescribeClusterRequest(), 0).brokers] == expected
    for node_id, rack in enumerate(expected, 1):
        resource = DescribeConfigsResource(
            resource_type=4, resource_name=str(node_id), configuration_keys=["broker.rack"]
        )
        described = broker.client(node_id=node_id).call(DescribeConfigsRequest(resources=[resource]), 4)
        assert [config.value for config in described.results[0].configs] == [rack]


@pytest.mark.parametrize(
    ("rack", "preferred"),
    [("", -1), ("a", -1), ("b", 2), ("c", 3), ("d", -1)],
    ids=["no rack", "the leader's rack", "rack of a follower", "another follower's rack", "rack without a replica"],
)
def test_leader_refers_to_the_replica_in_the_clients_rack(rack: str, preferred: int) -> None:
    data = read(cluster(RACK_AWARE), 1, rack=rack)
    assert (data.error_code, data.preferred_read_replica, data.high_watermark) == (0, preferred, 1)
    assert bool(records_of(data)) == (preferred < 0)


@pytest.mark.parametrize(
    ("overrides", "version"), [((), 11), ((RACK_AWARE,), 10)], ids=["no selector", "version without racks"]
)
def test_leader_refers_to_no_replica(overrides: tuple[str, ...], version: int) -> None:
    data = read(cluster(*overrides), 1, rack="b", version=version)
    assert (data.preferred_read_replica, values(records_of(data))) == (-1, [b"v"])


def test_leader_refers_only_to_replicas_that_have_the_offset_and_are_in_sync() -> None:
    broker = cluster(RACK_AWARE)
    partition = broker.partition()
    _ = broker.cluster.controller
    partition.lagging_followers[2] = FollowerLag(0, 0.0)
    assert read(broker, 1, 0, rack="b").preferred_read_replica == 2
    assert read(broker, 1, 1, rack="b").preferred_read_replica == -1
    partition.isr = (1, 3)
    assert read(broker, 1, 0, rack="b").preferred_read_replica == -1


def test_preferred_replica_ends_a_long_poll_and_changes_a_session() -> None:
    broker = cluster(RACK_AWARE)
    client = broker.client(node_id=1)
    first = request(1, "", max_wait_ms=0)
    first.session_epoch = 0
    session_id = client.call(first, 11).session_id
    assert session_id
    again = request(1, "b", max_wait_ms=500)
    again.session_id, again.session_epoch = session_id, 1
    assert fetched(client.call(again, 11)).preferred_read_replica == 2


@pytest.mark.parametrize("isolation_level", [0, 1], ids=["uncommitted", "committed"])
def test_follower_serves_consumers_from_version_11(isolation_level: int) -> None:
    broker = cluster()
    for version in (10, 11, 12):
        data = fetched(broker.client(node_id=2).call(request(0, isolation_level=isolation_level), version))
        if version < 11:
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            assert (data.error_code, values(records_of(data)), data.high_watermark) == (0, [b"v"], 1)


def test_fetch_from_a_follower_waits_for_records() -> None:
    broker = cluster()
    client = broker.client(node_id=3)
    client.send(request(1, max_wait_ms=500), 11)
    broker.advance(100)
    assert client.take_responses() == []
    append(broker)
    assert values(records_of(fetched(client.response().message))) == [b"v"]


@pytest.mark.parametrize(
    ("offset", "code", "found"),
    [(0, 0, [b"v"]), (1, 0, []), (2, ErrorCode.OFFSET_OUT_OF_RANGE, [])],
    ids=["record that the follower has", "its end", "record that it has not"],
)
def test_lagging_follower_serves_what_it_has(offset: int, code: int, found: list[bytes]) -> None:
    broker = cluster()
    append(broker)
    append(broker)
    broker.partition().lagging_followers[2] = FollowerLag(1, 0.0)
    data = read(broker, 2, offset)
    assert (data.error_code, values(records_of(data))) == (code, found)
    assert data.high_watermark == (-1 if code else 1)


@pytest.mark.parametrize(
    ("epoch", "code"), [(0, 0), (1, ErrorCode.UNKNOWN_LEADER_EPOCH)], ids=["current epoch", "later epoch"]
)
def test_follower_validates_the_leader_epoch(epoch: int, code: int) -> None:
    data = fetched(cluster().client(node_id=2).call(request(0, current_leader_epoch=epoch), 11))
    assert data.error_code == code
