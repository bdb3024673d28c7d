"""The members of a group and its rebalances, from the requests of all clients in the order of the journal.

A member is known from its first successful JoinGroup (KIP-848: ConsumerGroupHeartbeat) on. Neither requests nor states
name a member that the broker removes: a member has expired if the state of the group changes one session timeout after
its last request, and it has not rejoined in time if its next request fails although it had sent heartbeats.
"""

from collections import deque
from typing import NamedTuple

import msgspec

from sluice.journal_events import GroupState, Request
from sluice.protocol.errors import ErrorCode

from .domain import Domain, Handlers
from .measures.distribution import Distribution
from .measures.examples import Examples
from .measures.fields import names, number, text
from .topics import Topics

_NS_PER_MS = 1_000_000

# Member epoch of a member that leaves (KIP-848); a static member that will be back sends another one.
_LEAVES = -1
_FENCED_INSTANCE = {ErrorCode.FENCED_INSTANCE_ID, ErrorCode.UNRELEASED_INSTANCE_ID}
_REMOVED = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH}
_REBALANCING = {"PreparingRebalance", "Assigning", "Reconciling", "Empty"}

# Older members are forgotten, and what concerns them.
_MOST_MEMBERS = 4096
# The broker removes a member within this time after its session timeout, even if it is busy.
_EXPIRY_DELAY_NS = 2_000_000_000
# It restarts the timer when it handles a request, so up to this time before the time of the response.
_EXPIRY_EARLY_NS = 200_000_000
# A rebalance with the default max.poll.interval.ms may take so long: a loop has several in it.
LOOP_NS = 300_000_000_000
_LOOP_REBALANCES = 64
# With the cooperative protocol, a member without partitions gets some in a second rebalance, which comes earlier.
_SETTLED_NS = 5_000_000_000
# A member that joins later than half of what it may take is late: a rebalance begins at any time of a poll interval, so
# half of the interval is what is seen of it on average.
_LATE_SHARE = 0.5
# Below this, the time is that of a scheduler or of a network.
_LATE_NS = 1_000_000_000
# A client that is restarted is back within this time; later, it was stopped.
_RESTART_NS = 300_000_000_000
_MOST_TEXTS = 5


class Member(msgspec.Struct):
    """A member of a group.

    session_timeout_ms, rebalance_timeout_ms: as requested; 0 if unknown
    interval_ms: heartbeat interval that the broker requests (KIP-848)
    joined_ns, last_ns: times of the responses to its last join and its last request
    heartbeat_ms: time between heartbeats, without those with a join in between
    generation, assigned_ns: generation and time of its last assignment
    partitions: the assigned partitions; None if unknown
    rejoin_requested_ns: time of the first response that requested a join; 0 if none did
    left_ns, expired_ns: when it left, or the broker removed it; 0 if neither happened
    """

    id: str
    client_id: str
    connection: int
    joined_ns: int
    last_ns: int
    instance_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = 0
    interval_ms: int = 0
    heartbeat_ns: int = 0
    heartbeat_ms: Distribution = msgspec.field(default_factory=Distribution)
    generation: int = -1
    assigned_ns: int = 0
    partitions: list[str] | None = None
    rejoin_requested_ns: int = 0
    left_ns: int = 0
    expired_ns: int = 0

    @property
    def is_present(self) -> bool:
        return not self.left_ns and not self.expired_ns

    @property
    def session_ns(self) -> int:
        """The session timeout; with KIP-848, where the broker has it, twice the heartbeat interval: it is longer."""
        return (self.session_timeout_ms or 2 * self.interval_ms) * _NS_PER_MS

    @property
    def rebalance_ns(self) -> int:
        return self.rebalance_timeout_ms * _NS_PER_MS


class Notes:
    """Occurrences of something: how many, the first few different sentences about them, and examples."""

    def __init__(self) -> None:
        self.count = 0
        self.texts: list[str] = []
        self.examples = Examples()

    @property
    def in_words(self) -> str:
        return "; ".join(self.texts) + (f" ({self.count:,} in total)" if self.count > len(self.texts) else "")

    def add(self, text: str, event: Request | GroupState) -> None:
        self.count += 1
        self.examples.note(event)
        if len(self.texts) < _MOST_TEXTS and text not in self.texts:
            self.texts.append(text)


class Assigned(NamedTuple):
    """The assignment of a member. The journal lists up to 16 partitions."""

    client_id: str
    connection: int
    partitions: list[str]


class _Departure(NamedTuple):
    """A member that left on a connection, with its reason."""

    member: Member
    at_ns: int
    reason: str


class Membership(Domain):
    """The members and rebalances of a group.

    members: by member id
    protocol_name: assignor that the group uses, or ""
    group_type: classic or consumer, or "" if the group did not change its state
    rebalances: number of rebalances that began when the group was stable
    commits: number of successful commits of any client, also in transactions
    most_members: the most members at one time
    session_expired: members that sent a request after their session timeout
    poll_too_late: members that left and joined again, because the application had not polled
    rejoined_late: members that rejoined near the rebalance timeout, or after it
    instance_fenced: requests that failed because another member has the same group instance id
    returned_late: static members that came back after their session timeout
    inconsistent_protocols, invalid_session_timeouts: joins that failed because of these
    """

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        self.members: dict[str, Member] = {}
        self.protocol_name = self.group_type = ""
        self.rebalances = self.commits = self.most_members = 0
        self.session_expired, self.poll_too_late, self.rejoined_late = Notes(), Notes(), Notes()
        self.instance_fenced, self.returned_late = Notes(), Notes()
        self.inconsistent_protocols, self.invalid_session_timeouts = Notes(), Notes()
        self.rebalance_examples, self.expired_examples = Examples(), Examples()
        self.last_ns = 0
        self._settled: list[Assigned] = []
        self._assigned_topics: set[str] = set()
        self._instances: dict[str, Member] = {}
        self._replaced: dict[str, Member] = {}  # static members, by member id
        self._departures: dict[int, _Departure] = {}  # by connection
        self._on_connection: dict[int, Member] = {}  # that joined last
        self._connections: dict[int, int] = {}  # time of the first join
        self._recent: deque[int] = deque(maxlen=_LOOP_REBALANCES)  # times of rebalances

    def handlers(self) -> Handlers:
        return {
            "JoinGroup": self._join,
            "SyncGroup": self._sync,
            "Heartbeat": self._heartbeat,
            "LeaveGroup": self._leave,
            "OffsetCommit": self._commit,
            "TxnOffsetCommit": self._commit,
            "ConsumerGroupHeartbeat": self._consumer_heartbeat,
            "group-state": self._state,
        }

    def contribute(self, topics: Topics) -> None:
        for topic in self._assigned_topics if not self.commits else ():
            topics[topic].groups_without_commits.add(self.group_id)

    def unexplained_rebalances(self) -> int:
        """Return the most rebalances within `LOOP_NS` beyond two per client that joined or left in that time.

        With the cooperative protocol, the partitions of a member move in two rebalances.
        """
        changes = sorted([*self._connections.values(), *(each.at_ns for each in self._departures.values())])
        most, recent = 0, list(self._recent)
        for first, began_ns in enumerate(recent):
            for last in range(first, len(recent)):
                ended_ns = recent[last]
                if ended_ns - began_ns > LOOP_NS:
                    break
                # What happened shortly before the first one caused it.
                explained = sum(
                    began_ns - _EXPIRY_DELAY_NS <= at_ns <= ended_ns + _EXPIRY_DELAY_NS for at_ns in changes
                )
                most = max(most, last - first + 1 - 2 * explained)
        return most

    def assignment(self) -> list[Assigned]:
        """Return the last assignment that lasted for `_SETTLED_NS`; members with most partitions first."""
        return self._settled_assignment(self.last_ns) or self._settled

    def _settled_assignment(self, at_ns: int) -> list[Assigned]:
        present = [each for each in self.members.values() if each.is_present and each.partitions is not None]
        generation = max((each.generation for each in present), default=-1)
        found = [each for each in present if each.generation == generation]
        if not found or at_ns - max(each.assigned_ns for each in found) < _SETTLED_NS:
            return []
        assigned = [Assigned(each.client_id, each.connection, each.partitions or []) for each in found]
        return sorted(assigned, key=lambda each: (-len(each.partitions), each.connection))

    def members_that_left(self) -> int:
        return sum(each.left_ns > 0 for each in self.members.values())

    def silent_members(self) -> list[Member]:
        """Return members that the broker removed after their session timeout, and that sent nothing afterwards."""
        return [each for each in self.members.values() if each.expired_ns and not each.instance_id]

    # -- The classic protocol ------------------------------------------------------------------------------------------

    def _join(self, event: Request) -> None:
        sent, returned = event.sent, event.returned
        if not sent:
            return
        self.last_ns = event.at_ns
        member_id = text(sent, "member_id")
        known = self.members.get(member_id)
        if known is not None:
            self._rejoins(known, event)
        if event.error_codes:
            self._failed_join(event)
            return
        member = self._joined(text(returned, "member_id"), event, text(sent, "group_instance_id"))
        member.session_timeout_ms = number(sent, "session_timeout_ms")
        member.rebalance_timeout_ms = number(sent, "rebalance_timeout_ms")
        self.protocol_name = text(returned, "protocol_name")

    def _failed_join(self, event: Request) -> None:
        codes = event.error_codes
        if event.rule_id:
            return
        if ErrorCode.INCONSISTENT_GROUP_PROTOCOL in codes:
            supported = ", ".join(names(event.sent, "protocols"))
            used = self.protocol_name or "another one"
            self.inconsistent_protocols.add(
                f"client {event.client_id} supports {supported}; the group uses {used}", event
            )
        if ErrorCode.INVALID_SESSION_TIMEOUT in codes:
            timeout = number(event.sent, "session_timeout_ms")
            self.invalid_session_timeouts.add(f"client {event.client_id} requested {timeout} ms", event)
        if not _FENCED_INSTANCE.isdisjoint(codes):
            self._fenced_instance(event)

    def _rejoins(self, member: Member, event: Request) -> None:
        """Note the time that the member took, from the response that requested it."""
        if member.rejoin_requested_ns:
            late_ns = event.received_ns - member.rejoin_requested_ns
            if late_ns >= max(_LATE_NS, _LATE_SHARE * member.rebalance_ns) and member.rebalance_ns:
                self.rejoined_late.add(
                    f"client {member.client_id} joined {_seconds(late_ns)} after it was requested to, "
                    f"with a rebalance timeout of {_seconds(member.rebalance_ns)}",
                    event,
                )
        member.rejoin_requested_ns = 0
        member.heartbeat_ns = 0
        if not _REMOVED.isdisjoint(event.error_codes):
            self._removed(member, event)

    def _joined(self, member_id: str, event: Request, instance_id: str) -> Member:
        """Return the member that joined, which may have been one before under another id."""
        departure = self._departures.pop(event.connection, None)
        if departure is not None:
            self._returns(departure, event)
        member = self.members.get(member_id) or Member(
            member_id, event.client_id, event.connection, event.at_ns, event.at_ns
        )
        if instance_id:
            previous = self._instances.get(instance_id)
            if previous is not None and previous is not member:
                self._static_member_returns(previous, event)
                self.members.pop(previous.id, None)
                self._replaced[previous.id] = previous
            member.instance_id = instance_id
            self._instances[instance_id] = member
        former = self._on_connection.get(event.connection)
        if former is not None and former is not member:  # the client has lost its member id
            self.members.pop(former.id, None)
        self.members[member_id] = self._on_connection[event.connection] = member
        self._connections.setdefault(event.connection, event.received_ns)
        self._forget()
        member.joined_ns = member.last_ns = event.at_ns
        member.expired_ns = member.left_ns = 0
        member.rejoin_requested_ns = member.heartbeat_ns = 0
        return member

    def _forget(self) -> None:
        """Forget the oldest of too many."""
        for by_name in (self.members, self._instances, self._replaced):
            if len(by_name) > _MOST_MEMBERS:
                del by_name[next(iter(by_name))]
        for by_connection in (self._on_connection, self._connections, self._departures):
            if len(by_connection) > _MOST_MEMBERS:
                by_connection.pop(next(iter(by_connection)))

    def _returns(self, departure: _Departure, event: Request) -> None:
        member = departure.member
        stay_ns = departure.at_ns - member.joined_ns
        if member.expired_ns or departure.reason or not 0 < member.rebalance_ns <= stay_ns:
            return
        self.poll_too_late.add(
            f"client {member.client_id} left {_seconds(stay_ns)} after it had joined, and joined again "
            f"{_seconds(event.received_ns - departure.at_ns)} later on the same connection; its rebalance timeout, "
            f"which is max.poll.interval.ms in most clients, is {_seconds(member.rebalance_ns)}",
            event,
        )

    def _static_member_returns(self, previous: Member, event: Request) -> None:
        away_ns = event.received_ns - previous.last_ns
        expired_ns = previous.last_ns + previous.session_ns
        others = any(each.is_present and each.last_ns >= expired_ns for each in self.members.values())
        if previous.connection != event.connection and others and previous.session_ns <= away_ns <= _RESTART_NS:
            self.returned_late.add(
                f"instance {previous.instance_id} returned after {_seconds(away_ns)}, "
                f"with a session timeout of {_seconds(previous.session_ns)}",
                event,
            )

    def _sync(self, event: Request) -> None:
        member = self._contact(event)
        if member is not None and "assignment" in event.returned:
            self._assigned(
                member, names(event.returned, "assignment"), number(event.sent, "generation_id"), event.at_ns
            )

    def _assigned(self, member: Member, partitions: list[str], generation: int, at_ns: int) -> None:
        member.partitions, member.generation, member.assigned_ns = partitions, generation, at_ns
        self._assigned_topics.update(each.rpartition("-")[0] for each in partitions)

    def _heartbeat(self, event: Request) -> None:
        member = self._contact(event)
        if member is None:
            return
        if member.heartbeat_ns:
            member.heartbeat_ms.add((event.received_ns - member.heartbeat_ns) // _NS_PER_MS)
        member.heartbeat_ns = event.received_ns
        if (
            ErrorCode.REBALANCE_IN_PROGRESS in event.error_codes
            and not member.rejoin_requested_ns
            and not event.rule_id
        ):
            member.rejoin_requested_ns = event.at_ns

    def _commit(self, event: Request) -> None:
        if not event.error_codes:
            self.commits += 1
        self._contact(event)

    def _leave(self, event: Request) -> None:
        for member_id in names(event.sent, "members"):
            member = self.members.get(member_id) or self._instances.get(member_id)
            if member is not None:
                self._left(member, event, text(event.sent, "reason"))

    def _left(self, member: Member, event: Request, reason: str) -> None:
        self.last_ns = member.left_ns = event.at_ns
        self._departures[member.connection] = _Departure(member, event.received_ns, reason)
        if "poll" in reason:  # "consumer poll timeout has expired.", of the Java client
            self.poll_too_late.add(f"client {member.client_id} left with the reason: {reason}", event)

    # -- KIP-848 -------------------------------------------------------------------------------------------------------

    def _consumer_heartbeat(self, event: Request) -> None:
        sent, returned = event.sent, event.returned
        if not sent:
            return
        epoch, member_id = number(sent, "member_epoch"), text(returned, "member_id") or text(sent, "member_id")
        if event.error_codes:
            self._contact(event)
            if not _FENCED_INSTANCE.isdisjoint(event.error_codes) and not event.rule_id:
                self._fenced_instance(event)
            return
        if epoch < 0:
            member = self.members.get(member_id)
            if member is not None and epoch == _LEAVES:
                self._left(member, event, "")
            return
        if epoch == 0:
            member = self._joined(member_id, event, text(sent, "instance_id"))
            member.rebalance_timeout_ms = number(sent, "rebalance_timeout_ms")
        else:
            member = self._contact(event)
        if member is None:
            return
        member.interval_ms = number(returned, "heartbeat_interval_ms")
        member.generation = number(returned, "member_epoch")
        if "assignment" in returned:
            self._assigned(member, names(returned, "assignment"), member.generation, event.at_ns)

    # -- Both protocols ------------------------------------------------------------------------------------------------

    def _contact(self, event: Request) -> Member | None:
        """Return the member that sent the request, unless it is none anymore."""
        member = self.members.get(text(event.sent, "member_id"))
        self.last_ns = event.at_ns
        if event.error_codes and not event.rule_id:
            if event.api != "ConsumerGroupHeartbeat" and ErrorCode.FENCED_INSTANCE_ID in event.error_codes:
                self._fenced_instance(event)
                return None
            replaced = self._replaced.get(text(event.sent, "member_id"))
            if replaced is not None and ErrorCode.UNKNOWN_MEMBER_ID in event.error_codes:
                self._fenced_instance(event, replaced.instance_id)  # the client does not send its instance id
                return None
            if member is not None and not _REMOVED.isdisjoint(event.error_codes):
                self._removed(member, event)
                return None
        if member is not None:
            member.last_ns = event.at_ns
            if member.expired_ns:
                self._is_alive(member)
        return member

    def _is_alive(self, member: Member) -> None:
        """Correct that it has expired: its JoinGroup was being handled, which is an event only when it is over."""
        member.expired_ns = 0
        self._departures.pop(member.connection, None)

    def _removed(self, member: Member, event: Request) -> None:
        """Note why the broker has removed a member that sends a request."""
        if member.left_ns:
            return
        silent_ns = event.received_ns - member.last_ns
        if member.session_ns and silent_ns >= member.session_ns:
            self.session_expired.add(
                f"client {member.client_id} sent no heartbeat for {_seconds(silent_ns)}"
                + (f", with a session timeout of {_seconds(member.session_ns)}" if member.session_timeout_ms else ""),
                event,
            )
        elif member.rejoin_requested_ns and event.received_ns - member.rejoin_requested_ns >= member.rebalance_ns:
            self.rejoined_late.add(
                f"client {member.client_id} did not join within the rebalance timeout of "
                f"{_seconds(member.rebalance_ns)}",
                event,
            )
        self._departures[member.connection] = _Departure(member, event.received_ns, "")
        member.expired_ns = member.expired_ns or event.at_ns
        self.members.pop(member.id, None)

    def _fenced_instance(self, event: Request, instance_id: str = "") -> None:
        instance_id = instance_id or text(event.sent, "group_instance_id") or text(event.sent, "instance_id")
        latest = self._instances.get(instance_id)
        other = (
            f"; connection {latest.connection} has the id" if latest and latest.connection != event.connection else ""
        )
        self.instance_fenced.add(
            f"{event.api} of instance {instance_id} on connection {event.connection} failed{other}", event
        )

    def _state(self, event: GroupState) -> None:
        self.last_ns, self.group_type = event.at_ns, event.group_type
        self.most_members = max(self.most_members, event.members)
        if event.before == "Stable":
            self._settled = self._settled_assignment(event.at_ns) or self._settled
        if event.before == "Stable" and event.after in _REBALANCING:
            self.rebalances += 1
            self.rebalance_examples.note(event)
            self._recent.append(event.at_ns)
        for member in self.members.values():
            late_ns = event.at_ns - member.last_ns - member.session_timeout_ms * _NS_PER_MS
            if member.is_present and member.session_timeout_ms and -_EXPIRY_EARLY_NS <= late_ns <= _EXPIRY_DELAY_NS:
                member.expired_ns = event.at_ns
                self.expired_examples.note(event)
                self._departures[member.connection] = _Departure(member, event.at_ns, "")


def _seconds(ns: int) -> str:
    return f"{ns / 1e9:.3g} s"
