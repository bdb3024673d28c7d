"""The assignment of tasks by the group leader (Kafka's StreamsPartitionAssignor).

Members keep their tasks as far as the balance allows; a task that moves is first revoked from its owner (KIP-429).
Tasks of one sub-topology, which have similar costs, are spread over members.

Different on purpose: the protocol has a separate name, because its messages are not Kafka's; the group rejects a Java
program with the same `application.id`. There are no standby tasks, and racks and lags are ignored.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

from sluice.client.consumer.group.assignors import Assignor
from sluice.client.consumer.group.group_member import GroupMember, Plan, Racks
from sluice.client.metadata.cluster import TopicPartition

from .errors import TaskId
from .internal_topics import InternalTopicManager
from .topology import ProcessorTopology, Subtopology

NAME = "sluice-streams"


def stream_assignor(topology: ProcessorTopology, topics: InternalTopicManager) -> Assignor:
    async def prepare(_members: Sequence[GroupMember]) -> Mapping[str, int]:
        return await topics.prepare(topology)

    def assign(members: Iterable[GroupMember], partitions: Mapping[str, int], _racks: Racks) -> Plan:
        return assign_tasks(topology.subtopologies, list(members), partitions)

    return Assignor(NAME, assign, is_cooperative=True, prepare=prepare)


def assign_tasks(parts: Sequence[Subtopology], members: Collection[GroupMember], partitions: Mapping[str, int]) -> Plan:
    """Return the partitions of each member, without tasks that must first be revoked elsewhere."""
    inputs = _inputs(parts, partitions)
    owners = _owners(parts, members, inputs)
    plan: dict[str, set[TaskId]] = {
        member.member_id: set()
        for member in sorted(members, key=lambda one: (one.instance_id is None, one.instance_id or one.member_id))
    }
    for task, owner in owners.items():
        plan[owner].add(task)
    for task in sorted(inputs.keys() - owners.keys()):
        plan[min(plan, key=lambda member: (len(plan[member]), _siblings(task, plan[member])))].add(task)
    _even_out(plan)
    return {
        member: [
            partition for task in sorted(tasks) if owners.get(task, member) == member for partition in inputs[task]
        ]
        for member, tasks in plan.items()
    }


def _inputs(parts: Iterable[Subtopology], partitions: Mapping[str, int]) -> dict[TaskId, list[TopicPartition]]:
    found: dict[TaskId, list[TopicPartition]] = {}
    for part in parts:
        for topic in sorted(part.sources):
            for index in range(partitions.get(topic, 0)):
                found.setdefault(TaskId(part.number, index), []).append(TopicPartition(topic, index))
    return found


def _owners(
    parts: Iterable[Subtopology], members: Iterable[GroupMember], tasks: Container[TaskId]
) -> dict[TaskId, str]:
    """Return the current owners, by the newest generation that claims a task."""
    numbers = {topic: part.number for part in parts for topic in part.sources}
    owners: dict[TaskId, str] = {}
    for member in sorted(members, key=lambda one: one.generation_id):
        for topic, index in sorted(member.owned):
            if topic in numbers and TaskId(numbers[topic], index) in tasks:
                owners[TaskId(numbers[topic], index)] = member.member_id
    return owners


def _even_out(plan: dict[str, set[TaskId]]) -> None:
    while plan:
        taker = min(plan, key=lambda member: len(plan[member]))
        giver = max(plan, key=lambda member: len(plan[member]))
        if len(plan[giver]) - len(plan[taker]) <= 1:
            return
        task = max(sorted(plan[giver]), key=lambda one: _siblings(one, plan[giver]) - _siblings(one, plan[taker]))
        plan[giver].remove(task)
        plan[taker].add(task)


def _siblings(task: TaskId, tasks: Iterable[TaskId]) -> int:
    return sum(one.subtopology == task.subtopology for one in tasks)
