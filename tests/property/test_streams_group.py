"""A Streams group under all member actions, in virtual time.

No active task ever has two owners, no two members of a process have the same task, no epoch decreases, and in the end
every member has its target assignment. A member owns a task from the response that assigns it until its heartbeat gives
it up, unless its session expired or it was fenced.
"""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sluice.broker.coordinator.group.streams.group import StreamsGroup, StreamsState
from sluice.broker.coordinator.group.streams.tasks import Task
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.streams_group_heartbeat import Subtopology, TopicInfo, Topology
from sluice.protocol.errors import ErrorCode
from tests.support.coordinators import reload_groups
from tests.support.streams_groups import StreamsMember
from tests.support.virtual_broker import VirtualBroker

SESSION_MS, REBALANCE_MS = 45_000, 60_000
FENCED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
MAX_MEMBERS = 5
MAX_PARTITIONS = 5
STATEFUL = {("1", index) for index in range(3)}
TOPOLOGY = Topology(
    subtopologies=[
        Subtopology(subtopology_id="0", source_topics=["t"]),
        Subtopology(subtopology_id="1", source_topics=["u"], state_changelog_topics=[TopicInfo(name="c")]),
    ]
)


class StreamsGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.members: dict[str, StreamsMember] = {}
        self.ids = 0
        self.epochs: dict[str, int] = {}
        self.group_epochs = (0, 0)

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

    @precondition(lambda self: len(self.members) < MAX_MEMBERS)
    @rule(process=st.sampled_from("pqr"), static=st.booleans())
    def join(self, process: str, static: bool) -> None:
        self.ids += 1
        self._join(process, f"instance-{self.ids}" if static else None)

    @precondition(lambda self: self.members)
    @rule(data=st.data(), clings=st.booleans())
    def heartbeat(self, data: st.DataObject, clings: bool) -> None:
        member = self._any(data)
        member.clings = clings
        self._heard(member, member.heartbeat().error_code)

    @rule(data=st.data(), clinging=st.sets(st.integers(0, MAX_MEMBERS - 1)))
    def all_members_heartbeat(self, data: st.DataObject, clinging: set[int]) -> None:
        for number, member in enumerate(data.draw(st.permutations(list(self.members.values())))):
            member.clings = number in clinging
            self._heard(member, member.heartbeat().error_code)
            self.no_task_has_two_owners()

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
        dynamic = [member for member in self.members.values() if member.instance_id is None]
        member = data.draw(st.sampled_from(dynamic))
        before = member.epoch, member.owned, member.assigned
        code = member.heartbeat().error_code
        self._heard(member, code)
        if not code:
            member.epoch, member.owned, member.assigned = before
            self._heard(member, member.heartbeat().error_code)
        if member.member_id in self.members:
            assert not member.join().error_code

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
            self._join(member.process_id, member.instance_id)

    # -- what happens around them --------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([1, 999, 5_000, 11_000]))
    def wait(self, ms: int) -> None:
        self.broker.advance(ms)

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
        topic = self.broker.broker.cluster.topics.get("t")
        if topic is not None and len(topic.partitions) < MAX_PARTITIONS:
            wanted = CreatePartitionsTopic(name="t", count=len(topic.partitions) + 1, assignments=None)
            response = self.admin.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=1000), 3)
            assert not response.results[0].error_code

    @rule()
    def reload(self) -> None:
        reload_groups(self.broker)

    # -- what always holds ---------------------------------------------------------------------------------------------

    @invariant()
    def no_task_has_two_owners(self) -> None:
        active: dict[Task, str] = {}
        in_process: dict[tuple[str, Task], str] = {}
        for member in self._alive():
            for task in member.owned.active:
                other = active.setdefault(task, member.member_id)
                assert other == member.member_id, f"{task} is {other}'s and {member.member_id}'s"
            for task in frozenset().union(*member.owned):
                other = in_process.setdefault((member.process_id, task), member.member_id)
                assert other == member.member_id, f"{task} is {other}'s and {member.member_id}'s in one process"

    @invariant()
    def no_epoch_goes_back(self) -> None:
        for member in self.members.values():
            assert member.epoch >= self.epochs.get(member.member_id, 0)
            self.epochs[member.member_id] = member.epoch
        group = self._group()
        if group is None:
            self.group_epochs = (0, 0)
            return
        assert group.assignment_epoch <= group.group_epoch
        assert (group.group_epoch, group.assignment_epoch) >= self.group_epochs
        self.group_epochs = (group.group_epoch, group.assignment_epoch)
        assert all(member.member_epoch <= group.assignment_epoch for member in group.members.values())

    def teardown(self) -> None:
        """Without further actions, the group converges."""
        # The most heartbeats that a group needs: topics are created, and a member may have to wait twice for others.
        for _ in range(8):
            self.broker.advance(10_001)
            for member in list(self.members.values()):
                member.clings = False
                self._heard(member, member.heartbeat().error_code)
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

    def _any(self, data: st.DataObject) -> StreamsMember:
        return data.draw(st.sampled_from(list(self.members.values())))

    def _join(self, process: str, instance_id: str | None) -> None:
        member_id = f"member-{self.ids}"
        member = StreamsMember(self.broker, member_id, topology=TOPOLOGY, process_id=process, instance_id=instance_id)
        code = member.join().error_code
        assert not code, f"{member_id}: {ErrorCode(code).name}"
        self.members[member_id] = member

    def _heard(self, member: StreamsMember, code: int) -> None:
        if code:
            is_gone = code == ErrorCode.GROUP_ID_NOT_FOUND and self._group() is None
            assert code in FENCED or is_gone, ErrorCode(code).name
            self._forget(member)

    def _forget(self, member: StreamsMember) -> None:
        self.members.pop(member.member_id)
        self.epochs.pop(member.member_id, None)

    def _alive(self) -> list[StreamsMember]:
        """Return the members that are not fenced."""
        group = self._group()
        known = {} if group is None else group.members
        return [member for member in self.members.values() if member.member_id in known]

    def _group(self) -> StreamsGroup | None:
        """Return the group; None if it was deleted because it was empty for a long time."""
        group = self.broker.broker.groups.groups.get("group")
        assert group is None or isinstance(group, StreamsGroup)
        return group


StreamsGroupMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=30)
TestStreamsGroup = StreamsGroupMachine.TestCase
