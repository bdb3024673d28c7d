"""What a run counts, in bins of 100 ms."""

from enum import IntEnum, auto

import numpy as np

from .arrays import Rows, Times

BIN_US = 100_000


class Count(IntEnum):
    """What is counted; also the column of an array of counts."""

    CONNECTIONS = 0
    METADATA_REQUESTS = auto()
    PRODUCE_REQUESTS = auto()  # without retries
    PRODUCE_RETRIES = auto()
    COMPLETED = auto()  # operations, by the time of the response
    EXPIRED = auto()  # operations, by the time of delivery.timeout.ms
    REFUSED = auto()
    DISCONNECTS = auto()  # connections that broke, with or without a request in flight
    REQUEST_TIMEOUTS = auto()
    ERRORS = auto()
    LATENCY_US = auto()  # sum over completed operations, from creation to response
    QUEUED_US = auto()  # sum over requests of the time in the broker, by arrival
    SERVED = auto()  # requests, by arrival
    BYTES = auto()  # of Produce requests, by the time at which they were served
    THROTTLED_US = auto()  # sum of throttle times, likewise
    FETCH_REQUESTS = auto()
    HEARTBEATS = auto()
    COORDINATOR_LOOKUPS = auto()
    FETCHED = auto()  # records that consumers received, which are also completed
    LAG = auto()  # records that consumers have not received, at the end of each second, in an open loop
    SESSION_TIMEOUTS = auto()
    DROPPED_SYNS = auto()  # connection attempts, and their repetitions, that found the accept queue full


KINDS = tuple(kind.name.lower() for kind in Count)


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
