"""Lists, dicts and messages that are not used any more are emptied in slices."""

from collections.abc import Collection
from itertools import pairwise

from sluice.protocol.apis import streams_group_topology_description_update as api
from sluice.protocol.apis.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from sluice.protocol.codec.unused import Unused


class Counted:
    """An object that counts those that are left."""

    left = 0

    def __init__(self) -> None:
        Counted.left += 1

    def __del__(self) -> None:
        Counted.left -= 1


def free(container: Collection[object]) -> None:
    unused = Unused()
    unused.add(container)
    del container
    while unused:
        unused.free_some()


def freed_in_steps(unused: Unused) -> list[int]:
    left = [Counted.left]
    while unused:
        unused.free_some()
        left.append(Counted.left)
    return [before - after for before, after in pairwise(left)]


def request() -> ListOffsetsRequest:
    topics = [
        ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=n) for n in range(2000)])
        for _ in range(2)
    ]
    return ListOffsetsRequest(topics=topics + [ListOffsetsTopic(name="u") for _ in range(2000)])


def test_containers_are_emptied_in_steps() -> None:
    unused = Unused()
    unused.add([Counted() for _ in range(1000)])
    unused.add({number: Counted() for number in range(1000)})
    steps = freed_in_steps(unused)
    assert sum(steps) == 2000
    assert max(steps) == 32


def test_long_arrays_of_a_message_are_emptied_in_steps() -> None:
    message = request()
    message.topics[0].partitions = [Counted() for _ in range(2000)]  # type: ignore[misc]  # any element
    unused = Unused()
    unused.add([message])
    del message
    steps = freed_in_steps(unused)
    assert sum(steps) == 2000
    assert max(steps) == 32


def test_message_with_another_reference_is_kept() -> None:
    message = request()
    free([message])
    assert message == request()


def test_array_with_another_reference_is_kept() -> None:
    message = request()
    topics = message.topics
    partitions = topics[0].partitions
    free([message])
    del message
    assert len(topics) == 2002
    free(topics)
    assert len(partitions) == 2000


def test_arrays_of_a_single_struct_are_kept_with_another_reference() -> None:
    description = api.TopologyDescription(subtopologies=[api.TopologyDescriptionSubtopology() for _ in range(2000)])
    free([api.StreamsGroupTopologyDescriptionUpdateRequest(topology_description=description)])
    assert len(description.subtopologies) == 2000


def test_arrays_of_a_single_struct_are_emptied_without_other_references() -> None:
    subtopologies = [api.TopologyDescriptionSubtopology() for _ in range(2000)]
    subtopologies[0].nodes = [Counted() for _ in range(2000)]  # type: ignore[misc]  # any element
    description = api.TopologyDescription(subtopologies=subtopologies)
    unused = Unused()
    unused.add([api.StreamsGroupTopologyDescriptionUpdateRequest(topology_description=description)])
    del description, subtopologies
    assert max(freed_in_steps(unused)) == 32
