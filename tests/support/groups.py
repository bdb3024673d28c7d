"""Classic groups for tests: members on separate connections, and a group that exists from the start."""

from typing import Any

from sluice.broker.coordinator.group.classic import group as classic
from sluice.broker.coordinator.group.classic.member import ClassicMember
from sluice.protocol.apis import offset_fetch as api
from sluice.protocol.apis.heartbeat import HeartbeatRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.virtual_broker import VirtualBroker

SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    """Return the metadata of a consumer: version 0, these topics, no user data."""
    names = b"".join(len(topic).to_bytes(2) + topic.encode() for topic in topics)
    return b"\0\0" + len(topics).to_bytes(4) + names + (-1).to_bytes(4, signed=True)


def protocol(name: str = "range", metadata: bytes | None = None) -> JoinGroupRequestProtocol:
    """Return a protocol of a member; by default it subscribes to topic "t"."""
    return JoinGroupRequestProtocol(name=name, metadata=subscription("t") if metadata is None else metadata)


def stable_group(broker: VirtualBroker, group_id: str = "group") -> classic.ClassicGroup:
    """Return a stable group in generation 1 with one member."""
    group = broker.broker.groups.create_classic(group_id)
    group.add(ClassicMember("member", None, "client", "/127.0.0.1", REBALANCE_MS, SESSION_MS, "consumer", [protocol()]))
    group.transition_to(classic.PREPARING_REBALANCE, 0)
    group.begin_generation(0)
    assert group.state is classic.COMPLETING_REBALANCE
    group.transition_to(classic.STABLE, 0)
    return group


def classic_group(broker: VirtualBroker, group_id: str = "group") -> classic.ClassicGroup:
    group = broker.broker.groups.groups[group_id]
    assert isinstance(group, classic.ClassicGroup)
    return group


class Member:
    """A member of a group on its own connection. It applies member id and generation of the responses."""

    def __init__(
        self,
        broker: VirtualBroker,
        group_id: str = "group",
        *,
        version: int = 9,
        instance_id: str | None = None,
        client_id: str = "client",
    ) -> None:
        self.client = broker.client(client_id)
        self.group_id = group_id
        self.version = version  # of JoinGroup
        self.instance_id = instance_id
        self.member_id = ""
        self.generation_id = -1
        self.leads = False

    def _identity(self) -> dict[str, Any]:
        return {"group_id": self.group_id, "member_id": self.member_id, "group_instance_id": self.instance_id}

    def join_request(self, *protocols: JoinGroupRequestProtocol, **fields: Any) -> JoinGroupRequest:
        """Return a join request; the default protocol is "range"."""
        known: dict[str, Any] = {
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": list(protocols) or [protocol()],
        }
        return JoinGroupRequest(**(self._identity() | known | fields))

    def send_join(self, *protocols: JoinGroupRequestProtocol, **fields: Any) -> None:
        """Send a join request, and another one with the returned member id; its response comes when the round ends."""
        self.client.send(self.join_request(*protocols, **fields), self.version)
        if self.version >= 4 and not self.member_id and self.instance_id is None:
            self.member_id = self.client.response().message.member_id
            self.client.send(self.join_request(*protocols, **fields), self.version)

    def joined(self) -> Any:
        """Return the response to the join request, which has arrived."""
        response = self.client.response().message
        if not response.error_code:
            self.member_id, self.generation_id = response.member_id, response.generation_id
            self.leads = response.leader == response.member_id
        return response

    def sync_request(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> SyncGroupRequest:
        """Return a sync request, with all assignments if it is the leader."""
        known: dict[str, Any] = {
            "generation_id": self.generation_id,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        }
        return SyncGroupRequest(**(self._identity() | known | fields))

    def send_sync(self, assignments: dict[str, bytes] | None = None, **fields: Any) -> None:
        self.client.send(self.sync_request(assignments, **fields), 5)

    def heartbeat(self, **fields: Any) -> int:
        known = self._identity() | {"generation_id": self.generation_id}
        code: int = self.client.call(HeartbeatRequest(**(known | fields)), 4).error_code
        return code

    def leave(self) -> Any:
        identity = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance_id)
        return self.client.call(LeaveGroupRequest(group_id=self.group_id, members=[identity]), 5)

    def commit(self, offset: int = 7, **fields: Any) -> int:
        """Commit an offset in t-0 and return the error code."""
        known = self._identity() | {"generation_id_or_member_epoch": self.generation_id}
        code: int = commit_code(self.client.call(commit_request(offset, **(known | fields)), 9))
        return code


def joining_group(broker: VirtualBroker, size: int, **fields: Any) -> list[Member]:
    """Return members whose first rebalance has ended, with their join responses unread. Advances the time."""
    members = [Member(broker, **fields) for _ in range(size)]
    for member in members:
        member.send_join()
    broker.advance(10_000)  # the initial delay, at its default, three times
    return members


def joined_group(broker: VirtualBroker, size: int, **fields: Any) -> list[Member]:
    """Return the members of a group that waits for the leader's sync, the leader first. Advances the time."""
    members = joining_group(broker, size, **fields)
    for member in members:
        member.joined()
    return members


def settled_group(broker: VirtualBroker, size: int, **fields: Any) -> list[Member]:
    """Return the members of a stable group, the leader first. Advances the time."""
    members = joining_group(broker, size, **fields)
    settle_round(members)
    return members


def settle_round(members: list[Member]) -> None:
    """Sync all members after a rebalance, and check their assignments."""
    for member in members:
        assert member.joined().error_code == 0
    leader = next(member for member in members if member.leads)
    for member in members:
        if member is not leader:
            member.send_sync()
    leader.send_sync({member.member_id: member.member_id.encode() for member in members})
    for member in members:
        response = member.client.response().message
        assert (response.error_code, response.assignment) == (0, member.member_id.encode())


def delete_offsets_request(*topics: str, partition: int = 0, group_id: str = "group") -> OffsetDeleteRequest:
    """Return a request for the offsets of one partition of each topic, by default of "t"."""
    partitions = [OffsetDeleteRequestPartition(partition_index=partition)]
    requested = [OffsetDeleteRequestTopic(name=topic, partitions=partitions) for topic in topics or ("t",)]
    return OffsetDeleteRequest(group_id=group_id, topics=requested)


def commit_request(offset: int = 7, *, topic: str = "t", partition: int = 0, **fields: Any) -> OffsetCommitRequest:
    """Return a commit of one offset; by default in group "group" without a member."""
    topic_id = fields.pop("topic_id", bytes(16))
    parts = ("committed_leader_epoch", "commit_timestamp", "committed_metadata")
    own = {name: fields.pop(name) for name in parts if name in fields}
    one = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, **own)
    topics = [OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[one])]
    return OffsetCommitRequest(**({"group_id": "group", "topics": topics} | fields))


def commit_code(response: Any) -> int:
    """Return the error code of the only partition."""
    [topic] = response.topics
    [partition] = topic.partitions
    code: int = partition.error_code
    return code


def fetch_request(
    *partitions: int, version: int = 9, topic: str = "t", topic_id: bytes = bytes(16), **fields: Any
) -> api.OffsetFetchRequest:
    """Return a request for the offsets of group "group" in these partitions, by default t-0."""
    indexes = list(partitions) or [0]
    require_stable = fields.pop("require_stable", False)
    if version < 8:
        topics = [api.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)]
        known = {"group_id": "group", "topics": topics, "require_stable": require_stable}
        return api.OffsetFetchRequest(**(known | fields))
    wanted = [api.OffsetFetchRequestTopic(name=topic, topic_id=topic_id, partition_indexes=indexes)]
    group = api.OffsetFetchRequestGroup(**({"group_id": "group", "topics": wanted} | fields))
    return api.OffsetFetchRequest(groups=[group], require_stable=require_stable)


def fetched(response: Any) -> dict[tuple[str, int], tuple[int, int]]:
    """Return (offset, error code) by topic and partition, of a response of any version with one group."""
    topics = response.topics or (response.groups[0].topics if response.groups else [])
    return {
        (topic.name, one.partition_index): (one.committed_offset, one.error_code)
        for topic in topics
        for one in topic.partitions
    }
