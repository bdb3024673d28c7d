"""The first lines of a report name the worst faults of a client."""

import asyncio
import sys
from pathlib import Path

import click

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes import PROBES
from sluice.audit.report.overview import overview
from sluice.audit.runs import Budget, audit
from sluice.audit.subjects import kafka_defaults, subject_of
from sluice.cli.audit.text import summary

PRODUCER = Path(__file__).parents[1] / "naive_producer.py"
# Each fault shows in several probes; these are short.
SHOWN = ("reconnect-constant", "produce-no-retry", "delivery-retries-exhausted", "throttle-produce")
# A busy machine may leave the verdict on throttle times open, which is then measured again. If it stays open, the third
# line is the next deviation; tests of verdicts in virtual time prove that of throttle times.
ATTEMPTS = 2


def test_three_worst_faults_of_a_naive_producer_are_the_first_three_lines() -> None:
    """It retries at once, reconnects at once, and ignores throttle times."""
    command = f"{sys.executable} {PRODUCER} {{bootstrap}} {{topic}}"
    subject = subject_of(command, Role.PRODUCER, kafka_defaults())
    probes, budget = [PROBES[name] for name in SHOWN], Budget(seconds=12, at_once=4)
    for _ in range(ATTEMPTS):
        result = asyncio.run(audit([subject], probes, budget=budget))
        title, *lines = (click.unstyle(line).strip() for line in summary(result, [], Path()))
        if any(line.startswith("≠ KIP-13/20") for line in lines):
            break
    assert title.startswith("naive_producer.py")
    assert {line.partition(":")[0] for line in lines[:2]} == {"! Storm of connections", "! Storm of requests"}
    assert lines[2].startswith(("≠ KIP-13/20 differs: sends", "≠ KIP-91/15 differs: resends"))
    sentence = overview(result.subjects[0]).sentence
    assert sentence.startswith(
        ("Storm of requests, storm of connections. ", "Storm of connections, storm of requests. ")
    )
