"""Subscriptions and assignments of classic consumers (Kafka's ConsumerProtocol).

To brokers these bytes are opaque, except in groups with members of both protocols.
"""

from collections.abc import Iterable, Mapping

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import encode_record
from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.consumer_protocol import Assignment, Subscription, TopicPartitions, version_of


def subscribed_topics(metadata: bytes) -> list[str] | None:
    try:
        # After two bytes of version, every version starts with the fields of version 0.
        subscription, _ = decode_prefix(Subscription, 0)(memoryview(metadata), 2, len(metadata))
    except RemoteProtocolError:
        return None
    return subscription.topics


def write_assignment(partitions: Mapping[bytes, Iterable[int]], cluster: Cluster, metadata: bytes) -> bytes:
    """Encode an assignment, without deleted topics, in the version of the metadata."""
    version = version_of(metadata)
    topics = [(cluster.topics_by_id.get(topic_id), those) for topic_id, those in partitions.items()]
    assignment = Assignment(
        assigned_partitions=[
            TopicPartitions(topic=topic.name, partitions=sorted(those)) for topic, those in topics if topic is not None
        ]
    )
    return encode_record(version, assignment, version)


def by_topic_id(topics: Iterable[TopicPartitions], cluster: Cluster) -> dict[bytes, list[int]]:
    known = [(cluster.topics.get(one.topic), one.partitions) for one in topics]
    return {topic.topic_id: partitions for topic, partitions in known if topic is not None}
