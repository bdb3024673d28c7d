"""The lanes of a trace: created at first use, sorted at the end."""

from collections.abc import Collection

from sluice.journal_events import ClientEvent

from .model import Lane, LaneGroup

GROUPS: tuple[LaneGroup, ...] = ("test", "rule", "client", "group", "transaction", "partition", "broker")

_NUMBERED = ("client", "partition", "broker")  # groups whose ids end in a number


class LaneTable:
    """All lanes of a trace. Indexes are those of creation until `sort` returns their order."""

    def __init__(self) -> None:
        self.lanes: list[Lane] = []
        self._index: dict[str, int] = {}
        self._relations: list[set[int]] = []

    def lane(self, lane_id: str, group: LaneGroup, label: str, owner: str = "") -> int:
        index = self._index.get(lane_id)
        if index is None:
            index = self._index[lane_id] = len(self.lanes)
            self.lanes.append(Lane(lane_id, group, owner, label))
            self._relations.append(set())
        return index

    def relate(self, index: int, other: int) -> None:
        self._relations[index].add(other)
        self._relations[other].add(index)

    def sort(self) -> list[int]:
        """Sort the lanes, and return the new index of each old one."""
        order = sorted(range(len(self.lanes)), key=self._place)
        moved = [0] * len(order)
        for new, old in enumerate(order):
            moved[old] = new
        for lane, related in zip(self.lanes, self._relations, strict=True):
            lane.relates = sorted(moved[each] for each in related)
        self.lanes = [self.lanes[old] for old in order]
        return moved

    def _place(self, index: int) -> tuple[int, str, int, str]:
        lane = self.lanes[index]
        last = lane.id.rpartition("-")[2]
        number = int(last) if lane.group in _NUMBERED and last.isdecimal() else index
        return GROUPS.index(lane.group), lane.owner, number, lane.label


class Lanes:
    """The lanes of one cluster, whose label is in all their names."""

    def __init__(self, table: LaneTable, cluster: str, refused: Collection[int] = ()) -> None:
        """Create the lanes; `refused` are connections that ended before their client was known."""
        self._table = table
        self._refused = refused
        self._id = f"{cluster} " if cluster else ""
        self._label = f"{cluster}: " if cluster else ""
        self._connections: dict[int, int] = {}

    def connection(self, event: ClientEvent) -> int:
        """Return the lane of a connection; its owner is the last client id."""
        index = self._connections.get(event.connection)
        if event.connection in self._refused:
            return self._lane(f"refused-{event.broker}", "client", f"refused by broker {event.broker}")
        if index is None:
            label = f"#{event.connection} to broker {event.broker}"
            index = self._lane(f"connection-{event.connection}", "client", label)
            self._connections[event.connection] = index
            self._table.relate(index, self.broker(event.broker))
        lane = self._table.lanes[index]
        if not lane.detail or (lane.owner != event.client_id and event.client_id):
            lane.owner = event.client_id
            lane.detail = _client_text(event)
        return index

    def group(self, group_id: str) -> int:
        return self._lane(f"group-{group_id}", "group", group_id)

    def transaction(self, transactional_id: str) -> int:
        return self._lane(f"transaction-{transactional_id}", "transaction", transactional_id)

    def partition(self, topic: str, partition: int) -> int:
        name = f"{topic}-{partition}"
        return self._lane(f"partition-{name}", "partition", name, owner=topic)

    def broker(self, node_id: int) -> int:
        return self._lane(f"broker-{node_id}", "broker", f"broker {node_id}")

    def rule(self, rule_id: str) -> int:
        return self._lane(f"rule-{rule_id}", "rule", f"rule {rule_id}")

    def quotas(self) -> int:
        return self._lane("quotas", "rule", "quotas")

    def scenario(self, name: str) -> int:
        return self._lane(f"scenario-{name}", "test", f"scenario {name}")

    def journal(self) -> int:
        return self._lane("journal", "test", "journal")

    def _lane(self, lane_id: str, group: LaneGroup, label: str, owner: str = "") -> int:
        return self._table.lane(f"{self._id}{lane_id}", group, f"{self._label}{label}", owner)


def _client_text(event: ClientEvent) -> str:
    software = f"{event.software_name} {event.software_version}".strip()
    principal = event.principal.removeprefix("User:")
    parts = (event.peer, software, event.listener, "" if principal == "ANONYMOUS" else principal)
    return ", ".join(filter(None, parts))
