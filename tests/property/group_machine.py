"""The actions that members of every group with heartbeats have in common, and the invariants of their epochs."""

from collections.abc import Iterable
from typing import Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.streams.group import StreamsGroup
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import ConsumerMember
from tests.support.streams_groups import StreamsMember
from tests.support.virtual_broker import Client, VirtualBroker

M = TypeVar("M", ConsumerMember, StreamsMember)
G = TypeVar("G", ConsumerGroup, StreamsGroup)
SESSION_MS = 45_000
MOST_MEMBERS = 5


class GroupMachine(RuleBasedStateMachine, Generic[M, G]):
    """Members of one group, of which a subclass starts the broker and joins the members."""

    KIND: type[G]
    broker: VirtualBroker
    admin: Client

    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, M] = {}
        self.ids = 0
        self.epochs: dict[str, int] = {}
        self.group_epochs = (0, 0)

    # -- what members do -----------------------------------------------------------------------------------------------

    @precondition(lambda self: self.members)
    @rule(data=st.data(), clings=st.booleans())
    def heartbeat(self, data: st.DataObject, clings: bool) -> None:
        self._heartbeat(self._any(data), clings)

    @rule(data=st.data(), clinging=st.sets(st.integers(0, MOST_MEMBERS - 1)))
    def all_members_heartbeat(self, data: st.DataObject, clinging: set[int]) -> None:
        for number, member in enumerate(data.draw(st.permutations(list(self.members.values())))):
            self._heartbeat(member, number in clinging)
            self.nothing_has_two_owners()

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        member = self._any(data)
        member.leave()
        self._forget(member)

    @precondition(lambda self: any(member.instance_id for member in self.members.values()))
    @rule(data=st.data())
    def restart_static(self, data: st.DataObject) -> None:
        """A static member leaves temporarily and returns with another member id."""
        member = self._any(data, [member for member in self.members.values() if member.instance_id])
        code = member.leave(-2).error_code
        self._forget(member)
        if not code:
            self.ids += 1
            self._join(self._successor(member))

    @rule(ms=st.sampled_from([1, 999, 5_000, 11_000]))
    def wait(self, ms: int) -> None:
        self.broker.advance(ms)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def nothing_has_two_owners(self) -> None:
        raise NotImplementedError

    @invariant()
    def no_epoch_goes_back(self) -> None:
        for member in self.members.values():
            assert member.epoch >= self.epochs.get(member.member_id, 0)
            self.epochs[member.member_id] = member.epoch
        group = self._group()
        if group is None:
            self._group_is_deleted()
            return
        assert group.assignment_epoch <= group.group_epoch
        assert (group.group_epoch, group.assignment_epoch) >= self.group_epochs
        self.group_epochs = (group.group_epoch, group.assignment_epoch)
        assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())

    # -- how -----------------------------------------------------------------------------------------------------------

    @property
    def _member_id(self) -> str:
        """The id of the newest member."""
        return f"member-{self.ids}"

    def _successor(self, member: M) -> M:
        """Return a member with the instance id of a former one."""
        raise NotImplementedError

    def _group_is_deleted(self) -> None:
        """A subclass overrides it if the next group of this name has lower epochs."""

    def _is_fenced(self, code: int) -> bool:
        """Return whether an error fences a member."""
        raise NotImplementedError

    def _any(self, data: st.DataObject, members: Iterable[M] | None = None) -> M:
        return data.draw(st.sampled_from(list(self.members.values() if members is None else members)))

    def _join(self, member: M) -> None:
        code = member.join().error_code
        assert not code, f"{member.member_id}: {ErrorCode(code).name}"
        self.members[member.member_id] = member

    def _heartbeat(self, member: M, clings: bool) -> None:
        member.clings = clings
        self._heard(member, member.heartbeat().error_code)

    def _heard(self, member: M, code: int) -> None:
        if code:
            assert self._is_fenced(code), ErrorCode(code).name
            self._forget(member)

    def _forget(self, member: M) -> None:
        self.members.pop(member.member_id)
        self.epochs.pop(member.member_id, None)

    def _alive(self) -> list[M]:
        """Return the members that are not fenced; one that clings to revoked partitions may be, without knowing it."""
        group = self._group()
        known = {} if group is None else group.members
        return [member for member in self.members.values() if member.member_id in known]

    def _group(self) -> G | None:
        """Return the group; None if it was deleted because it was empty for a long time."""
        group = self.broker.broker.groups.groups.get("group")
        assert group is None or isinstance(group, self.KIND)
        return group

    def _add_partitions(self, topic: str, count: int, most: int) -> None:
        """Add partitions to an existing topic, up to a number of partitions."""
        found = self.broker.broker.cluster.topics.get(topic)
        if found is not None and len(found.partitions) + count <= most:
            wanted = CreatePartitionsTopic(name=topic, count=len(found.partitions) + count, assignments=None)
            response = self.admin.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=1000), 3)
            assert not response.results[0].error_code
