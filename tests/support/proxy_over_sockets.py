"""A proxy in front of a cluster, in the event loop of the test."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random

from sluice.clock import LoopClock
from sluice.config.broker_config import Config
from sluice.proxy.discovery import open_proxy
from sluice.proxy.server import ProxyOptions, ProxyServer
from sluice.web import load as load_page
from tests.support.certificates import certificates

Properties = dict[str, str]


@asynccontextmanager
async def running_proxy(
    upstream: Mapping[str, str],
    properties: Mapping[str, str] | None = None,
    *,
    sasl_passthrough: bool = False,
    admin: tuple[str, int] | None = None,
) -> AsyncIterator[ProxyServer]:
    """Run a proxy.

    Args:
        upstream: Properties of the proxy as a client, with `bootstrap.servers`.
        properties: Those of its own side.
        sasl_passthrough: Whether clients authenticate with the cluster.
        admin: Address of the admin port, if any.
    """
    loop = asyncio.get_running_loop()
    options = ProxyOptions(upstream, {}, None, sasl_passthrough=sasl_passthrough)
    config = Config.of({"listeners": "PLAINTEXT://127.0.0.1:0", "sluice.journal.events": 1000, **(properties or {})})
    server = await open_proxy(options, config, LoopClock(loop), Random(0), loop, load_page)
    await server.start(admin=admin)
    try:
        yield server
    finally:
        await server.stop()


def bootstrap_of(proxy: ProxyServer, listener: int = 0) -> str:
    """Return the addresses of a listener, by its place in `listeners`."""
    return ",".join(str(server.endpoints[listener]) for server in proxy.servers.values())


def listener(protocol: str, **ssl: str) -> Properties:
    """Return the properties of a broker's or a proxy's listener."""
    return {
        "listeners": f"{protocol}://127.0.0.1:0",
        "ssl.keystore.location": str(certificates().broker),
        "ssl.truststore.location": str(certificates().ca),
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "sluice.sasl.users": "alice:alice-secret,proxy:proxy-secret",
        **{f"ssl.{name.replace('_', '.')}": value for name, value in ssl.items()},
    }


def client(protocol: str, user: str = "alice", mechanism: str = "SCRAM-SHA-256", **ssl: str) -> Properties:
    """Return the properties of a client, or of the proxy as a client."""
    given = {"security.protocol": protocol, **{f"ssl.{name.replace('_', '.')}": value for name, value in ssl.items()}}
    if "SSL" in protocol:
        given["ssl.truststore.location"] = str(certificates().ca)
    if "SASL" in protocol:
        given["sasl.mechanism"] = mechanism
        given["sasl.jaas.config"] = f'Module required username="{user}" password="{user}-secret";'
    return given
