"""`sluice pipeline lint`."""

from pathlib import Path

import click

from sluice.cli.commands import Command
from sluice.cli.lint.rules import chosen_rules, complete_rules
from sluice.cli.options import format_option
from sluice.cli.pipeline import CONF, MASTER
from sluice.errors import SluiceError
from sluice.spark.session import installed_pyspark


@click.command(cls=Command)
@click.argument("inputs", nargs=-1, required=True, metavar="INPUT...")
@click.option("--output", required=True, metavar="DIR", help="New or empty folder for the tables.")
@click.option(
    "--rule",
    "rule_ids",
    multiple=True,
    metavar="RULE",
    shell_complete=complete_rules,
    help="Rule to apply; repeatable.",
)  # fmt: skip
@format_option
@MASTER
@CONF
def lint(
    inputs: tuple[str, ...],
    output: str,
    rule_ids: tuple[str, ...],
    output_format: str,
    master: str,
    conf: dict[str, str],
) -> None:
    """Judge the clients of a fleet by its journals, as `sluice lint` does.

    INPUT is one journal: a file of `sluice journal export` (NDJSON, in gzip or Parquet), or a folder with its parts.
    """
    rules, out = chosen_rules(rule_ids), Path(output)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise SluiceError(f"{output}: expected a new or empty folder")
    installed_pyspark()
    from .lint_run import run

    run(inputs, output, rules, master, conf, output_format)
