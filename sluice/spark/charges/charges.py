"""Quota charges in columns: gathered by client, packed for transport, and sorted for a replay.

A row is a Produce or Fetch request that a broker charged to a quota: 28 bytes in columns, so that twenty million fit in
memory.
"""

from array import array
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np

Ints: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]
Int32s: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int32]]

MOST_TEXT = 2000
USED, QUARANTINED = "charges of clients", "quarantined"
_MOST_QUARANTINED = 1000  # at which `is_full` becomes true
_VERSIONS = 256
_NO_LANE = 0  # numbers of connections begin at 1

Kind = Literal["Produce", "Fetch"]  # Kafka's QuotaType
By = Literal["client-id", "user", "user+client-id"]  # the level at which quotas are set


class Quarantined(NamedTuple):
    source: str
    position: int  # the byte offset of a line; the number of a Parquet row, from 0
    reason: str
    text: str  # unchanged, up to `MOST_TEXT` characters


_Numbers = TypeVar("_Numbers", int, Ints)


def lane_of(connection: _Numbers, version: _Numbers) -> _Numbers:
    """Return a number for this connection and version; requests of one lane are sequential."""
    return connection * _VERSIONS + version


class Client(NamedTuple):
    """The requests that share one quota on one broker."""

    kind: Kind
    broker: str
    user: str  # "" if quotas are not per user
    client_id: str  # "" if quotas are not per client id, or the client has none


class Requests:
    """The charges of one client, sorted by time; at least one."""

    __slots__ = ("at_ns", "following", "lane", "largest", "totals", "value", "versions")

    def __init__(
        self, at_ns: Sequence[int], value: Sequence[int], lane: Sequence[int], versions: Sequence[int]
    ) -> None:
        self.at_ns = at_ns
        self.value = value
        self.lane = lane  # 0, 1, ...
        self.versions = versions
        self.following = range(1, len(lane) + 1) if len(versions) == 1 else _following(np.asarray(lane, np.int64))
        self.totals = array("q", [0])
        self.totals.extend(accumulate(value))
        self.largest = max(value)

    def __len__(self) -> int:
        return len(self.at_ns)


class Columns:
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
        return b"".join((self.at_ns, self.value, self.lane, self.throttle_ms))


ROW_BYTES = 28


class Gathered:
    """The rows by client, quarantined input and counts of one reader."""

    def __init__(self, by: By, rows_at_once: int) -> None:
        self.counts: Counter[str] = Counter()
        self._by = by
        self._rows_at_once = rows_at_once
        self._quarantined: list[Quarantined] = []
        self._columns: dict[Client, Columns] = {}
        self._by_row_key: dict[tuple[Kind, str | int, str, str], Columns] = {}  # a cache by the values in rows

    def columns(self, kind: Kind, broker: str | int, principal: str, client_id: str) -> Columns:
        row_key = kind, broker, principal, client_id
        found = self._by_row_key.get(row_key)
        if found is None:
            user = "" if self._by == "client-id" else principal.removeprefix("User:")
            client = Client(kind, str(broker), user, "" if self._by == "user" else client_id)
            found = self._by_row_key[row_key] = self._columns.setdefault(client, Columns())
        return found

    def mark_throttled(self, broker: str | int, principal: str, client_id: str, at_ns: int) -> None:
        """Add an empty row with a throttle time, which a replay omits, to both kinds: the connection is muted."""
        for kind in get_args(Kind):
            self.columns(kind, broker, principal, client_id).append(at_ns, 0, _NO_LANE, 1)

    def quarantine(self, source: str, position: int, reason: str, text: str) -> None:
        self.counts[QUARANTINED] += 1
        self._quarantined.append(Quarantined(source, position, reason, text[:MOST_TEXT]))

    @property
    def is_full(self) -> bool:
        rows = sum(len(columns.at_ns) for columns in self._columns.values())
        return rows >= self._rows_at_once or self.has_many_quarantined

    @property
    def has_many_quarantined(self) -> bool:
        return len(self._quarantined) >= _MOST_QUARANTINED

    def take(self) -> tuple[dict[Client, bytes], list[Quarantined]]:
        columns, quarantined = self._columns, self._quarantined
        self._columns, self._by_row_key, self._quarantined = {}, {}, []
        return {client: each.pack() for client, each in columns.items()}, quarantined


def requests_of(parts: Sequence[bytes]) -> Requests | None:
    """Return the requests to replay, from packed rows in the order of reading; None if none was served.

    They keep their recorded times. The time after a throttled request is an upper bound of the client's own pause,
    which may have passed during the throttle time.
    """
    at_ns, value, lane = (_joined(parts, column) for column in range(3))
    throttle_ms = np.concatenate([_throttle_ms(part) for part in parts])
    if np.any(at_ns[1:] < at_ns[:-1]):
        order = np.argsort(at_ns, kind="stable")
        at_ns, value, lane, throttle_ms = at_ns[order], value[order], lane[order], throttle_ms[order]
    throttled = throttle_ms > 0
    if np.any(throttled):
        served = ~throttled | (value > 0)
        at_ns, value, lane = at_ns[served], value[served], lane[served]
    if not len(at_ns):
        return None
    lanes, numbers = np.unique(lane, return_inverse=True) if np.any(lane != lane[0]) else (lane[:1], None)
    versions = [int(each) % _VERSIONS for each in lanes]
    if numbers is None:
        return Requests(at_ns.data, value.data, bytes(len(lane)), versions)
    return Requests(at_ns.data, value.data, np.asarray(numbers, np.int64).data, versions)


class Recorded(NamedTuple):
    began_ns: int
    ended_ns: int
    was_throttled: bool
    abandoned_bytes: int  # of throttled requests without a later one on their connection, which may be sent again


def recorded(parts: Sequence[bytes]) -> Recorded:
    at_ns, value, lane = (_joined(parts, column) for column in range(3))
    throttled = np.concatenate([_throttle_ms(part) for part in parts]) > 0
    order = np.lexsort((at_ns, lane))
    is_last = np.append(np.diff(lane[order]) != 0, True)
    abandoned = value[order][is_last & throttled[order]]
    return Recorded(int(at_ns.min()), int(at_ns.max()), bool(throttled.any()), int(abandoned.sum()))


def _joined(parts: Sequence[bytes], column: int) -> Ints:
    arrays = []
    for part in parts:
        count = len(part) // ROW_BYTES
        arrays.append(np.frombuffer(part, np.int64, count, 8 * count * column))
    return np.concatenate(arrays)


def _throttle_ms(part: bytes) -> Int32s:
    count = len(part) // ROW_BYTES
    return np.frombuffer(part, np.int32, count, 24 * count)


def _following(lane: Ints) -> Sequence[int]:
    order = np.argsort(lane, kind="stable")
    found = np.full(len(lane), len(lane), np.int64)
    same = lane[order[1:]] == lane[order[:-1]]
    found[order[:-1][same]] = order[1:][same]
    data: memoryview[int] = found.data
    return data
