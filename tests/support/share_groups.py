"""Share groups for tests: members that send heartbeats, and share state in memory instead of the share coordinator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sluice.broker.coordinator.group.share.group import ShareGroup
from sluice.broker.coordinator.share.persisted import PartitionSummary, ShareErrors, ShareSummaries
from sluice.broker.requests.context import Sliced, at_once
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import Client, VirtualBroker

# A new target assignment is computed without a delay.
AT_ONCE = "group.share.assignment.interval.ms=0"

Key = tuple[str, bytes, int]


class MemoryPersister:
    """Share state in memory. While it `holds`, results wait for `release`; `fails` are the errors of partitions."""

    def __init__(self) -> None:
        self.states: dict[Key, PartitionSummary] = {}
        self.fails: dict[int, ErrorCode] = {}
        self.holds = False
        self.requests: list[tuple[object, ...]] = []
        self._held: list[Callable[[], None]] = []

    def release(self) -> None:
        held, self._held = self._held, []
        for respond in held:
            respond()

    def initialize_state(
        self,
        group_id: str,
        start_offsets: Mapping[bytes, Mapping[int, int]],
        state_epoch: int,
        callback: Callable[[ShareErrors], None],
        sliced: Sliced = at_once,
    ) -> None:
        self.requests.append(("initialize", group_id, state_epoch, [dict(one) for one in start_offsets.values()]))
        for topic_id, offsets in start_offsets.items():
            for index, offset in offsets.items():
                if index not in self.fails:
                    state = PartitionSummary(start_offset=offset, state_epoch=state_epoch, delivery_complete_count=0)
                    self.states[group_id, topic_id, index] = state
        self._respond(lambda: callback(self._errors({one: [*those] for one, those in start_offsets.items()})))

    def delete_state(
        self,
        group_id: str,
        partitions: Mapping[bytes, Sequence[int]],
        callback: Callable[[ShareErrors], None],
        sliced: Sliced = at_once,
    ) -> None:
        self.requests.append(("delete", group_id, [list(one) for one in partitions.values()]))
        for topic_id, indexes in partitions.items():
            for index in indexes:
                if index not in self.fails:
                    self.states.pop((group_id, topic_id, index), None)
        self._respond(lambda: callback(self._errors(partitions)))

    def read_summary(
        self,
        group_id: str,
        partitions: Mapping[bytes, Sequence[int]],
        callback: Callable[[ShareSummaries], None],
        sliced: Sliced = at_once,
    ) -> None:
        found = {
            topic_id: {
                index: PartitionSummary(self.fails[index])
                if index in self.fails
                else self.states.get((group_id, topic_id, index), PartitionSummary())
                for index in indexes
            }
            for topic_id, indexes in partitions.items()
        }
        self._respond(lambda: callback(found))

    def _errors(self, partitions: Mapping[bytes, Sequence[int]]) -> ShareErrors:
        return {
            one: {index: self.fails.get(index, ErrorCode.NONE) for index in those} for one, those in partitions.items()
        }

    def _respond(self, respond: Callable[[], None]) -> None:
        if self.holds:
            self._held.append(respond)
        else:
            respond()


class ShareMember:
    """A member of a share group."""

    def __init__(
        self,
        broker: VirtualBroker,
        member_id: str = "member",
        *,
        group_id: str = "group",
        topics: Sequence[str] = ("t",),
        client: Client | None = None,
    ) -> None:
        self.broker = broker
        self.client = client or broker.client()
        self.group_id = group_id
        self.member_id = member_id
        self.topics = list(topics)
        self.epoch = 0
        self.assigned: dict[bytes, list[int]] = {}  # by the last response with an assignment

    @property
    def partitions(self) -> dict[str, list[int]]:
        topics = self.broker.broker.cluster.topics_by_id
        return {topics[topic_id].name: those for topic_id, those in self.assigned.items() if topic_id in topics}

    def heartbeat(self, **fields: Any) -> Any:
        """Send a heartbeat with `fields`, and apply the response."""
        known: dict[str, Any] = {"group_id": self.group_id, "member_id": self.member_id, "member_epoch": self.epoch}
        response = self.client.call(ShareGroupHeartbeatRequest(**(known | fields)), 1)
        if not response.error_code:
            self.epoch = response.member_epoch
            if response.assignment is not None:
                self.assigned = {one.topic_id: one.partitions for one in response.assignment.topic_partitions}
        return response

    def join(self, **fields: Any) -> Any:
        return self.heartbeat(**({"member_epoch": 0, "subscribed_topic_names": self.topics} | fields))

    def leave(self) -> Any:
        return self.heartbeat(member_epoch=-1)


def share_group(broker: VirtualBroker) -> ShareGroup:
    group = broker.broker.groups.groups["group"]
    assert isinstance(group, ShareGroup), group
    return group
