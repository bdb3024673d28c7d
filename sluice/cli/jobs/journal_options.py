"""Options of the streaming jobs for their source, the journal's topic."""

import click

from sluice.cli.options import bootstrap_option


def journal_options(command: click.decorators.FC) -> click.decorators.FC:
    starting = click.option(
        "--from", "starting", type=click.Choice(["earliest", "latest"]), default="earliest", show_default=True,
        help="Start position of the first run.",
    )  # fmt: skip
    topic = click.option("--topic", default="__sluice_journal", show_default=True, help="Topic with the events.")
    return bootstrap_option(topic(starting(command)))
