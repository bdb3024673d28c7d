"""`sluice audit run`."""

import asyncio
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.console import Console

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import AuditResult
from sluice.audit.probes import Probe
from sluice.audit.report.files import make_folder, write_report
from sluice.audit.report.words import style_of
from sluice.audit.runs import Budget, audit
from sluice.audit.subjects import Subject
from sluice.broker.network.fair_selector import new_loop
from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import audit_probes, audit_subjects
from sluice.cli.options import format_option
from sluice.text.error_text import expected

from .like import like_option
from .progress_screen import open_screen
from .selection import chosen_probes, chosen_subjects
from .text import could_not_be_run, summary, summary_json

_ROLES = ("producer", "consumer", "admin")
# Values of --fail-on, with the kinds of verdicts in audit/report/words.py that they include.
_FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "violates": ("violates",),
    "differs": ("violates", "differs"),
    "deviates": ("violates", "differs", "predates"),
    "inconclusive": ("inconclusive",),
    "findings": (),
}
_SECONDS = {"s": 1, "m": 60, "h": 3600}


class _Time(click.ParamType[float, str]):
    name = "time"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        match = re.fullmatch(r"(\d+)(s|m|h)", value)
        if not match or not int(match[1]):
            self.fail(expected("a time such as 90s, 6m or 1h", value), param, ctx)
        return float(match[1]) * _SECONDS[match[2]]


@click.command(cls=Command)
@click.option(
    "--subject", "subjects", multiple=True, metavar="NAME|COMMAND", shell_complete=audit_subjects,
    help="Client of `sluice audit list`, or a command to run as a black box, with {bootstrap} for HOST:PORT of the "
    "brokers, separated by commas, or {bootstrap_host} and {bootstrap_port}, and {topic} for the topic; repeatable.  "
    "[default: all installed clients]",
)  # fmt: skip
@click.option(
    "--probe", "probes", multiple=True, metavar="NAME|KIP", shell_complete=audit_probes,
    help="Probe of `sluice audit list`, KIP (KIP-580) or statement (KIP-580/1) to test; repeatable.  [default: all]",
)  # fmt: skip
@click.option(
    "--out", default="audit-report", show_default=True, type=click.Path(file_okay=False, path_type=Path),
    help="Folder for report.json, junit.xml and report.html.",
)  # fmt: skip
@click.option("--budget", default="330s", show_default=True, type=_Time(), help="Measuring time per client.")
@click.option("--role", type=click.Choice(_ROLES), help="Role of the commands.  [default: detected]")
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=VALUE",
    help="Setting of the commands by Kafka's name, such as retry.backoff.ms=100, to judge them by; repeatable.  "
    "[default: unknown; statements that depend on it are not judged, except with --like]",
)  # fmt: skip
@like_option
@click.option("--virtual", is_flag=True, help="Virtual time, for clients that support it; hours take seconds.")
@click.option("--seed", type=Integer(0), default=0, show_default=True, help="Seed of brokers and faults.")
@click.option(
    "--fail-on", multiple=True, type=click.Choice(list(_FAIL_ON)),
    help="Results that cause exit code 1; repeatable. violates: a client violates its own documentation; differs: "
    "also a difference from a KIP; deviates: any deviation; inconclusive: an undecided verdict; findings: a finding.",
)  # fmt: skip
@format_option
def run(
    subjects: tuple[str, ...],
    probes: tuple[str, ...],
    out: Path,
    budget: float,
    role: str | None,
    settings: tuple[str, ...],
    like: str | None,
    virtual: bool,
    seed: int,
    fail_on: tuple[str, ...],
    output_format: str,
) -> None:
    """Measure clients and write a report.

    Each client runs against its own brokers, which fail in one way after the other. Progress goes to stderr, verdicts
    to stdout, and the evidence to the report. Ctrl-C ends the measurement; the results so far are judged and reported.
    """
    what, who = chosen_probes(probes), chosen_subjects(subjects, role, settings, like, virtual=virtual)
    make_folder(out)
    result, stopped = _measured(who, what, budget, seed, out)
    if stopped and not any(subject.verdicts for subject in result.subjects):
        raise click.ClickException("stopped by a signal before anything was measured")
    files = write_report(result, out, {each.id: each.text for each in STATEMENTS.values()})
    click.echo(summary_json(result, files) if output_format == "json" else "\n".join(summary(result, files, out)))
    for name in could_not_be_run(result):
        click.echo(f"{name}: no verdict; its runs failed", err=True)
    found = _found(result, fail_on)
    if found:
        click.echo(f"failed because of --fail-on: {found}", err=True)
    if found or stopped or could_not_be_run(result):
        raise SystemExit(1)


def _measured(
    subjects: Sequence[Subject], probes: Sequence[Probe], seconds: float, seed: int, out: Path
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
                subjects, probes, budget=budget, on_progress=screen.show, seed=seed, stop=stop, report=out
            )

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(measure()), stop.is_set()
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise click.ClickException("stopped by a signal") from None


def _found(result: AuditResult, fail_on: tuple[str, ...]) -> str:
    """Describe the results that --fail-on includes, or return ""."""
    wanted = {key for each in fail_on for key in _FAIL_ON[each]}
    verdicts = [verdict for subject in result.subjects for verdict in subject.verdicts]
    count = sum(style_of(verdict).key in wanted for verdict in verdicts)
    findings = sum(len(subject.findings) for subject in result.subjects) if "findings" in fail_on else 0
    parts = [f"{count} verdict{'s' * (count != 1)}"] if count else []
    parts += [f"{findings} finding{'s' * (findings != 1)}"] if findings else []
    return ", ".join(parts)
