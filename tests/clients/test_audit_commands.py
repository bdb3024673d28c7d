"""Audits of small programs without a driver: no deviation that the client's source does not explain.

The programs are in commands/. Their libraries keep their defaults, and the producers are not idempotent.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from sluice.audit.judge.consistency import consistent
from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State, SubjectResult
from sluice.audit.probes import PROBES
from sluice.audit.runs import Budget, audit
from sluice.audit.subjects import subject_of
from tests.clients.built import BUILT, missing

SHOWN = ("produce-timed-out", "produce-then-success", "produce-no-retry", "throttle-produce", "throttle-long")
SECONDS = 40.0


class Program(NamedTuple):
    """A program, the settings of its library, and the deviations that its source explains."""

    command: str
    base_ms: float
    max_ms: float
    deviations: frozenset[str]


PROGRAMS = {
    # sink.go: each response resets the count of failures, so the backoff of 250 ms ± 20 % does not grow.
    "franz-go-command": Program(
        f"{BUILT}/franz-go-command/driver -bootstrap {{bootstrap}} -topic {{topic}}",
        250,
        2500,
        frozenset(["KIP-580/1", "KIP-580/2", "KIP-580/17"]),
    ),
    # async_producer.go: Producer.Retry.Backoff is constant, without jitter, three times.
    "sarama-command": Program(
        f"{BUILT}/sarama-command/driver -bootstrap {{bootstrap}} -topic {{topic}}",
        100,
        1000,
        frozenset(["KIP-580/1", "KIP-580/2", "KIP-580/16", "KIP-580/17"]),
    ),
    # retry/index.js: each wait is drawn around twice the last one, so the jitter of ± 20 % accumulates.
    "kafkajs-command": Program(
        f"node {BUILT}/kafkajs-command/main.js {{bootstrap}} {{topic}}",
        300,
        30_000,
        frozenset(["KIP-580/1", "KIP-580/16"]),
    ),
}
MODES = {"equal records, one after the other": (), "varied records, pipelined": ("pipelined", "varied")}


def audited(program: Program, flags: Sequence[str]) -> SubjectResult:
    command = " ".join([program.command, *flags])
    settings = {"retry.backoff.ms": program.base_ms, "retry.backoff.max.ms": program.max_ms}
    subject = subject_of(command, Role.PRODUCER, settings)
    budget = Budget(seconds=SECONDS, at_once=3)
    return asyncio.run(audit([subject], [PROBES[name] for name in SHOWN], budget=budget)).subjects[0]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("mode", MODES.values(), ids=MODES.keys())
def test_deviations_are_those_in_the_source_of(name: str, mode: Sequence[str]) -> None:
    if why := missing(name):
        pytest.skip(f"{name} is {why}")
    dashes = "--" if name.startswith("kafkajs") else "-"
    result = audited(PROGRAMS[name], [dashes + each for each in mode])
    states = {verdict.statement: verdict for verdict in result.verdicts}
    wrong = [verdict for verdict in result.verdicts if verdict.state is State.DEVIATES]
    assert {each.statement for each in wrong} <= PROGRAMS[name].deviations, wrong
    assert all(each.probe and each.where for each in wrong if each.statement != "KIP-580/16"), wrong
    assert consistent(result.verdicts) == result.verdicts
    # KIP-91/15 is decided by the content of records, KIP-13/20 by the times of requests.
    assert states["KIP-91/15"].state is State.PASS, states["KIP-91/15"].why
    assert states["KIP-13/20"].state is not State.DEVIATES, states["KIP-13/20"].why
    assert any(each.kind == "produce" for each in result.backoffs) or result.problems
