"""`sluice serve`: run a cluster in the foreground, mostly of one broker, until a signal arrives.

Everything imported here is on the way to the first answer, which is why click is not.
"""

import asyncio
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from random import Random, SystemRandom  # noqa: TID251  (a run's one source of chance is made here)
from typing import TYPE_CHECKING

from sluice.broker.dispatch.advertised_versions import missing
from sluice.broker.network.fair_selector import new_loop
from sluice.broker.process import BrokerProcess
from sluice.cli.logs import set_up_logging
from sluice.clock import LoopClock
from sluice.config.broker_config import Config, address_of
from sluice.web import load as load_page

from .arguments import ServeArguments

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("sluice.cli")

# Seeds are short enough to be typed again from a log line.
SEEDS = 2**32


def run_broker(arguments: ServeArguments) -> None:
    """Runs the brokers until it gets SIGINT or SIGTERM; raises SluiceError, ConfigError among them, if it cannot."""
    set_up_logging(arguments.log_format)
    pairs = [*_as_release(arguments.release), *arguments.overrides, *listener_pairs(arguments.host, arguments.port)]
    if arguments.brokers is not None:
        pairs.append(f"sluice.brokers={arguments.brokers}")
    if arguments.data_dir is not None:
        pairs.append(f"log.dirs={arguments.data_dir}")
    config = Config.load(_path(arguments.config_file), pairs, os.environ)
    for warning in config.warnings:
        log.warning(warning)
    seed = SystemRandom().randrange(SEEDS) if arguments.seed is None else arguments.seed
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve(config, arguments.admin_port, seed))


def _path(name: str | None) -> "Path | None":
    if name is None:
        return None
    from pathlib import Path  # only here: it takes 5 ms, and a start takes 100

    return Path(name)


def listener_pairs(host: str | None, port: int | None) -> list[str]:
    """The property for these options, KEY=VALUE; none where neither is given."""
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
    stop_by_signal(stop.set)
    random = Random(seed)  # noqa: S311  (a test broker wants to be repeatable)
    server = BrokerProcess(config, LoopClock(loop), random, loop, load_page)
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    print_ready(server)
    # What the start made lives as long as the broker: full collections, which stop everything, need not look at it.
    gc.freeze()
    gc.enable()
    page = f"{_admin(server)}/"
    log.info("started", extra={"seed": seed, "quota_profile": config.text("quota.profile"), "page": page})
    release = config.text("sluice.kafka.release")
    if not_served := missing(release):
        log.info("not served", extra={"release": release, "apis": " ".join(not_served)})
    await stop.wait()
    await server.stop()
    log.info("stopped")


def stop_by_signal(stop: Callable[[], None]) -> None:
    """Calls `stop` when the process gets SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def print_ready(server: BrokerProcess) -> None:
    """Print the one line with the addresses of the brokers."""
    sys.stdout.write(f"ready {json.dumps(_ready(server))}\n")
    sys.stdout.flush()


def _ready(server: BrokerProcess) -> dict[str, object]:
    first_listeners = [broker.endpoints[0] for broker in server.servers.values()]
    brokers = [str(listener) for listener in first_listeners]
    ready: dict[str, object] = {"bootstrap": brokers[0], "brokers": brokers}
    if len(server.config.listeners()) > 1:
        ready["listeners"] = _by_name(server)
    return ready | {"admin": _admin(server), "pid": os.getpid()}


def _admin(server: BrokerProcess) -> str:
    """Where the admin port is, whose page is at its root."""
    assert server.admin is not None
    return f"http://{address_of(server.admin.host, server.admin.port)}"


def _by_name(server: BrokerProcess) -> dict[str, list[str]]:
    """The addresses of each listener, one a broker."""
    addresses: dict[str, list[str]] = {}
    for broker in server.servers.values():
        for listener in broker.endpoints:
            addresses.setdefault(listener.name, []).append(str(listener))
    return addresses
