"""A share group (KIP-932): members, epochs, target assignment, and initialized partitions. Follows Kafka's ShareGroup.

The epochs are those of consumer groups (consumer/group.py). A member changes to a new target at once, because members
share partitions. The group is Stable while it has members, else Empty.
"""

import msgspec

from sluice.broker.controller.cluster import Cluster
from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.assignors.spec import Assignment
from sluice.broker.coordinator.group.consumer.metadata_hash import metadata_hash
from sluice.broker.coordinator.group.group import SHARE, Commit
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.broker.metadata.topic import Topic
from sluice.protocol.errors import ErrorCode

from .member import ShareMember
from .records import group_tombstones
from .state_partitions import StatePartitions

_EMPTY, _STABLE = "Empty", "Stable"


class ShareGroup(msgspec.Struct, eq=False):
    group_id: str
    group_epoch: int = 1
    assignment_epoch: int = 1
    assignment_timestamp_ms: int = 0  # wall clock; 0: the next assignment may be computed at once
    metadata_hash: int = 0  # at the last change of the group epoch
    members: dict[str, ShareMember] = {}  # in the order they joined
    target: dict[str, Assignment] = {}  # by member id
    partitions: StatePartitions | None = None  # None: never initialized any
    sessions: dict[str, GroupTimer] = {}  # by member id

    type = SHARE
    listed_protocol_type = SHARE

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return _STABLE if self.members else _EMPTY

    @property
    def generation(self) -> int:
        return self.group_epoch

    @property
    def is_empty(self) -> bool:
        return not self.members

    def commit_error(self, commit: Commit) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def offset_delete_error(self) -> ErrorCode:
        return ErrorCode.GROUP_ID_NOT_FOUND

    def delete_error(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        return topic in self.subscribed_topic_names()

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        return None  # it has no committed offsets

    def tombstones(self) -> list[KeyValue]:
        return group_tombstones(self.group_id, self.members)

    def cancel_timers(self) -> None:
        for timer in self.sessions.values():
            timer.cancel()
        self.sessions.clear()

    # -- members and subscriptions -------------------------------------------------------------------------------------

    def remove(self, member_id: str) -> None:
        del self.members[member_id]
        self.target.pop(member_id, None)
        self.cancel_session(member_id)

    def cancel_session(self, member_id: str) -> None:
        timer = self.sessions.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def subscribed_topic_names(self) -> set[str]:
        return {name for member in self.members.values() for name in member.subscribed_topic_names}

    def subscribed_topics(self, cluster: Cluster) -> list[Topic]:
        names = sorted(self.subscribed_topic_names())
        return [topic for name in names if (topic := cluster.topics.get(name)) is not None]

    def current_metadata_hash(self, cluster: Cluster) -> int:
        return metadata_hash(self.subscribed_topics(cluster), cluster.racks)

    @property
    def is_homogeneous(self) -> bool:
        return len({member.subscribed_topic_names for member in self.members.values()}) <= 1

    def has_unassigned_partitions(self) -> bool:
        """Return whether the target lacks an initialized partition of a subscribed topic."""
        if self.partitions is None:
            return False
        assigned: dict[bytes, set[int]] = {}
        for target in self.target.values():
            for topic_id, partitions in target.items():
                assigned.setdefault(topic_id, set()).update(partitions)
        subscribed = self.subscribed_topic_names()
        return any(
            state.name in subscribed and assigned.get(topic_id, set()) != state.partitions
            for topic_id, state in self.partitions.initialized.items()
        )
