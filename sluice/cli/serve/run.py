"""Run brokers in the foreground until a signal arrives.

All imports here delay the first response, so click is not among them.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random, SystemRandom  # noqa: TID251  (the single source of a run's randomness)
from socket import socketpair

import msgspec

from sluice.broker.exchange.advertised_versions import missing
from sluice.broker.network.fair_selector import new_loop
from sluice.broker.process import BrokerProcess
from sluice.cli.logs import set_up_logging
from sluice.clock import LoopClock
from sluice.config.broker_config import Config, address_of
from sluice.web import load as load_page

from .arguments import ServeArguments

log = logging.getLogger("sluice.cli")

# Python versions whose `transport.writelines` never pauses its protocol (CVE-2024-12254): from, fixed in.
_WRITELINES_BUG = (((3, 12, 0), (3, 12, 9)), ((3, 13, 0), (3, 13, 2)))
_STOPS = frozenset({signal.SIGINT, signal.SIGTERM})
# Short enough to type a seed from a log line.
SEEDS = 2**32


def run_broker(arguments: ServeArguments) -> None:
    """Run until SIGINT or SIGTERM. Raises SluiceError or ConfigError."""
    set_up_logging(arguments.log_format)
    pairs = [*_as_release(arguments.release), *arguments.overrides, *listener_pairs(arguments.host, arguments.port)]
    if arguments.brokers is not None:
        pairs.append(f"sluice.brokers={arguments.brokers}")
    if arguments.racks is not None:
        pairs.append(f"broker.rack={arguments.racks}")
    if arguments.data_dir is not None:
        pairs.append(f"log.dirs={arguments.data_dir}")
    config = Config.load(arguments.config_file, pairs, os.environ)
    for warning in config.warnings:
        log.warning(warning)
    seed = SystemRandom().randrange(SEEDS) if arguments.seed is None else arguments.seed
    with asyncio.Runner(loop_factory=new_loop) as runner:
        stop = asyncio.Event()
        with stopped_by_signals(runner.get_loop(), stop.set):
            runner.run(_serve(config, arguments.admin_port, seed, stop))


def listener_pairs(host: str | None, port: int | None) -> list[str]:
    if host is None and port is None:
        return []
    address = host or "127.0.0.1"
    if ":" in address:
        address = f"[{address}]"
    return [f"listeners=PLAINTEXT://{address}:{9092 if port is None else port}"]


def _as_release(release: str | None) -> list[str]:
    return [] if release is None else [f"sluice.kafka.release={release}", f"quota.profile={release}"]


async def _serve(config: Config, admin_port: int, seed: int, stop: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    random = Random(seed)  # noqa: S311  (runs are repeatable)
    server = BrokerProcess(config, LoopClock(loop), random, loop, load_page)
    await server.start(admin=(config.text("sluice.admin.host"), admin_port))
    print_ready(server)
    # Full collections can skip the objects of the start.
    gc.freeze()
    gc.enable()
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


@contextmanager
def stopped_by_signals(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` in the loop at SIGINT and SIGTERM.

    The numbers of signals arrive on a socket, which ends the loop's wait: if a signal came just before it, a handler
    alone would run after the wait. `add_signal_handler` does the same, but imports inspect.
    """
    received, written = socketpair()

    def read() -> None:
        if not _STOPS.isdisjoint(received.recv(4096)):
            stop()

    with received, written:
        written.setblocking(False)
        loop.add_reader(received, read)
        signal.set_wakeup_fd(written.fileno())
        for number in _STOPS:
            signal.signal(number, lambda *_: None)  # numbers arrive only of signals with a handler
        try:
            yield
        finally:
            signal.set_wakeup_fd(-1)
            loop.remove_reader(received)


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
