"""Artificial audit results: clients with every kind of verdict and finding, and names that try to inject markup."""

from collections.abc import Sequence
from random import Random

from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.judge.model.verdict import (
    AuditResult,
    Finding,
    FindingKind,
    Fit,
    Series,
    Sort,
    State,
    SubjectResult,
    Verdict,
)

HOSTILE = '"><script>alert(1)</script>\x1b[31m\u202e&'
TEXTS = {
    "KIP-144/1": "The n-th failure in a row is followed by a wait of 50·2ⁿ⁻¹ ms ± 20 %.",
    "KIP-144/3": "An answer to ApiVersions resets the backoff.",
    "KIP-580/1": "Before retry k of a batch it waits 100·2ᵏ⁻¹ ms ± 20 %, and never longer than the maximum.",
    "KIP-580/2": "At the cap it waits 0.8 to 1 times the maximum.",
    "KIP-580/16": "Jitter makes two clients drift apart.",
    "KIP-91/2": "The callback fires by delivery.timeout.ms after a batch was created.",
}


def series(
    waits_ms: Sequence[float], *, key: str = "orders-0@4000.0.17", repetition: int = 0, banded: bool = True
) -> Series:
    """Return a sequence with these waits; each attempt takes 4 ms and the last one succeeds."""
    at_ms = [0.0]
    for wait in waits_ms:
        at_ms.append(at_ms[-1] + 4 + wait)
    rule = [min(1000.0, 100.0 * 2 ** min(at, 9)) for at in range(len(waits_ms))]
    return Series(
        kind=Kind.PRODUCE,
        key=key,
        repetition=repetition,
        at_ms=at_ms,
        waited_ms=list(waits_ms),
        low_ms=[0.8 * each - 27 for each in rule] if banded else [],
        high_ms=[min(1.2 * each, 1000) + 60 for each in rule] if banded else [],
        outcomes=["error"] * len(waits_ms) + ["succeeded"],
    )


def exponential(random: Random, retries: int = 7) -> list[float]:
    """Return waits as KIP-580 defines them."""
    return [min(1000.0, 100.0 * 2**at * random.uniform(0.8, 1.2)) + random.uniform(0, 6) for at in range(retries)]


def verdict(statement: str = "KIP-580/1", state: State = State.PASS, **fields: object) -> Verdict:
    values = {"why": "as the KIP says", "runs": 3, **fields}
    return Verdict(statement=statement, state=state, **values)  # type: ignore[arg-type]  # a test's own fields


def subject(name: str = "shop", version: str = "1.0", *verdicts: Verdict, **fields: object) -> SubjectResult:
    info = SubjectInfo(
        name=name, version=version, role=Role.PRODUCER, settings={"retry.backoff.ms": 100.0, "acks": "all"}
    )
    values = {"subject": info, "probes": {"produce-retry": 3}, "seconds": 12.5, **fields}
    return SubjectResult(verdicts=list(verdicts), **values)  # type: ignore[arg-type]  # as above


def result(*subjects: SubjectResult) -> AuditResult:
    return AuditResult(
        sluice="0.1.0",
        began="2026-11-21T23:45:00Z",
        machine="2 processors, Python 3.13, Linux",
        subjects=list(subjects),
    )


def with_everything() -> AuditResult:
    """Return three clients with every kind of verdict and finding; the last has a hostile name."""
    random = Random(1)
    good = [series(exponential(random), repetition=run) for run in range(5)]
    flat = [series([102.0 + random.uniform(0, 5) for _ in range(30)], repetition=run) for run in range(3)]
    wrapped = [series([*exponential(random, 40), 101, 203, 405], banded=False)]
    ours = subject(
        "ours",
        "0.1.0",
        verdict(
            series=good,
            fit=_FITS[0],
            path="answered with error 7",
            measured={"first_gap_ms": 101.2, "ratio": 1.98},
            expected={"first_gap_ms": "80 to 120 ms", "ratio": "2"},
            why="waits double from 101 ms up to 1 s",
        ),
        verdict("KIP-580/2"),
        verdict("KIP-144/1"),
        verdict("KIP-91/2"),
        recovery_ms={"mute": 412.0},
        virtual=True,
    )
    constant = subject(
        "constant-client",
        "2.2.1",
        verdict(
            state=State.DEVIATES,
            sort=Sort.DIFFERS_FROM_KIP,
            series=flat,
            fit=_FITS[1],
            path="answered with error 7",
            measured={"first_gap_ms": 104.0, "cap_ms": 104.0},
            expected={"first_gap_ms": "80 to 120 ms", "cap_ms": "1000 ms"},
            why="waits stay at 104 ms where they should double up to 1 s",
        ),
        verdict("KIP-580/2", State.DEVIATES, sort=Sort.VIOLATES_ITS_DOCUMENTATION, why="no cap although it says 1 s"),
        verdict("KIP-580/16", State.INCONCLUSIVE, why="3 first gaps do not show a spread", runs_needed=5),
        verdict("KIP-91/2", State.NOT_OBSERVABLE, why="it reports no callbacks"),
        findings=[
            Finding(
                kind=FindingKind.STORM,
                probe="reconnect-refused",
                why="412 connections in 2.1 s",
                measured={"connects": 412.0, "within_ms": 2100.0},
            ),
            Finding(
                kind=FindingKind.WRAPPED,
                probe="long-outage",
                why="after 40 retries it waits 101 ms again",
                series=wrapped,
            ),
        ],
        recovery_ms={"mute": 30211.0, "refused": 1500.0},
    )
    hostile = subject(
        HOSTILE,
        HOSTILE,
        verdict(
            "KIP-144/1",
            State.DEVIATES,
            sort=Sort.PREDATES_KIP,
            why=HOSTILE,
            path=HOSTILE,
            measured={HOSTILE: HOSTILE},
            expected={HOSTILE: HOSTILE},
            series=[series([50.0], key=HOSTILE)],
        ),
        findings=[Finding(kind=FindingKind.LOST, probe=HOSTILE, why=HOSTILE, measured={HOSTILE: HOSTILE})],
        problems=[HOSTILE],
        recovery_ms={HOSTILE: 1.0},
    )
    return result(ours, constant, hostile)


_FITS = (
    Fit(model="exponential", base_ms=101.3, multiplier=1.99, cap_ms=1000.0, jitter=0.2, confidence=0.98, waits=35),
    Fit(model="constant", base_ms=104.4, multiplier=1.0, cap_ms=None, jitter=0.0, confidence=1.0, waits=90),
)
