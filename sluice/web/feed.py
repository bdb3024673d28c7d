"""Snapshots for all viewers: two per second while there is a viewer, in at most a twentieth of the time."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import TimerHandle, sleep_ms

from .snapshots import Snapshot, SnapshotTaker
from .view import View
from .viewer import Viewer

EVERY_MS = 500.0
_LEAST_REST = 19  # rest after a snapshot, as a multiple of its duration
# The rest depends on the fastest of this many snapshots; others may have waited for a processor.
_TIMED = 4
# The delay until a viewer notices a snapshot or the broker's stop.
_POLL_MS = 40.0
# The history is dropped after this long without a viewer; reloading the page takes less.
_FORGET_AFTER_MS = 10_000.0


class Feed:
    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._clock = server.cluster.runtime.clock
        self._taker = SnapshotTaker(server)
        self._viewers: dict[Viewer, None] = {}
        self._timer: TimerHandle | None = None
        self._left_ms = 0.0
        self._took_ms: deque[float] = deque(maxlen=_TIMED)
        self.newest: Snapshot | None = None

    @contextmanager
    def watching(self, view: View) -> Iterator[Viewer]:
        viewer = Viewer(view, self._server.cluster.journal)
        if not self._viewers and self._clock.monotonic_ms() - self._left_ms > _FORGET_AFTER_MS:
            self._taker, self.newest = SnapshotTaker(self._server), None
        self._viewers[viewer] = None
        self._take_soon()
        try:
            yield viewer
        finally:
            del self._viewers[viewer]
            if not self._viewers:
                self._left_ms = self._clock.monotonic_ms()
                self._stop()

    async def after(self, snapshot: Snapshot | None) -> Snapshot | None:
        """Wait for the snapshot after this one; return None if the broker stops."""
        while not self._server.is_stopping:
            if self.newest is not snapshot:
                return self.newest
            await sleep_ms(self._clock, _POLL_MS)
        return None

    def _take_soon(self) -> None:
        self._stop()
        self._timer = self._clock.call_at(self._clock.monotonic_ms(), self._take)

    def _take(self) -> None:
        began_ms = self._clock.monotonic_ms()
        self.newest = self._taker.take(viewer.view for viewer in self._viewers)
        ended_ms = self._clock.monotonic_ms()
        self._took_ms.append(ended_ms - began_ms)
        next_ms = max(began_ms + EVERY_MS, ended_ms + _LEAST_REST * min(self._took_ms))
        self._timer = self._clock.call_at(next_ms, self._take)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
