"""A classic group under all member actions in any order, in virtual time.

The model is small: the responses of each client, the next action of a correct client, and how long it has waited. It
knows nothing of rebalance rounds. After every step, the responses and the coordinator's state must satisfy the group's
invariants. Clients behave correctly often enough that every round ends.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from sluice.broker.coordinator.group.classic import group as classic
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.errors import ErrorCode
from tests.support.groups import Member, protocol, subscription
from tests.support.virtual_broker import VirtualBroker

SESSION_MS = 10_000
REBALANCE_MS = 30_000
# No round is longer: a waiting request is answered by then.
LONGEST_WAIT_MS = REBALANCE_MS
ACTORS = st.integers(0, 4)  # the first two are static members
WAYS = st.sampled_from([("range",), ("range", "sticky"), ("sticky", "range")])
TOPICS = st.sampled_from(["t", "u"])
JOIN_REFUSALS = {
    ErrorCode.MEMBER_ID_REQUIRED,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
}
SYNC_REFUSALS = {
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.FENCED_INSTANCE_ID,
    ErrorCode.REBALANCE_IN_PROGRESS,
}


class Actor:
    """A client process with at most one pending request. `next` is the next action of a correct client."""

    def __init__(self, broker: VirtualBroker, number: int, version: int) -> None:
        instance_id = f"i{number}" if number < 2 else None
        self.member = Member(broker, version=version, instance_id=instance_id)
        self.waits_since_ms: float | None = None
        self.next = "join"

    @property
    def identity(self) -> str:
        """Identity in the group, across restarts of a static member."""
        return self.member.instance_id or self.member.member_id


class ClassicGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.broker = VirtualBroker("group.initial.rebalance.delay.ms=3000", "group.max.size=4")
        self.admin = self.broker.client()
        self.actors = [Actor(self.broker, number, 9) for number in range(5)]
        self.last_generation = 0
        self.leaders: dict[int, str] = {}  # generation -> identity of its leader
        self.protocols: dict[int, set[str]] = {}  # generation -> protocols in its JoinGroup responses
        self.ids: dict[str, set[bytes]] = {}  # identity -> its member ids

    # -- what members do -----------------------------------------------------------------------------------------------

    @rule(number=ACTORS, ways=WAYS, topic=TOPICS, rebalance_ms=st.sampled_from([5_000, REBALANCE_MS]))
    def join(self, number: int, ways: tuple[str, ...], topic: str, rebalance_ms: int) -> None:
        actor = self.actors[number]
        if actor.waits_since_ms is None:
            actor.waits_since_ms = self.broker.now_ms
            protocols = [protocol(name, subscription(topic)) for name in ways]
            member = actor.member
            request = member.join_request(*protocols, session_timeout_ms=SESSION_MS, rebalance_timeout_ms=rebalance_ms)
            member.client.send(request, member.version)

    @rule(number=ACTORS)
    def sync(self, number: int) -> None:
        actor = self.actors[number]
        if actor.waits_since_ms is None:
            actor.waits_since_ms = self.broker.now_ms
            everyone = {member_id: member_id.encode() for member_id in self.member_ids()}
            if self.group is not None:
                # A static member gets its instance's assignment even if it restarted before it received its member id.
                for instance_id, member_id in self.group.static_members.items():
                    self.ids.setdefault(instance_id, set()).add(member_id.encode())
            member = actor.member
            member.client.send(member.sync_request(everyone if member.leads else {}), 4)

    @rule(number=ACTORS)
    def heartbeat(self, number: int) -> None:
        actor, group = self.actors[number], self.group
        if actor.waits_since_ms is not None:
            return
        member = actor.member
        wanted: ErrorCode
        if group is None:
            wanted = ErrorCode.UNKNOWN_MEMBER_ID
        elif (error := group.member_error(member.member_id, member.instance_id)) != ErrorCode.NONE:
            wanted = error
        elif member.generation_id != group.generation_id:
            wanted = ErrorCode.ILLEGAL_GENERATION
        else:
            wanted = classic.HEARTBEAT_ERRORS[group.state]
        assert member.heartbeat() == wanted
        if wanted:
            actor.next = "join"
            if wanted != ErrorCode.REBALANCE_IN_PROGRESS:
                member.member_id = ""

    @rule(number=ACTORS)
    def leave(self, number: int) -> None:
        member = self.actors[number].member
        identity = MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)
        was_in = self.group is not None and self.group.member_error(member.member_id, member.instance_id) == 0
        response = self.admin.call(LeaveGroupRequest(group_id="group", members=[identity]), 5)
        assert not (was_in and response.members[0].error_code)
        if was_in:
            assert member.member_id not in self.member_ids()

    @rule(number=ACTORS, version=st.sampled_from([3, 5, 9]))
    def restart(self, number: int, version: int) -> None:
        """Kill the process and start another."""
        self.actors[number].member.client.leave()
        self.actors[number] = Actor(self.broker, number, max(version, 5) if number < 2 else version)

    @rule(ms=st.sampled_from([1, 1_000, 3_000, SESSION_MS - 1, SESSION_MS, REBALANCE_MS]))
    def time_passes(self, ms: int) -> None:
        # In steps short enough that no two rounds pass between checks.
        while ms > 0:
            step = min(ms, 3_000)
            self.broker.advance(step)
            self.take_responses()
            ms -= step

    @rule(number=ACTORS)
    def behave(self, number: int) -> None:
        """Take the next action of a correct client."""
        {"join": self.join_as_usual, "sync": self.sync, "heartbeat": self.heartbeat}[self.actors[number].next](number)
        self.take_responses()

    @rule(several=st.lists(ACTORS, min_size=1, unique=True), rounds=st.integers(1, 6))
    def several_behave(self, several: list[int], rounds: int) -> None:
        """Some clients behave correctly for a while."""
        for _ in range(rounds):
            for number in several:
                self.behave(number)
            self.time_passes(1_000)

    def join_as_usual(self, number: int) -> None:
        self.join(number, ("range", "sticky"), "t", 5_000)

    # -- what must hold ------------------------------------------------------------------------------------------------

    @property
    def group(self) -> classic.ClassicGroup | None:
        group = self.broker.broker.groups.groups.get("group")
        assert group is None or isinstance(group, classic.ClassicGroup)
        return group

    def member_ids(self) -> list[str]:
        """Return the current member ids of the group."""
        return list(self.group.members) if self.group is not None else []

    @invariant()
    def take_responses(self) -> None:
        """Check that every request is answered once, within the longest wait."""
        for actor in self.actors:
            responses = actor.member.client.take_responses()
            assert len(responses) <= (actor.waits_since_ms is not None), "a response without a request"
            for response in responses:
                actor.waits_since_ms = None
                (self.joined if response.api == "JoinGroup" else self.synced)(actor, response.message)
            if actor.waits_since_ms is not None:
                waited_ms = self.broker.now_ms - actor.waits_since_ms
                assert waited_ms <= LONGEST_WAIT_MS, (
                    f"{actor.identity} has been waiting for {waited_ms} ms: {self.group}"
                )

    def joined(self, actor: Actor, response: Any) -> None:
        member = actor.member
        if response.error_code:
            assert response.error_code in JOIN_REFUSALS
            actor.next = "join"
            member.member_id = response.member_id if response.error_code == ErrorCode.MEMBER_ID_REQUIRED else ""
            return
        actor.next = "sync"
        member.member_id, member.generation_id = response.member_id, response.generation_id
        member.leads = response.leader == response.member_id
        assert response.generation_id >= self.last_generation, "the generation decreased"
        self.last_generation = response.generation_id
        self.ids.setdefault(actor.identity, set()).add(member.member_id.encode())
        protocols = self.protocols.setdefault(response.generation_id, set())
        protocols.add(response.protocol_name)
        assert len(protocols) == 1, "a generation has two protocols"
        if response.members:
            leader = self.leaders.setdefault(response.generation_id, actor.identity)
            assert leader == actor.identity, "a generation has two leaders"
            assert member.leads
            assert response.member_id in {one.member_id for one in response.members}

    def synced(self, actor: Actor, response: Any) -> None:
        if response.error_code:
            assert response.error_code in SYNC_REFUSALS
            actor.next = "join"
        else:
            actor.next = "heartbeat"
            assert response.assignment in (b"", *self.ids[actor.identity]), "the assignment of another member"

    @invariant()
    def coordinator_state_is_consistent(self) -> None:
        group, groups = self.group, self.broker.broker.groups
        if group is None:
            return
        members = group.members
        assert (group.leader_id is None) == (not members)
        assert group.leader_id is None or group.leader_id in members
        assert {one.group_instance_id: one.member_id for one in members.values() if one.is_static} == (
            group.static_members
        )
        assert not members or group.state is not classic.EMPTY
        assert len(group.awaiting_join) <= 4
        assert group.state is classic.PREPARING_REBALANCE or all(one.awaiting_join is None for one in members.values())
        assert group.state is classic.COMPLETING_REBALANCE or all(one.awaiting_sync is None for one in members.values())
        assert not members.keys() & group.pending_members.keys()
        if group.state in (classic.COMPLETING_REBALANCE, classic.STABLE):
            assert all(group.protocol_name in {way.name for way in one.protocols} for one in members.values())
            assert self.runs(group.sync_timer) == bool(group.pending_sync)
        assert self.runs(group.join_timer) == (group.state is classic.PREPARING_REBALANCE)
        for one in members.values():
            assert self.runs(one.session) or not one.must_heartbeat, "a member without a session timer"
        sessions = sum(self.runs(one.session) for one in members.values()) + len(group.pending_members)
        assert len(groups.heartbeats) == sessions
        assert len(groups.rebalances) == self.runs(group.join_timer) + self.runs(group.sync_timer)

    def runs(self, timer: GroupTimer | None) -> bool:
        """Return whether the timer may still fire."""
        return timer is not None and not timer.completed

    def teardown(self) -> None:
        """Without further actions, every request is answered and every member is removed."""
        for _ in range(10):
            self.time_passes(REBALANCE_MS)
        assert all(actor.waits_since_ms is None for actor in self.actors)
        assert self.group is None or (self.group.state is classic.EMPTY and not self.group.pending_members)
        groups = self.broker.broker.groups
        assert len(groups.heartbeats) == len(groups.rebalances) == 0


TestClassicGroup = ClassicGroupMachine.TestCase
TestClassicGroup.settings = settings(max_examples=2 * settings().max_examples // 5, stateful_step_count=40)
