"""Clients in other languages: their drivers, and audits of the same programs as unknown commands.

As commands they report nothing, keep their libraries' defaults, and are not idempotent. No deviation may be stated
that the library's source does not explain.
"""

import asyncio
import json
import shlex
from collections.abc import Mapping
from typing import NamedTuple

import pytest

from sluice.audit.judge.consistency import consistent
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State, SubjectResult
from sluice.audit.probes import PROBES
from sluice.audit.runs import Budget, audit
from sluice.audit.runs.probe_run import run
from sluice.audit.subjects import SUBJECTS, subject_of
from sluice.audit.subjects.program import ProgramSubject
from sluice.clock import LoopClock
from tests.integration.sluice.audit.subjects.test_drivers import CHECKS
from tests.integration.sluice.audit.subjects.test_drivers import PROBES as CHECKED
from tests.support import skips

pytestmark = pytest.mark.client_audits

SHOWN = ("produce-timed-out", "produce-then-success", "produce-no-retry", "throttle-produce", "throttle-long")
SECONDS = 40.0


class Program(NamedTuple):
    """The backoff of a library, its settings as a command, and the deviations that its source explains."""

    base_ms: float
    max_ms: float
    settings: Mapping[str, object]
    deviations: frozenset[str]


PROGRAMS = {
    # sink.go: each response resets the count of failures, so the backoff of 250 ms ± 20 % does not grow.
    "franz-go": Program(
        250,
        5000,
        {"IdempotentWrite": False, "MaxProduceRequestsInflightPerBroker": 5},
        frozenset(["KIP-580/1", "KIP-580/2", "KIP-580/17"]),
    ),
    # async_producer.go: Producer.Retry.Backoff is constant, without jitter, three times.
    "sarama": Program(100, 1000, {}, frozenset(["KIP-580/1", "KIP-580/2", "KIP-580/16", "KIP-580/17"])),
    # retry/index.js: each wait is drawn around twice the last one, so the jitter of ± 20 % accumulates.
    "kafkajs": Program(300, 30_000, {}, frozenset(["KIP-580/1", "KIP-580/16"])),
}
MODES = {
    "equal records, one after the other": {"pending": 1, "padding": 0},
    "varied records, pipelined": {"pending": 5, "padding": 200},
}


def built(name: str) -> ProgramSubject:
    subject = SUBJECTS[name]
    assert isinstance(subject, ProgramSubject)
    if why := subject.missing():
        pytest.skip(skips.build(name, why))
    subject.build()
    return subject


@pytest.mark.timeout(240)  # builds, if it is the first
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", PROGRAMS)
def test_driver(name: str, role: Role) -> None:
    async def main() -> None:
        clock = LoopClock(asyncio.get_running_loop())
        seen = await run(built(name), CHECKED[role], 0, 0, clock, asyncio.Lock(), lambda: lambda: 0.0)
        assert (seen.lost, seen.observation.problem) == ([], "")
        assert [each.event for each in seen.observation.callbacks[:2]] == ["started", "ready"]
        CHECKS[role](seen.observation)

    asyncio.run(main())


def audited(name: str, mode: Mapping[str, int]) -> SubjectResult:
    program = PROGRAMS[name]
    workload = {"type": "produce", "partitions": 1, "pause_ms": 20, "lifetime_ms": 0, **mode}
    job = {"bootstrap": "{bootstrap}", "role": "producer", "workload": workload, "settings": program.settings}
    settings = {"retry.backoff.ms": program.base_ms, "retry.backoff.max.ms": program.max_ms}
    subject = subject_of(shlex.join([*built(name).command(), json.dumps(job)]), Role.PRODUCER, settings)
    budget = Budget(seconds=SECONDS, at_once=3)
    return asyncio.run(audit([subject], [PROBES[name] for name in SHOWN], budget=budget)).subjects[0]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_deviations_are_those_in_the_source_of(name: str, mode: Mapping[str, int]) -> None:
    result = audited(name, mode)
    states = {verdict.statement: verdict for verdict in result.verdicts}
    wrong = [verdict for verdict in result.verdicts if verdict.state is State.DEVIATES]
    assert {each.statement for each in wrong} <= PROGRAMS[name].deviations, wrong
    assert all(each.probe and each.where for each in wrong if each.statement != "KIP-580/16"), wrong
    assert consistent(result.verdicts) == result.verdicts
    # KIP-91/15 is decided by the content of records, KIP-13/20 by the times of requests.
    assert states["KIP-91/15"].state is State.PASS, states["KIP-91/15"].why
    assert states["KIP-13/20"].state is not State.DEVIATES, states["KIP-13/20"].why
    # franz-go moves pipelined records between batches, so that their waits have no common rule.
    assert mode["pending"] > 1 or any(each.kind == "produce" for each in result.backoffs) or result.problems
