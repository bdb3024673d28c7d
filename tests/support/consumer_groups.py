"""Consumer groups for tests: members that send heartbeats, each on its own connection."""

from collections.abc import Mapping
from typing import Any

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tests.support.virtual_broker import VirtualBroker

REBALANCE_MS = 60_000
# A new target assignment is computed without a delay.
AT_ONCE = "group.consumer.assignment.interval.ms=0"


def topic_partitions(partitions: Mapping[bytes, set[int]]) -> list[TopicPartitions]:
    return [TopicPartitions(topic_id=topic_id, partitions=sorted(those)) for topic_id, those in partitions.items()]


class ConsumerMember:
    """A member of a consumer group that behaves as a client with protocol version 1.

    `owned` has the partitions that it was assigned and has not revoked, by topic id. Its next heartbeat revokes those
    that are no longer assigned, unless it `clings`.
    """

    def __init__(
        self,
        broker: VirtualBroker,
        member_id: str = "member",
        *,
        group_id: str = "group",
        topics: list[str] | None = None,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = REBALANCE_MS,
    ) -> None:
        self.broker = broker
        self.client = broker.client()
        self.group_id = group_id
        self.member_id = member_id
        self.topics = ["t"] if topics is None and regex is None else topics
        self.regex = regex
        self.instance_id = instance_id
        self.assignor = assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        self.owned: dict[bytes, set[int]] = {}  # as in its heartbeats
        self.assigned: dict[bytes, set[int]] = {}  # by the last response
        self.clings = False

    @property
    def partitions(self) -> dict[str, set[int]]:
        """Return the owned partitions by topic name, without deleted topics."""
        topics = self.broker.broker.cluster.topics_by_id
        return {topics[topic_id].name: set(those) for topic_id, those in self.owned.items() if topic_id in topics}

    def send(self, version: int = 1, **fields: Any) -> Any:
        """Send a heartbeat with `fields`, and apply the response."""
        known: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
        }
        response = self.client.call(ConsumerGroupHeartbeatRequest(**(known | fields)), version)
        if not response.error_code:
            self.member_id, self.epoch = response.member_id, response.member_epoch
            if response.assignment is not None:
                self.assigned = {one.topic_id: set(one.partitions) for one in response.assignment.topic_partitions}
                for topic_id, partitions in self.assigned.items():
                    self.owned.setdefault(topic_id, set()).update(partitions)
        return response

    def join(self, version: int = 1, **fields: Any) -> Any:
        """Join, or rejoin without partitions."""
        self.owned, self.assigned = {}, {}
        known: dict[str, Any] = {
            "member_epoch": 0,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": self.topics,
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            "topic_partitions": [],
        }
        return self.send(version, **(known | fields))

    def heartbeat(self, **fields: Any) -> Any:
        if not self.clings:
            self.give_up()
        return self.send(**({"topic_partitions": topic_partitions(self.owned)} | fields))

    def give_up(self) -> None:
        """Revoke the partitions that are no longer assigned."""
        kept = {topic_id: those & self.assigned.get(topic_id, set()) for topic_id, those in self.owned.items()}
        self.owned = {topic_id: those for topic_id, those in kept.items() if those}

    def leave(self, epoch: int = -1) -> Any:
        """Leave; with epoch -2, temporarily."""
        return self.send(member_epoch=epoch)


def consumer_group(broker: VirtualBroker, group_id: str = "group") -> ConsumerGroup:
    group = broker.broker.groups.groups[group_id]
    assert isinstance(group, ConsumerGroup), group
    return group
