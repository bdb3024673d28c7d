"""What clients were charged for, in columns: gathered by client while input is read, packed for the way, and put in
order for a replay.

A row is a request to produce or fetch that a broker charged to a quota. Twenty million of them are to fit in memory, so
they are never objects: 28 bytes each.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np

Ints: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Int32s: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int32]]

MOST_TEXT = 2000
USED, QUARANTINED = "charges of clients", "quarantined"
_MOST_QUARANTINED = 1000  # at once
_MS = 1_000_000  # nanoseconds
_VERSIONS = 256

Kind = Literal["Produce", "Fetch"]  # Kafka's QuotaType
By = Literal["client-id", "user", "user+client-id"]  # whose use a quota counts together


class Quarantined(NamedTuple):
    """Something that could not be read."""

    source: str  # the file
    position: int  # where in it: the byte at which a line begins, the number of a row of Parquet from 0 on
    reason: str
    text: str  # as it stands there, up to `MOST_TEXT` characters


_Numbers = TypeVar("_Numbers", int, Ints)


def lane_of(connection: _Numbers, version: _Numbers) -> _Numbers:
    """One number for both: requests of one version on one connection follow each other."""
    return connection * _VERSIONS + version


class Client(NamedTuple):
    """Whose requests are counted together on one broker."""

    kind: Kind
    broker: str
    user: str  # "" where quotas are not to be of users
    client_id: str  # "" where they are not to be of client ids, or the client has none


class Requests:
    """What one client was charged for, in the order of time."""

    __slots__ = ("at_ns", "following", "lane", "largest", "totals", "value", "versions")

    def __init__(
        self,
        at_ns: Sequence[int],
        value: Sequence[int],
        lane: Sequence[int],
        versions: Sequence[int],
    ) -> None:
        """There is at least one."""
        self.at_ns = at_ns
        self.value = value  # bytes
        self.lane = lane  # which of the client's connections: 0, 1, ...
        self.versions = versions  # the request version of each lane
        # The row of the same lane that comes next, len(at_ns) for none.
        self.following = range(1, len(lane) + 1) if len(versions) == 1 else _following(np.asarray(lane, np.int64))
        self.totals = array("q", [0])  # of the values before each row, and of all
        self.totals.extend(accumulate(value))
        self.largest = max(value)

    def __len__(self) -> int:
        return len(self.at_ns)


class Columns:
    """Rows of one client."""

    __slots__ = ("at_ns", "lane", "throttle_ms", "value")

    def __init__(self) -> None:
        self.at_ns = array("q")
        self.value = array("q")
        self.lane = array("q")
        self.throttle_ms = array("i")

    def append(self, at_ns: int, value: int, lane: int, throttle_ms: int) -> None:
        self.at_ns.append(at_ns)
        self.value.append(value)
        self.lane.append(lane)
        self.throttle_ms.append(throttle_ms)

    def extend(self, at_ns: Ints, value: Ints, lane: Ints, throttle_ms: Int32s) -> None:
        for column, values in (
            (self.at_ns, at_ns),
            (self.value, value),
            (self.lane, lane),
            (self.throttle_ms, throttle_ms),
        ):
            column.frombytes(values.tobytes())

    def pack(self) -> bytes:
        """All rows, as `requests_of` takes them."""
        return b"".join((self.at_ns, self.value, self.lane, self.throttle_ms))


ROW_BYTES = 28


class Gathered:
    """What was read: rows by client, as long as there is room, and what else there was."""

    def __init__(self, by: By, rows_at_once: int) -> None:
        self.counts: Counter[str] = Counter()  # of what was read, by what it was
        self._by = by
        self._rows_at_once = rows_at_once
        self._quarantined: list[Quarantined] = []
        self._columns: dict[Client, Columns] = {}
        self._by_row_key: dict[tuple[Kind, str | int, str, str], Columns] = {}  # the same, by the values in rows

    def columns(self, kind: Kind, broker: str | int, principal: str, client_id: str) -> Columns:
        """Where a row goes."""
        row_key = kind, broker, principal, client_id
        found = self._by_row_key.get(row_key)
        if found is None:
            user = "" if self._by == "client-id" else principal.removeprefix("User:")
            client = Client(kind, str(broker), user, "" if self._by == "user" else client_id)
            found = self._by_row_key[row_key] = self._columns.setdefault(client, Columns())
        return found

    def quarantine(self, source: str, position: int, reason: str, text: str) -> None:
        self.counts[QUARANTINED] += 1
        self._quarantined.append(Quarantined(source, position, reason, text[:MOST_TEXT]))

    @property
    def is_full(self) -> bool:
        held = sum(len(columns.at_ns) for columns in self._columns.values())
        return held >= self._rows_at_once or self.has_many_quarantined

    @property
    def has_many_quarantined(self) -> bool:
        return len(self._quarantined) >= _MOST_QUARANTINED

    def take(self) -> tuple[dict[Client, bytes], list[Quarantined]]:
        """All rows, packed, and all that could not be read, since this was asked before."""
        columns, quarantined = self._columns, self._quarantined
        self._columns, self._by_row_key, self._quarantined = {}, {}, []
        return {client: each.pack() for client, each in columns.items()}, quarantined


def requests_of(parts: Sequence[bytes], *, undelayed: bool) -> Requests | None:
    """What a replay takes, of packed rows in the order in which they were read; None where nothing was served.

    With `undelayed` the trace is the one that there would have been without the waits that clients served while it was
    taken: what closes the loop needs that. A client's own time after a throttle is taken for what the wait was shorter
    than the time until it came again; that is what it is at least.
    """
    at_ns, value, lane = (_joined(parts, column) for column in range(3))
    throttle_ms = np.concatenate([_throttle_ms(part) for part in parts])
    if np.any(at_ns[1:] < at_ns[:-1]):
        order = np.argsort(at_ns, kind="stable")
        at_ns, value, lane, throttle_ms = at_ns[order], value[order], lane[order], throttle_ms[order]
    throttled = throttle_ms > 0
    if np.any(throttled):
        if undelayed:
            at_ns = _without_waits(at_ns, lane, throttle_ms)
        served = ~throttled | (value > 0)
        at_ns, value, lane = at_ns[served], value[served], lane[served]
        order = np.argsort(at_ns, kind="stable")
        at_ns, value, lane = at_ns[order], value[order], lane[order]
    if not len(at_ns):
        return None
    lanes, numbers = np.unique(lane, return_inverse=True) if np.any(lane != lane[0]) else (lane[:1], None)
    versions = [int(each) % _VERSIONS for each in lanes]
    if numbers is None:
        return Requests(at_ns.data, value.data, bytes(len(lane)), versions)
    return Requests(at_ns.data, value.data, np.asarray(numbers, np.int64).data, versions)


def _joined(parts: Sequence[bytes], column: int) -> Ints:
    arrays = []
    for part in parts:
        count = len(part) // ROW_BYTES
        arrays.append(np.frombuffer(part, np.int64, count, 8 * count * column))
    return np.concatenate(arrays)


def _throttle_ms(part: bytes) -> Int32s:
    count = len(part) // ROW_BYTES
    return np.frombuffer(part, np.int32, count, 24 * count)


def _without_waits(at_ns: Ints, lane: Ints, throttle_ms: Int32s) -> Ints:
    """The times of the rows, each lane's without its waits."""
    order = np.argsort(lane, kind="stable")
    at_ns, lane, waits_ns = at_ns[order], lane[order], throttle_ms[order].astype(np.int64) * _MS
    own_ns = np.maximum(np.diff(at_ns) - waits_ns[:-1], 0)
    # What was to be waited for is taken off; where the wait was not served whole, as much as there was.
    saved_ns = np.where(waits_ns[:-1] > 0, np.diff(at_ns) - own_ns, 0)
    saved_ns[lane[1:] != lane[:-1]] = 0
    total_ns = np.concatenate(([0], np.cumsum(saved_ns)))
    first = np.concatenate(([True], lane[1:] != lane[:-1]))
    before_ns = total_ns[first][np.cumsum(first) - 1]  # what the lanes before this one saved
    found = np.empty_like(at_ns)
    found[order] = at_ns - (total_ns - before_ns)
    return found


def _following(lane: Ints) -> Sequence[int]:
    order = np.argsort(lane, kind="stable")
    found = np.full(len(lane), len(lane), np.int64)
    same = lane[order[1:]] == lane[order[:-1]]
    found[order[:-1][same]] = order[1:][same]
    data: memoryview[int] = found.data
    return data
