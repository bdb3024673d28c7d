"""The start of a proxy: read the cluster behind it, then make the servers of its brokers."""

import asyncio
import logging
from collections.abc import Coroutine
from random import Random  # noqa: TID251  (only the type of an injected value)
from typing import Any, TypeVar

from sluice.broker.admin.server import LoadPage
from sluice.client.config import ClientConfig
from sluice.client.errors import AuthenticationException, KafkaException
from sluice.clock import Clock, sleep_ms
from sluice.config.broker_config import Config
from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected

from .properties import check_properties
from .server import ProxyOptions, ProxyServer
from .upstream_cluster import UpstreamCluster, VersionRange
from .upstream_connector import UpstreamConnector

log = logging.getLogger("sluice.proxy")

_RETRY_MS = 1_000
_PORTS = range(1, 65536)

T = TypeVar("T")


def parse_ports(text: str) -> dict[int, int]:
    """Return the port by node id of a text such as `1=19092,2=19093`. Raises ConfigError."""
    ports: dict[int, int] = {}
    for item in filter(None, (each.strip() for each in text.split(","))):
        node_id, _, port = item.partition("=")
        if not (node_id.isdecimal() and port.isdecimal() and int(port) in _PORTS):
            raise ConfigError(f"--ports: {expected('ID=PORT, separated by commas', item)}")
        ports[int(node_id)] = int(port)
    return ports


async def open_proxy(
    options: ProxyOptions,
    config: Config,
    clock: Clock,
    random: Random,
    loop: asyncio.AbstractEventLoop,
    load_page: LoadPage,
    within_s: float | None = None,
) -> ProxyServer:
    """Return a proxy that is not started yet; wait until the cluster responds, at most for `within_s`.

    Raises:
        ConfigError: A property has no effect in a proxy.
        ConfigError: A property does not fit the others.
        SluiceError: The cluster does not accept the proxy, or does not respond in time.
    """
    check_properties(config)
    upstream = UpstreamCluster(options.upstream, clock)
    try:
        if options.sasl_passthrough:
            _check_passthrough(upstream.config, config)
        async with asyncio.timeout(within_s):
            versions = await _discover(upstream, clock)
        connector = UpstreamConnector(upstream, loop, passes_sasl=options.sasl_passthrough)
        return ProxyServer(config, clock, random, loop, load_page, connector, versions, options)
    except BaseException as error:
        await upstream.close()
        if isinstance(error, TimeoutError):
            where = f"upstream {options.upstream['bootstrap.servers']}"
            raise SluiceError(f"{where}: expected a Kafka broker, got no response within {within_s} s") from None
        raise


def _check_passthrough(upstream: ClientConfig, config: Config) -> None:
    name = "security.protocol"
    if not upstream.uses_sasl:
        accepted = f"SASL_PLAINTEXT or SASL_SSL as {name} of the proxy's connections"
        raise ConfigError(f"--sasl-passthrough: {expected(accepted, upstream.text(name).upper())}")
    for endpoint in config.listeners():
        protocol = config.security_protocol(endpoint.name)
        if protocol.startswith("SASL_"):
            accepted = "listeners without SASL, as clients authenticate with the cluster"
            raise ConfigError(f"--sasl-passthrough: {expected(accepted, f'{endpoint.name} ({protocol})')}")


async def _discover(upstream: UpstreamCluster, clock: Clock) -> dict[int, dict[int, VersionRange]]:
    problem = ""
    while True:
        try:
            node_ids = await upstream.refresh()
            versions = await upstream.versions(node_ids)
            some = next(iter(versions.values()))
            for node_id in node_ids:
                if node_id not in versions:
                    log.warning("an upstream broker does not respond", extra={"broker": node_id})
            return {node_id: versions.get(node_id, some) for node_id in node_ids}
        except AuthenticationException as error:
            raise SluiceError(f"--upstream: {error}") from None
        except KafkaException as error:
            if str(error) != problem:
                log.warning("the upstream cluster does not respond; trying again", extra={"reason": str(error)})
            problem = str(error)
        await sleep_ms(clock, _RETRY_MS)


async def until_stopped(work: Coroutine[Any, Any, T], stop: asyncio.Event) -> T | None:
    """Return the result of `work`; None if the process is to stop before."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    await asyncio.wait((task, stopped), return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait((task,))
    return None
