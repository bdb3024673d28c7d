"""A Streams group under all member actions, in virtual time.

No active task ever has two owners, no two members of a process have the same task, no epoch decreases, and in the end
every member has its target assignment. A member owns a task from the response that assigns it until its heartbeat gives
it up, unless its session expired or it was fenced.
"""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from sluice.broker.coordinator.group.streams.group import StreamsGroup, StreamsState
from sluice.broker.coordinator.group.streams.member import Task
from sluice.protocol.apis.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from sluice.protocol.errors import ErrorCode
from tests.property.group_machine import MOST_MEMBERS, SESSION_MS, GroupMachine
from tests.support.coordinators import reload_groups
from tests.support.streams_groups import StreamsMember
from tests.support.virtual_broker import VirtualBroker

REBALANCE_MS = 60_000
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
MAX_PARTITIONS = 5
STATEFUL = {("1", index) for index in range(3)}
TOPOLOGY = Topology(
    subtopologies=[
        Subtopology(subtopology_id="0", source_topics=["t"]),
        Subtopology(subtopology_id="1", source_topics=["u"], state_changelog_topics=[TopicInfo(name="c")]),
    ]
)


class StreamsGroupMachine(GroupMachine[StreamsMember, StreamsGroup]):
    KIND = StreamsGroup

    @initialize(delay_ms=st.sampled_from([0, 3_000]), interval_ms=st.sampled_from([0, 1_000]))
    def start(self, delay_ms: int, interval_ms: int) -> None:
        self.broker = VirtualBroker(
            f"group.streams.initial.rebalance.delay.ms={delay_ms}",
            f"group.streams.assignment.interval.ms={interval_ms}",
            "connections.max.idle.ms=-1",  # a member may be silent for long and then send a request
        )
        self.admin = self.broker.client()
        self.broker.topic("t", 2)
        self.broker.topic("u", len(STATEFUL))
        self.join("p", False)

    # -- what members do -----------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.members) < MOST_MEMBERS)
    @rule(process=st.sampled_from("pqr"), static=st.booleans())
    def join(self, process: str, static: bool) -> None:
        self.ids += 1
        self._join(self._new(process, f"instance-{self.ids}" if static else None))

    @precondition(lambda self: self.members)
    @rule(data=st.data())
    def silent_heartbeat(self, data: st.DataObject) -> None:
        """A heartbeat between changes contains no tasks."""
        member = self._any(data)
        self._heard(member, member.send().error_code)

    @precondition(lambda self: any(member.instance_id is None for member in self.members.values()))
    @rule(data=st.data())
    def lose_a_response(self, data: st.DataObject) -> None:
        """A member loses a response, repeats the heartbeat, and rejoins: as in Kafka, tasks are not sent again."""
        member = self._any(data, [member for member in self.members.values() if member.instance_id is None])
        before = member.epoch, member.owned, member.assigned
        code = member.heartbeat().error_code
        self._heard(member, code)
        if not code:
            member.epoch, member.owned, member.assigned = before
            self._heard(member, member.heartbeat().error_code)
        if member.member_id in self.members:
            assert not member.join().error_code

    # -- what happens around them --------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.members) > 1)
    @rule(ms=st.sampled_from([REBALANCE_MS, SESSION_MS]))
    def wait_long(self, ms: int) -> None:
        """Long enough for some sessions to expire."""
        self.broker.advance(ms)

    @rule(replicas=st.integers(0, 2))
    def set_standby_replicas(self, replicas: int) -> None:
        self.broker.broker.cluster.group_configs.configure("group", {"streams.num.standby.replicas": str(replicas)})

    @rule()
    def create_or_delete_topic(self) -> None:
        topic = self.broker.broker.cluster.topics.get("t")
        if topic is None:
            self.broker.topic("t", MAX_PARTITIONS)  # with fewer, reported tasks would be rejected
        else:
            self.broker.broker.delete_topic(topic)

    @rule()
    def add_partition(self) -> None:
        self._add_partitions("t", 1, MAX_PARTITIONS)

    @rule()
    def reload(self) -> None:
        reload_groups(self.broker)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def nothing_has_two_owners(self) -> None:
        active: dict[Task, str] = {}
        in_process: dict[tuple[str, Task], str] = {}
        for member in self._alive():
            for task in member.owned.active:
                other = active.setdefault(task, member.member_id)
                assert other == member.member_id, f"{task} is {other}'s and {member.member_id}'s"
            for task in frozenset().union(*member.owned):
                other = in_process.setdefault((member.process_id, task), member.member_id)
                assert other == member.member_id, f"{task} is {other}'s and {member.member_id}'s in one process"

    def teardown(self) -> None:
        """Without further actions, the group converges."""
        # The most heartbeats that a group needs: topics are created, and a member may have to wait twice for others.
        for _ in range(8):
            self.broker.advance(10_001)
            for member in list(self.members.values()):
                self._heartbeat(member, False)
        group = self._group()
        if group is None or not self.members or len(group.members) > len(self.members):
            return
        topic = self.broker.broker.cluster.topics.get("t")
        if topic is None:
            assert group.state is StreamsState.NOT_READY
            assert not any(any(member.owned) for member in self.members.values())
            return
        assert group.state is StreamsState.STABLE
        for member in self.members.values():
            assert member.owned == group.target[member.member_id]
        active = Counter(task for member in self.members.values() for task in member.owned.active)
        assert active == Counter({("0", index) for index in range(len(topic.partitions))} | STATEFUL)
        standby = Counter(task for member in self.members.values() for task in member.owned.standby)
        processes = {member.process_id for member in self.members.values()}
        configs = self.broker.broker.cluster.group_configs.in_force("group")
        replicas = min(configs.integer("streams.num.standby.replicas"), len(processes) - 1)
        assert standby == Counter({task: replicas for task in STATEFUL if replicas})

    # -- how -----------------------------------------------------------------------------------------------------------

    def _new(self, process: str, instance_id: str | None) -> StreamsMember:
        return StreamsMember(
            self.broker, self._member_id, topology=TOPOLOGY, process_id=process, instance_id=instance_id
        )

    def _successor(self, member: StreamsMember) -> StreamsMember:
        return self._new(member.process_id, member.instance_id)

    def _group_is_deleted(self) -> None:
        self.group_epochs = (0, 0)

    def _is_fenced(self, code: int) -> bool:
        return code in FENCED or (code == ErrorCode.GROUP_ID_NOT_FOUND and self._group() is None)


StreamsGroupMachine.TestCase.settings = settings(max_examples=2 * settings().max_examples // 5, stateful_step_count=30)
TestStreamsGroup = StreamsGroupMachine.TestCase
