"""A proxy in the current process and event loop, for tests against a real cluster.

    async with Proxy("kafka:9092") as proxy:
        proxy.faults.add(Error("NOT_LEADER_OR_FOLLOWER"), api="Produce", times=2)
        producer = AIOKafkaProducer(bootstrap_servers=proxy.bootstrap)

It has the API of Broker, by the same code. SyncProxy is the same for code without an event loop.
"""

import asyncio
from collections.abc import Mapping, Sequence
from random import Random  # noqa: TID251  (the proxy's single source of randomness)

from sluice.broker.process import BrokerProcess
from sluice.broker.throttling.scope import Scope
from sluice.client.errors import KafkaException
from sluice.clock import LoopClock
from sluice.config.broker_config import Config, format_value
from sluice.errors import SluiceError
from sluice.proxy.discovery import open_proxy
from sluice.proxy.properties import acts_in_proxy, check_properties
from sluice.proxy.server import ProxyOptions
from sluice.proxy.upstream.cluster import UpstreamCluster
from sluice.proxy.upstream.use import UpstreamUse
from sluice.text.arguments import Port, checks_arguments
from sluice.web import load as load_page

from .broker import JOURNAL_EVENTS, Broker
from .security import Mechanism, Security

# A container may still start; less than the 30 s that SyncProxy waits.
_STARTS_WITHIN_S = 10.0


@checks_arguments
class Proxy(Broker):
    """A proxy in front of each broker of a cluster, on free ports of 127.0.0.1, with a journal.

    Faults, quotas, journal and assertions work as with Broker, on the way to the real brokers. What needs a broker of
    sluice, such as moving a leader, raises `sluice.ProxyError`. At the end, the topics and groups that clients created
    through the proxy are deleted from the cluster; all others remain.
    """

    def __init__(
        self,
        upstream: str,
        *,
        upstream_config: Mapping[str, str | float | bool] | None = None,
        sasl_passthrough: bool = False,
        config: Mapping[str, str | float | bool] | None = None,
        admin_port: Port | None = None,
        seed: int = 0,
        tls: bool = False,
        sasl: Mechanism | None = None,
        users: Mapping[str, str] | None = None,
        protect_existing: bool = False,
        only_clients: Sequence[str] = (),
        only_topics: Sequence[str] = (),
    ) -> None:
        """Configure the proxy; `async with` starts it.

        Args:
            upstream: Bootstrap servers of the cluster, as HOST:PORT,...
            upstream_config: Client properties with which the proxy connects, such as security.protocol.
            sasl_passthrough: Let clients authenticate with the cluster, not with the proxy.
            config: Properties of the proxy's side, such as quota defaults, by name.
            admin_port: Port of the admin HTTP server; 0 picks a free port, None disables the server.
            seed: Seed of all randomness.
            tls: Whether the listeners of the proxy use TLS, with a certificate made by trustme (extra `tls`).
            sasl: SASL mechanism that clients must use towards the proxy, which logs in itself by `upstream_config`.
            users: Passwords by user, with `sasl`. Default: alice, with alice-secret.
            protect_existing: Refuse requests that change topics or groups which existed before the start.
            only_clients: Patterns of client ids to which all fault rules and quotas are limited, such as `shop-*`.
            only_topics: Patterns of topics to which they are limited.

        Raises:
            ConfigError: An unknown property, an invalid value, or a property that only brokers have.
        """
        given = config or {}
        self._security = Security(tls, sasl, users, None, given)
        defaults: dict[str, str | float] = {
            **{name: value for name, value in self._security.properties().items() if acts_in_proxy(name)},
            "sluice.journal.events": JOURNAL_EVENTS,
            "sluice.journal.record.hashes": "true",
        }
        self._config = Config.of({**defaults, **given})
        check_properties(self._config)
        self._admin_port = admin_port
        self._seed = seed
        self._server: BrokerProcess | None = None
        properties = {name: format_value(value) for name, value in (upstream_config or {}).items()}
        self._upstream = {**properties, "bootstrap.servers": upstream}
        self._sasl_passthrough = sasl_passthrough
        self._protect_existing = protect_existing
        self._scope = Scope(tuple(only_clients), tuple(only_topics))
        self._use = UpstreamUse(protects=protect_existing)

    @property
    def refused(self) -> list[str]:
        """The requests that `protect_existing` refused, each with its reason."""
        return list(self._use.refused)

    async def _new_server(self) -> BrokerProcess:
        loop = asyncio.get_running_loop()
        random = Random(self._seed)  # noqa: S311  (runs are repeatable)
        use = self._use = UpstreamUse(protects=self._protect_existing)
        options = ProxyOptions(self._upstream, {}, None, self._sasl_passthrough, use=use, scope=self._scope)
        server = await open_proxy(options, self._config, LoopClock(loop), random, loop, load_page, _STARTS_WITHIN_S)
        try:
            await use.begin(server.upstream)
        except KafkaException as error:
            await server.stop()
            raise SluiceError(f"upstream {self._upstream['bootstrap.servers']}: {error}") from None
        return server

    async def _stop(self) -> None:
        await super()._stop()
        upstream = UpstreamCluster(self._upstream, LoopClock(asyncio.get_running_loop()))
        try:
            await self._use.remove(upstream)
        finally:
            await upstream.close()
