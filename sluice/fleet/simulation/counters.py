"""What a run counts, in bins of 100 ms."""

import numpy as np

from .arrays import Rows, Times

BIN_US = 100_000

KINDS = (
    "connections",
    "metadata_requests",
    "produce_requests",  # without retries
    "produce_retries",
    "completed",  # operations, by the time of the response
    "expired",  # operations, by the time of delivery.timeout.ms
    "refused",
    "disconnects",  # connections that broke, with or without a request in flight
    "request_timeouts",
    "errors",
    "latency_us",  # sum over completed operations, from creation to response
    "queued_us",  # sum over requests of the time in the broker, by arrival
    "served",  # requests, by arrival
    "bytes",  # of Produce requests, by the time at which they were served
    "throttled_us",  # sum of throttle times, likewise
    "fetch_requests",
    "heartbeats",
    "coordinator_lookups",
    "fetched",  # records that consumers received, which are also completed
    "lag",  # records that consumers have not received, at the end of each second, in an open loop
    "session_timeouts",
    "dropped_syns",  # connection attempts, and their repetitions, that found the accept queue full
)
(
    CONNECTIONS, METADATA_REQUESTS, PRODUCE_REQUESTS, PRODUCE_RETRIES, COMPLETED, EXPIRED, REFUSED,
    DISCONNECTS, REQUEST_TIMEOUTS, ERRORS, LATENCY_US, QUEUED_US, SERVED, BYTES, THROTTLED_US,
    FETCH_REQUESTS, HEARTBEATS, COORDINATOR_LOOKUPS, FETCHED, LAG, SESSION_TIMEOUTS,
    DROPPED_SYNS,
) = range(len(KINDS))  # fmt: skip


class Counters:
    """Counts by bin and kind, until the end of the run."""

    def __init__(self, duration_us: int) -> None:
        self.bins = -(-duration_us // BIN_US)
        self.counts = np.zeros((self.bins, len(KINDS)), dtype=np.int64)
        self.now = 0  # the bin of the events that are handled

    def add(self, kind: int, count: int) -> None:
        self.counts[self.now, kind] += count

    def add_at(self, kind: int, at_us: Times, amounts: Rows | None = None) -> None:
        bins = at_us // BIN_US
        inside = bins < self.bins
        if amounts is None:
            found = np.bincount(bins[inside])
            self.counts[: len(found), kind] += found
        else:
            np.add.at(self.counts[:, kind], bins[inside], amounts[inside])
