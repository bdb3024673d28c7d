"""The parameters of the models of a fleet, as arrays.

A client has a lane for each kind of request that it repeats: a consumer in a group has one for Fetch and one for
Heartbeat, a producer one for Produce.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sluice.fleet.models.client_model import ClientModel

from .arrays import NEVER, US_PER_MS, US_PER_S, Floats, Mask, Rows, Times
from .schedule import FETCH, FIND_COORDINATOR, HEARTBEAT, METADATA, PRODUCE

# Its backoff exceeds every maximum. Counting continues 32 lower, where a wrapped 32-bit shift is the same.
MOST_FAILURES, SHIFTS = 255, 32
_NO_TIMEOUT_US = NEVER // 2  # sums with times do not overflow
_SETUP_JITTER = 0.2
_MOST_IN_FLIGHT = 64  # the memory of a client grows with the limit


class Lane(NamedTuple):
    model: ClientModel
    work: int  # PRODUCE, FETCH or HEARTBEAT


def lanes_of(model: ClientModel) -> list[Lane]:
    if model.role == "producer":
        return [Lane(model, PRODUCE)]
    return [Lane(model, FETCH), *([Lane(model, HEARTBEAT)] if model.group_member else [])]


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
            products = ((1 << (failures[wraps] - 1) % SHIFTS) * base[wraps].astype(np.int64)).astype(np.int32)
            means[wraps] = np.maximum(products, 0)
        jitter = self.jitter[models]
        factor = 1 - jitter + 2 * jitter * unit
        waits = np.minimum(np.floor(means * factor), limit)
        waits = np.where((base >= limit) & ~wraps, limit, waits)
        return (waits * US_PER_MS).astype(np.int64)


class Parameters:
    def __init__(self, lanes: Sequence[Lane]) -> None:
        models = [lane.model for lane in lanes]

        def us(field: str) -> Times:
            return np.array([getattr(model, field) * US_PER_MS for model in models]).astype(np.int64)

        self.retry = _table(models, "retry")
        self.reconnect = _table(models, "reconnect")
        self.setup = _setup_table(models)
        self.reconnects_per_client = np.array([model.reconnect_backoff_scope == "client" for model in models])
        in_steps = np.array([model.reconnect_backoff_in_steps for model in models])
        self.steps_us = np.where(in_steps, np.maximum(us("reconnect_backoff_ms"), 1), 1)
        self.fetch_steps_us = np.where(in_steps, np.maximum(us("retry_backoff_ms"), 1), 1)
        self.request_timeout_us = us("request_timeout_ms")
        self.request_timeout_restarts = np.array([model.request_timeout_restarts for model in models])
        self.delivery_timeout_us = us("delivery_timeout_ms")
        self.metadata_max_age_us = us("metadata_max_age_ms")
        self.acks_all = np.array([model.acks == "all" for model in models])
        self.refreshes_at_once = np.array([model.metadata_refresh == "immediate" for model in models])
        self.queries = np.array([model.metadata_refresh == "query" for model in models])
        self.leader_errors_count = np.array([model.leader_errors_count for model in models])
        self.redraws = np.array([model.retry_backoff_redraws for model in models])
        self.redraws_metadata = np.array([model.metadata_backoff_redraws for model in models])
        self.period_us = np.array([US_PER_S / model.requests_per_s for model in models]).astype(np.int64)
        self.records_per_request = np.array([model.records_per_request for model in models], dtype=np.int64)
        self.record_bytes = np.array([model.record_bytes for model in models])
        self.is_open = np.array([model.loop == "open" for model in models])
        self.work = np.array([lane.work for lane in lanes], dtype=np.int64)
        in_flight = np.array([model.max_in_flight_requests_per_connection for model in models])
        in_flight[~self.is_open | (self.work != PRODUCE)] = 1
        self.in_flight = np.where(in_flight > _MOST_IN_FLIGHT, 0, in_flight)  # 0: any number
        self.is_pipelined = self.in_flight != 1
        # Whether Metadata is sent behind a request in flight.
        self.sends_behind = (self.is_pipelined | (self.work == FETCH)) & ~self.refreshes_at_once
        self.retries_merge = np.array([model.retries_merge for model in models])
        self.lookup = np.where(self.work == HEARTBEAT, FIND_COORDINATOR, METADATA)
        self.fetches, self.is_member = self.work == FETCH, self.work == HEARTBEAT
        self.fetch_steps_us[~self.fetches] = 1
        self.polls = self.fetches & self.request_timeout_restarts
        self.poll_us = np.maximum(us("poll_timeout_ms"), 1)
        self.fetch_wait_us = us("fetch_max_wait_ms")
        self.fetch_records = np.array([-(-model.fetch_min_bytes // model.record_bytes) for model in models], np.int64)
        self.fetch_waits = np.array([model.fetch_waits_for_metadata for model in models])
        self.finds_eagerly = np.array([model.coordinator_lookup == "eager" for model in models])
        self.waits_for_peer = self.is_member & ~self.refreshes_at_once  # aiokafka's coordinator connects to any broker
        # Kafka's poll looks for a lost coordinator before it fetches.
        self.joins = self.polls & np.array([model.group_member for model in models])
        self.acks_all |= self.fetches  # a fetch returns records up to the high watermark
        self.delivery_timeout_us[self.fetches] = _NO_TIMEOUT_US
        self.delivery_timeout_us[self.is_member] = us("session_timeout_ms")[self.is_member]
        self.period_us[self.is_member] = us("heartbeat_interval_ms")[self.is_member]
        self.metadata_max_age_us[self.is_member] = _NO_TIMEOUT_US
        for each in (self.is_open, self.refreshes_at_once, self.queries, self.acks_all):
            each[self.is_member] = False


def _setup_table(models: Sequence[ClientModel]) -> BackoffTable:
    base = np.array([model.socket_connection_setup_timeout_ms for model in models], dtype=np.float64)
    limit = np.array([model.socket_connection_setup_timeout_max_ms for model in models], dtype=np.float64)
    return _exponential(base, limit, np.full(len(base), 2.0), np.full(len(base), _SETUP_JITTER), base < 0)


def _table(models: Sequence[ClientModel], name: str) -> BackoffTable:
    def values(field: str) -> Floats:
        return np.array([getattr(model, f"{name}_backoff_{field}") for model in models], dtype=np.float64)

    wraps = np.array([name == "retry" and model.retry_backoff_wraps for model in models])
    return _exponential(values("ms"), values("max_ms"), values("multiplier"), values("jitter"), wraps)


def _exponential(base: Floats, limit: Floats, multiplier: Floats, jitter: Floats, wraps: Mask) -> BackoffTable:
    with np.errstate(divide="ignore", invalid="ignore"):  # a base of 0, or a multiplier of 1
        exponent_at_max = np.nan_to_num(np.log(limit / np.maximum(base, 1)) / np.log(multiplier), posinf=MOST_FAILURES)
    return BackoffTable(base, limit, multiplier, jitter, wraps, np.maximum(exponent_at_max, 0))
