"""Lookups of leaders and coordinators for admin calls (Kafka's PartitionLeaderStrategy and CoordinatorStrategy)."""

from collections.abc import Collection, Mapping

from sluice.client.errors import KafkaException, UnsupportedVersionException, exception_of
from sluice.client.metadata.cluster import NO_LEADER, TopicPartition
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from sluice.protocol.errors import ErrorCode

from .calls import AdminCalls, NodeProvider, broker, least_loaded, outcome

_FIRST_OF_MANY = 4  # the first FindCoordinator with several keys (KIP-699)


async def find_leaders(
    calls: AdminCalls, partitions: Collection[TopicPartition], deadline_ms: float
) -> Mapping[TopicPartition, NodeProvider | KafkaException]:
    names = dict.fromkeys(partition.topic for partition in partitions)
    message = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
    )
    # Before version 4 a Metadata request creates topics.
    response = await calls.call_once(least_loaded, request_of(message, oldest=4), MetadataResponse, deadline_ms)
    return {partition: _leader(response, partition) for partition in partitions}


def _leader(response: MetadataResponse, wanted: TopicPartition) -> NodeProvider | KafkaException:
    topic = next((topic for topic in response.topics if topic.name == wanted.topic), None)
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


async def find_coordinators(
    calls: AdminCalls, group_ids: Collection[str], deadline_ms: float
) -> Mapping[str, NodeProvider | KafkaException]:
    request = request_of(FindCoordinatorRequest(coordinator_keys=list(group_ids)), oldest=_FIRST_OF_MANY)
    try:
        response = await calls.call_once(least_loaded, request, FindCoordinatorResponse, deadline_ms)
    except UnsupportedVersionException:
        return {group_id: await _find_coordinator(calls, group_id, deadline_ms) for group_id in group_ids}
    return {found.key: outcome(found, broker(found.node_id)) for found in response.coordinators}


async def _find_coordinator(calls: AdminCalls, group_id: str, deadline_ms: float) -> NodeProvider | KafkaException:
    request = request_of(FindCoordinatorRequest(key=group_id), latest=_FIRST_OF_MANY - 1)
    response = await calls.call_once(least_loaded, request, FindCoordinatorResponse, deadline_ms)
    return outcome(response, broker(response.node_id))
