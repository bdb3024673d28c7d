"""Run a fleet with several seeds, on all cores."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import active_children, get_context
from signal import SIG_DFL, SIGINT, signal
from typing import TypeVar

import numpy as np

from sluice.broker.scenarios.model import Scenario
from sluice.errors import SluiceError
from sluice.fleet.simulation.arrays import US_PER_MS
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import KINDS
from sluice.fleet.simulation.engine import Simulation, simulate
from sluice.fleet.simulation.in_flight import BYTES_PER_CLIENT, BYTES_PER_REQUEST
from sluice.fleet.simulation.parameters import Parameters, lanes_of
from sluice.fleet.simulation.quota import BYTES_PER_BUCKET
from sluice.fleet.simulation.schedule import (
    APIS,
    CONNECT,
    FIND_COORDINATOR,
    HEARTBEAT,
    METADATA,
    NO_LEADER,
    Effect,
    Schedule,
    Segment,
    schedule_of,
)

from .models.client_model import Group
from .results import ClientGroup, Phase, Result

J = TypeVar("J")
R = TypeVar("R")

# Measured with 1,000,000 clients and 3 brokers: the state, and temporary arrays if all clients act at once.
_BYTES_PER_CLIENT, _BYTES_PER_CLIENT_AND_BROKER = 270, 40


def run_fleet(
    scenario: Scenario,
    groups: Sequence[Group],
    broker: BrokerModel,
    *,
    seeds: Sequence[int] = (0,),
    cold: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Simulate a fleet in a scenario, once for each seed. After Ctrl-C, the result has the seeds that were finished.

    Args:
        scenario: The brokers, and their failures.
        groups: The clients.
        broker: The capacity of each broker.
        seeds: Results do not depend on the number of cores.
        cold: As in `simulate`.
        progress: Called with the completed and all runs.

    Raises:
        ScenarioError: A step that the simulation does not support.
        SluiceError: A quota of a client, or a fault of a request, that the fleet does not have; insufficient memory.
    """
    schedule = schedule_of(scenario)
    workers = workers_for(len(seeds))
    ensure_possible(groups, schedule, workers)
    jobs = [(tuple(groups), schedule, broker, seed, cold) for seed in seeds]
    found = {
        seed: run
        for seed, run in zip(seeds, map_jobs(_run_job, jobs, workers, progress), strict=True)
        if run is not None
    }
    return Result(
        scenario=scenario.name,
        groups=[ClientGroup(group.name, group.clients, group.model) for group in groups],
        broker=broker,
        brokers=schedule.brokers,
        trigger_ms=schedule.trigger_us // US_PER_MS,
        healed_ms=schedule.healed_us // US_PER_MS,
        seeds=list(found),
        kinds=KINDS,
        counts=[run.counts.tolist() for run in found.values()],
        events=sum(run.events for run in found.values()),
        fairness=[run.fairness for run in found.values() if run.fairness is not None],
        phases=[_phase(segment) for segment in schedule.segments],
    )


_EFFECTS = {
    Effect.ANSWERED: "delay responses",
    Effect.NOT_LEADER: "return errors of a stale leader",
    Effect.RETRIABLE: "return retriable errors",
    Effect.NO_LEADER_KNOWN: "hide leaders in Metadata",
    Effect.CLOSED: "close connections",
    Effect.SILENT: "send no response",
    Effect.REFUSED: "refuse connections",
}


def _phase(segment: Segment) -> Phase:
    leaders = segment.leaders
    runs = (leaders != NO_LEADER) & segment.up[leaders]
    return Phase(
        segment.from_us // US_PER_MS,
        int(segment.up.sum()),
        len(np.unique(leaders[runs])),
        float(1 - runs.mean()),
        int(segment.replicated_us.max()) // US_PER_MS if segment.replicated_us.max() > segment.from_us else 0,
        list(dict.fromkeys(_EFFECTS[fault.outcome] for fault in segment.faults)),
    )


_Job = tuple[tuple[Group, ...], Schedule, BrokerModel, int, bool]


def workers_for(jobs: int) -> int:
    return min(jobs, os.cpu_count() or 1)


def map_jobs(
    function: Callable[[J], R], jobs: Sequence[J], workers: int, progress: Callable[[int, int], None] | None
) -> list[R | None]:
    """Call a module's function for each job, in processes; return the results in order.

    After Ctrl-C, unfinished jobs have the result None. Raises KeyboardInterrupt if none is finished.
    """
    found: list[R | None] = [None] * len(jobs)
    try:
        for done, (index, result) in enumerate(_results(function, jobs, workers), 1):
            found[index] = result
            if progress is not None:
                progress(done, len(jobs))
    except KeyboardInterrupt:
        if all(result is None for result in found):
            raise
    return found


def _results(function: Callable[[J], R], jobs: Sequence[J], workers: int) -> Iterator[tuple[int, R]]:
    if workers == 1:
        yield from enumerate(map(function, jobs))
        return
    # Forked processes would inherit threads of the caller, such as a progress bar's.
    before = set(active_children())
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_end_at_ctrl_c) as pool:
        futures = {pool.submit(function, job): index for index, job in enumerate(jobs)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            for process in set(active_children()) - before:
                process.terminate()
            raise


def _end_at_ctrl_c() -> None:
    signal(SIGINT, SIG_DFL)


def _run_job(job: _Job) -> Simulation:
    groups, schedule, broker, seed, cold = job
    return simulate(groups, schedule, broker, seed=seed, cold=cold)


def ensure_possible(groups: Sequence[Group], schedule: Schedule, workers: int) -> None:
    """Raise SluiceError for a quota of an unknown client, a fault without effect, or without enough memory."""
    names = [group.name for group in groups]
    for segment in schedule.segments:
        for name in segment.quotas:
            if name is not None and name not in names:
                raise SluiceError(
                    f"{schedule.name}: quota.client_id: expected <default> or a model of the fleet"
                    f" ({', '.join(names)}), got {name}"
                )
    _ensure_faults_have_effect(groups, schedule)
    clients = sum(group.clients * len(lanes_of(group.model)) for group in groups)
    by_broker = _BYTES_PER_CLIENT_AND_BROKER
    if any(segment.quotas for segment in schedule.segments):
        by_broker += BYTES_PER_BUCKET
    limits = Parameters([lane for group in groups for lane in lanes_of(group.model)]).in_flight
    in_flight = BYTES_PER_CLIENT + BYTES_PER_REQUEST * int(limits.max()) if (limits != 1).any() else 0
    needed = clients * (_BYTES_PER_CLIENT + schedule.brokers * by_broker + in_flight) * workers
    available = _available_bytes()
    if available is not None and needed > available:
        raise SluiceError(
            f"fleet: {clients:,} clients in {workers} processes need about {needed / 2**30:.1f} GiB of memory;"
            f" {available / 2**30:.1f} GiB are available. Use fewer clients or seeds."
        )


def _ensure_faults_have_effect(groups: Sequence[Group], schedule: Schedule) -> None:
    works = {lane.work for group in groups for lane in lanes_of(group.model)}
    sent = {CONNECT, METADATA, *works, *([FIND_COORDINATOR] if HEARTBEAT in works else [])}
    for segment in schedule.segments:
        for fault in segment.faults:
            if not fault.kinds & sent:
                apis = ", ".join(name for name, kind in APIS.items() if kind in sent)
                got = ", ".join(name for name, kind in APIS.items() if kind in fault.kinds)
                raise SluiceError(f"{schedule.name}: fault.api: expected requests of the fleet ({apis}), got {got}")


def _available_bytes() -> int | None:
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
