"""The partitions at each endpoint, for interactive queries. Follows Kafka's EndpointToPartitionsManager."""

from collections.abc import Collection

from sluice.protocol.apis.streams_group_heartbeat import Endpoint, EndpointToPartitions, TopicPartition

from .configured_topology import ConfiguredTopology, PartitionCount
from .group import StreamsGroup
from .member import StreamsMember, Task, by_subtopology


def partitions_by_endpoint(group: StreamsGroup, existing: PartitionCount) -> list[EndpointToPartitions]:
    topology = group.configured
    if topology is None:
        return []
    return [_entry(member, topology, existing) for member in group.members.values() if member.user_endpoint is not None]


def _entry(member: StreamsMember, topology: ConfiguredTopology, existing: PartitionCount) -> EndpointToPartitions:
    assert member.user_endpoint is not None
    host, port = member.user_endpoint
    assigned = member.assigned
    return EndpointToPartitions(
        user_endpoint=Endpoint(host=host, port=port),
        active_partitions=_inputs(assigned.active, topology, existing),
        standby_partitions=_inputs(assigned.standby | assigned.warmup, topology, existing),
    )


def _inputs(tasks: Collection[Task], topology: ConfiguredTopology, existing: PartitionCount) -> list[TopicPartition]:
    # A topic may have fewer partitions than its sub-topology has tasks.
    partitions = [
        TopicPartition(topic=topic, partitions=[index for index in indexes if index < (existing(topic) or 0)])
        for subtopology_id, indexes in by_subtopology(tasks).items()
        if subtopology_id in topology.subtopologies
        for topic in sorted(topology.subtopologies[subtopology_id].inputs)
    ]
    return [one for one in partitions if one.partitions]
