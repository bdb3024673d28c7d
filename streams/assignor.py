"""How a group's leader divides tasks among the members (Kafka's StreamsPartitionAssignor).

A task is given as its partitions: a member knows by them which tasks it has. Members keep the tasks that they have, as
far as it comes out even, and a task that goes from one to another is first given up by the one (KIP-429).

Before that, the leader makes the topics that the application has for itself, where there are none (internal_topics).

Different on purpose: the protocol has a name of its own, as its messages are not those of Kafka's: a Java program of
the same `application.id` is refused by the group. There are no standby tasks, and no rack or lag that a task follows.
"""

from collections.abc import Iterable, Mapping, Sequence

from sluice.client.assignors import Assignor, GroupMember, Plan, assign_sticky
from sluice.client.cluster import TopicPartition

from .errors import TaskId
from .internal_topics import InternalTopicManager
from .topology import ProcessorTopology, Subtopology

NAME = "sluice-streams"


def stream_assignor(topology: ProcessorTopology, topics: InternalTopicManager) -> Assignor:
    """For members that all have this topology."""

    async def prepare(_members: Sequence[GroupMember]) -> Mapping[str, int]:
        return await topics.prepare(topology)

    def assign(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
        return assign_tasks(topology.subtopologies, members, partitions)

    return Assignor(NAME, assign, is_cooperative=True, prepare=prepare)


def assign_tasks(parts: Sequence[Subtopology], members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """The partitions of each member, task by task."""
    tasks = {str(part.number): max((partitions.get(topic, 0) for topic in part.sources), default=0) for part in parts}
    topics = {topic: str(part.number) for part in parts for topic in part.sources}
    plan = assign_sticky([_with_tasks(member, topics) for member in members], tasks)
    by_task = {TaskId(part.number, index): part for part in parts for index in range(tasks[str(part.number)])}
    return {
        member: [
            TopicPartition(topic, index)
            for number, index in theirs
            for topic in sorted(by_task[TaskId(int(number), index)].sources)
            if index < partitions.get(topic, 0)
        ]
        for member, theirs in plan.items()
    }


def _with_tasks(member: GroupMember, topics: Mapping[str, str]) -> GroupMember:
    """The member as one who subscribes to sub-topologies, whose partitions are tasks."""
    owned = frozenset(
        TopicPartition(topics[partition.topic], partition.partition)
        for partition in member.owned
        if partition.topic in topics
    )
    return member._replace(topics=frozenset(topics[topic] for topic in member.topics if topic in topics), owned=owned)
