"""The measurement of `sluice audit run`, and its result."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path

import click
from rich.console import Console

from sluice.audit.judge.model.verdict import AuditResult
from sluice.audit.probes import Probe
from sluice.audit.report.files import make_folder
from sluice.audit.report.words import style_of
from sluice.audit.runs import Budget, audit
from sluice.audit.subjects import Subject
from sluice.broker.network.fair_selector import new_loop
from sluice.embedded.upstream import Upstream

from .progress_screen import open_screen
from .reports import write_and_print
from .selection import chosen_probes, chosen_subjects
from .text import could_not_be_run


def measure(
    subjects: tuple[str, ...],
    probes: tuple[str, ...],
    out: Path,
    budget: float,
    role: str | None,
    settings: tuple[str, ...],
    like: str | None,
    virtual: bool,
    upstream: str | None,
    upstream_config: str | None,
    seed: int,
    fails_on: frozenset[str],
    output_format: str,
) -> None:
    """Measure, judge, report; exit with 1 if the result has a kind of `fails_on`."""
    what, who = chosen_probes(probes), chosen_subjects(subjects, role, settings, like, virtual=virtual)
    real = None if upstream is None else Upstream.of(upstream, upstream_config)
    make_folder(out)
    result, stopped = _measured(who, what, budget, seed, out, real)
    if stopped and not any(subject.verdicts for subject in result.subjects):
        raise click.ClickException("stopped by a signal before anything was measured")
    write_and_print(result, out, out, output_format)
    for name in could_not_be_run(result):
        click.echo(f"{name}: no verdict; its runs failed", err=True)
    found = _found(result, fails_on)
    if found:
        click.echo(f"failed because of --fail-on: {found}", err=True)
    if found or stopped or could_not_be_run(result):
        raise SystemExit(1)


def _measured(
    subjects: Sequence[Subject],
    probes: Sequence[Probe],
    seconds: float,
    seed: int,
    out: Path,
    upstream: Upstream | None,
) -> tuple[AuditResult, bool]:
    """Return also whether a signal stopped the run; a second signal skips the judge too."""
    stop = asyncio.Event()

    async def measure() -> AuditResult:
        task = asyncio.current_task()
        assert task is not None
        console = Console(stderr=True)

        def end() -> None:
            if stop.is_set():
                task.cancel()
            else:
                stop.set()
                console.print("stopping; judging the results so far, press Ctrl-C again to skip that", markup=False)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end)
        with open_screen(console) as screen:
            budget = Budget(seconds=seconds)
            return await audit(
                subjects,
                probes,
                budget=budget,
                on_progress=screen.show,
                seed=seed,
                stop=stop,
                report=out,
                upstream=upstream,
            )

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(measure()), stop.is_set()
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise click.ClickException("stopped by a signal") from None


def _found(result: AuditResult, fails_on: frozenset[str]) -> str:
    """Describe the results that --fail-on includes, or return ""."""
    verdicts = [verdict for subject in result.subjects for verdict in subject.verdicts]
    count = sum(style_of(verdict).key in fails_on for verdict in verdicts)
    findings = sum(len(subject.findings) for subject in result.subjects) if "findings" in fails_on else 0
    parts = [f"{count} verdict{'s' * (count != 1)}"] if count else []
    parts += [f"{findings} finding{'s' * (findings != 1)}"] if findings else []
    return ", ".join(parts)
