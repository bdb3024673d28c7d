"""A recommendation of backoffs for a fleet in a scenario, and what it costs after a short outage."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from sluice.broker.scenarios.files import scenario_of
from sluice.broker.scenarios.model import Scenario
from sluice.fleet.models.client_model import Group, config_name
from sluice.fleet.simulation.arrays import US_PER_MS
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import simulate
from sluice.fleet.simulation.schedule import Schedule, schedule_of

from .results import figures_of_counts
from .run import ensure_possible, map_jobs, workers_for

_MAXIMA_MS = (1000, 2000, 5000, 10_000)
_SHORT_OUTAGE_S, _SHORT_RUN_S = 2, 20
_NEAR = 1.1  # a peak within 10 % of the lowest is as good


class Policy(Struct, frozen=True):
    """The figures of one set of backoffs, medians over the seeds.

    Args:
        settings: As for `--set`; "" for the backoffs of the models.
        loop: "open" or "closed".
        peak_per_s, amplification, expired: As in results.Figures.
        recovery_s: The longest time to recovery; None: a seed did not recover.
        added_ms: Mean latency that a loss of one broker for 2 s adds to each operation of a run of 20 s.
    """

    settings: str
    loop: str
    peak_per_s: float
    amplification: float
    recovery_s: int | None
    expired: float
    added_ms: float


def advise(
    scenario: Scenario,
    groups: Sequence[Group],
    broker: BrokerModel,
    *,
    seeds: Sequence[int],
    progress: Callable[[int, int], None] | None = None,
) -> list[Policy]:
    """Return the figures of several backoffs, in an open and a closed loop; raise as `run_fleet` does."""
    schedule, short = schedule_of(scenario), _short_outage(scenario.brokers)
    jobs = [
        (tuple(_with(group, settings, loop) for group in groups), schedule, short, broker, seed)
        for settings in _candidates()
        for loop in ("open", "closed")
        for seed in seeds
    ]
    workers = workers_for(len(jobs))
    ensure_possible(groups, schedule, workers)
    found = [run for run in map_jobs(_run, jobs, workers, progress) if run is not None]
    names = [(_text(settings), loop) for settings in _candidates() for loop in ("open", "closed")]
    return [
        _median(*name, found[at : at + len(seeds)])
        for name, at in zip(names, range(0, len(found), len(seeds)), strict=False)
        if at + len(seeds) <= len(found)
    ]


def recommended(policies: Sequence[Policy], loop: str) -> Policy:
    """Return the shortest policy with nearly the lowest peak, of those that recover and fail the fewest operations."""
    possible = [policy for policy in policies if policy.loop == loop]
    possible = [policy for policy in possible if policy.recovery_s is not None] or possible
    fewest = min(policy.expired for policy in possible)
    possible = [policy for policy in possible if policy.expired <= fewest * _NEAR]
    lowest = min(policy.peak_per_s for policy in possible)
    return next(policy for policy in possible if policy.peak_per_s <= lowest * _NEAR)


def _candidates() -> list[dict[str, float]]:
    return [{}, *map(_exponential, _MAXIMA_MS)]


def _exponential(max_ms: float) -> dict[str, float]:
    settings: dict[str, float] = {"retry_backoff_ms": 100, "reconnect_backoff_ms": 50}
    for kind in ("retry", "reconnect"):
        settings |= {f"{kind}_backoff_max_ms": max_ms, f"{kind}_backoff_multiplier": 2, f"{kind}_backoff_jitter": 0.2}
    return settings


def _text(settings: dict[str, float]) -> str:
    return ", ".join(f"{config_name(name)}={value}" for name, value in settings.items() if "max" in name)


def _with(group: Group, settings: dict[str, float], loop: str) -> Group:
    return group._replace(model=replace(group.model, loop=loop, **settings))


def _short_outage(brokers: int) -> Schedule:
    steps = [{"at": "5s", "kill": 1, "during": f"{_SHORT_OUTAGE_S}s"}]
    return schedule_of(
        scenario_of({"name": "short", "brokers": brokers, "duration": f"{_SHORT_RUN_S}s", "steps": steps})
    )


_Job = tuple[tuple[Group, ...], Schedule, Schedule, BrokerModel, int]
_Run = tuple[float, float, int | None, int, float]


def _run(job: _Job) -> _Run:
    groups, schedule, short, broker, seed = job
    counts = simulate(groups, schedule, broker, seed=seed).counts
    found = figures_of_counts(counts, schedule.trigger_us // US_PER_MS, schedule.healed_us // US_PER_MS)
    after = simulate(groups, short, broker, seed=seed).counts
    latency_ms = after[:, Count.LATENCY_US] / US_PER_MS
    healthy = slice(10, 50)
    before_ms = latency_ms[healthy].sum() / max(int(after[healthy, Count.COMPLETED].sum()), 1)
    added_ms = float(latency_ms.sum() / max(int(after[:, Count.COMPLETED].sum()), 1) - before_ms)
    return found.peak_per_s, found.amplification, found.recovery_s, found.expired, added_ms


def _median(settings: str, loop: str, runs: Sequence[_Run]) -> Policy:
    peaks, amplifications, recoveries, expired, added_ms = zip(*runs, strict=True)
    known = [each for each in recoveries if each is not None]
    return Policy(
        settings,
        loop,
        float(np.median(peaks)),
        float(np.median(amplifications)),
        max(known) if len(known) == len(runs) else None,
        float(np.median(expired)),
        float(np.median(added_ms)),
    )
