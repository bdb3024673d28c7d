"""Which of the partitions that a client names to a group's coordinator are there.

The three APIs that change offsets check this in the same way before they ask the coordinator (KafkaApis).
"""

from sluice.broker.cluster import Cluster, Topic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID


def find_topic(cluster: Cluster, name: str, topic_id: bytes, *, by_id: bool) -> Topic | ErrorCode:
    """The topic of this id or name, or how a client is told that there is none."""
    if by_id:
        topic = cluster.topics_by_id.get(topic_id) if topic_id != ZERO_UUID else None
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else topic
    return cluster.topics.get(name) or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def partition_error(topic: Topic | ErrorCode, index: int) -> ErrorCode:
    """NONE for a partition that is there."""
    if isinstance(topic, ErrorCode):
        return topic
    return ErrorCode.NONE if topic.partition(index) is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
