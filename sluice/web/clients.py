"""All clients of a cluster.

Reading a client takes 0.05 ms, and there may be 100,000. So each snapshot reads the visible clients, and a few others
that were active since their last read.
"""

from collections.abc import Callable, Iterable
from itertools import count
from math import log2
from operator import attrgetter
from typing import Literal

from sluice.broker.requests.session import ANONYMOUS
from sluice.broker.server.cluster_server import ClusterServer

from .client_row import ClientKey, ClientRow

# Clients that a snapshot reads besides the visible ones; the first reads more, so that the order is right.
_OTHERS, _OTHERS_AT_FIRST = 25, 500
_MOST_GONE = 1000  # clients without connections that are kept
# Clients that disconnected before they were read are sought once in this many snapshots.
_SEEK_EVERY = 10


def _doublings(rate: float) -> int:
    """Return a sort key that changes only when the rate doubles, so that rows seldom move."""
    return -int(log2(max(rate, 0) + 1))


Sort = Literal["activity", "quota", "throttled", "name"]
_Key = tuple[float | str, ...]
SORTS: dict[Sort, Callable[[ClientRow], _Key]] = {
    "activity": lambda row: (not row.connections, _doublings(row.rate), row.folded),
    "quota": lambda row: (-round(row.share, 1), row.folded),
    "throttled": lambda row: (-row.throttled_total_ms, row.folded),
    "name": lambda row: (row.folded,),
}


class Clients:
    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._numbers = count(1)
        self._rows: dict[ClientKey, ClientRow] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, number: int) -> None:
        self._count_connections()
        if number % _SEEK_EVERY == 0:
            self._add_recorded()
            self._forget_gone()

    def found(self, text: str, sort: Sort) -> list[ClientRow]:
        folded = text.casefold()
        rows: Iterable[ClientRow] = self._rows.values()
        if folded:
            rows = (row for row in rows if folded in row.folded)
        return sorted(rows, key=SORTS[sort])

    def read(self, number: int, shown: Iterable[ClientRow]) -> None:
        now_ms = self._server.cluster.runtime.clock.monotonic_ms()
        mutation = self._server.cluster.controller_quotas.mutation
        for row in {row.id: row for row in (*shown, *self._others(number))}.values():
            row.read(self._server.brokers, mutation, number, now_ms)

    def _others(self, number: int) -> list[ClientRow]:
        """Return changed clients, the least recently read first."""
        changed = [row for row in self._rows.values() if row.may_have_changed]
        changed.sort(key=attrgetter("snapshot_number"))
        return changed[: _OTHERS if number else _OTHERS_AT_FIRST]

    def _count_connections(self) -> None:
        rows = self._rows
        for row in rows.values():
            row.connections = row.waiting = 0
        for server in self._server.servers.values():
            for connection in server.connections:
                ctx = connection.ctx
                if not ctx.api and not ctx.session.client_id:
                    continue  # the client is not known before its first request
                row = rows.get((ctx.session.user, ctx.session.client_id)) or self._add(
                    (ctx.session.user, ctx.session.client_id)
                )
                row.connections += 1
                row.waiting += connection.waiting
                row.last_active_ms = max(row.last_active_ms, connection.last_active_ms)
                if ctx.session.client_software[0]:
                    row.software = " ".join(ctx.session.client_software)

    def _add_recorded(self) -> None:
        users, client_ids = ({key[position] for key in self._rows} for position in (0, 1))
        managers = (manager for broker in self._server.brokers.values() for manager in broker.quotas)
        for user, client_id in (bucket for manager in managers for bucket in manager.buckets()):
            key = (user or ANONYMOUS, client_id or "")
            if user is None:
                is_known = client_id in client_ids
            else:
                is_known = key in self._rows if client_id is not None else user in users
            if not is_known and len(self._rows) < _MOST_GONE:
                self._add(key)
                users.add(key[0])
                client_ids.add(key[1])

    def _forget_gone(self) -> None:
        gone = [row for row in self._rows.values() if not row.connections]
        gone.sort(key=attrgetter("last_active_ms"), reverse=True)
        for row in gone[_MOST_GONE:]:
            del self._rows[row.user, row.client_id]

    def _add(self, key: ClientKey) -> ClientRow:
        row = self._rows[key] = ClientRow(next(self._numbers), key)
        return row
