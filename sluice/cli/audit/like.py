"""The option --like of `sluice audit run` and `sluice audit judge`."""

import click

like_option = click.option(
    "--like",
    type=click.Choice(["kafka"]),
    help="Judge commands by the defaults of Kafka's client 4.4, where --setting does not set another value.",
)
