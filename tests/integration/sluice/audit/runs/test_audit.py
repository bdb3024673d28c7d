"""Complete audits: our own client in virtual time, commands in real time, and failures in one line."""

import asyncio
import logging
import math
import sys
from collections.abc import Sequence

import pytest

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import AuditResult, State
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import Probe
from sluice.audit.runs import Budget, Progress, audit
from sluice.audit.subjects import SUBJECTS, subject_of
from sluice.audit.subjects.subject import Subject
from sluice.errors import SluiceError


def audited(
    subject: Subject, probes: Sequence[Probe], events: list[Progress] | None = None, stop_after: float = math.inf
) -> AuditResult:
    """Run an audit; stop it after `stop_after` progress events."""
    heard = [] if events is None else events

    async def main() -> AuditResult:
        stop = asyncio.Event()

        def hear(progress: Progress) -> None:
            heard.append(progress)
            if len(heard) > stop_after:
                stop.set()

        return await audit([subject], probes, budget=Budget(seconds=20), on_progress=hear, stop=stop)

    return asyncio.run(asyncio.wait_for(main(), 60))


def test_probes_are_measured_judged_and_reported() -> None:
    events: list[Progress] = []
    probes = [PROBES[name] for name in ("delivery-retries-exhausted", "throttle-produce", "produce-two-partitions")]
    result = audited(SUBJECTS["sluice-virtual"], probes, events)
    (subject,) = result.subjects
    assert {verdict.statement: verdict.state for verdict in subject.verdicts} == {
        "KIP-91/12": State.PASS,
        "KIP-13/20": State.PASS,
        "KIP-580/5": State.PASS,
    }
    assert subject.probes == {probe.name: 2 for probe in probes}
    assert subject.problems == []
    assert subject.recovery_ms.keys() == subject.probes.keys()
    assert (subject.subject.name, subject.virtual) == ("sluice-virtual", True)
    assert (events[0].done, events[0].planned) == (0, 6)
    assert (events[-1].phase, events[-1].done, events[-1].running) == ("done", 6, ())
    assert logging.getLogger("sluice").level == logging.NOTSET


WRONG: dict[str, tuple[str, str]] = {
    "that cannot start": ("no-such-program {bootstrap}", "no-such-program: cannot start: No such file"),
    "that ends at once": (
        f"{sys.executable} -S -c 'raise SystemExit(\"no config at {{bootstrap}}\")'",
        "exited with 1: no config at 127.0.0.1:",
    ),
}


@pytest.mark.parametrize(("command", "why"), WRONG.values(), ids=WRONG.keys())
def test_command(command: str, why: str) -> None:
    with pytest.raises(SluiceError) as raised:
        audited(subject_of(command), [PROBES["reconnect-lost"]])
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ("", r"; it wrote nothing to its standard error. Check that it uses {bootstrap} (HOST:PORT, separated by"),
        ("connect ECONNREFUSED ::1:9092", "ends with: connect ECONNREFUSED ::1:9092. It connects elsewhere; pass it"),
        ("SASL handshake failed", "The brokers of the audit use PLAINTEXT"),
    ],
    ids=["silently", "because it connects elsewhere", "because it authenticates"],
)
def test_command_that_never_connects(output: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(audit.__globals__, "_WITHIN_MS", 2000)
    code = f'import sys, time; print("{output}", file=sys.stderr, flush=True); time.sleep(60)'
    command = f"{sys.executable} -S -c '{code}' {{bootstrap}}"
    with pytest.raises(SluiceError) as raised:
        audited(subject_of(command), [PROBES["reconnect-lost"]])
    assert "did not connect to the brokers at {bootstrap} within 2 s" in str(raised.value)
    assert why in str(raised.value)


def test_client_that_always_fails_to_start_is_not_retried_forever() -> None:
    command, _ = WRONG["that ends at once"]
    (subject,) = audited(subject_of(command, Role.PRODUCER), [PROBES["reconnect-lost"]]).subjects
    assert subject.probes == {"reconnect-lost": 2}
    (problem,) = subject.problems
    assert problem.endswith("no config at {bootstrap} (2 times)"), "the address differs between runs"


def test_stopping_ends_runs_in_progress() -> None:
    command = f"{sys.executable} -S -c 'import time; time.sleep(60)' {{bootstrap}}"
    (subject,) = audited(subject_of(command, Role.PRODUCER), [PROBES["reconnect-lost"]], stop_after=1).subjects
    assert (subject.verdicts, subject.problems) == ([], ["stopped after 0 of 2 runs"])


def test_missing_client_library() -> None:
    class Missing(type(SUBJECTS["aiokafka"])):  # type: ignore[misc]
        def missing(self) -> str | None:
            return "aiokafka: it is not installed"

    with pytest.raises(SluiceError, match="it is not installed"):
        audited(Missing(SUBJECTS["aiokafka"].client), [PROBES["reconnect-lost"]])  # type: ignore[attr-defined]


WRONG_PROBES = {
    "none": ([], "audit: expected subjects and probes, got 1 subjects, 0 probes"),
    "for another role": (["fetch-error"], "no probe is for a producer"),
}


@pytest.mark.parametrize(("probes", "why"), WRONG_PROBES.values(), ids=WRONG_PROBES)
def test_probes_that_are(probes: list[str], why: str) -> None:
    with pytest.raises(SluiceError, match=why):
        audited(subject_of("app {bootstrap}", Role.PRODUCER), [PROBES[name] for name in probes])
