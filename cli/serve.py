"""`sluice serve`: one broker in the foreground, until it is told to stop."""

import asyncio
import gc
import json
import logging
import os
import signal
from random import Random, SystemRandom  # noqa: TID251  (a run's one source of chance is made here)
from typing import TYPE_CHECKING

import click

from sluice.broker.broker import Broker
from sluice.broker.releases import missing
from sluice.broker.server import Server
from sluice.clock import LoopClock
from sluice.config import Config
from sluice.config_table import AS_RELEASES
from sluice.errors import ConfigError, SluiceError

from .logs import set_up_logging

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("sluice.cli")

# Seeds are short enough to be typed again from a log line.
_SEEDS = 2**32


@click.command()
@click.option("--host", help="Address to listen on, in place of `listeners`.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on; 0 picks a free one.  [default: 9092]")
@click.option(
    "--admin-port",
    type=click.IntRange(0, 65535),
    default=9644,
    show_default=True,
    help="HTTP port for /metrics and /healthz; 0 picks a free one.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(),
    metavar="FILE",
    help="A server.properties file; one of a real Kafka will do.",
)
@click.option(
    "--as",
    "release",
    type=click.Choice(AS_RELEASES),
    help="Serves the API versions that this release of Kafka did, and throttles as it did.",
)
@click.option(
    "--override", "overrides", multiple=True, metavar="KEY=VALUE", help="Sets one property; may be given often."
)
@click.option("--seed", type=click.IntRange(0), help="Makes what is random the same in every run.")
@click.option(
    "--log-format", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of the log on stderr."
)
def serve(
    host: str | None,
    port: int | None,
    admin_port: int,
    config_file: str | None,
    release: str | None,
    overrides: tuple[str, ...],
    seed: int | None,
    log_format: str,
) -> None:
    """Runs a broker until it gets SIGINT or SIGTERM.

    Prints one line when it takes connections: "ready" and a JSON object with its addresses.
    """
    set_up_logging(log_format)
    try:
        config = Config.load(
            _path(config_file), [*_as_release(release), *overrides, *_listeners(host, port)], os.environ
        )
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    for warning in config.warnings:
        log.warning(warning)
    seed = SystemRandom().randrange(_SEEDS) if seed is None else seed
    try:
        asyncio.run(_serve(config, admin_port, seed))
    except SluiceError as error:
        raise click.ClickException(str(error)) from None


def _path(name: str | None) -> "Path | None":
    if name is None:
        return None
    from pathlib import Path  # only here: it takes 5 ms, and a start takes 100

    return Path(name)


def _listeners(host: str | None, port: int | None) -> list[str]:
    if host is None and port is None:
        return []
    address = host or "127.0.0.1"
    if ":" in address:
        address = f"[{address}]"
    return [f"listeners=PLAINTEXT://{address}:{9092 if port is None else port}"]


def _as_release(release: str | None) -> list[str]:
    return [] if release is None else [f"sluice.kafka.release={release}", f"quota.profile={release}"]


async def _serve(config: Config, admin_port: int, seed: int) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    broker = Broker(config, LoopClock(loop), Random(seed))  # noqa: S311  (a test broker wants to be repeatable)
    server = Server(broker, loop)
    await server.start(config.listeners(), (config.text("sluice.admin.host"), admin_port))
    click.echo("ready " + json.dumps(_ready(server)))
    # What the start made lives as long as the broker: full collections, which stop everything, need not look at it.
    gc.freeze()
    log.info("started", extra={"seed": seed, "quota_profile": config.text("quota.profile")})
    release = config.text("sluice.kafka.release")
    if not_served := missing(release):
        log.info("not served", extra={"release": release, "apis": " ".join(not_served)})
    await stop.wait()
    await server.stop()
    log.info("stopped")


def _ready(server: Server) -> dict[str, object]:
    broker = _address(server.endpoints[0].host, server.endpoints[0].port)
    assert server.admin is not None
    admin = _address(server.admin.host, server.admin.port)
    return {"bootstrap": broker, "brokers": [broker], "admin": f"http://{admin}", "pid": os.getpid()}


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host or '0.0.0.0'}:{port}"
