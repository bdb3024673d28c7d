"""Several Produce requests in flight: when each was sent, and which fail together.

A broker reads one request of a connection at a time and mutes the connection until it has responded, and for the
throttle time (KIP-219). So a lane has one request in the broker; later ones wait in the connection. The simulation
handles a request when the broker reads it. It was sent when its first record existed and fewer than
`max.in.flight.requests.per.connection` were in flight.

If a request fails, those sent after it fail too: their connection is lost, or the broker has responded with
OUT_OF_ORDER_SEQUENCE_NUMBER, as to an idempotent producer. They are retried in order, one at a time, each with its own
backoff (Kafka's RecordAccumulator.shouldStopDrainBatchesForPartition). librdkafka without idempotence merges them.

Not simulated: a request that waits for a muted connection longer than its timeout fails only when the mute ends.
"""

from collections.abc import Callable

import numpy as np

from .arrays import Mask, Rows, Times
from .clients import Clients

_LARGEST = 2**16 - 1
BYTES_PER_CLIENT, BYTES_PER_REQUEST = 30, 8


class InFlight:
    def __init__(self, clients: Clients, one_way_us: int) -> None:
        count, limits = len(clients.models), clients.parameters.in_flight
        self._clients = clients
        self._round_trip_us = 2 * one_way_us
        # The times of the last responses, and where the next one is stored, over the oldest.
        self._responses = np.zeros((count, max(int(limits.max()), 1)), dtype=np.int64)
        self._oldest = np.zeros(count, dtype=np.uint8)
        self._sent_us = np.zeros(count, dtype=np.int64)  # of the next request, if the client has sent it; else 0
        # Batches that failed after the one that is retried: their number, end, and when they may be retried.
        self._failed = np.zeros(count, dtype=np.uint16)
        self._failed_until_us = np.zeros(count, dtype=np.int64)
        self._failed_retry_us = np.zeros(count, dtype=np.int64)
        self._unread = np.zeros(count, dtype=np.uint16)  # requests that are in the connection when one fails

    def pipelined(self, rows: Rows) -> Mask:
        found: Mask = self._clients.parameters.is_pipelined[self._clients.models[rows]]
        return found

    def send(self, rows: Rows, at_us: Times) -> Times:
        """Return when requests were sent that the broker reads at `at_us`."""
        sent_us, timeouts = self._sent_us[rows], self._clients.parameters.request_timeout_us[self._clients.models[rows]]
        earliest = np.maximum(self._clients.due_us[rows], at_us - timeouts + 1)
        found = np.where(sent_us > 0, np.minimum(np.maximum(sent_us, earliest), at_us), at_us)
        self._sent_us[rows] = found
        return found

    def forget(self, rows: Rows) -> None:
        """Note that no request waits in the connection."""
        self._sent_us[rows] = 0

    def responded(self, rows: Rows, ends: Times) -> None:
        limits = self._clients.parameters.in_flight[self._clients.models[rows]]
        self._responses[rows, self._oldest[rows]] = ends
        self._oldest[rows] = (self._oldest[rows] + 1) % np.maximum(limits, 1)

    def next_us(self, rows: Rows, later_us: Times, ends: Times) -> tuple[Times, Times]:
        """Return when the broker can read the next request, and when it could read one that exists already.

        Args:
            rows: Pipelined clients with a response at `ends`.
            later_us: Creation of the first record of the next request.
            ends: Times of the responses.
        """
        clients = self._clients
        throttled_us = clients.throttled_us[rows]
        sent_us = np.maximum(np.maximum(later_us, self._slots(rows, 0)), self._sent_us[rows])
        sent_us = np.where(sent_us >= ends, np.maximum(sent_us, throttled_us), sent_us)
        free_us = np.maximum(ends, throttled_us) - self._round_trip_us
        read_us = np.maximum(sent_us, free_us)
        retries = clients.failures[rows] > 0
        self._sent_us[rows] = np.where(retries, 0, sent_us)
        clients.throttled_us[rows] = np.where(retries, throttled_us, read_us)
        return np.where(retries, np.maximum(ends, later_us), read_us), np.where(retries, ends, free_us)

    def fail(self, rows: Rows, sent_us: Times, count_sent: Callable[[Times], None]) -> None:
        """Find the requests that are sent until one of each client fails, at `next_us`, and fail them too.

        Args:
            rows: Pipelined clients whose request fails.
            sent_us: When it was sent.
            count_sent: Called with the times of the later requests.
        """
        clients, parameters = self._clients, self._clients.parameters
        self._sent_us[rows] = 0
        may_send = self._failed[rows] == 0
        rows, sent_us = rows[may_send], sent_us[may_send]
        all_rows, models = rows, clients.models[rows]
        merges = parameters.retries_merge[models]
        periods, most = parameters.period_us[models], parameters.records_per_request[models]
        due = clients.due_us[rows] + clients.in_batch[rows] * periods
        step = 0
        while True:
            limits = parameters.in_flight[models]
            sent_us = np.maximum(np.maximum(due, sent_us), self._slots(rows, step))
            step += 1
            is_sent = (sent_us < clients.next_us[rows]) & ((step < limits) | (limits == 0))
            rows, models, sent_us, due = rows[is_sent], models[is_sent], sent_us[is_sent], due[is_sent]
            periods, most = periods[is_sent], most[is_sent]
            if not len(rows):
                break
            count_sent(sent_us)
            due = due + np.minimum((sent_us - due) // periods + 1, most) * periods
            self._failed[rows] = np.minimum(step, _LARGEST)
            self._failed_until_us[rows] = due
        self._unread[all_rows] = self._failed[all_rows]
        self._failed[all_rows[merges]] = 0
        clients.in_batch[all_rows[merges]] = 0  # filled again when it is retried
        kept = all_rows[self._failed[all_rows] > 0]
        waits = clients.retry_wait_us(kept, np.ones(len(kept), dtype=np.int64))
        self._failed_retry_us[kept] = clients.next_us[kept] + waits

    def take_unread(self, rows: Rows) -> Rows:
        """Return the number of requests in each connection, and forget them."""
        found: Rows = self._unread[rows].astype(np.int64)
        self._unread[rows] = 0
        return found

    def retry_next(self, rows: Rows) -> None:
        """Retry the next batch that failed, after the operation or batch before it has ended."""
        clients = self._clients
        rows = rows[self._failed[rows] > 0]
        periods = clients.parameters.period_us[clients.models[rows]]
        records = (self._failed_until_us[rows] - clients.due_us[rows]) // periods
        self._failed[rows[records <= 0]] = 0
        rows, records = rows[records > 0], records[records > 0]
        batches = self._failed[rows].astype(np.int64)
        clients.in_batch[rows] = -(-records // batches)
        clients.failures[rows] = 1
        clients.retry_us[rows] = self._failed_retry_us[rows]
        self._failed[rows] = batches - 1

    def _slots(self, rows: Rows, step: int) -> Times:
        """Return the response after which the request after the next `step` may be sent."""
        limits = self._clients.parameters.in_flight[self._clients.models[rows]]
        places = (self._oldest[rows].astype(np.int64) + step) % np.maximum(limits, 1)
        return np.where(limits > 0, self._responses[rows, places], 0)
