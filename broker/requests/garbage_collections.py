"""Postpones garbage collections while long requests are in progress.

A collection visits all objects that were created since the last one, or all containers of the process: 50 ms with
500,000. The messages of a long request have about so many, and need no collector: their last reference frees them.
"""

import gc

# With long requests at all times, collect this often, because closed connections leave cycles.
_LONGEST_MS = 30_000.0


class GarbageCollections:
    def __init__(self) -> None:
        self._requests = 0
        self._were_enabled = True
        self._since_ms = 0.0

    def postpone(self, now_ms: float) -> None:
        """Postpone collections until the same number of calls of `resume`."""
        if not self._requests:
            self._were_enabled = gc.isenabled()
            self._since_ms = now_ms
            gc.disable()
        elif now_ms - self._since_ms > _LONGEST_MS:
            gc.collect()
            self._since_ms = now_ms
        self._requests += 1

    def resume(self) -> None:
        self._requests -= 1
        if not self._requests and self._were_enabled:
            gc.enable()


# The garbage collector is shared by all brokers of the process.
GARBAGE_COLLECTIONS = GarbageCollections()
