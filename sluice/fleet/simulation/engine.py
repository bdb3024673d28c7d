"""The vectorised simulation of a fleet: up to millions of clients as rows of numpy arrays, in windows of time.

Each window has about 2,000 events, and 1 to 100 ms. All clients whose next event is in the window are handled at once,
each at its exact time, until none is left. A window approximates only the order in a broker's queue: a request that
results from an event of the window does not delay requests queued already. Times that depend on no queue are exact, and
draws (draws.py) do not depend on windows.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sluice.fleet.models.client_model import Group

from .arrays import NEVER, US_PER_S, Rows, Times
from .behaviour import Behaviour
from .broker import BrokerModel
from .clients import Clients
from .counters import BIN_US, Count, Counters
from .exchange import Exchange
from .parameters import Lane, Parameters, lanes_of
from .quota import Fairness, Quotas
from .schedule import PRODUCE, Schedule

_EVENTS_PER_WINDOW = 2048
_SHORTEST_US, _LONGEST_US = 1000, BIN_US


class Simulation(NamedTuple):
    """The counts of a run, by bin and kind (counters.KINDS)."""

    counts: npt.NDArray[np.int64]
    events: int
    fairness: Fairness | None


def simulate(
    groups: Sequence[Group],
    schedule: Schedule,
    broker: BrokerModel,
    *,
    seed: int = 0,
    cold: bool = False,
    trace: Mapping[str, list[Times]] | None = None,
) -> Simulation:
    """Run a fleet through a schedule.

    Args:
        groups: The clients, by model.
        schedule: The brokers, their failures, and the length.
        broker: The capacity of each broker.
        seed: The same seed gives the same counts on any machine.
        cold: Whether clients start without connections and metadata.
        trace: Lists that receive the times of the kinds in `behaviour.TRACED`.
    """
    counters = Counters(schedule.duration_us)
    lanes = [(group, lane) for group in groups for lane in lanes_of(group.model)]
    models = np.repeat(np.arange(len(lanes)), [group.clients for group, _ in lanes])
    parameters = Parameters([lane for _, lane in lanes])
    first = schedule.segments[0]
    clients = Clients(seed, models, parameters, len(first.leaders), schedule.brokers, len(first.coordinators))
    first_us = (clients.draw(np.arange(len(models))) * parameters.period_us[models]).astype(np.int64)
    if cold:
        clients.start_cold(first_us)
    else:
        clients.start_warm(first_us, schedule.leaders()[0])
    quotas = _quotas(lanes, schedule, models)
    exchange = Exchange(schedule, broker, clients, counters, quotas)
    behaviour = Behaviour(clients, exchange, counters, broker, trace)
    events = _run(schedule, clients, exchange, behaviour, counters)
    _count_lag(counters, parameters, models, first_us)
    return Simulation(counters.counts, events, None if quotas is None else quotas.fairness())


def _quotas(lanes: Sequence[tuple[Group, Lane]], schedule: Schedule, models: Rows) -> Quotas | None:
    named = {name for segment in schedule.segments for name in segment.quotas}
    if not named:
        return None
    bounds = [
        [
            segment.quotas.get(group.name, segment.quotas.get(None, np.inf)) if lane.work == PRODUCE else np.inf
            for group, lane in lanes
        ]
        for segment in schedule.segments
    ]
    return Quotas(np.array(bounds), [group.name in named for group, _ in lanes], models, schedule.brokers)


def _count_lag(counters: Counters, parameters: Parameters, models: Rows, first_us: Times) -> None:
    """Count the records that exist and were not received, at the end of each second."""
    if not parameters.is_open[parameters.fetches].all():
        return
    ends_us = np.arange(US_PER_S, counters.bins * BIN_US + 1, US_PER_S)
    created = np.zeros(len(ends_us), dtype=np.int64)
    for lane in np.flatnonzero(parameters.fetches):
        phases = np.sort(first_us[models == lane])
        periods, rest = np.divmod(ends_us, parameters.period_us[lane])
        created += periods * len(phases) + np.searchsorted(phases, rest)
    bins = ends_us // BIN_US - 1
    counters.counts[bins, Count.LAG] = created - np.cumsum(counters.counts[:, Count.FETCHED])[bins]


def _run(schedule: Schedule, clients: Clients, exchange: Exchange, behaviour: Behaviour, counters: Counters) -> int:
    events = 0
    stops = _stops(schedule)
    calendar = _Calendar(clients)
    for number in range(counters.bins):
        counters.now = number
        end_us = min((number + 1) * BIN_US, schedule.duration_us)
        calendar.open(end_us)
        step_us = min(max(_EVENTS_PER_WINDOW * BIN_US // max(calendar.size, 1), _SHORTEST_US), _LONGEST_US)
        while True:
            first_us = calendar.earliest()
            if stops and stops[0][0] <= min(first_us, end_us - 1):
                stop_us, broker = stops.pop(0)
                calendar.add(behaviour.broker_stopped(broker, stop_us))
                continue
            if first_us >= end_us:
                break
            until_us = min(first_us + step_us, end_us, stops[0][0] if stops else NEVER)
            exchange.begin_window()
            while len(rows := calendar.take(until_us)):
                events += len(rows)
                calendar.add(behaviour.handle(rows))
    return events


def _stops(schedule: Schedule) -> list[tuple[int, int]]:
    found = []
    for before, after in zip(schedule.segments, schedule.segments[1:], strict=False):
        found += [(after.from_us, int(broker)) for broker in np.flatnonzero(before.up & ~after.up)]
    return found


class _Calendar:
    """Clients with an event in the current bin."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._rows: Rows = np.empty(0, dtype=np.int64)
        self._times: Times = np.empty(0, dtype=np.int64)
        self._end_us = 0

    @property
    def size(self) -> int:
        return len(self._rows)

    def open(self, end_us: int) -> None:
        self._end_us = end_us
        self._rows = np.flatnonzero(self._clients.next_us < end_us)
        self._times = self._clients.next_us[self._rows]

    def earliest(self) -> int:
        return int(self._times.min()) if len(self._times) else NEVER

    def take(self, until_us: int) -> Rows:
        is_due = self._times < until_us
        rows, times = self._rows[is_due], self._times[is_due]
        rest = ~is_due
        self._rows, self._times = self._rows[rest], self._times[rest]
        # An event that was moved to an earlier time is in the list twice.
        current: Rows = rows[self._clients.next_us[rows] == times]
        return current

    def add(self, rows: Rows) -> None:
        times = self._clients.next_us[rows]
        inside = times < self._end_us
        if inside.any():
            self._rows = np.concatenate((self._rows, rows[inside]))
            self._times = np.concatenate((self._times, times[inside]))
