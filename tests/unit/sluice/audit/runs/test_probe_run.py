"""Runs that fail: what failed, and whether the client is the cause."""

import asyncio
from collections.abc import Sequence

import pytest

from sluice.audit.judge import findings
from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Observation, Role
from sluice.audit.judge.model.verdict import FindingKind
from sluice.audit.probes import PROBES
from sluice.audit.runs.probe_run import _never_worked, run
from sluice.clock import LoopClock
from tests.support.journals import Journal
from tools.audit_verdicts.synthetic_loops import METADATA, Client, Loop, LoopClient, LoopSubject


class Silent:
    """A running client without any output."""

    def ended(self) -> str | None:
        return None

    def last_output(self) -> str:
        return ""

    async def end(self) -> None:
        """It has no process."""


CHECK = "Check that it uses the topic {topic}, and runs until it is ended"
SILENT = "; it wrote nothing to its standard error. "


NEVER_SUCCEEDED = {
    "sent to a broker that is not the leader": (
        [6] * 938,
        0,
        f"938 of 938 Produce requests within 20 s got NOT_LEADER_OR_FOLLOWER{SILENT}"
        "Send the requests for a partition to its leader, which Metadata names",
    ),
    "mostly invalid": ([87] * 3, 2, f"3 of 5 Produce requests within 20 s got INVALID_RECORD{SILENT}{CHECK}"),
    "never sent": ([], 0, f"the client connected, but no Produce succeeded within 20 s{SILENT}{CHECK}"),
}


@pytest.mark.parametrize(("errors", "unanswered", "why"), NEVER_SUCCEEDED.values(), ids=NEVER_SUCCEEDED)
def test_requests_that_never_succeeded_are_counted(errors: Sequence[int], unanswered: int, why: str) -> None:
    journal = Journal()
    journal.connection(0)
    for number, code in enumerate(errors):
        journal.batch(number, number + 0.5, errors=[code])
    for number in range(unanswered):
        journal.batch(5000 + number, ended_ms=6000)
    assert _never_worked(Silent(), journal.events, Role.PRODUCER) == why


async def crashes(client: Client) -> None:
    """Raise when a record fails."""
    while not await client.produce():
        await client.pause(0.02)
    raise RuntimeError("cannot send")


async def sends_nonsense(client: Client) -> None:
    """Send records to a topic that does not exist."""
    while True:
        await client.produce("nowhere")
        await client.pause(0.2)


async def observed_run(loop: Loop) -> Observation:
    client = LoopClient("", "produce-timed-out", "KIP-580/1", Kind.PRODUCE, loop)
    clock = LoopClock(asyncio.get_running_loop())
    result = await run(LoopSubject(client), PROBES[client.probe], 0, 0, clock, asyncio.Lock(), lambda: lambda: 0.0)
    return result.observation


async def test_crash_during_a_fault_is_a_finding() -> None:
    one = await observed_run(crashes)
    assert (one.problem, one.is_client_failure) == ("the client ended: RuntimeError: cannot send", True)
    assert [(each.kind, each.why) for each in findings([one])] == [(FindingKind.FAILED, one.problem)]


async def test_client_whose_requests_all_fail_has_this_finding() -> None:
    one = await observed_run(sends_nonsense)
    failed = {each.kind: each.why for each in findings([one])}[FindingKind.FAILED]
    assert one.is_client_failure
    assert failed.endswith(" Produce requests within 20 s got UNKNOWN_TOPIC_OR_PARTITION")


async def test_client_that_sends_nothing_may_be_configured_wrongly() -> None:
    async def idles(client: Client) -> None:
        await client.send(METADATA, 1)
        await client.pause(60)

    one = await observed_run(idles)
    assert (one.problem.partition(";")[0], one.is_client_failure) == (
        "the client connected, but no Produce succeeded within 20 s",
        False,
    )
    assert findings([one]) == []
