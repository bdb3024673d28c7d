"""A fluid model of a broker and its clients after an outage, for many cells of a grid at once.

All clients of a broker lose it, and it is back after the outage. They connect, request metadata, send what they have
queued, and then send as before. Each request waits in one queue of CPU time. A client closes the connection of a
request that takes longer than its timeout, and connects again after a backoff; the broker serves the request in vain.
A connection takes as much CPU time as some 13 Produce requests. So while requests wait for longer than the timeout,
retries alone can exceed the capacity of the broker: the failure sustains itself after its cause has ended, as in the
literature on metastable failures (Bronson et al., HotOS 2021; arXiv 2510.03551 models it with Markov chains).

The model has amounts of clients in place of clients. Those that send a kind of request in the same step are one amount
with mean values: their failures, the batches that they retry, and how long their request waited in the connection.
In each step, requests that arrive learn their wait from the work in front of them, and are put into the step in which
they succeed or time out. All times, costs and backoffs are those of the simulation (parameters.py, broker.py).

Different from the simulation: no jitter after the outage, no refresh of metadata by age, and no delivery timeout.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sluice.fleet.models.client_model import Group
from sluice.fleet.results import LATE_FACTOR, LATE_MS, STEADY_S, STEADY_SHARE
from sluice.fleet.simulation.arrays import US_PER_S, Floats, Mask, Rows
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.parameters import Parameters, lanes_of

_STEP_S = 0.1
_STEPS_PER_S = round(1 / _STEP_S)
# Clients that are followed through the outage, to find when they connect after it; and attempts of each, after which
# their phases are independent.
_SAMPLED, _MOST_ATTEMPTS = 48, 40
_MOST_FAILURES = 24
_UNITS = (np.arange(8) + 0.5) / 8
_NO_LIMIT = 64.0
_SYN_REPEATED_S = 1.0
_TICK_S = 1.0  # librdkafka connects at the ticks of a timer while it has no connection
_GOLDEN = 0.6180339887  # its multiples, modulo 1, are spread evenly
_TINY = 1e-12
_SHOWN_S = 10
_DROPPED = 0.1  # columns are removed when this share of the cells has recovered
# The amounts of a step: of clients that connect, request metadata, send what they have queued, send as before, and have
# nothing to send; and sums of their values.
(
    CONNECTING, FAILURES, CONNECTING_BATCHES, REQUESTING, REQUESTING_BATCHES, CATCHING_UP, BATCHES,
    SENDING, WAITED_S, IDLE, IDLE_S, JOINED, LATENCY_S,
) = range(13)  # fmt: skip


class Cell(NamedTuple):
    groups: Sequence[Group]
    broker: BrokerModel
    outage_s: float


class Outcome(NamedTuple):
    """What becomes of each cell.

    Args:
        recovery_s: Seconds from the end of the outage until operations complete as before; -1: not in time.
        load: CPU time that requests need as a share of the capacity, of about the last ten seconds.
        in_vain: The share of it that is spent on requests after their timeout.
    """

    recovery_s: Rows
    load: Floats
    in_vain: Floats


def recover(cells: Sequence[Cell], horizon_s: int) -> Outcome:
    """Follow the clients of each cell for `horizon_s` after its outage. All cells have as many groups."""
    state = _State(_Columns(cells))
    active = np.arange(len(cells))
    recovery_s = np.full(len(cells), -1, dtype=np.int64)
    healthy_s, load, in_vain = np.zeros(len(cells), dtype=np.int64), np.zeros(len(cells)), np.zeros(len(cells))
    for second in range(horizon_s):
        for step in range(second * _STEPS_PER_S, (second + 1) * _STEPS_PER_S):
            state.advance(step)
        healthy_s[active] = np.where(state.is_healthy(), healthy_s[active] + 1, 0)
        recovers = (healthy_s[active] >= STEADY_S) & (recovery_s[active] < 0)
        recovery_s[active[recovers]] = second + 1 - STEADY_S
        load[active] += (state.work_s - load[active]) / min(second + 1, _SHOWN_S)
        in_vain[active] += (state.vain_s - in_vain[active]) / min(second + 1, _SHOWN_S)
        state.end_second()
        stays = (recovery_s[active] < 0) & ~state.is_lost(horizon_s - second - 1)
        if not stays.any():
            break
        # The columns of recovered cells are kept until they are many.
        if stays.mean() < 1 - _DROPPED:
            state.keep(stays)
            active = active[stays]
    return Outcome(recovery_s, load, in_vain / np.maximum(load, _TINY))


class _Columns:
    """The parameters of each group of each cell."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.groups = len(cells[0].groups)
        groups = [group for cell in cells for group in cell.groups]
        self._parameters = parameters = Parameters([lane for group in groups for lane in lanes_of(group.model)])
        brokers = [cell.broker for cell in cells for _ in cell.groups]

        def seconds(name: str) -> Floats:
            return np.array([getattr(broker, name) for broker in brokers], dtype=np.float64) / US_PER_S

        clients = np.array([group.clients for group in groups], dtype=np.float64)
        outage_s = np.repeat([cell.outage_s for cell in cells], self.groups)
        per_s = US_PER_S / parameters.period_us
        record_s = seconds("kilobyte_us") / 1000 * parameters.record_bytes
        timeout_s = parameters.request_timeout_us / US_PER_S
        in_flight = np.where(parameters.in_flight == 0, _NO_LIMIT, parameters.in_flight)
        restarts_s = _restarts_s(parameters, 1 / per_s, timeout_s, in_flight)
        round_trip_s = 2 * seconds("network_us")
        before_s = seconds("produce_us") + record_s + round_trip_s
        self.values = {
            "clients": clients,
            "outage_s": outage_s,
            "period_s": 1 / per_s,
            "connect_s": seconds("connection_us"),
            # Librdkafka's first connection is to an address of bootstrap.servers; another one to the leader follows.
            "metadata_s": seconds("metadata_us") + np.where(parameters.queries, seconds("connection_us"), 0.0),
            "produce_s": seconds("produce_us"),
            "record_s": record_s,
            "round_trip_s": round_trip_s,
            "accepted": _STEP_S / seconds("accept_us"),
            "room": np.array([broker.backlog + 1.0 for broker in brokers]),
            "most_records": np.where(parameters.is_open, parameters.records_per_request, 1.0),
            "timeout_s": timeout_s,
            "produce_timeout_s": timeout_s + restarts_s,
            "in_flight": in_flight,
            "failed_batches": np.minimum(in_flight, 1 + np.floor((timeout_s + restarts_s) * per_s)),
            "latest_s": before_s * LATE_FACTOR + LATE_MS / 1000,
        }
        distinct, places = self._distinct()
        every = np.broadcast_to(distinct, (len(_UNITS), len(distinct)))
        units = np.broadcast_to(_UNITS[:, None], every.shape)
        waits = [self._draw_s(every, np.int64(count), units).mean(axis=0) for count in range(1, _MOST_FAILURES + 1)]
        self.wait_s = np.array(waits)[:, places]
        # Clients with a short backoff connect in a part of the step.
        self.values["accepted_at_once"] = np.minimum(self.wait_s.max(axis=0) / _STEP_S, 1) * self.values["accepted"]

    def _draw_s(self, columns: Rows, failures: Rows | np.int64, units: Floats) -> Floats:
        """Return the waits from a failed connection to the next attempt."""
        parameters = self._parameters
        counts = np.broadcast_to(failures, columns.shape)
        steps = parameters.steps_us[columns]
        waits = -(-parameters.reconnect.wait_us(columns, counts, units) // steps) * steps
        retries = parameters.retry.wait_us(columns, counts, units)
        waits = np.where(parameters.refreshes_at_once[columns], np.maximum(waits, retries), waits)
        found: Floats = np.where(parameters.queries[columns], _TICK_S * units, waits / US_PER_S)
        return found

    def first_attempts(self) -> tuple[Floats, Rows]:
        """Return when sampled clients connect, after the outage, and their failures until then.

        All columns have the same draws, so that they differ by their parameters alone.
        """
        random = np.random.default_rng(0)
        distinct, places = self._distinct()
        shape = _SAMPLED, len(distinct)
        columns = np.broadcast_to(distinct, shape)
        outage_s, round_trip_s = self.values["outage_s"][distinct], self.values["round_trip_s"][distinct]
        at_s, waits_s = np.zeros(shape), np.zeros(shape)
        failures, is_down = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.bool_)
        for _ in range(_MOST_ATTEMPTS):
            failures += is_down
            units = np.broadcast_to(random.random((_SAMPLED, 1)), shape)
            waits_s = np.maximum(self._draw_s(columns, failures, units), round_trip_s)
            at_s = np.where(is_down, at_s + waits_s, at_s)
            is_down = at_s < outage_s
            if not is_down.any():
                break
        at_s = np.where(is_down, random.random((_SAMPLED, 1)) * waits_s, at_s - outage_s)
        return at_s[:, places], failures[:, places]

    def _distinct(self) -> tuple[Rows, Rows]:
        """Return the first column of each outage and backoff, and the place of each column among them."""
        parameters = self._parameters
        values = [*parameters.reconnect, *parameters.retry, parameters.steps_us, self.values["outage_s"]]
        _, first, places = np.unique(np.array(values), axis=1, return_index=True, return_inverse=True)
        return first, places.reshape(-1)


def _restarts_s(parameters: Parameters, period_s: Floats, timeout_s: Floats, in_flight: Floats) -> Floats:
    """Return how much later a timeout is detected, as `Exchange._restarts_us` for records of the mean age."""
    begun = np.floor((timeout_s - period_s / 2) / period_s) + 1
    is_full = begun >= in_flight
    last_s = period_s / 2 + (np.where(is_full, in_flight, begun) - 1) * period_s
    last_s = np.where(is_full, last_s, np.minimum(last_s, (begun + 0.5) * period_s - timeout_s))
    restarts = parameters.request_timeout_restarts & parameters.is_open & (period_s / 2 < timeout_s)
    found: Floats = np.where(restarts, last_s, 0.0)
    return found


class _Step(NamedTuple):
    """The amounts of a step, their delay in the broker, and how long requests as before waited in the connection.

    Delays are rounded down after `dither`, which differs from step to step, so that the mean is right.
    """

    number: int
    dither: float
    amounts: Floats
    delay_s: Floats
    waited_s: Floats


class _State:
    """The amounts of clients in all columns, and the work in each cell's queue."""

    def __init__(self, columns: _Columns) -> None:
        self._groups = columns.groups
        self._v = columns.values
        self._wait_s = columns.wait_s
        at_s, failures = columns.first_attempts()
        longest_s = max(
            float(self._v["produce_timeout_s"].max() + self._wait_s.max()),
            float(at_s.max()),
            float(self._v["period_s"].max()),
            _SYN_REPEATED_S,
        )
        count = at_s.shape[1]
        self._size = int(longest_s / _STEP_S) + 3
        self._later = np.zeros((self._size, count, LATENCY_S + 1))
        places = (at_s / _STEP_S).astype(np.int64)
        share = self._v["clients"] / _SAMPLED
        batches = np.maximum(1, np.ceil(self._v["outage_s"] / self._v["period_s"] / self._v["most_records"]))
        every = np.broadcast_to(np.arange(count), at_s.shape)
        for channel, values in (
            (CONNECTING, np.ones(count)), (FAILURES, failures), (CONNECTING_BATCHES, batches),
        ):  # fmt: skip
            np.add.at(self._later[:, :, channel], (places, every), share * values)
        self._columns = np.arange(count)
        self._queue_s = np.zeros(count // self._groups)  # the work of each cell's queue
        self._accepting, self._idle, self._idle_s = np.zeros(count), np.zeros(count), np.zeros(count)
        self._settled, self._latency_s = np.zeros(count), np.zeros(count)
        self.work_s, self.vain_s = np.zeros(count // self._groups), np.zeros(count // self._groups)

    def keep(self, cells: Mask) -> None:
        columns = np.repeat(cells, self._groups)
        self._v = {name: values[columns] for name, values in self._v.items()}
        self._wait_s, self._columns = self._wait_s[:, columns], self._columns[columns]
        for name in ("_accepting", "_idle", "_idle_s", "_settled", "_latency_s"):
            setattr(self, name, getattr(self, name)[columns])
        for name in ("_queue_s", "work_s", "vain_s"):
            setattr(self, name, getattr(self, name)[cells])

    def is_healthy(self) -> Mask:
        """Return in which cells the operations of this second have completed as before."""
        v = self._v
        latest = v["latest_s"] * v["clients"] / v["period_s"]
        found: Mask = (self._by_cell(self._settled) >= STEADY_SHARE * self._by_cell(v["clients"])) & (
            self._by_cell(self._latency_s) <= self._by_cell(latest)
        )
        return found

    def is_lost(self, left_s: int) -> Mask:
        """Return which queues cannot be shorter than the longest timeout within `left_s`, even without new work."""
        longest_s = self._v["produce_timeout_s"].reshape(-1, self._groups).max(axis=1)
        found: Mask = self._queue_s - left_s > longest_s
        return found

    def end_second(self) -> None:
        self._latency_s[:], self.work_s[:], self.vain_s[:] = 0, 0, 0

    def advance(self, number: int) -> None:
        """Take the amounts of a step; put them into the steps in which they succeed or time out."""
        v = self._v
        amounts = self._later[number % self._size, self._columns].T.copy()
        self._later[number % self._size] = 0
        self._idle += amounts[IDLE]
        self._idle_s += amounts[IDLE_S]
        self._settled += amounts[JOINED]
        self._latency_s += amounts[LATENCY_S]
        self._accept(number, amounts)
        amounts[SENDING] += self._leave_idle()
        age_s = number * _STEP_S + v["outage_s"]
        records = np.minimum(age_s / v["period_s"], v["most_records"])
        kinds_s = np.array((
            amounts[CONNECTING] * v["connect_s"],
            amounts[REQUESTING] * v["metadata_s"],
            amounts[CATCHING_UP] * (v["produce_s"] + records * v["record_s"]),
            amounts[SENDING] * (v["produce_s"] + v["record_s"]),
        ))  # fmt: skip
        work_s = self._by_cell(kinds_s.sum(axis=0))
        delay_s = np.repeat(self._queue_s + work_s / 2, self._groups) + v["round_trip_s"]
        self._queue_s = np.maximum(self._queue_s + work_s - _STEP_S, 0)
        self.work_s += work_s
        waited_s = amounts[WAITED_S] / np.maximum(amounts[SENDING], _TINY)
        step = _Step(number, number * _GOLDEN % 1, amounts, delay_s, waited_s)
        in_time, produced = delay_s <= v["timeout_s"], delay_s <= v["produce_timeout_s"]
        in_times = np.array((in_time, in_time, produced, delay_s + waited_s <= v["produce_timeout_s"]))
        self._succeed(step, in_times, age_s + delay_s)
        if not in_times.all():
            self._time_out(step, ~in_times)
            self.vain_s += self._by_cell((kinds_s * ~in_times).sum(axis=0))

    def _accept(self, number: int, amounts: Floats) -> None:
        """Remove the connection attempts that find the accept queue full; they are repeated."""
        v, connects = self._v, amounts[: CONNECTING_BATCHES + 1]
        self._accepting = np.maximum(self._accepting - v["accepted"], 0)
        room = v["room"] + v["accepted_at_once"] - self._accepting
        if (connects[CONNECTING] > room).any():
            dropped = connects * (1 - np.minimum(room / np.maximum(connects[CONNECTING], _TINY), 1))
            repeated = (number + round(_SYN_REPEATED_S / _STEP_S)) % self._size
            self._later[repeated, self._columns, :REQUESTING] += dropped.T
            connects -= dropped
        self._accepting = np.minimum(self._accepting + connects[CONNECTING], v["room"])

    def _leave_idle(self) -> Floats:
        """Return the clients whose next operation is created in this step."""
        idle_s = self._idle_s / np.maximum(self._idle, _TINY)
        leaves: Floats = self._idle * (1 - np.exp(-_STEP_S / np.maximum(idle_s, _TINY)))
        self._idle -= leaves
        self._idle_s -= leaves * idle_s
        return leaves

    def _succeed(self, step: _Step, in_times: Mask, age_s: Floats) -> None:
        v, amounts, delay_s, waited_s = self._v, step.amounts, step.delay_s, step.waited_s
        period_s, (connected, received, produced, sent) = v["period_s"], in_times
        put = np.zeros_like(amounts)
        put[REQUESTING] = amounts[CONNECTING] * connected
        put[REQUESTING_BATCHES] = amounts[CONNECTING_BATCHES] * connected
        # Batches are retried one after another: with b of them, a success is the last with the probability 1 / b.
        continues = produced * np.clip(1 - amounts[CATCHING_UP] / np.maximum(amounts[BATCHES], _TINY), 0, 1)
        put[CATCHING_UP] = amounts[REQUESTING] * received + amounts[CATCHING_UP] * continues
        put[BATCHES] = amounts[REQUESTING_BATCHES] * received + amounts[BATCHES] * continues
        ends = amounts[CATCHING_UP] * (produced - continues)
        # The next operation was created while the request waited, or is created within a period.
        is_created = np.minimum(delay_s / period_s, 1)
        created_s = np.where(is_created < 1, delay_s / 2, delay_s - period_s / 2)
        succeeds = amounts[SENDING] * sent
        next_s = np.minimum(waited_s + delay_s - period_s, (v["in_flight"] - 1) * delay_s)
        waits = next_s >= 0
        put[SENDING] = ends * is_created + succeeds * waits
        put[WAITED_S] = ends * is_created * created_s + succeeds * waits * next_s
        put[IDLE] = ends * (1 - is_created) + succeeds * ~waits
        put[IDLE_S] = ends * (1 - is_created) * (period_s - delay_s) / 2 - succeeds * ~waits * next_s
        put[JOINED] = ends
        put[LATENCY_S] = ends * age_s * age_s / period_s / 2
        self._latency_s += succeeds * (delay_s + waited_s)
        self._later[self._places(step, delay_s), self._columns, REQUESTING:] += put[REQUESTING:].T

    def _time_out(self, step: _Step, late: Mask) -> None:
        v, amounts = self._v, step.amounts
        connecting, requesting, catching_up, sending = late * amounts[[CONNECTING, REQUESTING, CATCHING_UP, SENDING]]
        failures = amounts[FAILURES] * late[0] + connecting
        wait_s = self._mean_wait_s(failures / np.maximum(connecting, _TINY))
        first_s, timeout_s, produce_timeout_s = self._wait_s[0], v["timeout_s"], v["produce_timeout_s"]
        self._settled -= sending
        sent_s = np.maximum(produce_timeout_s - step.waited_s, 0)
        for delay_s, amount, failed, batches in (
            (timeout_s + wait_s, connecting, failures, amounts[CONNECTING_BATCHES] * late[0]),
            (timeout_s + first_s, requesting, requesting, amounts[REQUESTING_BATCHES] * late[1]),
            (produce_timeout_s + first_s, catching_up, catching_up, amounts[BATCHES] * late[2]),
            (sent_s + first_s, sending, sending, sending * v["failed_batches"]),
        ):
            if amount.any():
                put = np.array((amount, failed, batches))
                self._later[self._places(step, delay_s), self._columns, :REQUESTING] += put.T

    def _places(self, step: _Step, delay_s: Floats) -> Rows:
        steps = np.maximum((delay_s / _STEP_S + step.dither).astype(np.int64), 1)
        found: Rows = (step.number + steps) % self._size
        return found

    def _mean_wait_s(self, failures: Floats) -> Floats:
        counted = np.clip(failures, 1, _MOST_FAILURES)
        low = counted.astype(np.int64) - 1
        share = counted - 1 - low
        high = np.minimum(low + 1, _MOST_FAILURES - 1)
        columns = np.arange(len(low))
        found: Floats = self._wait_s[low, columns] * (1 - share) + self._wait_s[high, columns] * share
        return found

    def _by_cell(self, values: Floats) -> Floats:
        found: Floats = values.reshape(-1, self._groups).sum(axis=1)
        return found
