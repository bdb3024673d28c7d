"""`sluice run`: a scenario, on brokers that are started for it or on those that run."""

import click

from sluice.cli.admin_client import AdminClient
from sluice.cli.commands import Command, Integer
from sluice.cli.completion_values import scenarios_and_files
from sluice.cli.options import format_option, override_option

from .text import as_json, summary

# What only brokers that are started for the scenario can be told, and only those that run.
_OWN = ("host", "port", "admin_port", "overrides", "seed")
_OTHERS = ("token", "keep")


@click.command(cls=Command)
@click.argument("scenario", metavar="FILE|NAME", shell_complete=scenarios_and_files)
@click.option("--host", help="Address to listen on, in place of `listeners`.  [default: 127.0.0.1]")
@click.option("--port", type=Integer(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 9092]")
@click.option("--admin-port", type=Integer(0, 65535), help="HTTP port; 0 picks a free one.  [default: 9644]")
@override_option()
@click.option("--seed", type=Integer(0), help="Makes what is random the same in every run.  [default: the file's]")
@click.option("--against", metavar="ADMIN_URL", help="Runs it on a running broker, which has this admin address.")
@click.option("--token", help="With --against: what that asks for (sluice.admin.token).")
@click.option("--keep", is_flag=True, help="With --against: leaves all as it is at the end.")
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
    """Runs a scenario: a file, or one of `sluice scenario list`.

    It starts the brokers that the scenario is about, says where they are as `sluice serve` does, prints each step to
    stderr as it is done, and ends with what came of it. Exit code 1: a step could not be done.
    """
    for option in _OWN if against is not None else _OTHERS:
        if ctx.get_parameter_source(option) is click.core.ParameterSource.COMMANDLINE:
            name = "--" + option.removesuffix("s").replace("_", "-")
            raise click.UsageError(f"{name} {'and --against exclude each other' if against else 'needs --against'}")

    from sluice.broker.scenarios.files import load

    wanted = load(scenario)
    if against is not None:
        from .run_remote import run_against

        report = run_against(AdminClient(against, token, "--against"), wanted, keep=keep)
    else:
        from .run_local import run_scenario

        report = run_scenario(wanted, host, port, 9644 if admin_port is None else admin_port, overrides, seed)
    click.echo(as_json(report) if output_format == "json" else summary(report))
    if report.problems:
        raise SystemExit(1)
