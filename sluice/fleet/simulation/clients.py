"""The state of all clients as arrays with a row for each lane (parameters.py).

Times are microseconds since the start. A lane has at most one request or connection attempt in flight. In the lane of a
group member, the leader is the coordinator, and Metadata is FindCoordinator.
"""

import numpy as np
import numpy.typing as npt

from .accept_queue import SYN_TIMES_US
from .arrays import Codes, Floats, Mask, Rows, Times, uniform
from .parameters import MOST_FAILURES, SHIFTS, Parameters

_MOST_REDRAWS = 11  # the probability that a client redraws more often is below 1/11!
# librdkafka's timer requests metadata and, without a connection, connects: to a broker of bootstrap.servers, then to a
# known one after a pause.
_TICK_US, _BETWEEN_TRIES_US = 1_000_000, 50_000
# The backoff of an eager lookup grows to 4 times the base: two threads of Kafka's consumer look up, one with a constant
# backoff. This limit gives the number of lookups of Kafka 4.4.
_MOST_EAGER = 3
# Kafka's Sender checks the backoff of a batch in RecordAccumulator.ready and in drain, that of metadata once.
_CHECKS_OF_BATCHES, _CHECKS_OF_METADATA = 2, 1
# Whether the next lookup of a coordinator follows new metadata: no; yes, requested after the backoff; yes, requested.
NOT_RENEWED, TO_RENEW, AWAITED = range(3)


class Clients:
    def __init__(
        self, seed: int, models: Rows, parameters: Parameters, partitions: int, brokers: int, coordinators: int = 1
    ) -> None:
        count = len(models)
        self.seed = seed
        self.models = models
        self.parameters = parameters
        self.partition = (np.arange(count) % partitions).astype(np.int16)
        # The lane whose connections FindCoordinator may use.
        self.peer, self.member = np.arange(count), np.arange(count)
        self.has_fetchers, self.has_members = bool(parameters.fetches.any()), bool(parameters.is_member.any())
        for lane in np.flatnonzero(parameters.is_member):
            members = np.flatnonzero(models == lane)
            self.peer[members] -= len(members)  # the Fetch lane of a client precedes
            self.member[self.peer[members]] = members
            self.partition[members] = partitions + np.arange(len(members)) // partitions % coordinators
        # When the last Fetch has its response.
        self.fetch_until_us = np.zeros(count if self.has_members else 0, dtype=np.int64)
        # When a broker reads the lookup that a member has sent behind a Fetch; 0 without one.
        self.read_us = np.zeros(count if self.has_members else 0, dtype=np.int64)
        self.renewal = np.zeros(count if self.has_members else 0, dtype=np.uint8)
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
        # Of a connection attempt: its first SYN, how many follow, and when it fails.
        self.syn_us = np.zeros(count, dtype=np.int64)
        self.syns = np.zeros(count, dtype=np.uint8)
        self.setup_until_us = np.zeros(count, dtype=np.int64)
        self._draws = np.zeros(count, dtype=np.uint32)
        # With "query" refreshes: the timer's phase, whether its first try failed, and whether the connection is to a
        # bootstrap address.
        self._tick_us = np.zeros(count, dtype=np.int64)
        queries = np.flatnonzero(parameters.queries[models])
        self._tick_us[queries] = self.draw(queries) * _TICK_US
        polling = np.flatnonzero(parameters.polls[models])
        self.poll_us = np.zeros(count, dtype=np.int64)  # the phase of the application's polls
        self.poll_us[polling] = self.draw(polling) * parameters.poll_us[models[polling]]
        self._tried_once = np.zeros(count, dtype=np.bool_)
        self.bootstraps = np.zeros(count, dtype=np.bool_)

    def draw(self, rows: Rows) -> Floats:
        drawn = uniform(self.seed, rows, self._draws[rows])
        self._draws[rows] += np.uint32(1)
        return drawn

    def count_failure(self, counts: Codes, rows: Rows) -> Rows:
        failures: Rows = counts[rows].astype(np.int64) + 1
        failures[failures > MOST_FAILURES] -= SHIFTS
        counts[rows] = failures
        return failures

    def retry_wait_us(self, rows: Rows, failures: Rows) -> Times:
        """Return the retry backoff of a batch."""
        return self._wait_us(rows, failures, self.parameters.redraws, _CHECKS_OF_BATCHES)

    def metadata_wait_us(self, rows: Rows, failures: Rows) -> Times:
        return self._wait_us(rows, failures, self.parameters.redraws_metadata, _CHECKS_OF_METADATA)

    def _lookup_wait_us(self, rows: Rows, failures: Rows) -> Times:
        return self.parameters.retry.wait_us(self.models[rows], failures, self.draw(rows))

    def _wait_us(self, rows: Rows, failures: Rows, redraws: Mask, checks: int) -> Times:
        """Return the retry backoff.

        A client that redraws draws again when a wait ends, `checks` times. If the first draw is longer than the wait,
        it waits for that long; if a later one is, it begins again.
        """
        table, models = self.parameters.retry, self.models[rows]
        waits = table.wait_us(models, failures, self.draw(rows))
        waiting = np.flatnonzero(redraws[models])
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
        """Delay the next Metadata request (Kafka's Metadata).

        The delay grows with responses in a row without a new leader, and restarts after metadata.max.age.ms.
        """
        self.metadata_failures[rows] = 0
        unchanged = np.where(
            self._is_old(rows, at_us), 1, np.minimum(self.unchanged[rows].astype(np.int64) + 1, MOST_FAILURES)
        )
        self.unchanged[rows] = np.where(is_news, 0, unchanged)
        self.refreshed_us[rows] = at_us
        self._delay_metadata(rows, at_us, np.ones(len(rows), dtype=np.int64))

    def _is_old(self, rows: Rows, at_us: Times) -> Mask:
        old: Mask = self.refreshed_us[rows] + self.parameters.metadata_max_age_us[self.models[rows]] <= at_us
        return old

    def _delay_metadata(self, rows: Rows, at_us: Times, failures: Rows) -> None:
        waits = self.metadata_wait_us(rows, failures)
        unchanged = self.unchanged[rows].astype(np.int64)
        for_unchanged = self.metadata_wait_us(rows, np.maximum(unchanged, 1))
        waits = np.maximum(waits, np.where(unchanged > 0, for_unchanged, 0))
        waits[self.parameters.refreshes_at_once[self.models[rows]]] = 0
        queries = self.parameters.queries[self.models[rows]]
        self.metadata_us[rows] = np.where(queries, self._next_tick_us(rows, at_us), at_us + waits)

    def connection_failed(self, rows: Rows, brokers: Rows, at_us: Times, was_requesting: Mask) -> None:
        """Disconnect clients, delay their next connection, and request metadata; a due Metadata request has failed."""
        is_due = was_requesting | (self.wants_metadata[rows] & (self.metadata_us[rows] <= at_us))
        is_due |= ~self.wants_metadata[rows] & self._is_old(rows, at_us)
        if self.has_members:
            is_member = self.parameters.is_member[self.models[rows]]
            is_due &= ~is_member
            self.coordinator_lost(rows[is_member], brokers[is_member], at_us[is_member])
        if is_due.any():
            self.metadata_failed(rows[is_due], at_us[is_due])
        models = self.models[rows]
        was_connected = self.connected[rows, brokers]
        self.connected[rows, brokers] = False
        counted = np.where(self.parameters.reconnects_per_client[models], 0, brokers)
        failures = np.minimum(self.connect_failures[rows, counted].astype(np.int64) + 1, MOST_FAILURES)
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
        self.want_metadata(rows, at_us)
        if self.has_members:
            self.wants_metadata[rows[is_member]] = self.leader[rows[is_member]] < 0

    def syn_dropped(self, rows: Rows) -> tuple[Times, Mask]:
        """Return when each connection attempt ends or sends the next SYN, and which fail then."""
        first = rows[self.syns[rows] == 0]
        models, brokers = self.models[first], self.target[first]
        counted = np.where(self.parameters.reconnects_per_client[models], 0, brokers)
        failures = self.connect_failures[first, counted].astype(np.int64)
        timeouts = self.parameters.setup.wait_us(models, failures + 1, self.draw(first))
        self.setup_until_us[first] = self.syn_us[first] + timeouts
        self.syns[rows] += 1
        next_us = self.syn_us[rows] + SYN_TIMES_US[self.syns[rows]]
        fails = next_us >= self.setup_until_us[rows]
        return np.where(fails, self.setup_until_us[rows], next_us), fails

    def coordinator_lost(self, rows: Rows, brokers: Rows, at_us: Times) -> None:
        """Look up the coordinator, and request metadata, as after any lost connection."""
        self.want(self.peer[rows], at_us)
        was_coordinator = self.leader[rows] == brokers
        lost = rows[was_coordinator]
        self.leader[lost] = -1
        self.renewal[lost] = NOT_RENEWED
        models, lost_us = self.models[lost], at_us[was_coordinator]
        is_eager = self.parameters.finds_eagerly[models]
        lost_us = lost_us + np.where(is_eager, self._lookup_wait_us(lost, np.ones(len(lost), dtype=np.int64)), 0)
        # Other clients notice the loss of an idle connection at the next heartbeat.
        notices = is_eager & self.parameters.waits_for_peer[models]
        self.metadata_us[lost] = np.where(notices, lost_us, np.maximum(lost_us, self.due_us[lost]))
        failed = ~was_coordinator & (self.leader[rows] < 0)
        self._lookup_failed(rows[failed], at_us[failed])

    def coordinator_received(self, rows: Rows, at_us: Times) -> None:
        """Use a coordinator, or look it up again if it is unknown or in its reconnect backoff."""
        found = self.leader[rows] >= 0
        found &= self.connected[rows, self.leader[rows]] | (self.connect_us[rows, self.leader[rows]] <= at_us)
        self.metadata_failures[rows[found]] = 0
        self.leader[rows[~found]] = -1
        self.wants_metadata[rows] = ~found
        self._lookup_failed(rows[~found], at_us[~found])

    def _lookup_failed(self, rows: Rows, at_us: Times) -> None:
        failures = self.count_failure(self.metadata_failures, rows)
        peers, is_eager = self.peer[rows], self.parameters.finds_eagerly[self.models[rows]]
        waits = self._lookup_wait_us(rows, np.where(is_eager, np.minimum(failures, _MOST_EAGER), failures))
        self.want(peers[is_eager], at_us[is_eager])
        self.metadata_us[rows] = at_us + waits
        self.renewal[rows] = np.where(is_eager, NOT_RENEWED, TO_RENEW)

    def usable(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return the brokers with a connection for Metadata or FindCoordinator."""
        connected: npt.NDArray[np.bool_] = self.connected[rows]
        return connected | self.connected[self.peer[rows]] if self.has_members else connected

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
        waits = self.metadata_wait_us(rows[queries], np.ones(np.count_nonzero(queries), dtype=np.int64))
        self.metadata_us[rows[queries]] = at_us[queries] + waits
        self.want_metadata(rows, at_us)

    def want_metadata(self, rows: Rows, at_us: Times) -> None:
        self.want(rows, at_us)
        self.begin_rounds(rows)

    def want(self, rows: Rows, at_us: Times) -> None:
        first, first_us = rows[~self.wants_metadata[rows]], at_us[~self.wants_metadata[rows]]
        self.wants_metadata[first] = True
        self.metadata_us[first] = np.maximum(self.metadata_us[first], first_us)

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
        self._start(at_us)

    def start_cold(self, at_us: Times) -> None:
        self.wants_metadata[:] = True
        self._start(at_us)

    def _start(self, at_us: Times) -> None:
        self.due_us[:] = at_us
        waits_us = self.parameters.fetch_wait_us[self.models]
        self.next_us[:] = np.where(self.parameters.fetches[self.models], at_us % waits_us, at_us)
