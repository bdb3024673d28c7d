"""The messages of `/api/v1/stream` (message.py) to one viewer, with only the changes since the previous message.

Most parts are the same for all viewers, and already encoded as JSON.
"""

import msgspec
from msgspec import Raw

from sluice.broker.journal.journal import Journal

from .client_row import ClientRow
from .journal_tail import newest
from .snapshots import Snapshot
from .view import View


class Viewer:
    def __init__(self, view: View, journal: Journal | None) -> None:
        self.view = view
        self._journal = journal if view.journal else None
        self._after = 0  # in the journal
        self._sent: dict[str, bytes] = {}
        self._encoded: dict[int, bytes] = {}  # id -> row that was sent
        self._sent_until: dict[int, int] = {}  # id -> last snapshot whose points were sent

    def message(self, snapshot: Snapshot) -> bytes:
        """Return the changes for this viewer as JSON."""
        changed = {
            name: Raw(value)
            for name, value in (
                ("cluster", snapshot.cluster),
                ("brokers", snapshot.brokers),
                ("clients", self._clients(snapshot)),
                ("quotas", snapshot.quotas),
                ("faults", snapshot.faults),
                ("connections", snapshot.connections(self.view.search) if self.view.connections else b"null"),
                ("journal", self._new_lines()),
            )
            if self._is_new(name, value)
        }
        if not changed:
            return b"{}"
        return msgspec.json.encode({"look": snapshot.number, "at_ms": snapshot.at_ms, **changed})

    def _is_new(self, name: str, value: bytes) -> bool:
        if value == b"null" or self._sent.get(name) == value:
            return False
        self._sent[name] = value
        return True

    def _clients(self, snapshot: Snapshot) -> bytes:
        if self.view not in snapshot.pages:
            return b"null"  # the viewer joined after the snapshot
        rows, matched = snapshot.pages[self.view]
        points = {str(row.id): new for row in rows if (new := self._new_points(row))}
        changed = [Raw(row.encoded) for row in rows if self._encoded.get(row.id) != row.encoded]
        self._encoded = {row.id: row.encoded for row in rows}
        self._sent_until = {row.id: snapshot.number for row in rows}
        seen = {"total": snapshot.clients, "matched": matched, "order": [row.id for row in rows]}
        return msgspec.json.encode({**seen, "rows": changed, "points": points})

    def _new_points(self, row: ClientRow) -> list[tuple[int, int, int]]:
        after = self._sent_until.get(row.id, -1)
        return [point for point in row.points if point[0] > after]

    def _new_lines(self) -> bytes:
        if self._journal is None:
            return b"null"
        found = newest(self._journal, self.view.event_filter, self._after)
        self._after = found.after
        if not found.lines:
            return b"null"
        return msgspec.json.encode({"lines": found.lines, "left_off": found.left_off})
