"""Postpones garbage collections while long requests are in progress.

A collection visits all objects that were created since the last one, or all containers of the process: 50 ms with
500,000. The messages of a long request have about so many, and need no collector: their last reference frees them.
"""

import gc

# With long requests at all times, closed connections still leave cycles. Collect them this often while the requests in
# progress are small together, which takes 50 ms, and at the latest then.
_OFTEN_MS = 30_000.0
_LATEST_MS = 600_000.0
_SMALL_BYTES = 1_000_000


class GarbageCollections:
    def __init__(self) -> None:
        self._requests = 0
        self._bytes = 0  # of these requests
        self._were_enabled = True
        self._since_ms = 0.0

    def postpone(self, request_bytes: int, now_ms: float) -> None:
        """Postpone collections until the same calls of `resume`."""
        if not self._requests:
            self._were_enabled = gc.isenabled()
            self._since_ms = now_ms
            gc.disable()
        self._requests += 1
        self._bytes += request_bytes
        self._collect_if_due(now_ms)

    def resume(self, request_bytes: int, now_ms: float) -> None:
        self._requests -= 1
        self._bytes -= request_bytes
        if self._requests:
            self._collect_if_due(now_ms)
        elif self._were_enabled:
            gc.enable()

    def _collect_if_due(self, now_ms: float) -> None:
        since_ms = now_ms - self._since_ms
        if since_ms > _OFTEN_MS and (self._bytes <= _SMALL_BYTES or since_ms > _LATEST_MS):
            gc.collect()  # all generations: connections may have survived the last collection
            self._since_ms = now_ms


# The garbage collector is shared by all brokers of the process.
GARBAGE_COLLECTIONS = GarbageCollections()
