"""A consumer group under all member actions, in virtual time.

No partition ever has two owners, no epoch decreases, and in the end every member has its target assignment. A member
owns a partition from the response that assigns it until its heartbeat revokes it, unless its session expired or it was
fenced.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup, ConsumerState
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.virtual_broker import VirtualBroker

SESSION_MS, REBALANCE_MS = 45_000, 20_000
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
TOPICS = ("t", "u", "v")
MAX_MEMBERS = 4
MAX_PARTITIONS = 6


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, ConsumerMember] = {}
        self.ids = 0
        self.epochs: dict[str, int] = {}
        self.group_epochs = (0, 0)

    @initialize(interval_ms=st.sampled_from([0, 1000]), assignor=st.sampled_from(["uniform", "range"]))
    def start(self, interval_ms: int, assignor: str) -> None:
        at_once = AT_ONCE.partition("=")[0]
        self.broker = VirtualBroker(
            f"{at_once}={interval_ms}",
            f"group.consumer.assignors={assignor}",
            "connections.max.idle.ms=-1",  # a member may be silent for long and then send a request
        )
        self.admin = self.broker.client()
        self.broker.topic("t", 3)
        self.join({"t"}, False)

    # -- what members do -----------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.members) < MAX_MEMBERS)
    @rule(topics=st.sets(st.sampled_from(TOPICS)), static=st.booleans())
    def join(self, topics: set[str], static: bool) -> None:
        self.ids += 1
        member_id = f"member-{self.ids}"
        instance_id = f"instance-{self.ids}" if static else None
        self._join(self._new(member_id, instance_id, topics=sorted(topics)))

    @precondition(lambda self: len(self.members) < MAX_MEMBERS)
    @rule(regex=st.sampled_from(["t|u", "[uv]", ".*"]))
    def join_by_regex(self, regex: str) -> None:
        self.ids += 1
        self._join(self._new(f"member-{self.ids}", None, regex=regex))

    @precondition(lambda self: self.members)
    @rule(data=st.data(), clings=st.booleans())
    def heartbeat(self, data: st.DataObject, clings: bool) -> None:
        member = self._any(data)
        member.clings = clings
        self._heartbeat(member)

    @rule(data=st.data(), clinging=st.sets(st.integers(0, MAX_MEMBERS - 1)))
    def all_members_heartbeat(self, data: st.DataObject, clinging: set[int]) -> None:
        for number, member in enumerate(data.draw(st.permutations(list(self.members.values())))):
            member.clings = number in clinging
            self._heartbeat(member)
            self.no_partition_has_two_owners()

    @precondition(lambda self: self.members)
    @rule(data=st.data(), topics=st.sets(st.sampled_from(TOPICS)))
    def change_topics(self, data: st.DataObject, topics: set[str]) -> None:
        member = self._any(data)
        member.topics = sorted(topics)
        self._heard(member, member.heartbeat(subscribed_topic_names=member.topics).error_code)

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def lose_a_response(self, data: st.DataObject) -> None:
        """The member loses the response, and sends its full state again."""
        member = self._any(data)
        epoch, owned, assigned = member.epoch, {**member.owned}, {**member.assigned}
        code = member.heartbeat().error_code
        if not code:
            member.epoch, member.owned, member.assigned = epoch, owned, assigned
        self._heard(member, code)
        if member.member_id in self.members:
            again = member.heartbeat(
                rebalance_timeout_ms=REBALANCE_MS,
                subscribed_topic_names=member.topics,
                subscribed_topic_regex=member.regex,
            )
            self._heard(member, again.error_code)

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
        static = [member for member in self.members.values() if member.instance_id]
        member = data.draw(st.sampled_from(static))
        code = member.leave(-2).error_code
        self._forget(member)
        if not code:
            self.ids += 1
            self._join(self._new(f"member-{self.ids}", member.instance_id, topics=member.topics))

    # -- what happens around them --------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 999, 5_000, 11_000]))
    def wait(self, ms: int) -> None:
        self.broker.advance(ms)

    @precondition(lambda self: len(self.members) > 1)
    @rule(ms=st.sampled_from([REBALANCE_MS, SESSION_MS]))
    def wait_long(self, ms: int) -> None:
        """Long enough for some sessions to expire."""
        self.broker.advance(ms)

    @rule(name=st.sampled_from(TOPICS))
    def create_or_delete_topic(self, name: str) -> None:
        topic = self.broker.broker.cluster.topics.get(name)
        if topic is None:
            self.broker.topic(name, 2)
        else:
            self.broker.broker.delete_topic(topic)

    @rule(name=st.sampled_from(TOPICS), more=st.integers(1, 2))
    def add_partitions(self, name: str, more: int) -> None:
        topic = self.broker.broker.cluster.topics.get(name)
        if topic is not None and len(topic.partitions) + more <= MAX_PARTITIONS:
            wanted = CreatePartitionsTopic(name=name, count=len(topic.partitions) + more, assignments=None)
            response = self.admin.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=1000), 3)
            assert not response.results[0].error_code

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def no_partition_has_two_owners(self) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        for member in self._alive():
            for topic_id, partitions in member.owned.items():
                for partition in partitions:
                    other = owners.setdefault((topic_id, partition), member.member_id)
                    assert other == member.member_id, f"{partition} is {other}'s and {member.member_id}'s"

    @invariant()
    def no_epoch_goes_back(self) -> None:
        for member in self.members.values():
            assert member.epoch >= self.epochs.get(member.member_id, 0)
            self.epochs[member.member_id] = member.epoch
        group = self._group()
        if group is not None:
            assert group.assignment_epoch <= group.group_epoch
            assert (group.group_epoch, group.assignment_epoch) >= self.group_epochs
            self.group_epochs = (group.group_epoch, group.assignment_epoch)
            assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())

    def teardown(self) -> None:
        """Without further actions, the group converges: every subscribed partition has exactly one owner."""
        if not self.members:
            return
        # The most heartbeats that a group needs: regular expressions may be resolved, and a member may have
        # to wait twice for others.
        for _ in range(6):
            self.broker.advance(10_001)
            for member in list(self.members.values()):
                member.clings = False
                self._heartbeat(member)
        group = self._group()
        if group is None or not self.members:
            return
        assert group.state is ConsumerState.STABLE
        cluster = self.broker.broker.cluster
        had = [
            (topic_id, partition)
            for member in self.members.values()
            for topic_id, partitions in member.owned.items()
            for partition in partitions
        ]
        wanted = {
            (topic.topic_id, partition.index)
            for topic in group.subscribed_topics(cluster)
            for partition in topic.partitions
        }
        assert len(had) == len(set(had))
        assert set(had) == wanted
        for member in self.members.values():
            assert member.owned == group.target.get(member.member_id, {})

    # -- how -----------------------------------------------------------------------------------------------------------

    def _new(
        self, member_id: str, instance_id: str | None, *, topics: list[str] | None = None, regex: str | None = None
    ) -> ConsumerMember:
        return ConsumerMember(
            self.broker,
            member_id,
            topics=topics,
            regex=regex,
            instance_id=instance_id,
            rebalance_timeout_ms=REBALANCE_MS,
        )

    def _any(self, data: st.DataObject) -> ConsumerMember:
        return data.draw(st.sampled_from(list(self.members.values())))

    def _join(self, member: ConsumerMember) -> None:
        code = member.join().error_code
        assert not code, f"{member.member_id}: {ErrorCode(code).name}"
        self.members[member.member_id] = member
        self._heard(member, code)

    def _heartbeat(self, member: ConsumerMember) -> None:
        self._heard(member, member.heartbeat().error_code)

    def _heard(self, member: ConsumerMember, code: int) -> None:
        if code:
            assert code in FENCED, ErrorCode(code).name
            self._forget(member)

    def _forget(self, member: ConsumerMember) -> None:
        self.members.pop(member.member_id)
        self.epochs.pop(member.member_id, None)

    def _alive(self) -> list[ConsumerMember]:
        """Return the members that are not fenced; one that clings to revoked partitions may be, without knowing it."""
        group = self._group()
        known = {} if group is None else group.members
        return [member for member in self.members.values() if member.member_id in known]

    def _group(self) -> ConsumerGroup | None:
        group = self.broker.broker.groups.groups.get("group")
        assert group is None or isinstance(group, ConsumerGroup)
        return group


ConsumerGroupMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestConsumerGroup = ConsumerGroupMachine.TestCase
