"""Who is responsible for a key of an admin call: partitions' leaders and coordinators (Kafka's PartitionLeaderStrategy
and CoordinatorStrategy). They are asked for anew in each round of a call.
"""

from collections.abc import Collection, Mapping

from sluice.client.errors import KafkaException, UnsupportedVersionException, exception_of
from sluice.client.metadata.cluster import NO_LEADER, TopicPartition
from sluice.client.network.in_flight import Request, request_of
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from sluice.protocol.errors import ErrorCode

from .calls import AdminCalls, Lookup, NodeProvider, broker, least_loaded

GROUP, TRANSACTION = 0, 1
_FIRST_OF_MANY = 4  # version of FindCoordinator that takes more than one key (KIP-699)


def leaders(calls: AdminCalls, deadline_ms: float) -> Lookup[TopicPartition]:
    """The leaders of partitions."""

    async def lookup(partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, NodeProvider | KafkaException]:
        names = dict.fromkeys(partition.topic for partition in partitions)
        message = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        # Before version 4 every topic that is asked for may be made.
        answer = await calls.once(
            least_loaded, lambda _timeout_ms: request_of(message, oldest=4), MetadataResponse, deadline_ms
        )
        return {partition: _leader(answer, partition) for partition in partitions}

    return lookup


def _leader(answer: MetadataResponse, wanted: TopicPartition) -> NodeProvider | KafkaException:
    topic = next((topic for topic in answer.topics if topic.name == wanted.topic), None)
    if topic is None:
        return exception_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic.error_code:
        return exception_of(topic.error_code)
    for partition in topic.partitions:
        if partition.partition_index == wanted.partition:
            if partition.error_code or partition.leader_id == NO_LEADER:
                return exception_of(partition.error_code or ErrorCode.LEADER_NOT_AVAILABLE)
            return broker(partition.leader_id)
    return exception_of(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def coordinators(calls: AdminCalls, key_type: int, deadline_ms: float) -> Lookup[str]:
    """The coordinators of groups or transactional ids."""

    async def lookup(keys: Collection[str]) -> Mapping[str, NodeProvider | KafkaException]:
        message = FindCoordinatorRequest(key_type=key_type, coordinator_keys=list(keys))
        try:
            answer = await calls.once(
                least_loaded,
                lambda _timeout_ms: request_of(message, oldest=_FIRST_OF_MANY),
                FindCoordinatorResponse,
                deadline_ms,
            )
        except UnsupportedVersionException:
            return {key: await _coordinator(calls, key_type, key, deadline_ms) for key in keys}
        return {
            found.key: exception_of(found.error_code, found.error_message)
            if found.error_code
            else broker(found.node_id)
            for found in answer.coordinators
        }

    return lookup


async def _coordinator(calls: AdminCalls, key_type: int, key: str, deadline_ms: float) -> NodeProvider | KafkaException:
    message = FindCoordinatorRequest(key_type=key_type, key=key)
    # Version 0 knows groups only.
    ask = Request(message.API_KEY, lambda _version: message, oldest=int(key_type != GROUP), latest=_FIRST_OF_MANY - 1)
    answer = await calls.once(least_loaded, lambda _timeout_ms: ask, FindCoordinatorResponse, deadline_ms)
    if answer.error_code:
        return exception_of(answer.error_code, answer.error_message)
    return broker(answer.node_id)
