"""Each driver runs its library, in real time and all at once.

A producer receives NOT_ENOUGH_REPLICAS twice, a group member reads and commits, and an admin client sends requests.
tests/spark covers the Java driver.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import TypeVar

import pytest

from sluice.audit.judge.model.observation import Callback, Observation, Role
from sluice.audit.probes.incidents import ADMIN, MEMBER, PRODUCER, broken, cluster, error
from sluice.audit.probes.probe import RECORDS, Call, Consume, Probe, Produce
from sluice.audit.runs.probe_run import run
from sluice.audit.runs.virtual_run import run_virtual
from sluice.audit.subjects import SUBJECTS, VIRTUAL
from sluice.clock import LoopClock
from sluice.journal_events import Request

PROBES: Mapping[Role, Probe] = {
    Role.PRODUCER: Probe(
        name="producer",
        what="",
        workload=Produce(),
        # Longer than a busy machine needs for two failures and some records.
        cluster=cluster(5, broken(0, 4.9, error("NOT_ENOUGH_REPLICAS", "Produce", "2 fail"))),
        settings=PRODUCER,
    ),
    Role.CONSUMER: Probe(
        name="consumer",
        what="",
        # It also limits each poll.
        workload=Consume(in_group=True, commit_every_ms=250),
        cluster=cluster(3),
        settings=MEMBER,
    ),
    Role.ADMIN: Probe(name="admin", what="", workload=Call(), cluster=cluster(2), settings=ADMIN),
}
BLOCKING = [(name, role) for name in ("kafka-python", "confluent-kafka") for role in Role]
PRODUCING = [(name, Role.PRODUCER) for name in ("aiokafka", "sluice")]
IN_VIRTUAL_TIME = [(name, role) for name in VIRTUAL for role in Role]


# kafka-python ignores the response to SyncGroup if a poll ends before it arrives, as it may on a busy machine. Its
# consumer then never fetches, so it gets another run.
ATTEMPTS = {("kafka-python", Role.CONSUMER): 3}
# All attempts end within the timeout of a test.
WORKS_WITHIN_MS = 75_000

Seen = dict[tuple[str, Role], Observation]
T = TypeVar("T")


def run_on_a_busy_machine(runs: Coroutine[object, object, T]) -> T:
    """Run probes whose clients get longer to start than in an audit, because they share the machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluice.audit.runs.probe_run._WORKS_WITHIN_MS", WORKS_WITHIN_MS)
        return asyncio.run(runs)


@pytest.fixture(scope="module")
def seen() -> Seen:
    """Return the observation of each driver; running them together takes little longer than one."""

    async def one(subject: str, role: Role, starting: asyncio.Lock) -> Observation:
        clock = LoopClock(asyncio.get_running_loop())
        for _ in range(ATTEMPTS.get((subject, role), 1)):
            seen = await run(SUBJECTS[subject], PROBES[role], 0, 0, clock, starting, lambda: lambda: 0.0)
            assert seen.lost == []
            if not seen.observation.problem:
                break
        return seen.observation

    async def main() -> Seen:
        cases, starting = [*BLOCKING, *PRODUCING], asyncio.Lock()
        found = await asyncio.gather(*(one(subject, role, starting) for subject, role in cases))
        return dict(zip(cases, found, strict=True))

    return run_on_a_busy_machine(main()) | {
        (name, role): run_virtual(VIRTUAL[name], PROBES[role], 0, 0).observation for name, role in IN_VIRTUAL_TIME
    }


@pytest.mark.parametrize(("subject", "role"), [*BLOCKING, *PRODUCING, *IN_VIRTUAL_TIME])
def test_driver(seen: Seen, subject: str, role: Role) -> None:
    observation = seen[subject, role]
    assert observation.problem == ""
    assert [callback.event for callback in observation.callbacks[:2]] == ["started", "ready"]
    assert observation.subject.version != ""
    CHECKS[role](observation)


def _of(observation: Observation, event: str) -> list[Callback]:
    return [callback for callback in observation.callbacks if callback.event == event]


def _produces(observation: Observation) -> None:
    sent, delivered = _of(observation, "sent"), _of(observation, "delivered")
    assert [callback.record for callback in sent] == [*range(len(sent))]
    assert len(sent) - 1 <= len(delivered) <= len(sent), ("one batch at a time", observation.callbacks[-5:])
    assert len(delivered) > 3
    requests = [event for event in observation.events if isinstance(event, Request) and event.api == "Produce"]
    failed = [event for event in requests if event.error_codes == [19]]
    assert len(failed) == 2
    assert failed[0].partitions == failed[1].partitions, "the same batch again"
    is_idempotent = observation.subject.name != "confluent-kafka"  # whose default is not
    assert (failed[0].partitions[0].producer_id >= 0) == is_idempotent


def _reads_and_commits(observation: Observation) -> None:
    assert {callback.record for callback in _of(observation, "received")} == {*range(RECORDS)}
    requests = [event for event in observation.events if isinstance(event, Request)]
    assert sum(event.api == "OffsetCommit" and not event.error_codes for event in requests) > 2


def _describes_groups(observation: Observation) -> None:
    requests = [event for event in observation.events if isinstance(event, Request)]
    assert sum(event.api == "DescribeGroups" and not event.error_codes for event in requests) > 2
    assert _of(observation, "call-failed") == []


CHECKS = {Role.PRODUCER: _produces, Role.CONSUMER: _reads_and_commits, Role.ADMIN: _describes_groups}
