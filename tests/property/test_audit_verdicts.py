"""The judge is right about clients with known behaviour: our own, and variants with changed behaviour.

Each client runs its stage in virtual time as often as the judge requires; then every verdict and every finding must be
correct. The campaign `audit-verdicts` runs 20 seeds, and 100 for our own client in its default profile;
`pytest tests/property/test_audit_verdicts.py --audit-seeds N` runs N.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

import pytest

from sluice.audit.judge import findings, judge
from sluice.audit.judge.consistency import consistent
from sluice.audit.judge.measured import measured_backoffs
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import State
from tools.audit_verdicts.audit_stages import STAGES, observe, observe_as_command
from tools.audit_verdicts.synthetic_clients import DEFAULT_PROFILE, POLICIES, Policy
from tools.audit_verdicts.synthetic_loops import LOOPS, LoopClient, observe_loop
from tools.audit_verdicts.synthetic_probe_clients import (
    BASE_MS,
    MAX_MS,
    PROBE_CLIENTS,
    ProbeClient,
    observe_probe_client,
)

LEAST_RUNS, MOST_RUNS = 3, 24
# Relative to the configured value.
NEAR = 0.05
# If each wait is drawn once, few waits show its jitter. If it is drawn again on every check, the shortest draws are
# hardly ever seen: the same precision needs 3,000 waits (fit.py has the numbers).
RUNS, RUNS_OF_DRAWS_ANEW = 16, 28
# The cases that `make test` has time for: one of each cheap stage, and some deviations.
SAMPLE = (
    "after-versions: unchanged",
    "lost: no wait after a success",
    "two-partitions: counted per connection",
    "new-leader: waits anyway",
    "then-success: never reset",
    "throttled: ignores the throttle time",
    "mute: unchanged",
    "mute: closes the connection of an expired batch",
    "retries: one more retry",
    "in-flight: two in flight",
    "config: accepts any configuration",
    "long-throttle: unchanged",
)
SAMPLE_OF_PROBE_CLIENTS = (
    "commit-error: base too large",
    "heartbeat-error: linear",
    "admin-error: unchanged",
    "join-error: exponential waits",
    "init-producer-id-error: exponential waits",
    "throttle-fetch: ignores the throttle time",
    "reconnect-sasl-rejected: unchanged",
    "reconnect-all-lost: never returns to the bootstrap address",
)


# A command shows nothing about these.
REPORTED_BY_DRIVERS = frozenset(["KIP-91/2", "KIP-91/8", "KIP-91/9", "KIP-91/13", "KIP-91/16"])


class Configured(NamedTuple):
    """A backoff of our own client, and the stage that shows it."""

    name: str
    run: Callable[[int], Observation]
    statement: str
    base_ms: float
    cap_ms: float
    runs: int

    def __str__(self) -> str:
        return self.name


def on_stage(stage: str) -> Callable[[int], Observation]:
    return partial(observe, Policy("unchanged", stage, {}))


BACKOFFS = (
    Configured("before connections", on_stage("closed"), "KIP-144/1", 50, 1000, RUNS),
    Configured(
        "before an admin's retries",
        partial(observe_probe_client, ProbeClient("unchanged", "admin-error", {})),
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
    if "loop" in metafunc.fixturenames:
        metafunc.parametrize("loop", LOOPS, ids=str)
        metafunc.parametrize("seed", range(seeds or 1))
    if "backoff" in metafunc.fixturenames:
        metafunc.parametrize("backoff", BACKOFFS if seeds else BACKOFFS[:-1], ids=str)
        metafunc.parametrize("fit_seed", range(seeds or 1))
    if "profile_seed" in metafunc.fixturenames:
        metafunc.parametrize("profile_seed", range(5 * (seeds or 0) or 1))


def test_verdicts_on_a_client_with_known_behaviour_are_right(policy: Policy, seed: int) -> None:
    runs = as_often_as_needed(partial(observe, policy), policy.expected, seed)
    assert judge_all(runs, policy.expected) == (policy.expected, policy.finds), f"{policy}, seed {seed}"


def test_verdicts_on_a_client_run_as_a_command_are_right(policy: Policy, seed: int) -> None:
    """Not idempotent, with records of equal size, and without reports of a driver."""
    seen = {
        name: State.INCONCLUSIVE if name in policy.hidden else state
        for name, state in policy.expected.items()
        if name not in REPORTED_BY_DRIVERS
    }
    runs = as_often_as_needed(partial(observe_as_command, policy), seen, seed)
    verdicts = consistent([judge(name, runs) for name in policy.expected])
    states = {verdict.statement: verdict.state for verdict in verdicts}
    assert {name: states[name] for name in seen} == seen, f"{policy}, seed {seed}"
    assert all(
        states[name] in (state, State.INCONCLUSIVE, State.NOT_OBSERVABLE) for name, state in policy.expected.items()
    )


def test_verdicts_on_a_client_under_a_probe_are_right(client: ProbeClient, seed: int) -> None:
    runs = as_often_as_needed(partial(observe_probe_client, client), client.expected, seed)
    assert judge_all(runs, client.expected) == (client.expected, set()), f"{client}, seed {seed}"


def test_waits_of_a_naive_loop_are_not_taken_for_a_backoff(loop: LoopClient, seed: int) -> None:
    runs = as_often_as_needed(partial(observe_loop, loop), [loop.statement], seed)
    verdict = judge(loop.statement, runs)
    assert verdict.state in loop.allowed, f"{loop}, seed {seed}: {verdict.why}"
    measured = [each for each in measured_backoffs(runs) if each.kind is loop.kind]
    assert bool(measured) == (State.DEVIATES in loop.allowed), f"{loop}, seed {seed}: {measured}"
    assert not any(each.problem for each in runs)


def as_often_as_needed(run: Callable[[int], Observation], statements: Iterable[str], seed: int) -> list[Observation]:
    """Run until the judge needs no more runs."""
    runs = [run(1000 * seed + number) for number in range(LEAST_RUNS)]
    while len(runs) < MOST_RUNS and any(judge(name, runs).runs_needed for name in statements):
        runs.append(run(1000 * seed + len(runs)))
    return runs


def judge_all(runs: Sequence[Observation], statements: Iterable[str]) -> tuple[object, object]:
    """Return the verdict on each of these statements, and the kinds of the findings."""
    verdicts = consistent([judge(name, runs) for name in statements])
    return {verdict.statement: verdict.state for verdict in verdicts}, {each.kind for each in findings(runs)}


def test_own_client_in_its_default_profile_has_no_deviation(profile_seed: int, pytestconfig: pytest.Config) -> None:
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


def test_fitted_backoff_of_our_own_client_equals_its_configuration(backoff: Configured, fit_seed: int) -> None:
    runs = [backoff.run(1000 * fit_seed + number) for number in range(backoff.runs)]
    fit = judge(backoff.statement, runs).fit
    assert fit is not None
    assert (fit.model, fit.multiplier) == ("exponential", 2)
    assert fit.base_ms == pytest.approx(backoff.base_ms, rel=NEAR)
    assert fit.cap_ms == pytest.approx(backoff.cap_ms, rel=NEAR)
    assert fit.jitter == pytest.approx(0.2, rel=NEAR)
