"""The driver of Kafka's Java clients: as a producer, a group member, and an admin client."""

import asyncio

import pytest

from sluice.audit.judge.model.observation import Observation, Role
from sluice.audit.runs.probe_run import run
from sluice.audit.subjects import SUBJECTS
from sluice.audit.subjects.subject import Subject
from sluice.clock import LoopClock
from tests.integration.sluice.audit.subjects.test_drivers import CHECKS, PROBES, run_on_a_busy_machine
from tests.support import skips


@pytest.fixture(scope="module", params=[pytest.param("java", marks=pytest.mark.spark_long), "java-4"])
def java(request: pytest.FixtureRequest) -> Subject:
    return SUBJECTS[request.param]


@pytest.fixture(scope="module")
def seen(java: Subject) -> dict[Role, Observation]:
    missing = java.missing()
    if missing is not None:
        pytest.skip(skips.build(java.name, missing))

    async def one(role: Role, starting: asyncio.Lock) -> Observation:
        clock = LoopClock(asyncio.get_running_loop())
        return (await run(java, PROBES[role], 0, 0, clock, starting, lambda: lambda: 0.0)).observation

    async def main() -> dict[Role, Observation]:
        starting = asyncio.Lock()
        try:
            found = await asyncio.gather(*(one(role, starting) for role in Role))
        finally:
            await java.close()
        return dict(zip(Role, found, strict=True))

    return run_on_a_busy_machine(main())


@pytest.mark.parametrize("role", Role)
def test_the_driver(java: Subject, seen: dict[Role, Observation], role: Role) -> None:
    observation = seen[role]
    assert observation.problem == ""
    assert [one.event for one in observation.callbacks[:2]] == ["started", "ready"]
    assert observation.subject.version == java.version() != ""
    CHECKS[role](observation)
