"""Closes clients that send a large request too slowly while others wait for its share of `queued.max.request.bytes`.

A request above 256 KiB reserves its whole size when its first bytes arrive. Without this check, six connections that
send a few bytes could reserve everything. Kafka has no such check, and by default no `queued.max.request.bytes`.
"""

from collections.abc import Iterable

from sluice.protocol.frame import FramePool
from sluice.purgatory.scheduler import Scheduler

from .connection import Connection

CHECK_MS = 2_000
# 64 KiB per second.
LEAST_BYTES = 128 * 1024


class SlowFrames:
    def __init__(self, pool: FramePool, connections: Iterable[Connection], scheduler: Scheduler) -> None:
        self._pool = pool
        self._connections = connections
        self._scheduler = scheduler
        self._received: dict[Connection, int] | None = None  # at the last check; None while no request waits
        pool.on_wait = self._watch

    def _watch(self) -> None:
        if self._received is None:
            self._received = {}
            self._scheduler.schedule_once(CHECK_MS, self._check)

    def _check(self) -> None:
        before, self._received = self._received, None
        if before is None or not self._pool.has_waiting:
            return
        now = {one: one.reserved_received for one in self._connections if one.reserved_received}
        for connection, received in now.items():
            if 0 <= received - before.get(connection, -LEAST_BYTES) < LEAST_BYTES:
                connection.close(
                    "the request arrives at less than 64 KiB/s, and others wait for queued.max.request.bytes"
                )
        if self._pool.has_waiting:
            self._received = now
            self._scheduler.schedule_once(CHECK_MS, self._check)
