"""A consumer group under all member actions, in virtual time.

No partition ever has two owners, no epoch decreases, and in the end every member has its target assignment. A member
owns a partition from the response that assigns it until its heartbeat revokes it, unless its session expired or it was
fenced.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup, ConsumerState
from sluice.protocol.errors import ErrorCode
from tests.property.group_machine import SESSION_MS, GroupMachine
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.virtual_broker import VirtualBroker

REBALANCE_MS = 20_000
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND}
TOPICS = ("t", "u", "v")
MAX_MEMBERS = 4
MAX_PARTITIONS = 6


class ConsumerGroupMachine(GroupMachine[ConsumerMember, ConsumerGroup]):
    KIND = ConsumerGroup

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
        self._join(self._new(f"instance-{self.ids}" if static else None, topics=sorted(topics)))

    @precondition(lambda self: len(self.members) < MAX_MEMBERS)
    @rule(regex=st.sampled_from(["t|u", "[uv]", ".*"]))
    def join_by_regex(self, regex: str) -> None:
        self.ids += 1
        self._join(self._new(None, regex=regex))

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

    # -- what happens around them --------------------------------------------------------------------------------------

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
        self._add_partitions(name, more, MAX_PARTITIONS)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def nothing_has_two_owners(self) -> None:
        owners: dict[tuple[bytes, int], str] = {}
        for member in self._alive():
            for topic_id, partitions in member.owned.items():
                for partition in partitions:
                    other = owners.setdefault((topic_id, partition), member.member_id)
                    assert other == member.member_id, f"{partition} is {other}'s and {member.member_id}'s"

    def teardown(self) -> None:
        """Without further actions, the group converges: every subscribed partition has exactly one owner."""
        if not self.members:
            return
        # The most heartbeats that a group needs: regular expressions may be resolved, and a member may have
        # to wait twice for others.
        for _ in range(6):
            self.broker.advance(10_001)
            for member in list(self.members.values()):
                self._heartbeat(member, False)
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
        self, instance_id: str | None, *, topics: list[str] | None = None, regex: str | None = None
    ) -> ConsumerMember:
        return ConsumerMember(
            self.broker,
            self._member_id,
            topics=topics,
            regex=regex,
            instance_id=instance_id,
            rebalance_timeout_ms=REBALANCE_MS,
        )

    def _successor(self, member: ConsumerMember) -> ConsumerMember:
        return self._new(member.instance_id, topics=member.topics)

    def _is_fenced(self, code: int) -> bool:
        return code in FENCED


ConsumerGroupMachine.TestCase.settings = settings(max_examples=2 * settings().max_examples // 5, stateful_step_count=30)
TestConsumerGroup = ConsumerGroupMachine.TestCase
