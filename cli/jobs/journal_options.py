"""The options of the streaming jobs for their source, the topic with the journal."""

import click

from sluice.cli.options import bootstrap_option


def journal_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the broker, the topic with the events, and the position to start from."""
    starting = click.option(
        "--from", "starting", type=click.Choice(["earliest", "latest"]), default="earliest", show_default=True,
        help="Where to begin, the first time.",
    )  # fmt: skip
    topic = click.option("--topic", default="__sluice_journal", show_default=True, help="The topic with the events.")
    return bootstrap_option(topic(starting(command)))
