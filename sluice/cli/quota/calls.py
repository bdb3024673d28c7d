"""Calls of the admin client about quotas (KIP-546) for commands: an error is raised at the first failure."""

import asyncio
import socket
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import TypeVar

from sluice.client.admin import AdminClient
from sluice.client.admin.quotas import QuotaEntity
from sluice.client.errors import ApiException, KafkaException
from sluice.client.metadata.cluster import Node
from sluice.errors import ConfigError, SluiceError
from sluice.protocol.apis.describe_client_quotas import ComponentData
from sluice.text.error_text import expected

# Kafka's 30 s is long for a port that never responds.
_CONFIG: dict[str, str | int] = {"client.id": "sluice-quota", "retries": 0, "request.timeout.ms": 5000}
_PROBE_TIMEOUT_S = 1.0  # as in admin_client.py, which detects a Kafka port given as --admin

_T = TypeVar("_T")
_Call = Callable[[AdminClient], Coroutine[object, None, _T]]


def describe_quotas(
    bootstrap: str, components: Iterable[ComponentData] = ()
) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """Return matching entities, as names by type, with their quotas."""
    found = asyncio.run(_first_outcome(bootstrap, lambda admin: admin.describe_client_quotas(components)))
    return [(dict(entity), quotas) for entity, quotas in found.items()]


def alter_quotas(bootstrap: str, entity: Mapping[str, str | None], changes: Mapping[str, float | None]) -> str | None:
    """Alter one entity's quotas (None removes one); return the error, if any."""
    altered: QuotaEntity = frozenset(entity.items())
    outcomes = asyncio.run(_first_outcome(bootstrap, lambda admin: admin.alter_client_quotas({altered: changes})))
    return next(map(_describe, outcomes.errors().values()), None)


async def _first_outcome(bootstrap: str, call: _Call[_T]) -> _T:
    try:
        if "://" in bootstrap:
            raise ConfigError
        admin = AdminClient({"bootstrap.servers": bootstrap, **_CONFIG})
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
