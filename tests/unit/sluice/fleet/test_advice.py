"""Tests of the recommendation of backoffs."""

import pytest

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet import advice
from sluice.fleet.advice import Policy, advise, recommended
from sluice.fleet.models.client_model import Group
from sluice.fleet.models.presets import BEFORE_KIP_580
from tests.support.fleet_simulation import FAST


def _policy(settings: str, peak: float, expired: float = 0, recovery_s: int | None = 1, loop: str = "open") -> Policy:
    return Policy(settings, loop, peak, 2.0, recovery_s, expired, 10.0)


def test_the_shortest_maximum_with_nearly_the_lowest_peak_is_recommended() -> None:
    policies = [
        _policy("given", 500), _policy("1000", 105), _policy("2000", 100), _policy("lost", 90, expired=7),
        _policy("stuck", 80, recovery_s=None), _policy("other", 1, loop="closed"),
    ]  # fmt: skip
    assert recommended(policies, "open").settings == "1000"
    assert recommended(policies, "closed").settings == "other"
    assert recommended([_policy("stuck", 80, recovery_s=None)], "open").settings == "stuck"


def test_exponential_backoff_makes_fewer_attempts_and_adds_latency_after_a_short_outage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(advice, "workers_for", lambda jobs: 1)
    steps = [{"at": "3s", "kill": 1, "during": "6s"}]
    scenario = scenario_of({"name": "test", "brokers": 3, "duration": "15s", "steps": steps})
    found = advise(scenario, [Group("old", BEFORE_KIP_580, 30)], FAST, seeds=[1])
    assert [policy.loop for policy in found] == ["open", "closed"] * 5
    given, short, *_, longest = [policy for policy in found if policy.loop == "open"]
    assert given.settings == ""
    assert short.settings == "retry.backoff.max.ms=1000, reconnect.backoff.max.ms=1000"
    assert given.amplification > 2 * short.amplification
    assert given.added_ms < longest.added_ms
