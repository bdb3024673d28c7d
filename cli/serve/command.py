"""The options of `sluice serve` for click, which reads what `arguments.read_plain` does not, and prints the help."""

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.options import override_option
from sluice.config.property_table import AS_RELEASES, MOST_BROKERS

from .arguments import LOG_FORMATS, ServeArguments


@click.command(cls=Command)
@click.option("--host", help="Address to listen on, in place of `listeners`.  [default: 127.0.0.1]")
@click.option("--port", type=Integer(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 9092]")
@click.option(
    "--brokers",
    type=Integer(1, MOST_BROKERS),
    help="Brokers in this process, on the port and those after it.  [default: 1]",
)
@click.option(
    "--admin-port",
    type=Integer(0, 65535),
    default=ServeArguments().admin_port,
    show_default=True,
    help="HTTP port of the page, /api and /metrics; 0 picks a free one.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(),
    metavar="FILE",
    help="A server.properties file; one of a real Kafka will do.",
)
@click.option(
    "--data-dir",
    metavar="DIR",
    help="Where to keep topics and all that is set; made if it is not there.  [default: in memory]",
)
@click.option(
    "--as",
    "release",
    type=click.Choice(AS_RELEASES),
    help="Serves the API versions that this release of Kafka did, and throttles as it did.",
)
@override_option()
@click.option("--seed", type=Integer(0), help="Makes what is random the same in every run.")
@click.option(
    "--log-format",
    type=click.Choice(LOG_FORMATS),
    default=ServeArguments().log_format,
    show_default=True,
    help="Of the log on stderr.",
)
def serve(
    host: str | None,
    port: int | None,
    brokers: int | None,
    admin_port: int,
    config_file: str | None,
    data_dir: str | None,
    release: str | None,
    overrides: tuple[str, ...],
    seed: int | None,
    log_format: str,
) -> None:
    """Runs a broker, or several that are a cluster, until it gets SIGINT or SIGTERM.

    Prints one line when it takes connections: "ready" and a JSON object with its addresses.
    """
    from .run import run_broker  # not for --help

    run_broker(
        ServeArguments(host, port, brokers, admin_port, config_file, release, overrides, seed, log_format, data_dir)
    )
