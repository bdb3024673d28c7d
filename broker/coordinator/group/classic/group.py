"""A classic group: its members, its generation and its state. Follows Kafka's ClassicGroup and ClassicGroupState.

The members divide the work among themselves; the coordinator only passes messages. Each generation starts with two
rounds:

    join   Members send JoinGroup with the protocols they support. When all have joined, or on timeout, the coordinator
           selects the protocol that all support and most prefer, and responds to all. One member, the *leader*, also
           receives the list of members.
    sync   Members send SyncGroup; the leader's contains the assignment. Then each member receives its part.

The states:

    Empty                no members; offsets may exist (a *simple* group has nothing else)
    PreparingRebalance   join round: JoinGroup requests are parked
    CompletingRebalance  sync round: SyncGroup requests are parked
    Stable               all members have assignments

    Empty -> PreparingRebalance -> CompletingRebalance -> Stable
                 |        ^  ^               |              |
                 v        |  '---------------'              |
               Empty      '---------------------------------'   a member joined, left, expired or changed its metadata

When the last member leaves, the Empty group starts another generation. Kafka's state Dead does not exist: a deleted
group is removed. protocol.py has timers and parked requests.

Static members (KIP-345) have a group instance id and keep their place under a new member id after a restart. Member ids
from a MEMBER_ID_REQUIRED response (KIP-394) are *pending* until used in a JoinGroup; a join round waits for them, too.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec
from msgspec.structs import replace

from sluice.broker.coordinator.common.coordinator_log import KeyValue
from sluice.broker.coordinator.group.consumer_protocol import subscribed_topics
from sluice.broker.coordinator.group.group import Commit
from sluice.broker.coordinator.group.offsets import CommittedOffset
from sluice.broker.coordinator.group.records import GroupMetadataValue, MemberMetadata, group_metadata
from sluice.broker.coordinator.group.timer import GroupTimer
from sluice.protocol.apis.join_group import JoinGroupRequestProtocol
from sluice.protocol.consumer_protocol import PROTOCOL_TYPE
from sluice.protocol.errors import ErrorCode

from .member import ClassicMember


class ClassicState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"


EMPTY = ClassicState.EMPTY
PREPARING_REBALANCE = ClassicState.PREPARING_REBALANCE
COMPLETING_REBALANCE = ClassicState.COMPLETING_REBALANCE
STABLE = ClassicState.STABLE
_NO_TIMESTAMP = -1
DEAD_NAME = "Dead"  # the state in responses of a group that does not exist

# State -> possible previous states.
PREVIOUS_STATES = {
    EMPTY: {PREPARING_REBALANCE},
    PREPARING_REBALANCE: {EMPTY, COMPLETING_REBALANCE, STABLE},
    COMPLETING_REBALANCE: {PREPARING_REBALANCE},
    STABLE: {COMPLETING_REBALANCE},
}

# Error in Heartbeat for members of the current generation. (An Empty group has no members.)
HEARTBEAT_ERRORS = {
    PREPARING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    COMPLETING_REBALANCE: ErrorCode.NONE,
    STABLE: ErrorCode.NONE,
}

# Error in OffsetCommit for members of the current generation.
COMMIT_ERRORS = {
    PREPARING_REBALANCE: ErrorCode.NONE,
    COMPLETING_REBALANCE: ErrorCode.REBALANCE_IN_PROGRESS,
    STABLE: ErrorCode.NONE,
}

# (State, is leader): JoinGroup with unchanged metadata returns the current generation, as a response may have been
# lost. Otherwise it starts a rebalance, which a leader requests when partitions are added.
RETURNS_CURRENT_GENERATION = {(COMPLETING_REBALANCE, True), (COMPLETING_REBALANCE, False), (STABLE, False)}


class ClassicGroup(msgspec.Struct, eq=False):
    group_id: str
    state_since_ms: int | None  # wall clock; None: unknown, not written by old brokers
    state: ClassicState = EMPTY
    previous_state: ClassicState = EMPTY
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, ClassicMember] = {}  # in the order they joined
    static_members: dict[str, str] = {}
    pending_members: dict[str, GroupTimer] = {}
    pending_sync: set[str] = set()
    subscribed_topics: frozenset[str] | None = None
    new_member_added: bool = False  # since the last delay of the initial rebalance started
    join_timer: GroupTimer | None = None
    sync_timer: GroupTimer | None = None
    _supporters: dict[str, int] = {}  # by the name of a protocol

    type = "classic"

    # -- the interface Group -------------------------------------------------------------------------------------------

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def generation(self) -> int:
        return self.generation_id

    @property
    def listed_protocol_type(self) -> str:
        return self.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        return self.state is EMPTY

    def commit_error(self, commit: Commit) -> ErrorCode:
        # Without a member, commits are valid in an empty group and in transactions: TxnOffsetCommit before v3 has no
        # member fields.
        if commit.generation_id < 0 and self.is_empty:
            return ErrorCode.NONE
        if commit.generation_id >= 0 or commit.member_id or commit.group_instance_id is not None:
            error = self.member_error(commit.member_id, commit.group_instance_id)
            if error:
                return error
            if commit.generation_id != self.generation_id:
                return ErrorCode.ILLEGAL_GENERATION
        elif not commit.transactional:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if commit.transactional else COMMIT_ERRORS[self.state]

    def offset_fetch_error(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        return ErrorCode.NONE

    def offset_delete_error(self) -> ErrorCode:
        # The subscriptions of members of other types are unknown.
        if self.is_empty or self._is_of_consumers:
            return ErrorCode.NONE
        return ErrorCode.NON_EMPTY_GROUP

    def delete_error(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def is_subscribed_to(self, topic: str) -> bool:
        """Return whether the topic is consumed; true if subscriptions are unknown."""
        return self._is_of_consumers if self.subscribed_topics is None else topic in self.subscribed_topics

    def retention_start_ms(self, committed: CommittedOffset) -> int | None:
        """Return when the retention of an offset starts (KIP-211): at the commit, or when the group became empty.

        It starts at the commit in simple groups, and for topics that a stable group does not consume. None: not yet.
        """
        if self.protocol_type is None:
            return committed.commit_timestamp_ms
        if self.is_empty:
            return committed.commit_timestamp_ms if self.state_since_ms is None else self.state_since_ms
        if self._is_of_consumers and self.subscribed_topics is not None and self.state is STABLE:
            return committed.commit_timestamp_ms
        return None

    def tombstones(self) -> list[KeyValue]:
        return [group_metadata(self.group_id)]

    def record(self, assignments: Mapping[str, bytes]) -> KeyValue:
        members = [
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata(self.protocol_name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        ]
        value = GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation_id,
            protocol=self.protocol_name,
            leader=self.leader_id,
            current_state_timestamp=_NO_TIMESTAMP if self.state_since_ms is None else self.state_since_ms,
            members=members,
        )
        return group_metadata(self.group_id, value)

    def cancel_timers(self) -> None:
        for timer in (self.join_timer, self.sync_timer, *self.pending_members.values()):
            if timer is not None:
                timer.cancel()
        for member in self.members.values():
            member.end_session()

    # -- members -------------------------------------------------------------------------------------------------------

    def member_error(self, member_id: str, group_instance_id: str | None) -> ErrorCode:
        if group_instance_id is not None:
            known_id = self.static_members.get(group_instance_id)
            if known_id is not None and known_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
            if known_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, names: Mapping[str, int]) -> bool:
        if self.is_empty:
            return bool(protocol_type and names)
        if not self.members:  # all have left during a rebalance, which waits for members that are pending
            return protocol_type == self.protocol_type and bool(names)
        fewer: Mapping[str, int] = min(names, self._supporters, key=len)
        return protocol_type == self.protocol_type and any(name in names and self._is_common(name) for name in fewer)

    def _is_common(self, protocol_name: str) -> bool:
        """Return whether all members support a protocol."""
        return self._supporters.get(protocol_name) == len(self.members)

    def add(self, member: ClassicMember) -> None:
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.remove_pending(member.member_id)
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self._count_supporters(member.names, 1)

    def _count_supporters(self, names: Mapping[str, int], sign: int) -> None:
        """Add (1) or subtract (-1) the protocols of a member, which is in `members`."""
        if len(self.members) == 1:  # without a loop, which takes 0.1 s for a million names
            self._supporters = dict(names) if sign > 0 else {}
            return
        supporters = self._supporters
        for name, count in names.items():
            supporters[name] = supporters.get(name, 0) + sign * count

    def update(
        self,
        member: ClassicMember,
        protocols: list[JoinGroupRequestProtocol],
        names: Mapping[str, int],
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
    ) -> None:
        self._count_supporters(member.names, -1)
        member.protocols, member.names = protocols, names
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._count_supporters(names, 1)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id; the longest present member replaces a removed leader."""
        member = self.members.get(member_id)
        if member is not None:
            member.end_session()
            self._count_supporters(member.names, -1)
            del self.members[member_id]
            if member.group_instance_id is not None:
                self.static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.remove_pending(member_id)
        self.pending_sync.discard(member_id)

    def remove_pending(self, member_id: str) -> None:
        timer = self.pending_members.pop(member_id, None)
        if timer is not None:
            timer.cancel()

    def replace_static(self, old: ClassicMember, member_id: str) -> ClassicMember:
        assert old.group_instance_id is not None
        old.end_session()
        new = replace(old, member_id=member_id, awaiting_join=None, awaiting_sync=None, is_new=False)
        del self.members[old.member_id]
        self.members[member_id] = new
        self.static_members[old.group_instance_id] = member_id
        if self.leader_id == old.member_id:
            self.leader_id = member_id
        return new

    @property
    def rebalance_timeout_ms(self) -> int:
        return max([0, *(member.rebalance_timeout_ms for member in self.members.values())])

    # -- rounds --------------------------------------------------------------------------------------------------------

    @property
    def awaiting_join(self) -> list[ClassicMember]:
        return [member for member in self.members.values() if member.awaiting_join is not None]

    @property
    def has_all_joined(self) -> bool:
        return not self.pending_members and all(member.awaiting_join is not None for member in self.members.values())

    @property
    def is_in_initial_rebalance(self) -> bool:
        return self.state is PREPARING_REBALANCE and self.previous_state is EMPTY

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined in this round, else choose another one; return False if none joined."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].awaiting_join is None:
            joined = self.awaiting_join
            if not joined:
                return False
            self.leader_id = joined[0].member_id
        return True

    def transition_to(self, state: ClassicState, now_ms: int) -> None:
        assert self.state in PREVIOUS_STATES[state], f"{self.group_id}: {self.state} -> {state}"
        self.previous_state, self.state, self.state_since_ms = self.state, state, now_ms

    def begin_generation(self, now_ms: int) -> bool:
        """Begin the next generation; without a common protocol, return False and change only its id, as in Kafka."""
        self.generation_id += 1
        protocol_name = self.select_protocol() if self.members else None
        if self.members and protocol_name is None:
            return False
        self.protocol_name = protocol_name
        self.update_subscribed_topics()
        self.transition_to(COMPLETING_REBALANCE if self.members else EMPTY, now_ms)
        self.pending_sync.clear()
        return True

    def select_protocol(self) -> str | None:
        """Return the protocol that all members support and most prefer; of several, the first voted for.

        None if a member cannot vote: a protocol that a member lists twice has more supporters than members.
        """
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(self._is_common)
            if name is None:
                return None
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=votes.__getitem__)

    def update_subscribed_topics(self) -> None:
        self.subscribed_topics = None
        if not self._is_of_consumers:
            return
        found: set[str] = set()
        for member in self.members.values():
            topics = subscribed_topics(member.metadata(self.protocol_name))
            if topics is None:
                return
            found.update(topics)
        self.subscribed_topics = frozenset(found)

    @property
    def _is_of_consumers(self) -> bool:
        return self.protocol_type == PROTOCOL_TYPE
