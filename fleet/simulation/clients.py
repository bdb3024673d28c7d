"""The state of all clients as arrays with a row for each client, and the parameters of their models.

Times are microseconds since the start. A client has at most one request or connection attempt in flight.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sluice.fleet.models.client_model import ClientModel

from .arrays import US_PER_MS, US_PER_S, Codes, Floats, Mask, Rows, Times
from .draws import uniform

# The largest count of failures: its backoff exceeds every maximum, and floats do not overflow. Counting continues 32
# lower, where a wrapped 32-bit shift is the same.
_MOST_FAILURES, _SHIFTS = 255, 32
_MOST_REDRAWS = 11  # the probability that a client redraws more often is below 1/11!
# librdkafka's timer, which requests metadata and, without a connection, connects: to a broker of bootstrap.servers and,
# if that fails, to a known one after a pause.
_TICK_US, _BETWEEN_TRIES_US = 1_000_000, 50_000
# Kafka's Sender checks the backoff of a batch in RecordAccumulator.ready and in drain, that of metadata once.
CHECKS_OF_BATCHES, _CHECKS_OF_METADATA = 2, 1


class BackoffTable(NamedTuple):
    base_ms: Floats
    max_ms: Floats
    multiplier: Floats
    jitter: Floats
    wraps: Mask
    exponent_at_max: Floats  # from which on the maximum is reached without jitter

    def wait_us(self, models: Rows, failures: Rows, unit: Floats) -> Times:
        """Return the wait after `failures` (at least 1) in a row; `unit` is drawn from 0 to 1."""
        base, limit = self.base_ms[models], self.max_ms[models]
        exponents = np.minimum(failures - 1, self.exponent_at_max[models])
        means = base * self.multiplier[models] ** exponents
        wraps = self.wraps[models]
        if wraps.any():
            products = ((1 << (failures[wraps] - 1) % _SHIFTS) * base[wraps].astype(np.int64)).astype(np.int32)
            means[wraps] = np.maximum(products, 0)
        jitter = self.jitter[models]
        factor = 1 - jitter + 2 * jitter * unit
        waits = np.minimum(np.floor(means * factor), limit)
        waits = np.where((base >= limit) & ~wraps, limit, waits)
        return (waits * US_PER_MS).astype(np.int64)


class Parameters:
    def __init__(self, models: Sequence[ClientModel]) -> None:
        def us(field: str) -> Times:
            return np.array([getattr(model, field) * US_PER_MS for model in models]).astype(np.int64)

        self.retry = _table(models, "retry")
        self.reconnect = _table(models, "reconnect")
        self.reconnects_per_client = np.array([model.reconnect_backoff_scope == "client" for model in models])
        self.request_timeout_us = us("request_timeout_ms")
        self.request_timeout_restarts = np.array([model.request_timeout_restarts for model in models])
        self.delivery_timeout_us = us("delivery_timeout_ms")
        self.metadata_max_age_us = us("metadata_max_age_ms")
        self.acks_all = np.array([model.acks == "all" for model in models])
        self.refreshes_at_once = np.array([model.metadata_refresh == "immediate" for model in models])
        self.queries = np.array([model.metadata_refresh == "query" for model in models])
        self.leader_errors_count = np.array([model.leader_errors_count for model in models])
        self.redraws = np.array([model.retry_backoff_redraws for model in models])
        self.period_us = np.array([US_PER_S / model.requests_per_s for model in models]).astype(np.int64)
        self.records_per_request = np.array([model.records_per_request for model in models], dtype=np.int64)
        self.record_bytes = np.array([model.record_bytes for model in models])
        self.is_open = np.array([model.loop == "open" for model in models])


def _table(models: Sequence[ClientModel], name: str) -> BackoffTable:
    def values(field: str) -> Floats:
        return np.array([getattr(model, f"{name}_backoff_{field}") for model in models], dtype=np.float64)

    base, limit, multiplier = values("ms"), values("max_ms"), values("multiplier")
    with np.errstate(divide="ignore", invalid="ignore"):  # a base of 0, or a multiplier of 1
        exponent_at_max = np.nan_to_num(np.log(limit / np.maximum(base, 1)) / np.log(multiplier), posinf=_MOST_FAILURES)
    return BackoffTable(
        base,
        limit,
        multiplier,
        values("jitter"),
        np.array([name == "retry" and model.retry_backoff_wraps for model in models]),
        np.maximum(exponent_at_max, 0),
    )


class Clients:
    """The state of the clients. Arrays by client, or by client and broker."""

    def __init__(self, seed: int, models: Rows, parameters: Parameters, partitions: int, brokers: int) -> None:
        count = len(models)
        self.seed = seed
        self.models = models
        self.parameters = parameters
        self.partition = (np.arange(count) % partitions).astype(np.int16)
        self.leader = np.full(count, -1, dtype=np.int16)
        # The next event: its time, its outcome, and the broker of the request in flight.
        self.next_us = np.zeros(count, dtype=np.int64)
        self.outcome = np.zeros(count, dtype=np.uint8)
        self.kind = np.zeros(count, dtype=np.int64)
        self.target = np.zeros(count, dtype=np.int16)
        self.new_leader = np.full(count, -1, dtype=np.int16)
        # The oldest unfinished operation: when it was created, its failures, and when it may be retried.
        self.due_us = np.zeros(count, dtype=np.int64)
        self.in_batch = np.zeros(count, dtype=np.int64)  # operations of the request that is retried
        self.failures = np.zeros(count, dtype=np.uint8)
        self.retry_us = np.zeros(count, dtype=np.int64)
        self.throttled_us = np.zeros(count, dtype=np.int64)  # end of the mute by a quota (KIP-219)
        self.wants_metadata = np.zeros(count, dtype=np.bool_)
        self.metadata_failures = np.zeros(count, dtype=np.uint8)
        self.unchanged = np.zeros(count, dtype=np.uint8)  # Metadata responses in a row without a new leader
        self.metadata_us = np.zeros(count, dtype=np.int64)  # when it may be requested
        self.refreshed_us = np.zeros(count, dtype=np.int64)
        # With "immediate" refreshes: brokers that were not tried yet, from a random first one on.
        self.untried = np.zeros(count, dtype=np.uint8)
        self.first_try = np.zeros(count, dtype=np.uint8)
        self.for_metadata = np.zeros(count, dtype=np.bool_)
        self.connected = np.zeros((count, brokers), dtype=np.bool_)
        self.connect_failures = np.zeros((count, brokers), dtype=np.uint8)
        self.connect_us = np.zeros((count, brokers), dtype=np.int64)  # when a connection may be tried
        self._draws = np.zeros(count, dtype=np.uint32)
        # With "query" refreshes: the phase of the timer, whether its first try failed, and whether the connection is to
        # a bootstrap address.
        self._tick_us = np.zeros(count, dtype=np.int64)
        queries = np.flatnonzero(parameters.queries[models])
        self._tick_us[queries] = self.draw(queries) * _TICK_US
        self._tried_once = np.zeros(count, dtype=np.bool_)
        self.bootstraps = np.zeros(count, dtype=np.bool_)

    def draw(self, rows: Rows) -> Floats:
        drawn = uniform(self.seed, rows, self._draws[rows])
        self._draws[rows] += np.uint32(1)
        return drawn

    def count_failure(self, counts: Codes, rows: Rows) -> Rows:
        failures: Rows = counts[rows].astype(np.int64) + 1
        failures[failures > _MOST_FAILURES] -= _SHIFTS
        counts[rows] = failures
        return failures

    def retry_wait_us(self, rows: Rows, failures: Rows, checks: int) -> Times:
        """Return the retry backoff after these numbers of failures.

        A client that redraws draws again when a wait ends, `checks` times. If the first of these draws is longer than
        the wait, it waits for that long; if a later one is, it begins again.
        """
        table, models = self.parameters.retry, self.models[rows]
        waits = table.wait_us(models, failures, self.draw(rows))
        waiting = np.flatnonzero(self.parameters.redraws[models])
        for _ in range(_MOST_REDRAWS):
            if len(waiting) == 0:
                break
            repeats = np.zeros(len(waiting), dtype=np.bool_)
            for check in range(checks):
                again = table.wait_us(models[waiting], failures[waiting], self.draw(rows[waiting]))
                is_longer = ~repeats & (again > waits[waiting])
                repeats |= is_longer
                if check == 0:
                    waits[waiting[is_longer]] = again[is_longer]
            waiting = waiting[repeats]
        return waits

    def metadata_failed(self, rows: Rows, at_us: Times) -> None:
        failures = self.count_failure(self.metadata_failures, rows)
        self.unchanged[rows] = 0
        self._delay_metadata(rows, at_us, failures)

    def metadata_received(self, rows: Rows, at_us: Times, *, is_news: Mask) -> None:
        """Delay the next Metadata request, by more if the leaders are unchanged (Kafka's Metadata)."""
        self.metadata_failures[rows] = 0
        unchanged = np.where(is_news, 0, np.minimum(self.unchanged[rows].astype(np.int64) + 1, _MOST_FAILURES))
        self.unchanged[rows] = unchanged
        self._delay_metadata(rows, at_us, np.ones(len(rows), dtype=np.int64))

    def _delay_metadata(self, rows: Rows, at_us: Times, failures: Rows) -> None:
        waits = self.retry_wait_us(rows, failures, _CHECKS_OF_METADATA)
        unchanged = self.unchanged[rows].astype(np.int64)
        for_unchanged = self.retry_wait_us(rows, np.maximum(unchanged, 1), _CHECKS_OF_METADATA)
        waits = np.maximum(waits, np.where(unchanged > 0, for_unchanged, 0))
        waits[self.parameters.refreshes_at_once[self.models[rows]]] = 0
        queries = self.parameters.queries[self.models[rows]]
        self.metadata_us[rows] = np.where(queries, self._next_tick_us(rows, at_us), at_us + waits)

    def connection_failed(self, rows: Rows, brokers: Rows, at_us: Times, was_requesting: Mask) -> None:
        """Disconnect clients, delay their next connection, and request metadata; a due Metadata request has failed."""
        is_due = was_requesting | (self.wants_metadata[rows] & (self.metadata_us[rows] <= at_us))
        if is_due.any():
            self.metadata_failed(rows[is_due], at_us[is_due])
        models = self.models[rows]
        was_connected = self.connected[rows, brokers]
        self.connected[rows, brokers] = False
        counted = np.where(self.parameters.reconnects_per_client[models], 0, brokers)
        failures = np.minimum(self.connect_failures[rows, counted].astype(np.int64) + 1, _MOST_FAILURES)
        self.connect_failures[rows, counted] = failures
        waits = self.parameters.reconnect.wait_us(models, failures, self.draw(rows))
        is_alone = self.parameters.queries[models] & ~self.connected[rows].any(axis=1)
        if is_alone.any():
            tries_again = is_alone & ~was_connected & ~self._tried_once[rows]
            self._tried_once[rows] = tries_again
            ticks = self._next_tick_us(rows, at_us) - at_us
            waits = np.where(is_alone, np.where(tries_again, _BETWEEN_TRIES_US, ticks), waits)
            self.bootstraps[rows[is_alone]] = False
        self.connect_us[rows, brokers] = at_us + waits
        per_client = self.parameters.reconnects_per_client[models]
        if per_client.any():
            self.connect_us[rows[per_client]] = (at_us + waits)[per_client, None]
        queries = self.parameters.queries[models] & ~self.wants_metadata[rows]
        self.metadata_us[rows[queries]] = self._next_tick_us(rows[queries], at_us[queries])
        self.want_metadata(rows)

    def _next_tick_us(self, rows: Rows, at_us: Times) -> Times:
        ticks: Times = at_us + 1 + (self._tick_us[rows] - at_us - 1) % _TICK_US
        return ticks

    def connected_to_bootstrap(self, rows: Rows, brokers: Rows, at_us: Times) -> None:
        """Forget the leader of clients whose only connection is to its address in bootstrap.servers."""
        is_only = self.parameters.queries[self.models[rows]] & (self.connected[rows].sum(axis=1) == 1)
        begins = is_only & (self.leader[rows] == brokers) & ~self.bootstraps[rows]
        self.bootstraps[rows[is_only]] = begins[is_only]
        chosen = rows[begins]
        self.leader[chosen] = -1
        self.wants_metadata[chosen] = True
        self.metadata_us[chosen] = self._next_tick_us(chosen, at_us[begins])

    def leader_lost(self, rows: Rows, at_us: Times) -> None:
        queries = self.parameters.queries[self.models[rows]] & ~self.wants_metadata[rows]
        waits = self.retry_wait_us(rows[queries], np.ones(np.count_nonzero(queries), dtype=np.int64), 1)
        self.metadata_us[rows[queries]] = at_us[queries] + waits
        self.want_metadata(rows)

    def want_metadata(self, rows: Rows) -> None:
        self.wants_metadata[rows] = True
        self.begin_rounds(rows)

    def begin_rounds(self, rows: Rows) -> None:
        begins = rows[self.parameters.refreshes_at_once[self.models[rows]] & (self.untried[rows] == 0)]
        if len(begins):
            brokers = self.connected.shape[1]
            self.untried[begins] = brokers
            self.first_try[begins] = self.draw(begins) * brokers

    def try_next_broker(self, rows: Rows, brokers: Rows, at_us: Times) -> None:
        self.connected[rows, brokers] = False
        self.untried[rows] -= 1
        ended = rows[self.untried[rows] == 0]
        self.wants_metadata[ended] = False
        self.refreshed_us[rows] = np.where(self.untried[rows] == 0, at_us, self.refreshed_us[rows])

    def start_warm(self, at_us: Times, leaders: npt.NDArray[np.int16]) -> None:
        rows = np.arange(len(self.models))
        leader = leaders[self.partition]
        has_leader = leader >= 0
        self.leader[:] = leader
        self.connected[rows[has_leader], leader[has_leader]] = True
        ages = self.draw(rows) * self.parameters.metadata_max_age_us[self.models]
        self.unchanged[:] = 1  # the last response, after the maximum age, brought no news
        self.refreshed_us[:] = -ages.astype(np.int64)
        self.due_us[:] = at_us
        self.next_us[:] = at_us

    def start_cold(self, at_us: Times) -> None:
        self.wants_metadata[:] = True
        self.due_us[:] = at_us
        self.next_us[:] = at_us
