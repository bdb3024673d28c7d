"""`sluice audit run`: which clients and probes, for how long, and what counts as a failure."""

import asyncio
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import audit_probes, audit_subjects
from sluice.cli.options import format_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.audit.judge.model.verdict import AuditResult
    from sluice.audit.probes import Probe
    from sluice.audit.subjects import Subject

_ROLES = ("producer", "consumer", "admin")
# What --fail-on can ask for: the kinds of verdicts that it means, as audit/report/words.py calls them.
_FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "violates": ("violates",),
    "differs": ("violates", "differs"),
    "deviates": ("violates", "differs", "predates"),
    "inconclusive": ("inconclusive",),
    "findings": (),
}
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class _Time(click.ParamType[float, str]):
    """Such as 90s or 6m, in seconds."""

    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+)(s|m|h)", value)
        if not match or not int(match[1]):
            self.fail(f"{value!r} is not a time such as 90s, 6m or 1h", param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


@click.command(cls=Command)
@click.option(
    "--subject", "subjects", multiple=True, metavar="NAME|COMMAND", shell_complete=audit_subjects,
    help="A client of `sluice audit list`, or a command that is watched from outside, with {bootstrap} where the "
    "broker's address is to be; may come several times.  [default: all that are installed]",
)  # fmt: skip
@click.option(
    "--probe", "probes", multiple=True, metavar="NAME|KIP", shell_complete=audit_probes,
    help="A probe of `sluice audit list`, or all for a KIP, such as KIP-580, or for a statement, such as KIP-580/1; "
    "may come several times.  [default: all]",
)  # fmt: skip
@click.option(
    "--out", default="audit-report", show_default=True, type=click.Path(file_okay=False, path_type=Path),
    help="The folder for report.json, junit.xml and report.html.",
)  # fmt: skip
@click.option("--budget", default="330s", show_default=True, type=_Time(), help="How long to measure each client.")
@click.option(
    "--role", type=click.Choice(_ROLES), help="What commands are used as.  [default: what they turn out to be]"
)
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=VALUE",
    help="What commands are configured to, by Kafka's name, such as retry.backoff.ms=100: they are judged by it. May "
    "come several times.  [default: not known, and what depends on it is not judged]",
)  # fmt: skip
@click.option("--virtual", is_flag=True, help="In virtual time, with the clients that can be; hours take seconds.")
@click.option("--seed", type=Integer(0), default=0, show_default=True, help="Of brokers and faults.")
@click.option(
    "--fail-on", multiple=True, type=click.Choice(list(_FAIL_ON)),
    help="Exit code 1 where there is any: a violation of a client's own documentation; that or a difference from a "
    "KIP; any deviation; a verdict that is not decided; a finding. May come several times.",
)  # fmt: skip
@format_option
def run(
    subjects: tuple[str, ...],
    probes: tuple[str, ...],
    out: Path,
    budget: float,
    role: str | None,
    settings: tuple[str, ...],
    virtual: bool,
    seed: int,
    fail_on: tuple[str, ...],
    output_format: str,
) -> None:
    """Measures clients, and writes a report.

    Each runs against brokers of its own, which fail in one way after the other. How far it is is told on stderr, the
    verdicts are on stdout, and the evidence behind them is in the report. Ctrl-C ends the measuring, and what there is
    by then is judged and reported. Exit code 1: a client could not be run, it was stopped, or --fail-on asks for it.
    """
    from sluice.audit.judge.model.statements import STATEMENTS
    from sluice.audit.report.files import make_folder, write_report

    from .selection import chosen_probes, chosen_subjects
    from .text import could_not_be_run, summary, summary_json

    what, who = chosen_probes(probes), chosen_subjects(subjects, role, settings, virtual=virtual)
    make_folder(out)  # in minutes it would be too late to find out that it cannot be
    result, stopped = _measured(who, what, budget, seed)
    if stopped and not any(subject.verdicts for subject in result.subjects):
        raise click.ClickException("stopped by a signal, before anything was measured")
    files = write_report(result, out, {each.id: each.text for each in STATEMENTS.values()})
    click.echo(summary_json(result, files) if output_format == "json" else "\n".join(summary(result, files)))
    for name in could_not_be_run(result):
        click.echo(f"{name}: nothing could be judged", err=True)
    found = _found(result, fail_on)
    if found:
        click.echo(f"failed, as --fail-on says: {found}", err=True)
    if found or stopped or could_not_be_run(result):
        raise SystemExit(1)


def _measured(
    subjects: "Sequence[Subject]", probes: "Sequence[Probe]", seconds: float, seed: int
) -> "tuple[AuditResult, bool]":
    """What came of it, and whether it was stopped: by a first signal; a second one does not wait for the judge."""
    from rich.console import Console

    from sluice.audit.runs import Budget, audit
    from sluice.broker.network.fair_selector import new_loop

    from .progress_screen import open_screen

    stop = asyncio.Event()

    async def measure() -> "AuditResult":
        task = asyncio.current_task()
        assert task is not None
        console = Console(stderr=True)

        def end() -> None:
            if stop.is_set():
                task.cancel()
            else:
                stop.set()
                console.print("stopping: what was measured is judged; once more, and it is not", markup=False)

        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, end)
        with open_screen(console) as screen:
            budget = Budget(seconds=seconds)
            return await audit(subjects, probes, budget=budget, on_progress=screen.show, seed=seed, stop=stop)

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(measure()), stop.is_set()
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise click.ClickException("stopped by a signal") from None


def _found(result: "AuditResult", fail_on: tuple[str, ...]) -> str:
    """How many of what --fail-on asks for there are, in words; "" where there is none."""
    from sluice.audit.report.words import style_of

    wanted = {key for each in fail_on for key in _FAIL_ON[each]}
    verdicts = [verdict for subject in result.subjects for verdict in subject.verdicts]
    count = sum(style_of(verdict).key in wanted for verdict in verdicts)
    findings = sum(len(subject.findings) for subject in result.subjects) if "findings" in fail_on else 0
    parts = [f"{count} verdict{'s' * (count != 1)}"] if count else []
    parts += [f"{findings} finding{'s' * (findings != 1)}"] if findings else []
    return ", ".join(parts)
