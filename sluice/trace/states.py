"""The state at each instant, as changes of values: what the page shows at its cursor."""

from collections.abc import Callable, Collection
from operator import itemgetter

from sluice import journal_events

from .described import group_text, leader_text, quotas_text, transaction_text
from .model import Section

Change = tuple[int, Section, str, str | None]  # time in ns
_LEFT_EPOCHS = (-1, -2)  # member epochs of a ConsumerGroupHeartbeat that leaves (KIP-848)
_CLOSED_TRANSACTIONS = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")


class States:
    """Changes of state of one cluster, whose label is in all keys, from events in order of `seq`."""

    def __init__(self, cluster: str) -> None:
        self.changes: list[Change] = []
        self._label = f"{cluster}: " if cluster else ""
        self._values: dict[tuple[Section, str], str | None] = {}
        self._members: dict[str, dict[str, str]] = {}  # group -> member -> key in the section members
        self._throttled_until_ns: dict[str, int] = {}
        self._of_requests: dict[str, Callable[[journal_events.Request], None]] = {
            "Fetch": self._fetched,
            "OffsetCommit": self._committed,
            "TxnOffsetCommit": self._committed,
            "JoinGroup": self._joined,
            "SyncGroup": self._synced,
            "LeaveGroup": self._left,
            "ConsumerGroupHeartbeat": self._beat,
        }

    def set(self, at_ns: int, section: Section, key: str, value: str | None) -> None:
        """Set a value, unless it is the same as before."""
        place = section, key
        if self._values.get(place) != value:
            self._values[place] = value
            self.changes.append((at_ns, section, self._label + key, value))

    def request(self, request: journal_events.Request) -> None:
        handle = self._of_requests.get(request.api)
        if handle is not None and request.answered_ns is not None and not request.error_codes:
            handle(request)

    def broker_state(self, event: journal_events.BrokerState) -> None:
        self.set(event.at_ns, "brokers", str(event.broker), event.state)

    def leader_change(self, event: journal_events.LeaderChange) -> None:
        self.set(event.at_ns, "leaders", f"{event.topic}-{event.partition}", leader_text(event))

    def group_state(self, event: journal_events.GroupState) -> None:
        self.set(event.at_ns, "groups", event.group_id, None if event.after == "Dead" else group_text(event))
        if event.after in ("Empty", "Dead"):
            self._keep_members(event.at_ns, event.group_id, ())

    def transaction_state(self, event: journal_events.TransactionState) -> None:
        value = None if event.after in _CLOSED_TRANSACTIONS else transaction_text(event)
        self.set(event.at_ns, "transactions", event.transactional_id, value)

    def throttle(self, event: journal_events.Throttle) -> None:
        key = f"{event.client_id or event.peer} throttled by {event.quota}"
        self._end_throttle(key, event.at_ns)
        self.set(event.at_ns, "quotas", key, f"for {event.throttle_time_ms} ms")
        self._throttled_until_ns[key] = event.at_ns + event.throttle_time_ms * 1_000_000

    def quota_change(self, event: journal_events.QuotaChange) -> None:
        self.set(event.at_ns, "quotas", event.entity, quotas_text(event) or None)

    def end(self) -> list[Change]:
        """Return all changes, sorted by time."""
        for key, until_ns in self._throttled_until_ns.items():
            self.set(until_ns, "quotas", key, None)
        return sorted(self.changes, key=itemgetter(0))

    def _end_throttle(self, key: str, at_ns: int) -> None:
        until_ns = self._throttled_until_ns.get(key)
        if until_ns is not None and until_ns <= at_ns:
            self.set(until_ns, "quotas", key, None)

    # -- requests ------------------------------------------------------------------------------------------------------

    def _fetched(self, request: journal_events.Request) -> None:
        for partition in request.partitions:
            fetched = partition.fetched
            if fetched is None or fetched.high_watermark == journal_events.NO_ID:
                continue
            stable = fetched.last_stable_offset
            ends = f", last stable offset {stable}" if stable != journal_events.NO_ID else ""
            key = f"{partition.topic}-{partition.partition}"
            self.set(request.at_ns, "offsets", key, f"high watermark {fetched.high_watermark}{ends}")

    def _committed(self, request: journal_events.Request) -> None:
        for partition in request.partitions:
            if partition.offset != journal_events.NO_ID:
                key = f"{request.group_id} {partition.topic}-{partition.partition}"
                self.set(request.at_ns, "committed", key, str(partition.offset))

    def _joined(self, request: journal_events.Request) -> None:
        members = request.returned.get("members")
        if isinstance(members, list) and members:  # the leader's response lists all
            self._keep_members(request.at_ns, request.group_id, members)

    def _synced(self, request: journal_events.Request) -> None:
        member = request.sent.get("member_id")
        if isinstance(member, str) and member:
            generation = request.sent.get("generation_id", "")
            text = f"{_assignment_text(request)} (generation {generation})"
            self._set_member(request, member, text)

    def _left(self, request: journal_events.Request) -> None:
        left = request.sent.get("members")
        known = self._members.get(request.group_id, {})
        if isinstance(left, list):
            self._keep_members(request.at_ns, request.group_id, [one for one in known if one not in left])

    def _beat(self, request: journal_events.Request) -> None:
        member = request.returned.get("member_id") or request.sent.get("member_id")
        if not isinstance(member, str) or not member:
            return
        if request.sent.get("member_epoch") in _LEFT_EPOCHS:
            known = self._members.get(request.group_id, {})
            self._keep_members(request.at_ns, request.group_id, [one for one in known if one != member])
        elif "assignment" in request.returned:
            epoch = request.returned.get("member_epoch", "")
            self._set_member(request, member, f"{_assignment_text(request)} (epoch {epoch})")

    def _set_member(self, request: journal_events.Request, member: str, text: str) -> None:
        known = self._members.setdefault(request.group_id, {})
        key = known.setdefault(member, f"{request.group_id} {member}")
        self.set(request.at_ns, "members", key, text)

    def _keep_members(self, at_ns: int, group_id: str, kept: Collection[str]) -> None:
        known = self._members.get(group_id, {})
        for member in [each for each in known if each not in kept]:
            self.set(at_ns, "members", known.pop(member), None)


def _assignment_text(request: journal_events.Request) -> str:
    assigned = request.returned.get("assignment")
    if not isinstance(assigned, list):
        return "assignment unknown"
    return ", ".join(assigned) or "no partitions"
