"""Looks at the cluster twice a second while somebody watches, and not at all while nobody does.

A look and what is made of it take at most a twentieth of the time: where there is so much to see that it takes longer,
the next one comes later.
"""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from sluice.broker.server.cluster_server import ClusterServer
from sluice.clock import TimerHandle, sleep_ms

from .snapshots import Look, Looks
from .view import View
from .viewer import Viewer

EVERY_MS = 500.0
_LEAST_REST = 19  # times what a look takes
# What that is, the quickest of so many tells: the others may have waited for a processor.
_TIMED = 4
# How soon who watches notices a look, and that the broker stops: uvicorn has no patience with answers then.
_POLL_MS = 40.0
# What is known of the last two minutes is forgotten when nobody watched for so long: a page is loaded anew sooner.
_FORGET_AFTER_MS = 10_000.0


class Feed:
    """The looks at a cluster, for all who watch."""

    def __init__(self, server: ClusterServer) -> None:
        self._server = server
        self._clock = server.cluster.clock
        self._looks = Looks(server)
        self._viewers: dict[Viewer, None] = {}
        self._timer: TimerHandle | None = None
        self._left_ms = 0.0  # when the last viewer left
        self._took_ms: deque[float] = deque(maxlen=_TIMED)
        self.newest: Look | None = None

    @contextmanager
    def watching(self, view: View) -> Iterator[Viewer]:
        """Somebody watches."""
        viewer = Viewer(view, self._server.cluster.journal)
        if not self._viewers and self._clock.monotonic_ms() - self._left_ms > _FORGET_AFTER_MS:
            self._looks, self.newest = Looks(self._server), None
        self._viewers[viewer] = None
        self._look_soon()
        try:
            yield viewer
        finally:
            del self._viewers[viewer]
            if not self._viewers:
                self._left_ms = self._clock.monotonic_ms()
                self._stop()

    async def after(self, look: Look | None) -> Look | None:
        """The next look after this one; None: there is none, the broker stops."""
        while not self._server.is_stopping:
            if self.newest is not look:
                return self.newest
            await sleep_ms(self._clock, _POLL_MS)
        return None

    def _look_soon(self) -> None:
        """Whoever joins is not to wait for half a second."""
        self._stop()
        self._timer = self._clock.call_at(self._clock.monotonic_ms(), self._look)

    def _look(self) -> None:
        began_ms = self._clock.monotonic_ms()
        self.newest = self._looks.look(viewer.view for viewer in self._viewers)
        ended_ms = self._clock.monotonic_ms()
        self._took_ms.append(ended_ms - began_ms)
        next_ms = max(began_ms + EVERY_MS, ended_ms + _LEAST_REST * min(self._took_ms))
        self._timer = self._clock.call_at(next_ms, self._look)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
