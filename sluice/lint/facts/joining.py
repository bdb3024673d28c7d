"""The groups that a client joins, and the settings with which it does.

What happens to a member, and what members do to each other, are facts of the group (`membership.py`).
"""

from collections import Counter

import msgspec

from sluice.journal_events import Request

from .domain import Domain, Handlers
from .measures.distribution import Distribution
from .measures.fields import names, number
from .topics import Topics

_NS_PER_MS = 1_000_000
# Names of further groups are not kept.
_MOST_GROUPS = 64


class Joined(msgspec.Struct):
    """A client's time in a group.

    from_ns, to_ns: its first and last request as a member
    """

    from_ns: int
    to_ns: int


class Joining(Domain):
    """The groups of a client.

    groups: by group id
    session_timeout_ms, rebalance_timeout_ms: number of joins by value
    protocol_type: number of joins by protocol: classic or consumer (KIP-848)
    assignors: number of joins by the names of assignors, separated by commas
    heartbeat_ms: time between heartbeats of a connection
    """

    def __init__(self) -> None:
        self.groups: dict[str, Joined] = {}
        self.session_timeout_ms: Counter[int] = Counter()
        self.rebalance_timeout_ms: Counter[int] = Counter()
        self.protocol_type: Counter[str] = Counter()
        self.assignors: Counter[str] = Counter()
        self.heartbeat_ms = Distribution()
        self._heartbeats: dict[tuple[int, str], int] = {}  # times by connection and group

    def handlers(self) -> Handlers:
        return {
            "JoinGroup": self._join,
            "Heartbeat": self._heartbeat,
            "ConsumerGroupHeartbeat": self._consumer_heartbeat,
        }

    def contribute(self, topics: Topics) -> None:
        """Name the group in the facts of the topics that the client reads, if it can only be this one."""
        if len(self.groups) == 1:
            ((group_id, joined),) = self.groups.items()
            for facts in topics.values():
                if facts.read:
                    facts.note_group(group_id, (joined.from_ns, joined.to_ns))

    def _join(self, event: Request) -> None:
        sent = event.sent
        if not sent or event.error_codes:
            return
        self.session_timeout_ms[number(sent, "session_timeout_ms")] += 1
        self.rebalance_timeout_ms[number(sent, "rebalance_timeout_ms")] += 1
        self.protocol_type["classic"] += 1
        self.assignors[",".join(names(sent, "protocols"))] += 1
        self._heartbeats.pop((event.connection, event.group_id), None)
        self._member(event)

    def _heartbeat(self, event: Request) -> None:
        self._member(event)
        key = event.connection, event.group_id
        previous = self._heartbeats.get(key)
        if previous is not None:
            self.heartbeat_ms.add((event.received_ns - previous) // _NS_PER_MS)
        if previous is not None or len(self._heartbeats) < _MOST_GROUPS:
            self._heartbeats[key] = event.received_ns

    def _consumer_heartbeat(self, event: Request) -> None:
        sent = event.sent
        if not sent or event.error_codes:
            return
        if sent["member_epoch"] == 0:
            self.protocol_type["consumer"] += 1
            self.rebalance_timeout_ms[number(sent, "rebalance_timeout_ms")] += 1
        self._heartbeat(event)

    def _member(self, event: Request) -> None:
        joined = self.groups.get(event.group_id)
        if joined is not None:
            joined.to_ns = event.at_ns
        elif len(self.groups) < _MOST_GROUPS:
            self.groups[event.group_id] = Joined(event.at_ns, event.at_ns)
