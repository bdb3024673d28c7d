"""What single brokers know that are held back."""

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


def told(cluster: VirtualBroker, node_id: int) -> tuple[int, list[int]]:
    """The leader and the brokers that a broker tells of."""
    answer = cluster.client(node_id=node_id).ask(MetadataRequest(topics=None), 9)
    (topic,) = (topic for topic in answer.topics if topic.name == "t")
    return topic.partitions[0].leader_id, [broker.node_id for broker in answer.brokers]


def move(cluster: VirtualBroker, node_id: int) -> None:
    cluster.cluster_server.move_leader("t", 0, node_id)


def test_only_the_broker_that_is_held_back_learns_later(three: VirtualBroker) -> None:
    three.cluster.controller.publisher.delay_updates(3, LAG_MS)
    move(three, 2)
    assert [told(three, node_id)[0] for node_id in (1, 2, 3)] == [2, 2, 1]
    three.advance(LAG_MS - 1)
    assert told(three, 3)[0] == 1
    three.advance(1)
    assert told(three, 3)[0] == 2


def test_a_broker_that_is_held_back_for_ever_tells_what_was(three: VirtualBroker) -> None:
    three.cluster.controller.publisher.delay_updates(3, inf)
    move(three, 2)
    three.cluster_server.stop_broker(1)
    three.topic("new")
    three.advance(60_000)
    assert told(three, 3) == (1, [1, 2, 3])
    assert told(three, 2) == (2, [2, 3])
    known = {topic.name: topic for topic in three.client(node_id=3).ask(MetadataRequest(topics=None), 9).topics}
    assert known["new"].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_who_is_let_go_learns_all_that_it_missed(three: VirtualBroker) -> None:
    let_go = three.cluster.controller.publisher.delay_updates(3, inf)
    move(three, 2)
    three.cluster_server.stop_broker(1)
    let_go()
    assert told(three, 3) == (2, [2, 3])
    assert three.cluster.brokers[3].metadata.image is None


def test_new_topics_are_learned_late_too(three: VirtualBroker) -> None:
    three.cluster.controller.publisher.delay_updates(3, LAG_MS)
    three.topic("a")
    client = three.client(node_id=3)

    def error_code() -> int:
        answer = client.ask(MetadataRequest(topics=None), 9)
        return next(int(topic.error_code) for topic in answer.topics if topic.name == "a")

    assert error_code() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    three.advance(LAG_MS)
    assert error_code() == ErrorCode.NONE


def test_who_wants_most_counts_and_the_others_when_that_is_over(three: VirtualBroker) -> None:
    publisher = three.cluster.controller.publisher
    publisher.delay_updates(3, LAG_MS)
    let_go = publisher.delay_updates(3, inf)
    move(three, 2)
    three.advance(LAG_MS)
    assert told(three, 3)[0] == 1
    let_go()
    assert told(three, 3)[0] == 2
    move(three, 3)
    assert told(three, 3)[0] == 2
    three.advance(LAG_MS)
    assert told(three, 3)[0] == 3


def test_what_is_on_its_way_as_it_begins_is_not_learned(three: VirtualBroker) -> None:
    publisher = three.cluster.controller.publisher
    publisher.delay_updates(3, LAG_MS)
    move(three, 2)
    publisher.delay_updates(3, inf)
    three.advance(LAG_MS)
    assert told(three, 3)[0] == 1


def test_a_broker_that_is_isolated_meanwhile_learns_when_it_is_back(three: VirtualBroker) -> None:
    let_go = three.cluster.controller.publisher.delay_updates(3, inf)
    three.cluster_server.isolate_broker(3)
    move(three, 2)
    let_go()
    assert told(three, 3)[0] == 1
    three.cluster_server.rejoin_broker(3)
    assert told(three, 3)[0] == 2
