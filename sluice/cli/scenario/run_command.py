"""`sluice run`."""

import os

import click

from sluice.broker.scenarios.files import load
from sluice.cli.admin_client import AdminClient
from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import scenarios_and_files
from sluice.cli.options import format_option, override_option
from sluice.text.json_text import json_text

from .runs import run_against, run_scenario, summary

_OWN = ("host", "port", "admin_port", "overrides", "seed")
_OTHERS = ("token", "keep")


@click.command(cls=Command)
@click.argument("scenario", metavar="FILE|NAME", shell_complete=scenarios_and_files)
@click.option("--host", help="Address to listen on; overrides `listeners`.  [default: 127.0.0.1]")
@click.option("--port", type=Integer(0, 65535), help="Port to listen on; 0 picks a free port.  [default: 9092]")
@click.option("--admin-port", type=Integer(0, 65535), help="Admin HTTP port; 0 picks a free port.  [default: 9644]")
@override_option
@click.option("--seed", type=Integer(0), help="Seed of all randomness.  [default: the scenario's]")
@click.option("--against", metavar="ADMIN_URL", help="Admin address of a running cluster to run the scenario on.")
@click.option("--token", help="Token of the admin port (sluice.admin.token); needs --against.")
@click.option("--keep", is_flag=True, help="Do not restore the cluster at the end; needs --against.")
@format_option
@click.pass_context
def run(
    ctx: click.Context,
    scenario: str,
    host: str | None,
    port: int | None,
    admin_port: int | None,
    overrides: tuple[str, ...],
    seed: int | None,
    against: str | None,
    token: str | None,
    keep: bool,
    output_format: str,
) -> None:
    """Run a scenario from a file or by a name of `sluice scenario list`.

    Starts a cluster for the scenario and prints its addresses as `sluice serve` does. Prints each step to stderr, and a
    summary at the end.
    """
    for option in _OWN if against is not None else _OTHERS:
        if ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
            name = "--" + option.removesuffix("s").replace("_", "-")
            raise click.UsageError(f"{name} {'and --against exclude each other' if against else 'needs --against'}")

    wanted = load(scenario)
    if against is not None:
        report = run_against(AdminClient(against, token, "--against"), wanted, keep=keep)
    else:
        if admin := os.environ.get("SLUICE_ADMIN"):
            click.echo(
                f"SLUICE_ADMIN is ignored; starting a new cluster. To use that one, add --against {admin}", err=True
            )

        report = run_scenario(wanted, host, port, 9644 if admin_port is None else admin_port, overrides, seed)
    click.echo(json_text(report) if output_format == "json" else summary(report))
    if report.problems:
        raise SystemExit(1)
