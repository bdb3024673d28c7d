"""How a group's leader divides tasks among the members (Kafka's StreamsPartitionAssignor).

A task is given as its partitions: a member knows by them which tasks it has. Members keep the tasks that they have, as
far as it comes out even, and a task that goes from one to another is first given up by the one (KIP-429). Tasks of one
part of the topology are spread: they are alike in what they cost.

Before that, the leader makes the topics that the application has for itself, where there are none (internal_topics).

Different on purpose: the protocol has a name of its own, as its messages are not those of Kafka's: a Java program of
the same `application.id` is refused by the group. There are no standby tasks, and no rack or lag that a task follows.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from sluice.client.consumer.group.assignors import Assignor, GroupMember, Plan
from sluice.client.metadata.cluster import TopicPartition

from .errors import TaskId
from .internal_topics import InternalTopicManager
from .topology import ProcessorTopology, Subtopology

NAME = "sluice-streams"


def stream_assignor(topology: ProcessorTopology, topics: InternalTopicManager) -> Assignor:
    """For members that all have this topology."""

    async def prepare(_members: Sequence[GroupMember]) -> Mapping[str, int]:
        return await topics.prepare(topology)

    def assign(members: Iterable[GroupMember], partitions: Mapping[str, int]) -> Plan:
        return assign_tasks(topology.subtopologies, list(members), partitions)

    return Assignor(NAME, assign, is_cooperative=True, prepare=prepare)


def assign_tasks(parts: Sequence[Subtopology], members: Collection[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """The partitions of each member, task by task; what moves is given to nobody yet."""
    inputs = _inputs(parts, partitions)
    owners = _owners(parts, members, inputs)
    plan: dict[str, set[TaskId]] = {
        member.member_id: set()
        for member in sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))
    }
    for task, owner in owners.items():
        plan[owner].add(task)
    for task in sorted(inputs.keys() - owners.keys()):
        plan[min(plan, key=lambda member: (len(plan[member]), _like(task, plan[member])))].add(task)
    _even_out(plan)
    return {
        member: [
            partition for task in sorted(tasks) if owners.get(task, member) == member for partition in inputs[task]
        ]
        for member, tasks in plan.items()
    }


def _inputs(parts: Iterable[Subtopology], partitions: Mapping[str, int]) -> dict[TaskId, list[TopicPartition]]:
    """All tasks, and what each reads."""
    found: dict[TaskId, list[TopicPartition]] = {}
    for part in parts:
        for topic in sorted(part.sources):
            for index in range(partitions.get(topic, 0)):
                found.setdefault(TaskId(part.number, index), []).append(TopicPartition(topic, index))
    return found


def _owners(
    parts: Iterable[Subtopology], members: Iterable[GroupMember], tasks: Container[TaskId]
) -> dict[TaskId, str]:
    """Who has what now; of several that say so, the one of the newest generation."""
    numbers = {topic: part.number for part in parts for topic in part.sources}
    owners: dict[TaskId, str] = {}
    for member in sorted(members, key=lambda one: one.generation_id):
        for topic, index in sorted(member.owned):
            if topic in numbers and TaskId(numbers[topic], index) in tasks:
                owners[TaskId(numbers[topic], index)] = member.member_id
    return owners


def _even_out(plan: dict[str, set[TaskId]]) -> None:
    """Moves tasks from who has at least two more than another: of the part of the topology that it has most of."""
    while plan:
        taker = min(plan, key=lambda member: len(plan[member]))
        giver = max(plan, key=lambda member: len(plan[member]))
        if len(plan[giver]) - len(plan[taker]) <= 1:
            return
        task = max(sorted(plan[giver]), key=lambda one: _like(one, plan[giver]) - _like(one, plan[taker]))
        plan[giver].remove(task)
        plan[taker].add(task)


def _like(task: TaskId, tasks: Iterable[TaskId]) -> int:
    """How many tasks there are of the same part of the topology."""
    return sum(one.subtopology == task.subtopology for one in tasks)
