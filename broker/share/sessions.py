"""Share sessions: the partitions that a member fetches from this broker (KIP-932).

Follows Kafka's ShareSession, ShareSessionCache and SharePartitionManager.newContext. A session has no id: group and
member identify it. It ends with a request of the final epoch, or with its connection.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sluice.broker.requests.channel import Channel
from sluice.protocol.errors import ErrorCode

INITIAL_EPOCH, FINAL_EPOCH = 0, -1
_LAST_EPOCH = 2**31 - 1

TopicIdPartition = tuple[bytes, int]
Requested = Mapping[TopicIdPartition, bool]  # distinct partitions, with whether their topics exist


class MemberKey(NamedTuple):
    group_id: str
    member_id: str


class ShareSession:
    """The partitions in order, each with whether the next response must contain it.

    As in Kafka, a partition is `unknown` until it is forgotten if its topic did not exist when it was added.
    """

    __slots__ = ("channel", "epoch", "key", "partitions", "unknown")

    def __init__(self, key: MemberKey, channel: Channel, partitions: Requested) -> None:
        self.key = key
        self.channel = channel
        self.epoch = 1
        self.partitions = dict.fromkeys(partitions, False)
        self.unknown = {one for one, exists in partitions.items() if not exists}

    def forget(self, partition: TopicIdPartition) -> None:
        self.partitions.pop(partition, None)
        self.unknown.discard(partition)

    def rotated(self) -> list[TopicIdPartition]:
        """Return the partitions, starting with another one in each epoch, so that none is preferred."""
        partitions = list(self.partitions)
        at = (self.epoch - 1) % len(partitions) if partitions else 0
        return partitions[at:] + partitions[:at]

    def must_report(self, partition: TopicIdPartition, error_code: int, *, has_records: bool) -> bool:
        """Return whether a response reports a partition; one with records becomes the last."""
        was_due = self.partitions.get(partition, True)
        if partition in self.partitions:
            if has_records:
                del self.partitions[partition]
            self.partitions[partition] = error_code != ErrorCode.NONE
        return was_due or has_records or error_code != ErrorCode.NONE


class ShareSessions:
    """The sessions of one broker, at most `most`, with at most `most_partitions` partitions in all."""

    def __init__(self, most: int, most_partitions: int) -> None:
        self._most = most
        self._most_partitions = most_partitions
        self._sessions: dict[MemberKey, ShareSession] = {}
        self._of_channels: dict[Channel, dict[MemberKey, ShareSession]] = {}
        self._members: dict[str, int] = {}  # by group, until its last connection closes
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def get(self, key: MemberKey) -> ShareSession | None:
        return self._sessions.get(key)

    def open(self, key: MemberKey, channel: Channel, partitions: Requested) -> ShareSession | ErrorCode:
        """Open the session of a member."""
        self.remove(key)
        if len(self._sessions) >= self._most or not self._has_room_for(len(partitions)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session = ShareSession(key, channel, partitions)
        self._sessions[key] = session
        self._of_channels.setdefault(channel, {})[key] = session
        self._members[key.group_id] = self._members.get(key.group_id, 0) + 1
        return session

    def _has_room_for(self, partitions: int) -> bool:
        return partitions <= 0 or self.partition_count + partitions <= self._most_partitions

    def add_partitions(self, session: ShareSession, partitions: Requested) -> ErrorCode:
        """Add partitions, some of which the session may have."""
        if not self._has_room_for(len(partitions) - len(session.partitions)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        new = dict.fromkeys((one for one in partitions if one not in session.partitions), True)
        if not self._has_room_for(len(new)):
            return ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session.partitions.update(new)
        session.unknown.update(one for one in new if not partitions[one])
        return ErrorCode.NONE

    def resume(self, key: MemberKey, epoch: int) -> ShareSession | ErrorCode:
        session = self._sessions.get(key)
        if session is None:
            return ErrorCode.SHARE_SESSION_NOT_FOUND
        if epoch == FINAL_EPOCH:
            return session
        if session.epoch != epoch:
            return ErrorCode.INVALID_SHARE_SESSION_EPOCH
        session.epoch = 1 if epoch == _LAST_EPOCH else epoch + 1
        return session

    def remove(self, key: MemberKey) -> ShareSession | None:
        session = self._sessions.pop(key, None)
        if session is not None:
            self._members[key.group_id] -= 1
        return session

    def sessions_of(self, channel: Channel) -> Iterable[ShareSession]:
        """Return the last session of each member on a connection that has closed, and forget the connection."""
        return self._of_channels.pop(channel, {}).values()

    def drop_if_empty(self, group_id: str) -> bool:
        if self._members.get(group_id):
            return False
        self._members.pop(group_id, None)
        return True
