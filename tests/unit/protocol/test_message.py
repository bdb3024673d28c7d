"""Freeing messages in slices."""

from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.apis.streams_group_topology_description_update import (
    StreamsGroupTopologyDescriptionUpdateRequest,
    TopologyDescription,
    TopologyDescriptionSubtopology,
)
from sluice.protocol.message import free_arrays


def request() -> ListOffsetsRequest:
    topics = [
        ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=n) for n in range(2000)])
        for _ in range(2)
    ]
    return ListOffsetsRequest(topics=topics + [ListOffsetsTopic(name="u") for _ in range(2000)])


def test_long_arrays_are_emptied_in_slices() -> None:
    message = request()
    pauses: list[int] = []
    free_arrays(message, lambda: pauses.append(len(message.topics)))
    assert message.topics == []
    assert len(pauses) > 2 * 2000 / 64


def test_array_with_another_reference_is_kept() -> None:
    message = request()
    topics = message.topics
    free_arrays(message, lambda: None)
    assert len(topics) == 2002


def test_inner_array_with_another_reference_is_kept() -> None:
    message = request()
    partitions = message.topics[0].partitions
    free_arrays(message, lambda: None)
    assert message.topics == []
    assert len(partitions) == 2000


def test_short_arrays_are_kept() -> None:
    message = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t")])
    free_arrays(message, lambda: None)
    assert message.topics == [ListOffsetsTopic(name="t")]


def test_arrays_of_a_single_struct_are_emptied_without_other_references() -> None:
    description = TopologyDescription(subtopologies=[TopologyDescriptionSubtopology() for _ in range(2000)])
    message = StreamsGroupTopologyDescriptionUpdateRequest(topology_description=description)
    free_arrays(message, lambda: None)
    assert len(description.subtopologies) == 2000
    del description
    free_arrays(message, lambda: None)
    assert message.topology_description == TopologyDescription()
