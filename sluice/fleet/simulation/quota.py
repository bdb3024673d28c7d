"""Byte rate quotas of producers: the arithmetic of `quotas/sensor.py` for many clients at once, and their fairness."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .arrays import US_PER_MS, Floats, Rows, Times

_SAMPLES, _WINDOW_MS = 11, 1000  # quota.window.num, quota.window.size.seconds
_SLOTS = _SAMPLES + 1
_SPAN_MS, _WHOLE_MS = _SAMPLES * _WINDOW_MS, (_SAMPLES - 1) * _WINDOW_MS
_MOST_MS = 2**31 - 1
BYTES_PER_BUCKET = _SLOTS * 24 + 16


class Sensors:
    """The use of many buckets, as `quotas.Sensor` keeps that of one. The clock does not step back."""

    def __init__(self, count: int) -> None:
        self._values = np.zeros((count, _SLOTS))
        self._starts = np.zeros((count, _SLOTS), dtype=np.int64)
        self._lasts = np.zeros((count, _SLOTS), dtype=np.int64)
        self._open = np.full(count, -1, dtype=np.int64)
        self._used = np.zeros(count, dtype=np.int64)

    def record(self, rows: Rows, values: Floats, now_ms: Times, bounds: Floats) -> Times:
        """Charge each bucket, which may occur once; return the throttle times in ms."""
        opened = self._open[rows]
        opens = (opened < 0) | (now_ms - self._starts[rows, opened] >= _WINDOW_MS)
        slots = np.where(opens, (opened + 1) % _SLOTS, opened)
        self._open[rows] = slots
        self._used[rows] = np.maximum(self._used[rows], slots + 1)
        self._values[rows, slots] = np.where(opens, 0.0, self._values[rows, slots]) + values
        self._starts[rows, slots] = np.where(opens, now_ms, self._starts[rows, slots])
        self._lasts[rows, slots] = now_ms
        samples, starts, lasts = self._values[rows], self._starts[rows], self._lasts[rows]
        is_used = np.arange(_SLOTS) < self._used[rows, None]
        stale = is_used & (now_ms[:, None] - lasts >= _SPAN_MS)
        samples[stale] = 0.0
        starts = np.where(stale, now_ms[:, None], starts)
        self._values[rows], self._starts[rows] = samples, starts
        self._lasts[rows] = np.where(stale, now_ms[:, None], lasts)
        elapsed = now_ms - np.where(is_used, starts, now_ms[:, None]).min(axis=1)
        elapsed = np.where(elapsed < _WHOLE_MS, _WHOLE_MS + elapsed % _WINDOW_MS, elapsed)
        totals = np.zeros(len(rows))
        for slot in range(_SLOTS):  # the order of the sum decides its last bits
            totals += samples[:, slot]
        rates = totals / (elapsed / 1000.0)
        exact = (rates - bounds) / bounds * elapsed
        floors = np.floor(np.minimum(exact, _MOST_MS))
        waits = np.minimum(floors + (exact - floors >= 0.5), _MOST_MS)
        return np.where(rates > bounds, waits, 0).astype(np.int64)


class Fairness(NamedTuple):
    """How a quota treated its clients.

    Args:
        jain: Jain's index of the bytes of the clients under quotas: 1 if all sent the same, 1/n if one sent all.
        throttle_p99_ms: The 99th percentile of all throttle times above 0.
    """

    jain: float
    throttle_p99_ms: float


class Quotas:
    """The producer quotas of a fleet on all brokers.

    A quota of a client id is shared by all clients of that model; that of `<default>` applies to each client.
    """

    def __init__(self, bounds: Floats, is_shared: Sequence[bool], groups: Rows, brokers: int) -> None:
        self._bounds = bounds
        self._groups = groups
        self._brokers = brokers
        clients = np.arange(len(groups))
        self._buckets = np.where(np.array(is_shared)[groups], groups, clients + len(is_shared))
        self._sensors = Sensors((len(is_shared) + len(groups)) * brokers)
        self._bytes = np.zeros(len(groups))
        self._waits_ms: list[Times] = []

    def charge(self, rows: Rows, brokers: Rows, sizes: Floats, at_us: Times, segments: Rows) -> Times:
        """Charge requests, in order of their time; return the throttle time of each in microseconds."""
        bounds = self._bounds[segments, self._groups[rows]]
        waits = np.zeros(len(rows), dtype=np.int64)
        limited = np.flatnonzero(np.isfinite(bounds))
        if not len(limited):
            return waits
        self._bytes[rows[limited]] += sizes[limited]
        buckets = self._buckets[rows] * self._brokers + brokers
        left = limited[np.argsort(at_us[limited], kind="stable")]
        while len(left):
            _, first = np.unique(buckets[left], return_index=True)
            now = left[first]
            waits[now] = self._sensors.record(buckets[now], sizes[now], at_us[now] // US_PER_MS, bounds[now])
            left = np.delete(left, first)
        self._waits_ms.append(waits[limited][waits[limited] > 0])
        return waits * US_PER_MS

    def fairness(self) -> Fairness:
        limited = np.flatnonzero(np.isfinite(self._bounds.min(axis=0)))
        used = self._bytes[np.isin(self._groups, limited)]
        squares = float((used**2).sum())
        jain = float(used.sum()) ** 2 / (len(used) * squares) if squares else 1.0
        waits = np.concatenate([np.zeros(0, dtype=np.int64), *self._waits_ms])
        return Fairness(jain, float(np.percentile(waits, 99)) if len(waits) else 0.0)
