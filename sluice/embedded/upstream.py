"""Proxies in place of the brokers of a test suite: `pytest --kafka-upstream HOST:PORT`.

They delete what a test created, and refuse changes of topics and groups that existed before, so that the cluster may be
shared. What needs a broker of sluice raises ProxyError, with which the test is skipped.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from sluice.client.admin.configs import ConfigResource, ResourceType
from sluice.client.errors import KafkaException
from sluice.config.broker_config import format_value, read_file
from sluice.config.kafka_properties import row_of_any
from sluice.errors import ProxyError, SluiceError
from sluice.proxy.properties import acts_in_proxy
from sluice.proxy.server import ProxyServer

from .proxy import Proxy
from .sync_broker import SyncBroker
from .sync_proxy import SyncProxy

_running: list[SyncProxy] = []  # that tests use now


class Upstream(NamedTuple):
    bootstrap: str
    properties: Mapping[str, str]  # of a client, with which proxies connect

    @staticmethod
    def of(bootstrap: str, config_file: str | None) -> "Upstream":
        """Raise ConfigError if the file cannot be read."""
        return Upstream(bootstrap, {key: value for _, key, value in read_file(config_file)} if config_file else {})


class Wanted(NamedTuple):
    """What a test requires of a broker."""

    brokers: int
    config: Mapping[str, str | float | bool]
    of_broker: Mapping[str, Any]  # further arguments of Broker


@contextmanager
def proxy_for_test(upstream: Upstream, wanted: Wanted) -> Iterator[SyncProxy]:
    """Run a proxy in front of the cluster during the block.

    Raises:
        ProxyError: The test needs a broker of sluice.
        SluiceError: The test tried to change what existed before.
    """
    if _running:
        raise ProxyError("a second cluster in one test: both would be the same upstream")
    with new_proxy(upstream, wanted) as proxy:
        _running.append(proxy)
        try:
            yield proxy
        finally:
            _running.remove(proxy)
        raise_refused(proxy)


@contextmanager
def new_proxy(upstream: Upstream, wanted: Wanted) -> Iterator[SyncProxy]:
    if wanted.of_broker.get("acls") is not None:
        raise ProxyError("acls: the upstream has its own ACLs")
    own = {name: value for name, value in wanted.config.items() if acts_in_proxy(name)}
    others = {name: format_value(value) for name, value in wanted.config.items() if name not in own}
    proxy = SyncProxy(
        upstream.bootstrap, upstream_config=upstream.properties, config=own, protect_existing=True, **wanted.of_broker
    )
    with proxy:
        if len(proxy.brokers) < wanted.brokers:
            raise ProxyError(f"brokers: expected {wanted.brokers}, the upstream has {len(proxy.brokers)}")
        if others:
            _check_configs(proxy, others)
        yield proxy


def raise_refused(broker: SyncBroker) -> None:
    """Raise SluiceError if the test tried to change what existed before."""
    if isinstance(broker, SyncProxy) and broker.refused:
        refused = "; ".join(broker.refused)
        raise SluiceError(f"kafka-upstream: {refused}. Use another name, or delete it before the test")


def _check_configs(proxy: SyncProxy, wanted: Mapping[str, str]) -> None:
    """Raise ProxyError if a property of a broker has another value in the upstream."""
    found = proxy._thread.run(lambda: _configs(proxy._target))
    for name, text in wanted.items():
        if name not in found:
            raise ProxyError(f"config: {name}: only brokers of sluice have this property")
        if not _equal(name, text, found[name] or ""):
            raise ProxyError(f"config: {name}: expected {text}, the upstream has {found[name]}")


async def _configs(proxy: Proxy) -> dict[str, str | None]:
    server = proxy._running
    assert isinstance(server, ProxyServer)
    broker = ConfigResource(ResourceType.BROKER, str(min(server.servers)))
    try:
        configs = (await server.upstream.admin.describe_configs([broker]))[broker]
    except KafkaException as error:
        raise SluiceError(f"upstream: its configs could not be read: {error}") from None
    return {config.name: config.value for config in configs}


def _equal(name: str, one: str, other: str) -> bool:
    parse = row_of_any(name).kind.parse
    try:
        return parse(one) == parse(other)
    except ValueError:
        return False
