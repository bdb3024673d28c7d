"""The first lines of a report name the worst faults of a client."""

import asyncio
import sys
from pathlib import Path

import click

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.verdict import State
from sluice.audit.probes import PROBES
from sluice.audit.report.overview import overview
from sluice.audit.runs import Budget, audit
from sluice.audit.subjects import subject_of
from sluice.audit.subjects.clients.java import kafka_defaults
from sluice.cli.audit.text import summary

PRODUCER = Path(__file__).parents[1] / "naive_producer.py"
# Each fault shows in several probes; these are short.
SHOWN = ("reconnect-constant", "produce-no-retry", "delivery-retries-exhausted", "throttle-produce")
# If the broker's timers lag, the audit does not judge throttle times; they are then measured again.
ATTEMPTS = 2


def test_three_worst_faults_of_a_naive_producer_are_the_first_three_lines() -> None:
    """It retries at once, reconnects at once, and ignores throttle times."""
    command = f"{sys.executable} {PRODUCER} {{bootstrap}} {{topic}}"
    subject = subject_of(command, Role.PRODUCER, kafka_defaults())
    probes, budget = [PROBES[name] for name in SHOWN], Budget(seconds=12, at_once=4)
    for _ in range(ATTEMPTS):
        result = asyncio.run(audit([subject], probes, budget=budget))
        (throttle,) = (verdict for verdict in result.subjects[0].verdicts if verdict.statement == "KIP-13/20")
        if throttle.state is not State.INCONCLUSIVE:
            break
    title, *lines = (click.unstyle(line).strip() for line in summary(result, [], [], Path()))
    assert title.startswith("naive_producer.py")
    assert {line.partition(":")[0] for line in lines[:2]} == {"! Storm of connections", "! Storm of requests"}
    if throttle.state is State.INCONCLUSIVE:
        assert throttle.why.startswith("the broker's timers lagged "), "only a busy machine is a reason"
    else:
        assert lines[2].startswith("≠ KIP-13/20 differs: sends")
    sentence = overview(result.subjects[0]).sentence
    assert sentence.startswith(
        ("Storm of requests, storm of connections. ", "Storm of connections, storm of requests. ")
    )
