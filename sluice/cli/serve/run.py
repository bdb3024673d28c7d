"""Run brokers in the foreground until a signal arrives."""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from random import Random, SystemRandom  # noqa: TID251  (the single source of a run's randomness)

import msgspec

from sluice.broker.exchange.advertised_versions import missing
from sluice.broker.network.fair_selector import new_loop
from sluice.broker.process import BrokerProcess
from sluice.cli.logs import set_up_logging
from sluice.clock import LoopClock
from sluice.config.broker_config import Config, address_of
from sluice.web import load as load_page

log = logging.getLogger("sluice.cli")

# Python versions whose `transport.writelines` never pauses its protocol (CVE-2024-12254): from, fixed in.
_WRITELINES_BUG = (((3, 12, 0), (3, 12, 9)), ((3, 13, 0), (3, 13, 2)))
# Short enough to type a seed from a log line.
SEEDS = 2**32


def run_broker(
    config_file: str | None, pairs: Sequence[str], admin_port: int, seed: int | None, log_format: str
) -> None:
    """Run until SIGINT or SIGTERM. Raises SluiceError or ConfigError."""
    set_up_logging(log_format)
    config = Config.load(config_file, pairs, os.environ)
    for warning in config.warnings:
        log.warning(warning)
    if seed is None:
        seed = SystemRandom().randrange(SEEDS)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        stop = asyncio.Event()
        stop_at_signals(runner.get_loop(), stop.set)
        runner.run(_serve(config, admin_port, seed, stop))


def listener_pairs(host: str | None, port: int | None) -> list[str]:
    if host is None and port is None:
        return []
    address = host or "127.0.0.1"
    if ":" in address:
        address = f"[{address}]"
    return [f"listeners=PLAINTEXT://{address}:{9092 if port is None else port}"]


async def _serve(config: Config, admin_port: int, seed: int, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    random = Random(seed)  # noqa: S311  (runs are repeatable)
    server = BrokerProcess(config, LoopClock(loop), random, loop, load_page)
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    print_ready(server)
    # Full collections can skip the objects of the start.
    gc.freeze()
    page = f"{_admin(server)}/"
    log.info("started", extra={"seed": seed, "quota_profile": config.text("quota.profile"), "page": page})
    release = config.text("sluice.kafka.release")
    if not_served := missing(release):
        log.info("not served", extra={"release": release, "apis": " ".join(not_served)})
    if has_writelines_bug(sys.version_info[:3]):
        log.info(
            "this Python has CVE-2024-12254: asyncio clients may buffer without limit; update to 3.12.9, 3.13.2 or "
            "later. The broker's listeners are not affected"
        )
    await stop.wait()
    await server.stop()
    log.info("stopped")


def has_writelines_bug(version: tuple[int, int, int]) -> bool:
    return any(since <= version < fixed for since, fixed in _WRITELINES_BUG)


def stop_at_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    """Call `stop` in the loop at SIGINT and SIGTERM."""
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)


def print_ready(server: BrokerProcess) -> None:
    ready = msgspec.json.format(msgspec.json.encode(_ready(server)), indent=0)  # one line, spaces after `:` and `,`
    sys.stdout.write(f"ready {ready.decode()}\n")
    sys.stdout.flush()


def _ready(server: BrokerProcess) -> dict[str, object]:
    first_listeners = [broker.endpoints[0] for broker in server.servers.values()]
    brokers = [str(listener) for listener in first_listeners]
    ready: dict[str, object] = {"bootstrap": brokers[0], "brokers": brokers}
    if len(server.config.listeners()) > 1:
        ready["listeners"] = _by_name(server)
    return ready | {"admin": _admin(server), "pid": os.getpid()}


def _admin(server: BrokerProcess) -> str:
    """Return the admin URL, which serves the page at its root."""
    assert server.admin is not None
    return f"http://{address_of(server.admin.host, server.admin.port)}"


def _by_name(server: BrokerProcess) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {}
    for broker in server.servers.values():
        for listener in broker.endpoints:
            addresses.setdefault(listener.name, []).append(str(listener))
    return addresses
