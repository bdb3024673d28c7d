"""The start of a proxy: read the cluster behind it, then make the servers of its brokers."""

import asyncio
import logging
from collections.abc import Coroutine
from random import Random  # noqa: TID251  (only the type of an injected value)
from typing import Any, TypeVar

from sluice.broker.admin.server import LoadPage
from sluice.client.config import ClientConfig
from sluice.client.errors import AuthenticationException, KafkaException, UnsupportedVersionException
from sluice.client.metadata.cluster import Node
from sluice.client.network.network_client import NetworkClient
from sluice.clock import Clock, sleep_ms
from sluice.config.broker_config import EVERYWHERE, Config
from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import expected

from .properties import check_properties
from .server import ProxyOptions, ProxyServer
from .upstream.cluster import UpstreamCluster, VersionRange
from .upstream.connector import UpstreamConnector

log = logging.getLogger("sluice.proxy")

_RETRY_MS = 1_000
# A start that takes longer is logged.
_WAITS_MS = 3_000
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
        ConfigError: A property has no effect in a proxy, or does not fit the others.
        SluiceError: The cluster does not accept the proxy, or does not respond in time.
    """
    check_properties(config)
    upstream = UpstreamCluster(options.upstream, clock)
    try:
        if options.sasl_passthrough:
            _check_passthrough(upstream.config, config)
        async with asyncio.timeout(within_s):
            versions = await _discover(upstream, clock, options, config)
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


class _UnusableUpstreamError(KafkaException):
    """An upstream that no further attempt can reach."""


class _ConnectionReport:
    """Logs each different failure of a connection once, as soon as it happens, until the cluster is known."""

    def __init__(self, client: NetworkClient, options: ProxyOptions, config: Config) -> None:
        self.is_over = False
        self._client = client
        self._options = options
        self._config = config
        self._logged: set[str | int] = set()  # reasons, and ids of brokers
        client.listen(self._changed)

    def log(self, reason: str) -> None:
        if reason not in self._logged:
            self._logged.add(reason)
            log.warning("the upstream cluster does not respond; trying again", extra={"reason": reason})

    def log_broker(self, node_id: int, reason: str) -> None:
        if node_id not in self._logged:
            self._logged.add(node_id)
            log.warning("an upstream broker does not respond", extra={"broker": node_id, "reason": reason})

    def _changed(self) -> None:
        failure = self._client.last_failure
        if failure is None or self.is_over:
            return
        node = failure.node
        reason = f"{node.host}:{node.port}: {failure.reason}"
        if failure.is_malformed:
            self._client.metadata.fatal_error(
                _UnusableUpstreamError(f"{reason}; expected a response of a Kafka broker")
            )
        elif node.id >= 0 and self._listens_on(node):
            problem = f"broker {node.id} advertises {node.host}:{node.port}, on which the proxy listens"
            self._client.metadata.fatal_error(
                _UnusableUpstreamError(f"{problem}; expected its own address (advertised.listeners)")
            )
        elif self._client.authentication_error(node.id) is None and node.id >= 0:
            self.log_broker(node.id, reason)
        elif self._client.authentication_error(node.id) is None:
            self.log(reason)

    def _listens_on(self, node: Node) -> bool:
        bound = self._config.listeners(node.id)
        bound[0].port = self._options.ports.get(node.id, bound[0].port)
        return (_loopback(node.host), node.port) in {(_loopback(each.host), each.port) for each in bound}


def _loopback(host: str) -> str:
    return "localhost" if host in EVERYWHERE or host in ("127.0.0.1", "::1") else host


async def _discover(
    upstream: UpstreamCluster, clock: Clock, options: ProxyOptions, config: Config
) -> dict[int, dict[int, VersionRange]]:
    client = upstream.admin.network.client
    report = _ConnectionReport(client, options, config)
    servers = options.upstream["bootstrap.servers"]
    waiting = clock.call_at(
        clock.monotonic_ms() + _WAITS_MS,
        lambda: log.info("waiting for the upstream cluster", extra={"upstream": servers}),
    )
    try:
        return await _read_brokers(upstream, clock, report)
    except (AuthenticationException, UnsupportedVersionException) as error:  # the latter: of a controller
        failure = client.last_failure
        where = "" if failure is None else f" {failure.node.host}:{failure.node.port}"
        raise SluiceError(f"upstream{where}: {error}") from None
    except _UnusableUpstreamError as error:
        raise SluiceError(f"upstream {error}") from None
    finally:
        waiting.cancel()
        report.is_over = True


async def _read_brokers(
    upstream: UpstreamCluster, clock: Clock, report: _ConnectionReport
) -> dict[int, dict[int, VersionRange]]:
    while True:
        try:
            node_ids = await upstream.refresh()
            versions = await upstream.versions(node_ids)
            for node_id in node_ids:
                if node_id not in versions:
                    report.log_broker(node_id, "no response in time")
            return versions
        except (AuthenticationException, UnsupportedVersionException, _UnusableUpstreamError):
            raise
        except KafkaException as error:
            if upstream.admin.network.client.last_failure is None:  # else it is logged
                report.log(str(error))
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
