"""Client metadata: update timing, and merging of responses by epoch. In virtual time, without a network."""

from random import Random

import pytest

from sluice.client.backoff import ExponentialBackoff
from sluice.client.errors import ApiException, KafkaException
from sluice.client.metadata.cluster import Cluster, LeaderAndEpoch, Node, TopicPartition
from sluice.client.metadata.metadata import Metadata
from sluice.client.producer.metadata import ProducerMetadata
from sluice.protocol.apis import metadata as api
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import Middle

LATEST = 13
ID, OTHER_ID = bytes([1] * 16), bytes([2] * 16)
T0 = TopicPartition("t", 0)
NODES = {1: Node(1, "a", 9092), 2: Node(2, "b", 9092)}


def backoff() -> ExponentialBackoff:
    return ExponentialBackoff(100, 2, 1000, 0.2, Middle().uniform)


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata(backoff(), 300_000, equivalent_backoff=backoff())
    metadata.bootstrap(["a:9092"])
    return metadata


def topic(
    name: str | None = "t",
    *,
    leader: int = 1,
    epoch: int = 0,
    topic_id: bytes = ID,
    error: int = 0,
    partition_error: int = 0,
) -> api.MetadataResponseTopic:
    partition = api.MetadataResponsePartition(
        partition_index=0, leader_id=leader, leader_epoch=epoch, error_code=partition_error, replica_nodes=[1, 2]
    )
    partitions = [] if error else [partition]
    return api.MetadataResponseTopic(name=name, topic_id=topic_id, error_code=error, partitions=partitions)


def response(*topics: api.MetadataResponseTopic) -> api.MetadataResponse:
    brokers = [api.MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port) for node in NODES.values()]
    return api.MetadataResponse(brokers=brokers, cluster_id="c", controller_id=2, topics=list(topics))


def update(metadata: Metadata, now_ms: float, *topics: api.MetadataResponseTopic, version: int = LATEST) -> None:
    metadata.update(metadata.next_request(now_ms), response(*topics), version, now_ms)


NEWS = {
    "a newer epoch": topic(epoch=1),
    "another topic of the same name": topic(topic_id=OTHER_ID),
    "a partition without an epoch": topic(epoch=-1),
    "a new partition": topic("u"),
}


class TestWhen:
    def test_new_client_requests_metadata_at_once(self, metadata: Metadata) -> None:
        assert metadata.time_to_next_update_ms(0.0) == 0

    def test_metadata_is_refreshed_when_it_expires(self, metadata: Metadata) -> None:
        update(metadata, 0.0)
        assert metadata.time_to_next_update_ms(1.0) == 299_999
        assert metadata.time_to_next_update_ms(300_000.0) == 0

    def test_requested_update_waits_for_the_backoff(self, metadata: Metadata) -> None:
        update(metadata, 0.0, topic())
        metadata.request_update()
        assert metadata.time_to_next_update_ms(30.0) == 70
        assert metadata.time_to_next_update_ms(100.0) == 0

    @pytest.mark.parametrize("seed", range(5))
    def test_backoff_is_drawn_once_per_failure(self, seed: int) -> None:
        drawn = ExponentialBackoff(100, 2, 1000, 0.2, Random(seed).uniform)
        metadata = Metadata(drawn, 300_000, equivalent_backoff=drawn)
        metadata.bootstrap(["a:9092"])
        waits = []
        for _ in range(4):
            metadata.failed_update(0.0)
            waits.append(metadata.time_to_next_update_ms(0.0))
            assert {metadata.time_to_next_update_ms(0.0) for _ in range(20)} == {waits[-1]}
            assert {metadata.time_to_next_update_ms(waits[-1]) for _ in range(20)} == {0}
        assert waits == sorted(set(waits)), "each failure draws a new backoff"

    def test_successful_response_resets_the_backoff(self, metadata: Metadata) -> None:
        metadata.failed_update(0.0)
        metadata.failed_update(100.0)
        update(metadata, 300.0, topic())
        metadata.request_update()
        assert metadata.time_to_next_update_ms(300.0) == 100

    @pytest.mark.parametrize("news", NEWS.values(), ids=NEWS)
    def test_news_reset_the_backoff(self, metadata: Metadata, news: api.MetadataResponseTopic) -> None:
        for _ in range(4):
            update(metadata, 0.0, topic())
        update(metadata, 0.0, news)
        metadata.request_update()
        assert metadata.time_to_next_update_ms(0.0) == 100

    def test_age_resets_the_backoff(self, metadata: Metadata) -> None:
        for _ in range(5):
            update(metadata, 0.0, topic())
        assert metadata.time_to_next_update_ms(300_000.0) == 0
        metadata.request_update()
        assert metadata.time_to_next_update_ms(300_000.0) == 0


LEADER_UPDATES = {
    "an older epoch is ignored": (topic(leader=2, epoch=4), LeaderAndEpoch(NODES[1], 5)),
    "the same epoch is applied": (topic(leader=2, epoch=5), LeaderAndEpoch(NODES[2], 5)),
    "a recreated topic's is applied": (topic(leader=2, epoch=1, topic_id=OTHER_ID), LeaderAndEpoch(NODES[2], 1)),
    "without one": (topic(leader=2, epoch=-1), LeaderAndEpoch(NODES[2], -1)),
    "an unknown leader is ignored": (topic(leader=9, epoch=6), LeaderAndEpoch(None, 6)),
}


NEWER_LEADERS = {
    "a known node": ((2, 6), [], LeaderAndEpoch(NODES[2], 6)),
    "a node in the response": ((3, 6), [Node(3, "c", 9092)], LeaderAndEpoch(Node(3, "c", 9092), 6)),
    "a node without an endpoint is ignored": ((3, 6), [], LeaderAndEpoch(NODES[1], 5)),
    "a known epoch is ignored": ((2, 5), [], LeaderAndEpoch(NODES[1], 5)),
    "not nobody": ((-1, 6), [], LeaderAndEpoch(NODES[1], 5)),
}


class TestLeaders:
    def test_response_is_stored(self, metadata: Metadata) -> None:
        update(metadata, 0.0, topic(epoch=5))
        assert metadata.current_leader(T0) == LeaderAndEpoch(NODES[1], 5)
        assert metadata.current_leader(T0).epoch == 5
        assert metadata.cluster.controller == NODES[2]
        assert metadata.cluster.topic_names == {ID: "t"}
        assert metadata.cluster.partitions_of("t") == [0]
        assert metadata.cluster.partitions_of("u") == []
        known = metadata.cluster.partition(T0)
        assert known is not None
        assert known.replicas == (1, 2)

    @pytest.mark.parametrize(("topic_metadata", "expected"), LEADER_UPDATES.values(), ids=LEADER_UPDATES)
    def test_leader_is_updated_by_epoch(
        self, metadata: Metadata, topic_metadata: api.MetadataResponseTopic, expected: LeaderAndEpoch
    ) -> None:
        update(metadata, 0.0, topic(epoch=5))
        update(metadata, 0.0, topic_metadata)
        assert metadata.current_leader(T0) == expected

    def test_epochs_before_version_9_are_ignored(self, metadata: Metadata) -> None:
        update(metadata, 0.0, topic(epoch=5), version=8)
        assert metadata.current_leader(T0) == LeaderAndEpoch(NODES[1], -1)

    def test_epoch_newer_than_the_metadata_hides_the_leader(self, metadata: Metadata) -> None:
        update(metadata, 0.0, topic(epoch=5))
        metadata.update_last_seen_epoch_if_newer(T0, 5)
        assert metadata.time_to_next_update_ms(1000.0) > 0
        metadata.update_last_seen_epoch_if_newer(T0, 6)
        assert metadata.time_to_next_update_ms(1000.0) == 0
        assert metadata.current_leader(T0) == LeaderAndEpoch(None, 6)

    @pytest.mark.parametrize(("leader", "nodes", "expected"), NEWER_LEADERS.values(), ids=NEWER_LEADERS)
    def test_produce_and_fetch_responses_can_name_a_newer_leader(
        self, metadata: Metadata, leader: tuple[int, int], nodes: list[Node], expected: LeaderAndEpoch
    ) -> None:
        """KIP-951."""
        update(metadata, 0.0, topic(epoch=5))
        changed = metadata.update_partition_leadership({T0: leader, TopicPartition("u", 0): (2, 9)}, nodes)
        assert changed == ({T0} if expected.epoch == 6 else set())
        assert metadata.current_leader(T0) == expected
        assert metadata.cluster.topic_ids == {"t": ID}


RETRIABLE = {
    "a topic error": topic(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    "a partition error": topic(leader=-1, partition_error=ErrorCode.LEADER_NOT_AVAILABLE),
}


class TestErrors:
    @pytest.mark.parametrize("topic_metadata", RETRIABLE.values(), ids=RETRIABLE)
    def test_retriable_error_requests_an_update(
        self, metadata: Metadata, topic_metadata: api.MetadataResponseTopic
    ) -> None:
        update(metadata, 0.0, topic_metadata)
        assert metadata.update_requested
        metadata.raise_topic_error("t")

    @pytest.mark.parametrize("code", [ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED])
    def test_fatal_topic_error_is_raised_for_its_topic(self, metadata: Metadata, code: ErrorCode) -> None:
        update(metadata, 0.0, topic(error=code), topic("u"))
        assert not metadata.update_requested
        metadata.raise_topic_error("u")
        with pytest.raises(ApiException, match=r"^t$") as caught:
            metadata.raise_topic_error("t")
        assert caught.value.code == code

    def test_fatal_error_is_raised_once(self, metadata: Metadata) -> None:
        metadata.fatal_error(KafkaException("no"))
        with pytest.raises(KafkaException, match="no"):
            metadata.raise_topic_error("t")
        metadata.raise_fatal_error()

    def test_unknown_topic_id_is_not_a_topic(self, metadata: Metadata) -> None:
        update(metadata, 0.0, topic(None, error=ErrorCode.UNKNOWN_TOPIC_ID))
        assert metadata.cluster.topics == {}


class TestOfAProducer:
    @pytest.fixture
    def metadata(self) -> ProducerMetadata:
        """Metadata with topic t."""
        metadata = ProducerMetadata(backoff(), 300_000, 10_000, equivalent_backoff=backoff())
        metadata.bootstrap(["a:9092"])
        metadata.add("t", 0.0)
        return metadata

    def test_new_topic_is_requested_alone_and_at_once(self, metadata: ProducerMetadata) -> None:
        update(metadata, 0.0, topic())
        metadata.add("t", 1.0)
        assert metadata.time_to_next_update_ms(1.0) > 0
        metadata.add("u", 1.0)
        assert metadata.time_to_next_update_ms(1.0) == 0
        pending = metadata.next_request(1.0)
        assert pending.is_partial_update
        assert [named.name for named in pending.request.topics or ()] == ["u"]
        metadata.update(pending, response(topic("u")), LATEST, 1.0)
        assert sorted(metadata.cluster.topics) == ["t", "u"]
        assert not metadata.update_requested

    def test_topic_added_during_an_update_is_requested_next(self, metadata: ProducerMetadata) -> None:
        pending = metadata.next_request(0.0)
        metadata.add("u", 0.0)
        metadata.update(pending, response(topic("t")), LATEST, 0.0)
        assert metadata.update_requested
        assert [named.name for named in metadata.next_request(0.0).request.topics or ()] == ["u"]

    def test_idle_topic_expires(self, metadata: ProducerMetadata) -> None:
        metadata.add("u", 0.0)
        update(metadata, 0.0, topic("t"), topic("u"))
        metadata.add("u", 5_000.0)
        metadata.request_update()
        update(metadata, 10_000.0, topic("t"), topic("u"))
        assert metadata.topics == ["u"]
        assert list(metadata.cluster.topics) == ["u"]
        assert metadata.current_leader(T0).epoch == -1

    def test_topic_without_metadata_does_not_expire(self, metadata: ProducerMetadata) -> None:
        update(metadata, 20_000.0)
        assert metadata.topics == ["t"]

    def test_unknown_topic_is_requested_without_waiting_for_known_ones(self, metadata: ProducerMetadata) -> None:
        update(metadata, 0.0)
        metadata.request_update_for_topic("t")
        assert metadata.time_to_next_update_ms(0.0) == 0
        update(metadata, 0.0, topic())
        metadata.request_update_for_topic("t")
        assert metadata.time_to_next_update_ms(0.0) == 100


class TestBootstrap:
    def test_bootstrap_addresses_have_negative_node_ids(self) -> None:
        cluster = Cluster.bootstrap(["a:9092", "[::1]:9093"])
        assert list(cluster.nodes.values()) == [Node(-1, "a", 9092), Node(-2, "::1", 9093)]
        assert cluster.is_bootstrap

    def test_rebootstrap_forgets_the_nodes(self, metadata: Metadata) -> None:
        update(metadata, 0.0, topic())
        metadata.rebootstrap()
        assert list(metadata.cluster.nodes) == [-1]
        assert metadata.update_requested


def test_nodes_are_formatted_as_in_kafka() -> None:
    assert str(T0) == "t-0"
    assert str(NODES[1]) == "a:9092 (id 1)"
