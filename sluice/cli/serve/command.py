"""`sluice serve`."""

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.options import override_option
from sluice.config.property_table import AS_RELEASES, MOST_BROKERS

from .run import listener_pairs, run_broker

# A proxy has these, too.
admin_port_option = click.option(
    "--admin-port",
    type=Integer(0, 65535),
    default=9644,
    show_default=True,
    help="HTTP port of the web page, /api and /metrics; 0 picks a free port.",
)
seed_option = click.option("--seed", type=Integer(0), help="Seed of all randomness.  [default: random]")
log_format_option = click.option(
    "--log-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Format of log lines on stderr.",
)


@click.command(cls=Command)
@click.option("--host", help="Address to listen on; overrides `listeners`.  [default: 127.0.0.1]")
@click.option("--port", type=Integer(0, 65535), help="Port to listen on; 0 picks a free port.  [default: 9092]")
@click.option(
    "--brokers",
    type=Integer(1, MOST_BROKERS),
    help="Number of brokers in this process, on consecutive ports.  [default: 1]",
)
@click.option(
    "--racks", metavar="RACK,...", help="Racks that the brokers get in turn, such as a,b,c.  [default: broker.rack]"
)
@admin_port_option
@click.option(
    "--config",
    "config_file",
    type=click.Path(),
    metavar="FILE",
    help="Properties file; a server.properties of Apache Kafka is accepted.",
)
@click.option(
    "--data-dir", metavar="DIR", help="Directory for topics and metadata, created if missing.  [default: in memory]"
)
@click.option(
    "--as",
    "release",
    type=click.Choice(AS_RELEASES),
    help="Kafka release whose API versions and throttling behaviour to use.  [default: all versions]",
)
@override_option
@seed_option
@log_format_option
def serve(
    host: str | None,
    port: int | None,
    brokers: int | None,
    racks: str | None,
    admin_port: int,
    config_file: str | None,
    data_dir: str | None,
    release: str | None,
    overrides: tuple[str, ...],
    seed: int | None,
    log_format: str,
) -> None:
    """Run a broker or a cluster until SIGINT or SIGTERM.

    Prints one line when it accepts connections: "ready" and a JSON object with its addresses.
    """
    of_release = [] if release is None else [f"sluice.kafka.release={release}", f"quota.profile={release}"]
    pairs = [*of_release, *overrides, *listener_pairs(host, port)]
    named = {"sluice.brokers": brokers, "broker.rack": racks, "log.dirs": data_dir}
    pairs += [f"{name}={value}" for name, value in named.items() if value is not None]
    run_broker(config_file, pairs, admin_port, seed, log_format)
