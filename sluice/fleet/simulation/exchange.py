"""From a client's request to its response: network, faults, the broker's queue, and timeouts."""

from enum import IntEnum, auto

import numpy as np

from sluice.broker.faults.matching.schedule import Schedule as FaultSchedule
from sluice.broker.faults.matching.schedule import new_schedule

from .accept_queue import AcceptQueue
from .arrays import NEVER, US_PER_MS, Codes, Floats, Mask, Rows, Times, uniform
from .broker import BrokerModel, CpuQueue
from .clients import Clients
from .counters import Count, Counters
from .quota import Quotas
from .schedule import CONNECT, FETCH, NO_LEADER, PRODUCE, Effect, Schedule


class Outcome(IntEnum):
    """What becomes of a request or a connection attempt; TIMER: neither is in flight."""

    TIMER = 0
    CONNECTED = auto()
    CONNECT_REFUSED = auto()
    CONNECT_CLOSED = auto()
    SUCCEEDED = auto()
    NOT_LEADER_RECEIVED = auto()
    RETRIABLE_RECEIVED = auto()
    METADATA_RECEIVED = auto()
    DISCONNECTED = auto()
    REQUEST_TIMED_OUT = auto()
    SYN_DROPPED = auto()


# By kind of request.
_SUCCESS = np.array(
    [Outcome.CONNECTED, Outcome.METADATA_RECEIVED, *[Outcome.SUCCEEDED] * 3, Outcome.METADATA_RECEIVED], dtype=np.uint8
)
_CLOSED = np.array([Outcome.CONNECT_CLOSED, *[Outcome.DISCONNECTED] * 5], dtype=np.uint8)
# A connection takes two packets before the client can send ApiVersions.
_HANDSHAKE_PACKETS = 2
# Faults draw from another sequence than clients, so that they do not change the jitter.
_FAULT_SEED = 0x5EED


class Exchange:
    def __init__(
        self, schedule: Schedule, model: BrokerModel, clients: Clients, counters: Counters, quotas: Quotas | None
    ) -> None:
        self._schedule = schedule
        self._starts = schedule.starts_us
        self._next_stop = schedule.next_stop_us()
        self._next_move = schedule.next_move_us()
        self._up = np.array([segment.up for segment in schedule.segments])
        self._leaders = schedule.leaders()
        self._replicated_us = np.array([segment.replicated_us for segment in schedule.segments])
        self._waits_for_replicas = bool(self._replicated_us.any())
        self._fault_ends = schedule.fault_ends_us()
        self._fault_schedules = {
            id(fault): new_schedule(fault.schedule[0], None, fault.schedule[1], fault.schedule[2])
            for segment in schedule.segments
            for fault in segment.faults
            if fault.schedule is not None
        }
        self._has_faults = any(segment.faults for segment in schedule.segments)
        small_us = model.metadata_us
        self._costs = np.array(
            [model.connection_us, small_us, model.produce_us, model.fetch_us, small_us, small_us], dtype=np.float64
        )
        self._byte_us = model.kilobyte_us / 1000
        self._quotas = quotas
        self._one_way_us = int(model.network_us)
        self._clients = clients
        self._counters = counters
        self._queues = [CpuQueue() for _ in range(schedule.brokers)]
        self._accepting = [AcceptQueue(model.accept_us, model.backlog) for _ in range(schedule.brokers)]
        self._fault_draws = np.zeros(len(clients.models), dtype=np.uint32)

    def begin_window(self) -> None:
        for queue, accepting in zip(self._queues, self._accepting, strict=True):
            queue.begin_window()
            accepting.begin_window()

    def broker_stopped(self, broker: int) -> None:
        self._queues[broker].restart()
        self._accepting[broker].restart()

    def send(self, rows: Rows, brokers: Rows, kinds: Rows, at_us: Times, sent_us: Times) -> None:
        """Send a request of each client, and set its next event.

        Args:
            rows: The clients.
            brokers: To which each sends.
            kinds: The kinds of the requests.
            at_us: One packet before the broker reads it.
            sent_us: When the client sends it; the beginning of its timeout.
        """
        clients, one_way = self._clients, self._one_way_us
        arrivals = at_us + one_way
        segments = np.searchsorted(self._starts, arrivals, side="right") - 1
        connects = kinds == CONNECT
        outcomes = _SUCCESS[kinds]
        refused = ~self._up[segments, brokers]
        served = refused ^ True
        queued = arrivals + np.where(connects, _HANDSHAKE_PACKETS * one_way, 0)
        ends = np.where(connects, arrivals, queued)
        if self._has_faults:
            effects, delays, fault_ends = self._effects(rows, brokers, kinds, arrivals, segments)
            refused |= effects == Effect.REFUSED
            served &= effects != Effect.REFUSED
        dropped = self._drop(brokers, arrivals, served & connects)
        served[dropped] = False
        sizes = self._sizes(rows, kinds)
        ends[served] = self._serve(brokers[served], kinds[served], sizes[served], queued[served])
        if self._quotas is not None:
            self._throttle(rows[served], brokers[served], sizes[served], ends[served], segments[served])
        if self._has_faults:
            silent = served & (effects == Effect.SILENT)
            ends[silent] = fault_ends[silent]  # sluice answers when the rule is removed
        if self._waits_for_replicas:
            waits = np.flatnonzero(served & (kinds == PRODUCE) & clients.parameters.acks_all[clients.models[rows]])
            ends[waits] = np.maximum(ends[waits], self._replicated_us[segments[waits], clients.partition[rows[waits]]])
        if clients.has_fetchers and (fetched := served & (kinds == FETCH)).any():
            handled = queued
            if self._has_faults:
                fetched &= (effects == Effect.ANSWERED) | silent
                handled = np.where(silent, ends, queued)  # it waits from then on
            of_fetches = rows[fetched], brokers[fetched], handled[fetched], ends[fetched], segments[fetched]
            ends[fetched] = self._hold(*of_fetches)
        stops = self._next_stop[segments, brokers]
        broken = served & (ends >= stops)
        ends = np.where(broken, stops, ends) + one_way
        lost = broken | refused
        outcomes[lost] = _CLOSED[kinds[lost]]
        outcomes[refused & connects] = Outcome.CONNECT_REFUSED
        succeeded = outcomes == Outcome.SUCCEEDED
        led_by = self._leaders[segments, clients.partition[rows]]
        outcomes[succeeded & (led_by != brokers)] = Outcome.NOT_LEADER_RECEIVED
        if clients.has_fetchers:
            moved = (
                succeeded & (kinds == FETCH) & (ends - one_way >= self._next_move[segments, clients.partition[rows]])
            )
            outcomes[moved] = Outcome.NOT_LEADER_RECEIVED
        received = outcomes == Outcome.METADATA_RECEIVED
        if received.any():
            clients.new_leader[rows[received]] = self._leaders[segments[received], clients.partition[rows[received]]]
        if self._has_faults:
            ends += delays
            self._fail(rows, kinds, effects, outcomes)
        # The kernel accepts connections, so a slow broker delays the response to ApiVersions.
        limits = np.where(connects, queued, sent_us) + clients.parameters.request_timeout_us[clients.models[rows]]
        late = ends > limits
        if late.any():
            limits[late] += self._restarts_us(rows[late], kinds[late], sent_us[late])
            late &= ends > limits
        ends[late], outcomes[late] = limits[late], Outcome.REQUEST_TIMED_OUT
        clients.next_us[rows] = ends
        clients.outcome[rows] = outcomes
        clients.target[rows] = brokers
        if len(dropped):
            chosen = rows[dropped]
            clients.next_us[chosen], fails = clients.syn_dropped(chosen)
            clients.outcome[chosen] = np.where(fails, Outcome.REQUEST_TIMED_OUT, Outcome.SYN_DROPPED)

    def _drop(self, brokers: Rows, arrivals: Times, connects: Mask) -> Rows:
        """Return the connection attempts that find the accept queue full, as indices."""
        found = []
        attempts = np.flatnonzero(connects)
        for broker in np.unique(brokers[attempts]):
            chosen = attempts[brokers[attempts] == broker]
            found.append(chosen[~self._accepting[broker].admit(arrivals[chosen])])
        dropped = np.concatenate(found) if found else attempts
        self._counters.add_at(Count.DROPPED_SYNS, arrivals[dropped])
        return dropped

    def _hold(self, rows: Rows, brokers: Rows, arrivals: Times, served_us: Times, segments: Rows) -> Times:
        """Return when each Fetch is answered: with its bytes, after its wait, or when the leader moves."""
        clients, parameters, models = self._clients, self._clients.parameters, self._clients.models[rows]
        partitions, due, period = clients.partition[rows], clients.due_us[rows], parameters.period_us[models]
        readable_us = self._replicated_us[segments, partitions]
        is_open = parameters.is_open[models]
        last = np.where(is_open, due + (parameters.fetch_records[models] - 1) * period, due)
        ready_us = np.minimum(np.maximum(last, readable_us), arrivals + parameters.fetch_wait_us[models])
        ends = np.maximum(served_us, ready_us)
        is_leader = self._leaders[segments, partitions] == brokers
        ends = np.where(
            is_leader, np.minimum(ends, np.maximum(self._next_move[segments, partitions], served_us)), served_us
        )
        records = np.where(is_open, (ends - due) // period + 1, ends >= due)
        records[ends < readable_us] = 0
        clients.in_batch[rows] = np.clip(records, 0, np.where(is_open, parameters.records_per_request[models], 1))
        return ends

    def _restarts_us(self, rows: Rows, kinds: Rows, at_us: Times) -> Times:
        """Return how much later a poll's end detects a timeout."""
        clients, parameters, models = self._clients, self._clients.parameters, self._clients.models[rows]
        periods, timeouts = parameters.period_us[models], parameters.request_timeout_us[models]
        created_us = clients.due_us[rows] + clients.in_batch[rows] * periods - at_us
        restarts = (kinds == PRODUCE) & parameters.request_timeout_restarts[models] & parameters.is_open[models]
        restarts &= (created_us > 0) & (created_us < timeouts)
        # Records begin batches until one waits because the requests in flight are as many as may be.
        begun, limits = (timeouts - created_us - 1) // periods + 1, parameters.in_flight[models]
        is_full = (limits > 0) & (begun >= limits)
        last_us = created_us + (np.where(is_full, limits, begun) - 1) * periods
        last_us = np.where(is_full, last_us, np.minimum(last_us, created_us + begun * periods - timeouts))
        delays: Times = np.where(restarts, last_us, 0)
        if (polls := (kinds == FETCH) & parameters.polls[models]).any():
            limits = at_us[polls] + parameters.request_timeout_us[models[polls]]
            fetchers, members = rows[polls], clients.member[rows[polls]]
            beats = _until(clients.due_us[members], limits, parameters.period_us[clients.models[members]])
            beats[members == fetchers] = NEVER
            delays[polls] = np.minimum(
                _until(clients.poll_us[fetchers], limits, parameters.poll_us[models[polls]]), beats
            )
        return delays

    def _sizes(self, rows: Rows, kinds: Rows) -> Floats:
        clients = self._clients
        bytes_ = clients.in_batch[rows] * clients.parameters.record_bytes[clients.models[rows]]
        return np.where(kinds == PRODUCE, bytes_, 0.0)

    def _throttle(self, rows: Rows, brokers: Rows, sizes: Floats, served_us: Times, segments: Rows) -> None:
        assert self._quotas is not None
        produced = np.flatnonzero(sizes)
        rows, at_us = rows[produced], served_us[produced]
        waits = self._quotas.charge(rows, brokers[produced], sizes[produced], at_us, segments[produced])
        self._clients.throttled_us[rows] = at_us + self._one_way_us + waits
        self._counters.add_at(Count.THROTTLED_US, at_us, waits)

    def _serve(self, brokers: Rows, kinds: Rows, sizes: Floats, queued: Times) -> Times:
        done = self._queue(brokers, queued, self._costs[kinds] + sizes * self._byte_us)
        self._counters.add_at(Count.SERVED, queued)
        self._counters.add_at(Count.BYTES, done, sizes.astype(np.int64))
        self._counters.add_at(Count.QUEUED_US, queued, done - queued)
        return done

    def _queue(self, brokers: Rows, queued: Times, costs: Floats) -> Times:
        done = np.empty(len(brokers), dtype=np.int64)
        for broker in np.unique(brokers) if len(self._queues) > 1 else range(min(len(brokers), 1)):
            chosen = brokers == broker
            done[chosen] = self._queues[broker].serve(queued[chosen], costs[chosen])
        return done

    def serve_unread(self, rows: Rows, brokers: Rows, requests: Rows, at_us: Times) -> Times:
        """Serve the Produce requests in each connection after one with an error; return when the client may retry."""
        sizes = self._sizes(rows, np.full(len(rows), PRODUCE))
        done = self._queue(brokers, at_us, requests * (self._costs[PRODUCE] + sizes * self._byte_us))
        self._counters.add_at(Count.SERVED, at_us, requests)
        self._counters.add_at(Count.QUEUED_US, at_us, done - at_us)
        return done - self._one_way_us

    def _effects(
        self, rows: Rows, brokers: Rows, kinds: Rows, arrivals: Times, segments: Rows
    ) -> tuple[Rows, Times, Times]:
        """Return for each request the first fault that hits it: its effect, delay and end."""
        fault_ends = np.zeros(len(rows), dtype=np.int64)
        effects = np.full(len(rows), Effect.ANSWERED, dtype=np.int64)
        delays = np.zeros(len(rows), dtype=np.int64)
        is_free = np.ones(len(rows), dtype=np.bool_)
        for segment in np.unique(segments):
            for fault in self._schedule.segments[segment].faults:
                hit = is_free & (segments == segment) & fault.brokers[brokers] & np.isin(kinds, list(fault.kinds))
                if not fault.partitions.all():
                    hit &= fault.partitions.take(self._clients.partition[rows], mode="clip")  # members have others
                if fault.probability < 1 and hit.any():
                    hit[hit] = self._draw(rows[hit]) < fault.probability
                if fault.schedule is not None:
                    hit[hit] = _hits(self._fault_schedules[id(fault)], arrivals[hit])
                effects[hit], fault_ends[hit] = fault.outcome, self._fault_ends[id(fault)]
                delays[hit] = self._delays(rows[hit], *fault.delay_us)
                is_free &= ~hit
        return effects, delays, fault_ends

    def _delays(self, rows: Rows, least_us: int, most_us: int) -> Times | int:
        if least_us == most_us:
            return least_us
        return least_us + (self._draw(rows) * (most_us - least_us)).astype(np.int64)

    def _draw(self, rows: Rows) -> Floats:
        drawn = uniform(self._clients.seed ^ _FAULT_SEED, rows, self._fault_draws[rows])
        self._fault_draws[rows] += np.uint32(1)
        return drawn

    def _fail(self, rows: Rows, kinds: Rows, effects: Rows, outcomes: Codes) -> None:
        answered = outcomes == _SUCCESS[kinds]
        for effect, outcome in (
            (Effect.NOT_LEADER, Outcome.NOT_LEADER_RECEIVED),
            (Effect.RETRIABLE, Outcome.RETRIABLE_RECEIVED),
        ):
            outcomes[answered & (effects == effect)] = outcome
        closed = answered & (effects == Effect.CLOSED)
        outcomes[closed] = _CLOSED[kinds[closed]]
        self._clients.new_leader[rows[answered & (effects == Effect.NO_LEADER_KNOWN)]] = NO_LEADER


def _until(phases: Times, at_us: Times, periods: Times) -> Times:
    """Return the waits from `at_us` until the next of the times `phases + n * periods`."""
    waits: Times = 1 + (phases - at_us - 1) % periods
    return waits


def _hits(schedule: FaultSchedule, arrivals: Times) -> Mask:
    hits = np.empty(len(arrivals), dtype=np.bool_)
    for index in np.argsort(arrivals, kind="stable"):
        hits[index] = schedule.hits(arrivals[index] / US_PER_MS)
    return hits
