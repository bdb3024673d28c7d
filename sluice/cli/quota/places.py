"""Where quotas are shown and changed: a cluster, by the Kafka protocol (KIP-546), or a proxy, by its admin port.

An error of a cluster is raised at the first failure.
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Mapping
from typing import Protocol, TypeVar

import msgspec

from sluice.cli.admin_client import AdminClient
from sluice.client.admin import AdminClient as KafkaAdminClient
from sluice.client.errors import ApiException, KafkaException
from sluice.client.metadata.cluster import Node
from sluice.errors import ConfigError, SluiceError
from sluice.protocol.apis.describe_client_quotas import ComponentData
from sluice.text.error_text import expected

# Kafka's 30 s is long for a port that never responds.
_CONFIG: dict[str, str | int] = {"client.id": "sluice-quota", "retries": 0, "request.timeout.ms": 5000}
_PROBE_TIMEOUT_S = 1.0  # as in admin_client.py, which detects a Kafka port given as --admin
_PATH = "/api/v1/quotas"
_EXACT, _DEFAULT = 0, 1

Entity = Mapping[str, str | None]
_T = TypeVar("_T")
_Call = Callable[[KafkaAdminClient], Coroutine[object, None, _T]]


class _Quotas(msgspec.Struct):
    entity: dict[str, str | None]
    quotas: dict[str, float]


class _AllQuotas(msgspec.Struct):
    quotas: list[_Quotas]


class Place(Protocol):
    def describe(self, entity: Entity) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        """Return the quotas of entities with these types and names."""

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        """Alter one entity's quotas (None removes one); return the error, if any."""


class Cluster:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def describe(self, entity: Entity) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        components = [
            ComponentData(entity_type=type_, match_type=_DEFAULT if name is None else _EXACT, match=name)
            for type_, name in entity.items()
        ]
        found = asyncio.run(_first_outcome(self._bootstrap, lambda admin: admin.describe_client_quotas(components)))
        return [(dict(each), quotas) for each, quotas in found.items()]

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        altered = {frozenset(entity.items()): changes}
        outcomes = asyncio.run(_first_outcome(self._bootstrap, lambda admin: admin.alter_client_quotas(altered)))
        return next(map(_describe, outcomes.errors().values()), None)


class Proxy:
    def __init__(self, address: str, token: str | None) -> None:
        self._admin = AdminClient(address, token, "--proxy")

    def describe(self, entity: Entity) -> list[tuple[dict[str, str | None], dict[str, float]]]:
        found = self._admin.get(_PATH, _AllQuotas).quotas
        return [(each.entity, each.quotas) for each in found if entity.items() <= each.entity.items()]

    def alter(self, entity: Entity, changes: Mapping[str, float | None]) -> str | None:
        self._admin.put(_PATH, {"entity": entity, "quotas": changes}, _Quotas)
        return None


def place_of(bootstrap: str, proxy: str | None, token: str | None) -> Place:
    return Cluster(bootstrap) if proxy is None else Proxy(proxy, token)


async def _first_outcome(bootstrap: str, call: _Call[_T]) -> _T:
    try:
        if "://" in bootstrap:
            raise ConfigError
        admin = KafkaAdminClient({"bootstrap.servers": bootstrap, **_CONFIG})
    except ConfigError:
        raise ConfigError(f"--bootstrap: {expected('HOST:PORT', bootstrap)}") from None
    async with admin:
        network = admin.network
        result = asyncio.ensure_future(call(admin))
        result.add_done_callback(lambda _result: network.wakeup())
        while not result.done():
            failure = network.client.last_failure
            if failure is not None:
                result.cancel()
                where = bootstrap if failure.node.id < 0 else f"{bootstrap}: broker {failure.node}"
                if _speaks_http(failure.node):
                    raise SluiceError(
                        f"{where}: expected a port of the Kafka protocol, got an HTTP port. "
                        "Set --bootstrap to the broker's Kafka port; --admin accepts an admin port"
                    )
                raise SluiceError(f"{where}: {failure.reason}")
            await network.wait()
        try:
            return result.result()
        except KafkaException as error:
            raise SluiceError(f"{bootstrap}: {_describe(error)}") from None


def _speaks_http(node: Node) -> bool:
    try:
        with socket.create_connection((node.host, node.port), _PROBE_TIMEOUT_S) as connection:
            connection.sendall(b"HEAD / HTTP/1.0\r\n\r\n")
            return connection.makefile("rb").read(5) == b"HTTP/"
    except OSError:
        return False


def _describe(error: BaseException) -> str:
    if isinstance(error.__cause__, ApiException):
        error = error.__cause__
    return f"{error.code.name}: {error}" if isinstance(error, ApiException) else str(error)
