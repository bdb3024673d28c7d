"""The model of a broker: one queue of CPU time, first in, first out."""

from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct
from msgspec.structs import replace

from .arrays import Times

_Backlog = Annotated[int, Meta(ge=0, le=65_535, description="a number of connections, up to 65535")]
_Us = Annotated[float, Meta(gt=0, le=1e6, description="microseconds, more than 0, at most 1000000")]


class BrokerModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The CPU time of a broker for each request and connection, in microseconds.

    Args:
        produce_us, fetch_us: For one request. Includes reading and writing.
        metadata_us: For Metadata, Heartbeat and FindCoordinator.
        kilobyte_us: For 1,000 bytes of a Produce request, in addition.
        connection_us: For a new connection with its ApiVersions request.
        accept_us: Time from one accepted connection to the next. The thread that accepts waits for no request.
        backlog: Connections that wait to be accepted, at most one more (socket.listen.backlog.size).
        close_us: Time from one closed connection to the next when a broker stops; the system closes them one by one.
        network_us: Time of a packet from a client to the broker or back.
    """

    produce_us: _Us
    metadata_us: _Us
    connection_us: _Us
    fetch_us: _Us = 39
    accept_us: _Us = 20
    backlog: _Backlog = 50
    close_us: _Us = 12
    kilobyte_us: _Us = 1.5
    network_us: _Us = 250

    def scaled_to(self, requests_per_s: float) -> "BrokerModel":
        """Return a broker that serves this many Produce requests per second, scaling all costs."""
        factor = 1e6 / requests_per_s / self.produce_us
        costs = ("produce_us", "metadata_us", "fetch_us", "connection_us", "accept_us", "kilobyte_us")
        return replace(self, **{name: getattr(self, name) * factor for name in costs})


# CPU measured on a core of 2.1 GHz: small requests on 8 connections with 16 in flight, batches of 1 MB, 1,000 new
# connections, for Kafka after 6,000 others that let it compile its code. Fetch: Produce times the ratio of both in a
# run (43.1 to 37.3 µs of Kafka, 5.05 to 5.46 of sluice). Accepting: the thread's time for 1,000 connections without
# requests. Both listen with Kafka's default backlog. Closing: by Linux, for 500 connections of a killed process.
BROKERS = {
    "kafka": BrokerModel(produce_us=34, metadata_us=31, connection_us=450),
    "sluice": BrokerModel(produce_us=7.2, metadata_us=8.4, connection_us=190, fetch_us=6.7, accept_us=27),
}


class CpuQueue:
    """The queue of one broker. `serve` may be called several times for one window of time.

    Requests of a later call are served in order of arrival among those of earlier calls, whose results do not change.
    The end of all work is exact.
    """

    __slots__ = ("_arrivals", "_costs", "_idle_from", "_window_from")

    def __init__(self) -> None:
        self.restart()

    def begin_window(self) -> None:
        self._window_from = self._idle_from
        self._arrivals = self._costs = np.empty(0)

    def restart(self) -> None:
        self._idle_from = 0.0
        self.begin_window()

    def serve(self, arrivals: Times, costs: npt.NDArray[np.float64]) -> Times:
        known = len(self._arrivals)
        self._arrivals = np.concatenate((self._arrivals, arrivals.astype(np.float64)))
        self._costs = np.concatenate((self._costs, costs))
        order = np.argsort(self._arrivals, kind="stable")
        # The end of the n-th request is the latest, over all m up to n, of "m arrived, then all from m to n ran".
        work = np.cumsum(self._costs[order])
        starts = self._arrivals[order] - (work - self._costs[order])
        ends = np.maximum(np.maximum.accumulate(starts), self._window_from) + work
        self._idle_from = float(ends[-1])
        served = np.empty(len(ends))
        served[order] = ends
        return np.ceil(served[known:]).astype(np.int64)
