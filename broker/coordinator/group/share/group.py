"""A share group (KIP-932): members, epochs, target assignment, and initialized partitions. Follows Kafka's ShareGroup.

A member changes to a new target at once, because members share partitions.
"""

from msgspec import field

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.broker.coordinator.group.consumer.metadata_hash import metadata_hash
from sluice.broker.coordinator.group.group import SHARE, Commit
from sluice.broker.coordinator.group.modern_group import ModernGroup, TimerKind, existing_names
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode

from .member import ShareMember
from .records import group_tombstones
from .state_partitions import StatePartitions

_EMPTY, _STABLE = "Empty", "Stable"


class ShareGroup(ModernGroup[ShareMember]):
    target: dict[str, Assignment] = field(default_factory=dict)
    partitions: StatePartitions | None = None  # None: never initialized any

    type = SHARE
    listed_protocol_type = SHARE

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return _STABLE if self.members else _EMPTY

    def commit_error(self, commit: Commit) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.NONE  # as for a missing group: no partition has a committed offset

    def offset_delete_error(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def is_subscribed_to(self, topic: str) -> bool:
        return any(topic in member.subscribed_topic_names for member in self.members.values())

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return None  # it has no committed offsets

    def tombstones(self) -> list[KeyValue]:
        return group_tombstones(self.group_id, self.members)

    # -- members and subscriptions -------------------------------------------------------------------------------------

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self.target.pop(member_id, None)
        self.cancel_timer(TimerKind.SESSION, member_id)

    def subscribed_topics(self, cluster: Cluster) -> list[Topic]:
        names = set().union(*(existing_names(cluster.topics, one) for one in self.subscriptions()))
        return [cluster.topics[name] for name in sorted(names)]

    def current_metadata_hash(self, cluster: Cluster) -> int:
        return metadata_hash(self.subscribed_topics(cluster), cluster.racks)

    def subscriptions(self) -> set[frozenset[str]]:
        return {member.subscribed_topic_names for member in self.members.values()}

    @property
    def is_homogeneous(self) -> bool:
        return len(self.subscriptions()) <= 1

    def has_unassigned_partitions(self) -> bool:
        if self.partitions is None:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        return any(
            self.is_subscribed_to(state.name) and assigned.get(topic_id, set()) != state.partitions
            for topic_id, state in self.partitions.initialized.items()
        )
