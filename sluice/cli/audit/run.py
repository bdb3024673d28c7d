"""`sluice audit run`."""

from collections.abc import Mapping
from pathlib import Path

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import audit_probes, audit_subjects
from sluice.cli.options import duration, format_option

like_option = click.option(
    "--like",
    type=click.Choice(["kafka"]),
    help="Judge commands by the defaults of Kafka's client 4.4, where --setting does not set another value.",
)

_ROLES = ("producer", "consumer", "admin")
# Values of --fail-on, with the kinds of verdicts in sluice/audit/report/words.py that they include.
_FAIL_ON: Mapping[str, tuple[str, ...]] = {
    "violates": ("violates",),
    "differs": ("violates", "differs"),
    "deviates": ("violates", "differs", "predates"),
    "inconclusive": ("inconclusive",),
    "findings": ("findings",),
}


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
@click.option("--budget", default="330s", show_default=True, type=duration(1), help="Measuring time per client.")
@click.option("--role", type=click.Choice(_ROLES), help="Role of the commands.  [default: detected]")
@click.option(
    "--setting", "settings", multiple=True, metavar="NAME=VALUE",
    help="Setting of the commands by Kafka's name, such as retry.backoff.ms=100, to judge them by; repeatable.  "
    "[default: unknown; statements that depend on it are not judged, except with --like]",
)  # fmt: skip
@like_option
@click.option("--virtual", is_flag=True, help="Virtual time, for clients that support it; hours take seconds.")
@click.option(
    "--upstream", metavar="HOST:PORT,...",
    help="Bootstrap servers of a Kafka cluster, in front of which proxies take the place of the brokers.",
)  # fmt: skip
@click.option(
    "--upstream-config", type=click.Path(), metavar="FILE",
    help="Properties of a Kafka client, such as security.protocol, with which the proxies connect.",
)  # fmt: skip
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
    budget: int,
    role: str | None,
    settings: tuple[str, ...],
    like: str | None,
    virtual: bool,
    upstream: str | None,
    upstream_config: str | None,
    seed: int,
    fail_on: tuple[str, ...],
    output_format: str,
) -> None:
    """Measure clients and write a report.

    Each client runs against its own brokers, which fail in one way after the other. Progress goes to stderr, verdicts
    to stdout, and the evidence to the report. Ctrl-C ends the measurement; the results so far are judged and reported.
    """
    if upstream is not None and virtual:
        raise click.UsageError("--virtual: not with --upstream, a cluster in real time")
    if upstream is None and upstream_config is not None:
        raise click.UsageError("--upstream-config: needs --upstream")

    from .measure import measure  # the audit takes a third of a second to import

    fails_on = frozenset(kind for each in fail_on for kind in _FAIL_ON[each])
    measure(
        subjects, probes, out, budget / 1000, role, settings, like, virtual, upstream, upstream_config, seed,
        fails_on, output_format,
    )  # fmt: skip
