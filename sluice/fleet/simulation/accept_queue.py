"""The accept queue of a broker's listener, which drops connection attempts when it is full.

Measured on Linux 6.18, with a listener that does not accept:

- The queue holds one connection more than its backlog. Until it has room, the kernel drops every SYN without a response
  (tcp_abort_on_overflow=0), and connect() of the client waits.
- The client repeats the SYN 1, 2, 3, 4, 5, 7, 11, 19 and 35 s after the first: five times after a second
  (tcp_syn_linear_timeouts, since Linux 6.5), then after twice as long each time. Older kernels repeat it after 1, 3, 7,
  15 and 31 s.
- A client closes the attempt after `socket.connection.setup.timeout.ms` (KIP-601).

Different from Linux: if many SYNs arrive within one round trip, the kernel responds to each of them as long as the
queue has room, and then drops the acknowledgements of those over the limit. Their clients are connected, but their
first request waits for a retransmission. Here these SYNs are dropped.
"""

import numpy as np

from .arrays import NEVER, US_PER_S, Mask, Times

SYN_TIMES_US = np.array([*(second * US_PER_S for second in (0, 1, 2, 3, 4, 5, 7, 11, 19, 35)), NEVER], dtype=np.int64)


class AcceptQueue:
    """The queue of one listener, which accepts one connection after another.

    `admit` may be called several times for one window of time, as CpuQueue.serve. Connections of a later call find room
    among those of earlier calls, which keep theirs.
    """

    __slots__ = ("_accept_us", "_free_us", "_known", "_most_us", "_window_from")

    def __init__(self, accept_us: float, backlog: int) -> None:
        self._accept_us = accept_us
        self._most_us = backlog * accept_us  # the work of a queue with room for one more
        self.restart()

    def begin_window(self) -> None:
        self._window_from = self._free_us
        self._known = np.empty(0)

    def restart(self) -> None:
        self._free_us = 0.0
        self.begin_window()

    def admit(self, arrivals: Times) -> Mask:
        """Return which SYNs find room."""
        known = len(self._known)
        times = np.concatenate((self._known, arrivals.astype(np.float64)))
        order = np.argsort(times, kind="stable")
        in_order = times[order]
        # If all find room, the queue is free after the latest of "n arrived, then all later ones were accepted".
        work = np.arange(len(times)) * self._accept_us
        starts = np.maximum(np.maximum.accumulate(in_order - work), self._window_from) + work
        admitted = np.ones(len(times), dtype=np.bool_)
        if ((starts - in_order > self._most_us) & (order >= known)).any():
            admitted = self._admit_each(order.tolist(), in_order.tolist(), known)
        elif len(times):
            self._free_us = float(starts[-1]) + self._accept_us
        self._known = times[admitted]
        return admitted[known:]

    def _admit_each(self, order: list[int], times: list[float], known: int) -> Mask:
        admitted = np.zeros(len(times), dtype=np.bool_)
        free_us, found = self._window_from, []
        for index, time in zip(order, times, strict=True):
            if index < known or free_us - time <= self._most_us:
                found.append(index)
                free_us = max(free_us, time) + self._accept_us
        admitted[found] = True
        self._free_us = free_us
        return admitted
