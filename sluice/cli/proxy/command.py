"""`sluice proxy`."""

import asyncio
import logging
import os
from random import Random, SystemRandom  # noqa: TID251  (the single source of a run's randomness)

import click

from sluice.broker.network.fair_selector import new_loop
from sluice.broker.throttling.scope import Scope
from sluice.cli.commands import Command, Integer
from sluice.cli.logs import set_up_logging
from sluice.cli.options import override_option
from sluice.cli.serve.command import admin_port_option, log_format_option, seed_option
from sluice.cli.serve.run import SEEDS, listener_pairs, print_ready, stop_at_signals
from sluice.clock import LoopClock
from sluice.config.broker_config import Config, read_file
from sluice.errors import ConfigError
from sluice.proxy.discovery import open_proxy, parse_ports, until_stopped
from sluice.proxy.server import ProxyOptions
from sluice.web import load as load_page

log = logging.getLogger("sluice.cli")

# Above the ports that a cluster on the same host has.
DEFAULT_PORT = 19092


@click.command(cls=Command)
@click.option(
    "--upstream", required=True, metavar="HOST:PORT,...", help="Bootstrap servers of the cluster behind the proxy."
)
@click.option(
    "--upstream-config",
    type=click.Path(),
    metavar="FILE",
    help="Properties of a Kafka client, such as security.protocol, with which the proxy connects to the cluster.",
)
@click.option(
    "--sasl-passthrough",
    is_flag=True,
    help="Let clients authenticate with the cluster. The proxy then authenticates only its own requests.",
)
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=Integer(0, 65535),
    help=f"The broker with id N gets the port N above; 0 picks free ports.  [default: {DEFAULT_PORT}]",
)
@click.option("--ports", metavar="ID=PORT,...", default="", help="Ports of single brokers, by their id.")
@click.option("--advertised-host", help="Host that clients use to connect.  [default: the address they used]")
@click.option(
    "--only-clients",
    metavar="PATTERN,...",
    default="",
    help="Client ids to which all fault rules and quotas are limited, such as 'shop-*'.  [default: all]",
)
@click.option(
    "--only-topics",
    metavar="PATTERN,...",
    default="",
    help="Topics to which all fault rules and quotas are limited.  [default: all]",
)
@admin_port_option
@click.option("--config", "config_file", type=click.Path(), metavar="FILE", help="Properties of the proxy's side.")
@override_option
@seed_option
@log_format_option
def proxy(
    upstream: str,
    upstream_config: str | None,
    sasl_passthrough: bool,
    host: str | None,
    port: int | None,
    ports: str,
    advertised_host: str | None,
    only_clients: str,
    only_topics: str,
    admin_port: int,
    config_file: str | None,
    overrides: tuple[str, ...],
    seed: int | None,
    log_format: str,
) -> None:
    """Forward clients to a cluster until SIGINT or SIGTERM, with faults, quotas and journal.

    Prints one line when it accepts connections: "ready" and a JSON object with its addresses.
    """
    set_up_logging(log_format)
    logging.getLogger("sluice.client").setLevel(logging.WARNING)  # the proxy reports what its own client does
    properties = {} if upstream_config is None else {key: value for _, key, value in read_file(upstream_config)}
    given = properties | {"bootstrap.servers": upstream}
    options = ProxyOptions(
        given,
        parse_ports(ports),
        advertised_host,
        sasl_passthrough=sasl_passthrough,
        scope=Scope(_patterns(only_clients), _patterns(only_topics)),
    )
    config = Config.load(config_file, overrides, os.environ)
    if config.is_set("listeners"):
        if host is not None or port is not None:
            raise ConfigError("--host, --port: listeners is set, too; expected the addresses in one of them")
    else:
        pairs = listener_pairs(host, DEFAULT_PORT if port is None else port)
        config = Config.load(config_file, [*overrides, *pairs], os.environ)
    for warning in config.warnings:
        log.warning(warning)
    random = Random(SystemRandom().randrange(SEEDS) if seed is None else seed)  # noqa: S311  (runs are repeatable)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        stop = asyncio.Event()
        stop_at_signals(runner.get_loop(), stop.set)
        runner.run(_run(options, config, admin_port, random, stop))


def _patterns(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (each.strip() for each in text.split(","))))


async def _run(options: ProxyOptions, config: Config, admin_port: int, random: Random, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    server = await until_stopped(open_proxy(options, config, LoopClock(loop), random, loop, load_page), stop)
    if server is None:
        return
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    print_ready(server)
    await stop.wait()
    await server.stop()
    log.info("stopped")
