"""Plans of logs written under a quota, compared with logs of the same workloads without one: what is stated is true.

Each seed is a client (paced, bursty, backlogged, or a closed loop) and a quota of 0.2 to 2 times its demand.
The campaign `plans` runs 200 seeds; `pytest tests/property/test_throttled_demand.py --plan-seed N` runs one.
"""

from pathlib import Path
from random import Random

import msgspec
import pytest

from sluice.spark.plan import job, local_engine
from sluice.spark.plan.analysis import Limits, Settings
from sluice.spark.plan.recommendation import Policy, Recommendation
from tools.plans.throttled_workloads import QUOTAS, Recording, workload


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    one, many = metafunc.config.getoption("--plan-seed"), metafunc.config.getoption("--plan-seeds")
    metafunc.parametrize("seed", range(many or 3) if one is None else [one])


def planned(recording: Recording, folder: Path) -> Recommendation | None:
    """Return the recommendation; None if each fetch was throttled, so that nothing was sent."""
    folder.mkdir()
    (folder / "log").write_bytes(b"".join(msgspec.json.encode(event) + b"\n" for event in recording.events))
    settings = Settings((), ("by-version",), ("closed",), "client-id", Limits(100, 0.05))
    found = job.plan(
        [str(folder / "log")], folder / "out", settings, Policy(always_default=True), local_engine.run, lambda *_: None
    )
    return found.recommendations[0] if found.recommendations else None


def test_what_is_stated_of_a_demand_is_true(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "write_report", lambda *_: None)  # most of the time
    load = workload(seed)
    free = Recording(load, None)
    # A backlog that is sent before the end has the demand of the time that it takes.
    seconds = max(1.0, free.span_ms / 1000) if load.style == "backlogged" else load.seconds
    demand = free.bytes / seconds
    limited = Recording(load, demand * Random(seed).uniform(*QUOTAS))
    for name, recording in (("free", free), ("limited", limited)):
        found = planned(recording, tmp_path / name)
        if found is None:
            assert (load.kind, recording.was_throttled) == ("Fetch", True)
            continue
        (need,) = found.overrides + found.others
        stated = need.demand
        if recording.was_throttled:
            assert stated.confidence == "throttled"
        if stated.is_known:
            assert stated.rate == pytest.approx(demand, rel=max(0.1, stated.uncertainty)), stated
            assert need.quota >= stated.rate
        else:
            assert stated.rate <= demand, stated
            assert found.is_empty
