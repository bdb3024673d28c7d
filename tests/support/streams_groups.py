"""Streams groups for tests: members that send heartbeats, each on its own connection."""

from collections.abc import Iterable, Mapping
from typing import Any

from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.broker.coordinator.group.streams.member import Tasks, by_subtopology
from sluice.protocol.apis import streams_group_heartbeat as api
from tests.support.virtual_broker import VirtualBroker

REBALANCE_MS = 60_000
# Every change is assigned without a delay.
AT_ONCE = ("group.streams.initial.rebalance.delay.ms=0", "group.streams.assignment.interval.ms=0")
COMPACT = [api.KeyValue(key="cleanup.policy", value="compact")]


def word_count(epoch: int = 0) -> api.Topology:
    """Return a topology that repartitions the topic "t" by words and counts them."""
    return api.Topology(
        epoch=epoch,
        subtopologies=[
            api.Subtopology(subtopology_id="0", source_topics=["t"], repartition_sink_topics=["words"]),
            api.Subtopology(
                subtopology_id="1",
                repartition_source_topics=[api.TopicInfo(name="words")],
                state_changelog_topics=[api.TopicInfo(name="counts", topic_configs=COMPACT)],
            ),
        ],
    )


def stateless(*sources: str) -> api.Topology:
    """Return a topology with one sub-topology that reads these topics."""
    return api.Topology(subtopologies=[api.Subtopology(subtopology_id="0", source_topics=list(sources or ("t",)))])


def task_ids(tasks: Iterable[tuple[str, int]]) -> list[api.TaskIds]:
    return [api.TaskIds(subtopology_id=name, partitions=those) for name, those in by_subtopology(set(tasks)).items()]


def tasks_of(response: Any) -> Tasks | None:
    """Return the tasks in a response, or None if they are unchanged."""
    roles = (response.active_tasks, response.standby_tasks, response.warmup_tasks)
    if None in roles:
        return None
    return Tasks(
        *(frozenset((one.subtopology_id, index) for one in role for index in one.partitions) for role in roles)
    )


def statuses(response: Any) -> dict[int, str]:
    return {status.status_code: status.status_detail for status in response.status}


class StreamsMember:
    """A member of a Streams group that behaves as a client.

    `owned` has the tasks that it was assigned and has not given up. Its next heartbeat gives up those that are no
    longer assigned, unless it `clings`.
    """

    def __init__(
        self,
        broker: VirtualBroker,
        member_id: str = "member",
        *,
        topology: api.Topology | None = None,
        process_id: str | None = None,
        group_id: str = "group",
        instance_id: str | None = None,
    ) -> None:
        self.client = broker.client()
        self.group_id = group_id
        self.member_id = member_id
        self.topology = word_count() if topology is None else topology
        self.process_id = process_id or f"process of {member_id}"
        self.instance_id = instance_id
        self.epoch = 0
        self.endpoint_epoch = 0
        self.owned = self.assigned = Tasks()
        self.clings = False

    def send(self, version: int = 1, **fields: Any) -> Any:
        """Send a heartbeat with `fields`, and apply the response."""
        known: Mapping[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            "endpoint_information_epoch": self.endpoint_epoch,
        }
        response = self.client.call(api.StreamsGroupHeartbeatRequest(**{**known, **fields}), version)
        if not response.error_code:
            self.epoch, self.endpoint_epoch = response.member_epoch, response.endpoint_information_epoch
            assigned = tasks_of(response)
            if assigned is not None:
                self.assigned = assigned
                self.owned = Tasks(*(ours | theirs for ours, theirs in zip(self.owned, assigned, strict=True)))
        return response

    def join(self, version: int = 1, **fields: Any) -> Any:
        """Join, or rejoin without tasks."""
        self.owned = self.assigned = Tasks()
        known: Mapping[str, Any] = {
            "member_epoch": 0,
            "rebalance_timeout_ms": REBALANCE_MS,
            "topology": self.topology,
            "process_id": self.process_id,
            "active_tasks": [],
            "standby_tasks": [],
            "warmup_tasks": [],
        }
        return self.send(version, **{**known, **fields})

    def heartbeat(self, version: int = 1, **fields: Any) -> Any:
        if not self.clings:
            self.owned = self.assigned
        active, standby, warmup = map(task_ids, self.owned)
        roles: Mapping[str, Any] = {"active_tasks": active, "standby_tasks": standby, "warmup_tasks": warmup}
        return self.send(version, **{**roles, **fields})

    def leave(self, epoch: int = -1, **fields: Any) -> Any:
        """Leave; with epoch -2, temporarily."""
        return self.send(member_epoch=epoch, **fields)


def streams_group(broker: VirtualBroker) -> StreamsGroup:
    group = broker.broker.groups.groups["group"]
    assert isinstance(group, StreamsGroup), group
    return group
