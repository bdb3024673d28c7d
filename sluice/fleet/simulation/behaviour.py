"""What clients do: a vectorised NetworkClient with a Sender, one decision for each client whose event is due.

    outcome of the request in flight -> state (failures, backoffs, connections, leader)
    state -> expire operations, then the first of: Metadata, the lane's request, a connection, wait

As in Kafka's client, a failed connection and NOT_LEADER_OR_FOLLOWER request metadata, and a response without news
delays the next Metadata request like a failure.

Different from Kafka: only Produce requests are pipelined (in_flight.py). A lane opens one connection at a time, and
connects to another broker only for metadata. Groups do not rebalance.
"""

from collections.abc import Mapping

import numpy as np

from .arrays import NEVER, Codes, Mask, Rows, Times
from .broker import BrokerModel
from .clients import AWAITED, NOT_RENEWED, TO_RENEW, Clients
from .counters import Count, Counters
from .exchange import Exchange, Outcome
from .in_flight import InFlight
from .schedule import CONNECT, FETCH, FIND_COORDINATOR, HEARTBEAT, METADATA, PRODUCE, REQUESTS

# By kind of request.
TRACED = (
    "connections", "metadata_requests", "produce_requests", "fetch_requests", "heartbeats", "coordinator_lookups",
)  # fmt: skip
_SENT = (
    (CONNECT, Count.CONNECTIONS),
    (FETCH, Count.FETCH_REQUESTS),
    (HEARTBEAT, Count.HEARTBEATS),
    (FIND_COORDINATOR, Count.COORDINATOR_LOOKUPS),
)

_IS_LOST = np.zeros(16, dtype=np.bool_)
_IS_LOST[[Outcome.CONNECT_REFUSED, Outcome.CONNECT_CLOSED, Outcome.DISCONNECTED, Outcome.REQUEST_TIMED_OUT]] = True
_COUNTED = (
    (Outcome.CONNECT_REFUSED, Count.REFUSED),
    (Outcome.CONNECT_CLOSED, Count.DISCONNECTS),
    (Outcome.DISCONNECTED, Count.DISCONNECTS),
    (Outcome.REQUEST_TIMED_OUT, Count.REQUEST_TIMEOUTS),
    (Outcome.NOT_LEADER_RECEIVED, Count.ERRORS),
    (Outcome.RETRIABLE_RECEIVED, Count.ERRORS),
)


class Behaviour:
    def __init__(
        self,
        clients: Clients,
        exchange: Exchange,
        counters: Counters,
        model: BrokerModel,
        trace: Mapping[str, list[Times]] | None,
    ) -> None:
        self._clients = clients
        self._exchange = exchange
        self._counters = counters
        self._one_way_us, self._close_us = int(model.network_us), model.close_us
        self._trace = trace
        self._in_flight = InFlight(clients, self._one_way_us) if clients.parameters.is_pipelined.any() else None

    def handle(self, rows: Rows) -> Rows:
        """Return the clients with new events."""
        clients = self._clients
        at_us = clients.next_us[rows]
        outcomes = clients.outcome[rows]
        all_rows, woken = rows, rows[:0]
        if outcomes.any():
            repeats = outcomes == Outcome.SYN_DROPPED
            if repeats.any():
                self._repeat_syns(rows[repeats], at_us[repeats])
                rows, at_us, outcomes = rows[~repeats], at_us[~repeats], outcomes[~repeats]
            self._apply(rows, at_us, outcomes)
            if clients.has_members:
                woken = self._wake(rows, at_us, outcomes)
        if clients.has_members:
            woken = np.concatenate((woken, self._renew(rows, at_us)))
        self._decide(rows, at_us)
        return np.concatenate((all_rows, woken)) if len(woken) else all_rows

    def _repeat_syns(self, rows: Rows, at_us: Times) -> None:
        connects = np.full(len(rows), CONNECT, dtype=np.int64)
        self._exchange.send(rows, self._clients.target[rows].astype(np.int64), connects, at_us, at_us)

    def _wake(self, rows: Rows, at_us: Times, outcomes: Codes) -> Rows:
        clients, joins = self._clients, self._clients.parameters.joins
        received = np.flatnonzero(
            (outcomes == Outcome.METADATA_RECEIVED) & (clients.renewal[clients.member[rows]] == AWAITED)
        )
        members, received_us = clients.member[rows[received]], at_us[received]
        clients.renewal[members], clients.metadata_us[members] = NOT_RENEWED, received_us
        clients.read_us[members] = received_us  # the lookup precedes the next Fetch
        is_idle = (clients.outcome[members] == Outcome.TIMER) & (clients.next_us[members] > received_us)
        members, received_us = members[is_idle], received_us[is_idle]
        clients.next_us[members] = received_us
        peers = clients.peer[rows]
        found = (outcomes == Outcome.METADATA_RECEIVED) & (clients.leader[rows] >= 0) & (peers != rows)
        found &= (
            joins[clients.models[peers]] & (clients.outcome[peers] == Outcome.TIMER) & (clients.next_us[peers] > at_us)
        )
        found &= ~np.isin(peers, rows)
        clients.next_us[peers[found]] = at_us[found]
        return np.concatenate((peers[found], members))

    def _renew(self, rows: Rows, at_us: Times) -> Rows:
        """Request metadata for lookups whose backoff has ended; return the idle clients that send it."""
        clients = self._clients
        due = np.flatnonzero((clients.renewal[rows] == TO_RENEW) & (clients.metadata_us[rows] <= at_us))
        if not len(due):
            return rows[:0]
        members, due_us = rows[due], at_us[due]
        clients.renewal[members], clients.metadata_us[members] = AWAITED, NEVER
        peers = clients.peer[members]
        clients.want(peers, due_us)
        from_us = np.maximum(clients.metadata_us[peers], due_us)
        is_idle = (clients.outcome[peers] == Outcome.TIMER) & (clients.fetch_until_us[peers] <= due_us)
        is_idle &= clients.next_us[peers] > from_us
        idle: Rows = peers[is_idle]
        clients.next_us[idle] = from_us[is_idle]
        return idle

    def broker_stopped(self, broker: int, at_us: int) -> Rows:
        """Break the connections to a broker; return the idle clients, which notice it now."""
        clients = self._clients
        self._exchange.broker_stopped(broker)
        is_busy = clients.outcome != Outcome.TIMER
        rows = np.flatnonzero(clients.connected[:, broker] & ~(is_busy & (clients.target == broker)))
        if self._in_flight is not None:
            self._in_flight.forget(rows)
        noticed_us = at_us + self._one_way_us + (np.arange(len(rows)) * self._close_us).astype(np.int64)
        self._counters.add(Count.DISCONNECTS, len(rows))
        clients.connection_failed(rows, np.full(len(rows), broker), noticed_us, np.zeros(len(rows), dtype=np.bool_))
        idle: Rows = rows[~is_busy[rows]]
        clients.next_us[idle] = noticed_us[~is_busy[rows]]
        return idle

    # -- outcomes ------------------------------------------------------------------------------------------------------

    def _apply(self, rows: Rows, at_us: Times, outcomes: Codes) -> None:
        clients = self._clients
        for outcome, counter in _COUNTED:
            count = np.count_nonzero(outcomes == outcome)
            if count:
                self._counters.add(counter, int(count))
        targets = clients.target[rows].astype(np.int64)
        ready = outcomes == Outcome.CONNECTED
        if ready.any():
            clients.connected[rows[ready], targets[ready]] = True
            clients.connected_to_bootstrap(rows[ready], targets[ready], at_us[ready])
            per_client = clients.parameters.reconnects_per_client[clients.models[rows[ready]]]
            clients.connect_failures[rows[ready], np.where(per_client, 0, targets[ready])] = 0
        lost = _IS_LOST[outcomes]
        at_once = clients.parameters.refreshes_at_once[clients.models[rows]]
        if lost.any():
            in_round = lost & at_once & clients.for_metadata[rows]
            if in_round.any():
                clients.try_next_broker(rows[in_round], targets[in_round], at_us[in_round])
            chosen = lost & ~in_round
            was_requesting = clients.kind[rows[chosen]] == METADATA
            clients.connection_failed(rows[chosen], targets[chosen], at_us[chosen], was_requesting)
        self._apply_metadata(rows, at_us, outcomes)
        misdirected = outcomes == Outcome.NOT_LEADER_RECEIVED
        if misdirected.any():
            clients.leader_lost(rows[misdirected], at_us[misdirected])
            members = misdirected & clients.parameters.is_member[clients.models[rows]]
            clients.coordinator_lost(rows[members], targets[members], at_us[members])
        kinds = clients.kind[rows]
        failed_to_send = lost & ~clients.for_metadata[rows] & ((kinds == PRODUCE) | (kinds == HEARTBEAT) | at_once)
        with_error = misdirected | (outcomes == Outcome.RETRIABLE_RECEIVED)
        if clients.has_fetchers:
            fetched = with_error & (kinds == FETCH)
            with_error ^= fetched
            self._fetch_failed(rows[fetched], at_us[fetched])
        failed = with_error | failed_to_send
        if failed.any():
            chosen = rows[failed]
            failures = clients.count_failure(clients.failures, chosen)
            counts = ~misdirected[failed] | clients.parameters.leader_errors_count[clients.models[chosen]]
            failures[~counts] = clients.failures[chosen[~counts]] = 1
            clients.retry_us[chosen] = at_us[failed] + clients.retry_wait_us(chosen, failures)
        if self._in_flight is not None:
            self._fail_unread(self._in_flight, rows[failed], targets[failed], at_us[failed], lost[failed])
        clients.outcome[rows] = Outcome.TIMER

    def _fail_unread(self, in_flight: InFlight, rows: Rows, targets: Rows, at_us: Times, is_lost: Mask) -> None:
        """Serve the requests after one that failed, with errors, unless their connection is lost."""
        requests = in_flight.take_unread(rows)
        chosen = ~is_lost & (requests > 0)
        if chosen.any():
            rows, requests = rows[chosen], requests[chosen]
            ready_us = self._exchange.serve_unread(rows, targets[chosen], requests, at_us[chosen])
            self._clients.retry_us[rows] = np.maximum(self._clients.retry_us[rows], ready_us)
            self._counters.add(Count.ERRORS, int(requests.sum()))

    def _fetch_failed(self, rows: Rows, at_us: Times) -> None:
        clients = self._clients
        clients.leader_lost(rows, at_us)
        clients.retry_us[rows[clients.parameters.fetch_waits[clients.models[rows]]]] = NEVER

    def _apply_metadata(self, rows: Rows, at_us: Times, outcomes: Codes) -> None:
        clients = self._clients
        received = outcomes == Outcome.METADATA_RECEIVED
        if not received.any():
            return
        chosen = rows[received]
        leaders = clients.new_leader[chosen]
        is_news = (leaders != clients.leader[chosen]) & (leaders >= 0)
        clients.leader[chosen] = leaders
        clients.untried[chosen] = 0
        asks_on = clients.parameters.queries[clients.models[chosen]] & ~clients.connected[chosen, leaders]
        clients.wants_metadata[chosen] = (leaders < 0) | asks_on
        learns = chosen[clients.bootstraps[chosen] & is_news]
        clients.connected[learns, clients.target[learns]] = False  # a connection to the leader follows
        received_us = at_us[received]
        if clients.has_fetchers:
            clients.retry_us[chosen[clients.retry_us[chosen] == NEVER]] = 0
        if clients.has_members:
            is_member = clients.parameters.is_member[clients.models[chosen]]
            clients.coordinator_received(chosen[is_member], received_us[is_member])
            chosen, received_us, is_news = chosen[~is_member], received_us[~is_member], is_news[~is_member]
        clients.metadata_received(chosen, received_us, is_news=is_news)

    # -- decisions -----------------------------------------------------------------------------------------------------

    def _decide(self, rows: Rows, at_us: Times) -> None:
        clients, parameters = self._clients, self._clients.parameters
        models = clients.models[rows]
        due = self._expire(rows, at_us, models)
        leaders = clients.leader[rows].astype(np.int64)
        has_work = due <= at_us
        if clients.has_fetchers:
            has_work |= parameters.fetches[models]
        knows_leader = leaders >= 0
        if clients.has_members:
            connects_at_once = parameters.is_member[models] & parameters.finds_eagerly[models]
            has_work |= connects_at_once & knows_leader & ~clients.connected[rows, leaders]
        stale_us = clients.refreshed_us[rows] + parameters.metadata_max_age_us[models]
        wants = clients.wants_metadata[rows] | ~knows_leader | (stale_us <= at_us)
        is_connected = clients.connected[rows, leaders] & knows_leader
        connect_us = clients.connect_us[rows, leaders]
        may_send_us = np.maximum(clients.retry_us[rows], clients.throttled_us[rows])
        can_work = has_work & knows_leader & (may_send_us <= at_us)
        joins = parameters.joins[models] & (clients.leader[clients.member[rows]] < 0)
        if joins.any():
            from_us = np.maximum(connect_us, at_us)
            polls_us = from_us + (clients.poll_us[rows] - from_us) % parameters.poll_us[models]
            connect_us = np.where(joins, polls_us, connect_us)
        produces = can_work & is_connected & ~joins
        connects = can_work & ~is_connected & (connect_us <= at_us)
        brokers = np.where(knows_leader, leaders, 0)
        kinds = np.where(produces, parameters.work[models], CONNECT)
        metadata_us, sent_us = np.full(len(rows), NEVER, dtype=np.int64), at_us
        clients.for_metadata[rows] = False
        if wants.any():
            chosen = np.flatnonzero(wants)
            sent_us = at_us.copy()
            clients.begin_rounds(rows[chosen])
            nodes, possible_us = self._least_loaded(rows[chosen], at_us[chosen])
            is_now = np.maximum(possible_us, clients.metadata_us[rows[chosen]]) <= at_us[chosen]
            checked_us = np.maximum(clients.metadata_us[rows[chosen]], at_us[chosen])
            steps = parameters.steps_us[models[chosen]]
            metadata_us[chosen] = checked_us + -(-np.maximum(possible_us - checked_us, 0) // steps) * steps
            now, nodes = chosen[is_now], nodes[is_now]
            brokers[now] = nodes
            clients.for_metadata[rows[now]] = True
            is_ready = clients.usable(rows[now])[np.arange(len(now)), nodes]
            kinds[now] = np.where(is_ready, parameters.lookup[models[now]], CONNECT)
            produces[now], connects[now] = False, True
            sent_us[now] = self._metadata_sent_us(rows[now], at_us[now], kinds[now], stale_us[now])
            if clients.has_members:
                waits = now[self._follow_fetches(rows[now], brokers[now], kinds[now], at_us[now])]
                connects[waits] = False
                metadata_us[waits] = clients.read_us[rows[waits]]
        sends = produces | connects
        if sends.any():
            self._send(rows[sends], brokers[sends], kinds[sends], at_us[sends], sent_us[sends])
        waits = ~sends
        if waits.any():
            steps = np.where(joins, 1, parameters.fetch_steps_us[models])
            connect_us = at_us + -(-np.maximum(connect_us - at_us, 0) // steps) * steps
            work_us = np.maximum(may_send_us, np.where(is_connected, 0, connect_us))
            work_us = np.where(knows_leader & ~(joins & is_connected), work_us, NEVER)
            deadline_us = due + parameters.delivery_timeout_us[models]
            next_us = np.where(has_work, np.minimum(work_us, deadline_us), due)
            next_us = np.minimum(next_us, np.where(wants, metadata_us, stale_us))
            clients.next_us[rows[waits]] = np.maximum(next_us, at_us + 1)[waits]

    def _metadata_sent_us(self, rows: Rows, at_us: Times, kinds: Rows, stale_us: Times) -> Times:
        """Return when Metadata or a lookup was sent: while a request was in flight, if it was due then."""
        clients, parameters, models = self._clients, self._clients.parameters, self._clients.models[rows]
        due_us = np.where(clients.wants_metadata[rows], clients.metadata_us[rows], stale_us)
        earliest_us = at_us - parameters.request_timeout_us[models] + 1
        is_after = clients.kind[rows] == parameters.work[models]
        follows = (kinds == METADATA) & parameters.sends_behind[models] & is_after
        if clients.has_members:
            follows |= (kinds == FIND_COORDINATOR) & (clients.read_us[rows] > 0)
        return np.where(follows, np.clip(due_us, earliest_us, at_us), at_us)

    def _follow_fetches(self, rows: Rows, brokers: Rows, kinds: Rows, at_us: Times) -> Mask:
        """Return which lookups a broker reads later, because a Fetch is in flight on their connection."""
        clients = self._clients
        peers = clients.peer[rows]
        read_us = clients.fetch_until_us[peers] - 2 * self._one_way_us
        waits: Mask = (kinds == FIND_COORDINATOR) & (clients.read_us[rows] == 0)
        waits &= (clients.target[peers] == brokers) & (read_us > at_us)
        clients.read_us[rows] = np.where(waits, read_us, 0)
        clients.metadata_us[rows[waits]] = at_us[waits]
        return waits

    def _expire(self, rows: Rows, at_us: Times, models: Rows) -> Times:
        """Fail expired operations, with their batch; return the creation of the oldest left."""
        clients, parameters = self._clients, self._clients.parameters
        due = clients.due_us[rows]
        overdue_us = at_us - due - parameters.delivery_timeout_us[models]
        late = overdue_us >= 0
        if late.any():
            chosen = rows[late]
            period = parameters.period_us[models[late]]
            is_open = parameters.is_open[models[late]]
            expired = np.where(is_open, np.maximum(overdue_us[late] // period + 1, clients.in_batch[chosen]), 1)
            members = parameters.is_member[models[late]]
            self._counters.add(Count.SESSION_TIMEOUTS, int(np.count_nonzero(members)))
            self._counters.add(Count.EXPIRED, int(expired[~members].sum()))
            due[late] = np.where(is_open, due[late] + expired * period, at_us[late] + period)
            self._next_operation(chosen, due[late])
        return due

    def _next_operation(self, rows: Rows, due: Times) -> None:
        clients = self._clients
        clients.due_us[rows] = due
        clients.in_batch[rows] = 0
        clients.failures[rows] = 0
        clients.retry_us[rows] = 0
        if self._in_flight is not None:
            self._in_flight.retry_next(rows)

    def _least_loaded(self, rows: Rows, at_us: Times) -> tuple[Rows, Times]:
        """Return a broker for Metadata, and when it may be used: a connected one, or the first that may be tried.

        Among equals the choice is random, as in Kafka's leastLoadedNode. "Immediate" refreshes try each in turn.
        """
        clients = self._clients
        brokers = clients.connected.shape[1]
        may_connect_us = np.maximum(clients.connect_us[rows], at_us[:, None])
        if clients.has_members:  # these wait for a connection of their peers
            waits = clients.parameters.waits_for_peer[clients.models[rows]]
            may_connect_us[waits] = np.maximum(clients.next_us[clients.peer[rows[waits]]], at_us[waits])[:, None] + 1
        possible_us = np.where(clients.usable(rows), -1, may_connect_us)
        models = clients.models[rows]
        takes_any = clients.parameters.is_member[models] & ~clients.parameters.waits_for_peer[models]
        if brokers == 1:
            possible_us[clients.parameters.refreshes_at_once[models] | takes_any] = 0
            return np.zeros(len(rows), dtype=np.int64), possible_us[:, 0]
        first = (clients.draw(rows) * brokers).astype(np.int64)
        turned = (first[:, None] + np.arange(brokers)) % brokers
        best = np.argmin(np.take_along_axis(possible_us, turned, axis=1), axis=1)
        nodes = np.take_along_axis(turned, best[:, None], axis=1)[:, 0]
        possible_us = possible_us[np.arange(len(rows)), nodes]
        nodes, possible_us = np.where(takes_any, first, nodes), np.where(takes_any, at_us, possible_us)
        at_once = clients.parameters.refreshes_at_once[models]
        if at_once.any():
            tried = brokers - clients.untried[rows].astype(np.int64)
            nodes = np.where(at_once, (clients.first_try[rows] + tried) % brokers, nodes)
            possible_us[at_once] = at_us[at_once]
        return nodes, possible_us

    def _send(self, rows: Rows, brokers: Rows, kinds: Rows, at_us: Times, sent_us: Times) -> None:
        clients, counters = self._clients, self._counters
        produces = kinds == PRODUCE
        at_once = clients.parameters.refreshes_at_once[clients.models[rows]]
        fills = produces | (at_once & ~clients.for_metadata[rows])  # aiokafka drains a batch, and then connects
        if clients.has_fetchers:
            fills &= ~clients.parameters.fetches[clients.models[rows]]
        if self._in_flight is not None:
            pipelined = produces & self._in_flight.pipelined(rows)
            sent_us = sent_us.copy()
            sent_us[pipelined] = self._in_flight.send(rows[pipelined], at_us[pipelined])
        self._fill_batches(rows[fills], sent_us[fills])
        is_retry = clients.failures[rows[produces]] > 0
        sent = np.bincount(kinds, minlength=REQUESTS)
        for kind, counter in _SENT:
            if sent[kind]:
                counters.add(counter, int(sent[kind]))
        if sent[METADATA]:
            counters.add_at(Count.METADATA_REQUESTS, sent_us[kinds == METADATA])
        counters.add_at(Count.PRODUCE_RETRIES, sent_us[produces][is_retry])
        counters.add_at(Count.PRODUCE_REQUESTS, sent_us[produces][~is_retry])
        clients.kind[rows] = kinds
        connects = rows[kinds == CONNECT]
        clients.syn_us[connects], clients.syns[connects] = at_us[kinds == CONNECT], 0
        if self._trace is not None:
            for kind, name in enumerate(TRACED):
                self._trace[name].append(sent_us[kinds == kind])
        self._exchange.send(rows, brokers, kinds, at_us, sent_us)
        if clients.has_members:
            fetching = rows[kinds == FETCH]
            clients.fetch_until_us[fetching] = clients.next_us[fetching]
        done = clients.outcome[rows] == Outcome.SUCCEEDED
        if self._in_flight is not None:
            self._in_flight.responded(rows[pipelined], clients.next_us[rows[pipelined]])
            fails = pipelined & ~done
            if fails.any():
                self._in_flight.fail(rows[fails], sent_us[fails], self._count_produced)
        if clients.has_members:
            members = done & (kinds == HEARTBEAT)
            self._complete_heartbeats(rows[members])
            done ^= members
        if done.any():
            self._complete(rows[done])

    def _count_produced(self, sent_us: Times) -> None:
        self._counters.add_at(Count.PRODUCE_REQUESTS, sent_us)
        if self._trace is not None:
            self._trace["produce_requests"].append(sent_us)

    def _complete_heartbeats(self, rows: Rows) -> None:
        clients = self._clients
        self._next_operation(rows, clients.next_us[rows] + clients.parameters.period_us[clients.models[rows]])
        clients.next_us[rows] = clients.due_us[rows]
        clients.outcome[rows] = Outcome.TIMER

    def _fill_batches(self, rows: Rows, at_us: Times) -> None:
        clients, parameters = self._clients, self._clients.parameters
        first = clients.in_batch[rows] == 0
        chosen = rows[first]
        models = clients.models[chosen]
        waiting = (at_us[first] - clients.due_us[chosen]) // parameters.period_us[models] + 1
        limits = np.where(parameters.is_open[models], parameters.records_per_request[models], 1)
        clients.in_batch[chosen] = np.minimum(waiting, limits)

    def _complete(self, rows: Rows) -> None:
        """Finish the operations of a successful Produce or Fetch request, and wait for the next."""
        clients, parameters, counters = self._clients, self._clients.parameters, self._counters
        models = clients.models[rows]
        due, ends = clients.due_us[rows], clients.next_us[rows]
        period = parameters.period_us[models]
        is_open = parameters.is_open[models]
        count = clients.in_batch[rows]
        # Records created before this complete after their delivery timeout.
        limit_us = ends - parameters.delivery_timeout_us[models]
        late = np.clip(np.where(is_open, -((due - limit_us) // period), due < limit_us), 0, count)
        in_time = count - late
        newest = due + np.where(is_open, (count - 1) * period, 0)
        latency = in_time * (ends - newest) + np.where(is_open, period * in_time * (in_time - 1) // 2, 0)
        counters.add_at(Count.COMPLETED, ends, in_time)
        counters.add_at(Count.LATENCY_US, ends, latency)
        counters.add_at(Count.EXPIRED, ends, late)
        later = np.where(is_open, due + count * period, ends + period)
        if clients.has_fetchers:
            fetches = parameters.fetches[models]
            counters.add_at(Count.FETCHED, ends[fetches], count[fetches])
            later = np.where(count == 0, due, later)
        self._next_operation(rows, later)
        stale_us = clients.refreshed_us[rows] + parameters.metadata_max_age_us[models]
        refresh_us = np.where(clients.wants_metadata[rows], clients.metadata_us[rows], stale_us)
        free_us = ends
        if self._in_flight is not None:
            pipelined = self._in_flight.pipelined(rows)
            if pipelined.any():
                free_us = ends.copy()
                later[pipelined], free_us[pipelined] = self._in_flight.next_us(
                    rows[pipelined], later[pipelined], ends[pipelined]
                )
        clients.next_us[rows] = np.maximum(free_us, np.minimum(later, refresh_us))
        if clients.has_fetchers:
            clients.next_us[rows[fetches]] = ends[fetches]
        clients.outcome[rows] = Outcome.TIMER
