"""Delayed metadata updates of single brokers."""

from math import inf

import pytest

from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

LAG_MS = 500


@pytest.fixture
def three() -> VirtualBroker:
    cluster = VirtualBroker("sluice.brokers=3", "sluice.election.delay.ms=0")
    cluster.topic("t", partitions=1, replicas=3)
    move(cluster, 1)
    return cluster


def metadata_of(cluster: VirtualBroker, node_id: int) -> tuple[int, list[int]]:
    """Return the leader and the brokers in a broker's metadata."""
    response = cluster.client(node_id=node_id).call(MetadataRequest(topics=None), 9)
    (topic,) = (topic for topic in response.topics if topic.name == "t")
    return topic.partitions[0].leader_id, [broker.node_id for broker in response.brokers]


def move(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.move_leader("t", 0, node_id)


def test_only_the_delayed_broker_updates_later(three: VirtualBroker) -> None:
    three.cluster.controller.publisher.delay_updates(3, LAG_MS)
    move(three, 2)
    assert [metadata_of(three, node_id)[0] for node_id in (1, 2, 3)] == [2, 2, 1]
    three.advance(LAG_MS - 1)
    assert metadata_of(three, 3)[0] == 1
    three.advance(1)
    assert metadata_of(three, 3)[0] == 2


def test_broker_without_updates_keeps_its_old_metadata(three: VirtualBroker) -> None:
    three.cluster.controller.publisher.delay_updates(3, inf)
    move(three, 2)
    three.cluster_server.stop_broker(1)
    three.topic("new")
    three.advance(60_000)
    assert metadata_of(three, 3) == (1, [1, 2, 3])
    assert metadata_of(three, 2) == (2, [2, 3])
    topics = {topic.name: topic for topic in three.client(node_id=3).call(MetadataRequest(topics=None), 9).topics}
    assert topics["new"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_released_broker_gets_all_missed_updates(three: VirtualBroker) -> None:
    release = three.cluster.controller.publisher.delay_updates(3, inf)
    move(three, 2)
    three.cluster_server.stop_broker(1)
    release()
    assert metadata_of(three, 3) == (2, [2, 3])
    assert three.cluster.brokers[3].metadata.image is None


def test_new_topics_are_delayed_too(three: VirtualBroker) -> None:
    three.cluster.controller.publisher.delay_updates(3, LAG_MS)
    three.topic("a")
    client = three.client(node_id=3)

    def error_code() -> int:
        response = client.call(MetadataRequest(topics=None), 9)
        return next(int(topic.error_code) for topic in response.topics if topic.name == "a")

    assert error_code() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    three.advance(LAG_MS)
    assert error_code() == ErrorCode.NONE


def test_longest_delay_applies_and_the_others_after_it_ends(three: VirtualBroker) -> None:
    publisher = three.cluster.controller.publisher
    publisher.delay_updates(3, LAG_MS)
    release = publisher.delay_updates(3, inf)
    move(three, 2)
    three.advance(LAG_MS)
    assert metadata_of(three, 3)[0] == 1
    release()
    assert metadata_of(three, 3)[0] == 2
    move(three, 3)
    assert metadata_of(three, 3)[0] == 2
    three.advance(LAG_MS)
    assert metadata_of(three, 3)[0] == 3


def test_pending_update_is_stopped_by_an_unlimited_delay(three: VirtualBroker) -> None:
    publisher = three.cluster.controller.publisher
    publisher.delay_updates(3, LAG_MS)
    move(three, 2)
    publisher.delay_updates(3, inf)
    three.advance(LAG_MS)
    assert metadata_of(three, 3)[0] == 1


def test_broker_isolated_meanwhile_updates_when_it_rejoins(three: VirtualBroker) -> None:
    release = three.cluster.controller.publisher.delay_updates(3, inf)
    three.cluster_server.isolate_broker(3)
    move(three, 2)
    release()
    assert metadata_of(three, 3)[0] == 1
    three.cluster_server.rejoin_broker(3)
    assert metadata_of(three, 3)[0] == 2
