"""Postpones full garbage collections while long requests are in progress.

A full collection visits every container of the process: 50 ms with 500,000. Python starts one when a quarter of them is
new, as in a large request, whose messages need no collector.
"""

import gc

_NEVER = 2**31 - 1
# With long requests at all times, collect this often, because closed connections leave cycles.
_LONGEST_MS = 30_000.0


class FullCollections:
    def __init__(self) -> None:
        self._requests = 0
        self._thresholds = gc.get_threshold()
        self._since_ms = 0.0

    def postpone(self, now_ms: float) -> None:
        """Postpone full collections until `resume` is called as many times."""
        if not self._requests:
            self._thresholds = gc.get_threshold()
            self._since_ms = now_ms
            gc.set_threshold(*self._thresholds[:2], _NEVER)
        elif now_ms - self._since_ms > _LONGEST_MS:
            gc.collect()
            self._since_ms = now_ms
        self._requests += 1

    def resume(self) -> None:
        self._requests -= 1
        if not self._requests:
            gc.set_threshold(*self._thresholds)


# The garbage collector is shared by all brokers of the process.
FULL_COLLECTIONS = FullCollections()
