"""The judge is right about clients whose behaviour is known: our own, and the same made to do otherwise.

Each goes through what its policy says, in virtual time, as often as the judge asks for; then every verdict and every
finding must be the one that is right. `make test-audit` does so with 20 seeds, and our own client in its default
profile with 100; `pytest tests/property/test_audit_verdicts.py --audit-seeds N` with N.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import pytest

from sluice.audit.judge import findings, judge
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import State
from tests.support.audit_stages import STAGES, observe
from tests.support.synthetic_clients import DEFAULT_PROFILE, POLICIES, Policy
from tests.support.synthetic_probe_clients import BASE_MS, MAX_MS, PROBE_CLIENTS, ProbeClient, observe_probe_client

LEAST_RUNS, MOST_RUNS = 3, 24
# Of the configured value.
NEAR = 0.05
# A draw for each wait shows its jitter in few. Of draws that are made anew at every look the shortest are hardly ever
# seen: as much is known of their jitter after 3,000 waits (fit.py has the numbers).
RUNS, RUNS_OF_DRAWS_ANEW = 16, 28
# What make test has time for: one of each stage that is not dear, and some that deviate.
SAMPLE = (
    "after-versions: as it is",
    "lost: at once after a success",
    "two-partitions: counted by connection",
    "new-leader: waits all the same",
    "then-success: never reset",
    "throttled: deaf",
    "mute: as it is",
    "mute: closes the connection of what expired",
    "retries: once more",
    "in-flight: two on their way",
    "config: takes any configuration",
    "long-throttle: as it is",
)
SAMPLE_OF_PROBE_CLIENTS = (
    "commit-error: base too large",
    "heartbeat-error: linear",
    "admin-error: as it is",
    "join-error: waits that double",
    "init-producer-id-error: waits that double",
    "throttle-fetch: deaf",
)


class Configured(NamedTuple):
    """A backoff of our own client, and where it is seen."""

    name: str
    run: Callable[[int], Observation]
    statement: str
    base_ms: float
    cap_ms: float
    runs: int

    def __str__(self) -> str:
        return self.name


def on_stage(stage: str) -> Callable[[int], Observation]:
    return partial(observe, Policy("as it is", stage, {}))


BACKOFFS = (
    Configured("before connections", on_stage("closed"), "KIP-144/1", 50, 1000, RUNS),
    Configured(
        "before an admin's retries",
        partial(observe_probe_client, ProbeClient("as it is", "admin-error", {})),
        "KIP-580/15",
        BASE_MS,
        MAX_MS,
        RUNS,
    ),
    Configured("before retries of batches", on_stage("many-errors"), "KIP-580/1", 1000, 10_000, RUNS_OF_DRAWS_ANEW),
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    seeds = metafunc.config.getoption("--audit-seeds")
    if "policy" in metafunc.fixturenames:
        policies = [policy for policy in POLICIES if seeds or str(policy) in SAMPLE]
        metafunc.parametrize("policy", policies, ids=str)
        metafunc.parametrize("seed", range(seeds or 1))
    if "client" in metafunc.fixturenames:
        clients = [client for client in PROBE_CLIENTS if seeds or str(client) in SAMPLE_OF_PROBE_CLIENTS]
        metafunc.parametrize("client", clients, ids=str)
        metafunc.parametrize("seed", range(seeds or 1))
    if "backoff" in metafunc.fixturenames:
        metafunc.parametrize("backoff", BACKOFFS if seeds else BACKOFFS[:-1], ids=str)
        metafunc.parametrize("fit_seed", range(seeds or 1))
    if "profile_seed" in metafunc.fixturenames:
        metafunc.parametrize("profile_seed", range(5 * (seeds or 0) or 1))


def test_every_verdict_on_a_client_whose_behaviour_is_known_is_right(policy: Policy, seed: int) -> None:
    runs = as_often_as_needed(partial(observe, policy), policy.expected, seed)
    assert judge_all(runs, policy.expected) == (policy.expected, policy.finds), f"{policy}, seed {seed}"


def test_every_verdict_on_a_client_under_a_probe_is_right(client: ProbeClient, seed: int) -> None:
    runs = as_often_as_needed(partial(observe_probe_client, client), client.expected, seed)
    assert judge_all(runs, client.expected) == (client.expected, set()), f"{client}, seed {seed}"


def as_often_as_needed(run: Callable[[int], Observation], statements: Iterable[str], seed: int) -> list[Observation]:
    """Runs, until the judge needs no more of them."""
    runs = [run(1000 * seed + number) for number in range(LEAST_RUNS)]
    while len(runs) < MOST_RUNS and any(judge(name, runs).runs_needed for name in statements):
        runs.append(run(1000 * seed + len(runs)))
    return runs


def judge_all(runs: Sequence[Observation], statements: Iterable[str]) -> tuple[object, object]:
    """Return the verdict on each of these statements, and the kinds of the findings."""
    return {name: judge(name, runs).state for name in statements}, {each.kind for each in findings(runs)}


def test_our_own_client_in_its_default_profile_deviates_from_nothing(
    profile_seed: int, pytestconfig: pytest.Config
) -> None:
    full = pytestconfig.getoption("--audit-seeds") is not None
    stages = DEFAULT_PROFILE if full else DEFAULT_PROFILE[::4]
    deviating = [
        (str(policy), name, verdict.why)
        for policy in stages
        for run in [observe(policy, profile_seed)]
        for name, statement in STATEMENTS.items()
        if STAGES[policy.stage].probe in statement.probes and (verdict := judge(name, [run])).state is State.DEVIATES
    ]
    assert not deviating, f"seed {profile_seed}"


def test_base_cap_and_jitter_of_our_own_client_are_those_that_are_configured(
    backoff: Configured, fit_seed: int
) -> None:
    runs = [backoff.run(1000 * fit_seed + number) for number in range(backoff.runs)]
    fit = judge(backoff.statement, runs).fit
    assert fit is not None
    assert (fit.model, fit.multiplier) == ("exponential", 2)
    assert fit.base_ms == pytest.approx(backoff.base_ms, rel=NEAR)
    assert fit.cap_ms == pytest.approx(backoff.cap_ms, rel=NEAR)
    assert fit.jitter == pytest.approx(0.2, rel=NEAR)
