"""`/api/v1/quotas` of the admin port: altered quotas, altering them, and why a client is throttled.

Entities are as in AlterClientQuotas, such as `{"user": "alice", "client-id": null}`, where null is the default.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from sluice.broker.admin.operation import AdminContext, Nothing, Operation, RefusedError
from sluice.broker.handlers.configs.alter_client_quotas import alter
from sluice.broker.network.connection import Connection
from sluice.broker.requests.session import ANONYMOUS
from sluice.broker.server.cluster_server import ClusterServer
from sluice.config.value_types import parse_quota
from sluice.protocol.errors import ErrorCode
from sluice.quotas.explain import BrokerSeen, ConnectionSeen, Explanation, explain

_PATH = "/api/v1/quotas"
_Entity = Annotated[
    dict[str, str | None], Meta(extra_json_schema={"examples": [{"user": "alice", "client-id": None}, {"ip": "::1"}]})
]


class Alteration(msgspec.Struct, forbid_unknown_fields=True):
    """New values of quotas; byte rates also as text, such as 2M; null removes one."""

    entity: _Entity
    quotas: Annotated[
        dict[str, float | str | None], Meta(extra_json_schema={"examples": [{"producer_byte_rate": 1e6}]})
    ]


class Removal(msgspec.Struct, forbid_unknown_fields=True):
    """Quotas to remove; default: all of the entity."""

    entity: _Entity
    keys: list[str] | None = None


class ClientParams(msgspec.Struct, forbid_unknown_fields=True):
    client_id: str
    user: str = ANONYMOUS


class QuotasShown(msgspec.Struct):
    """The quotas of one entity."""

    entity: _Entity
    quotas: dict[str, float]


class AllQuotasShown(msgspec.Struct):
    """All altered quotas."""

    quotas: list[QuotasShown]


async def _list(context: AdminContext, params: Nothing, body: Nothing) -> AllQuotasShown:
    found = context.server.cluster.client_quotas.matching({}, (), strict=False)
    return AllQuotasShown([QuotasShown(dict(entity), quotas) for entity, quotas in found])


async def _alter(context: AdminContext, params: Nothing, body: Alteration) -> QuotasShown:
    return _altered(context.server, body.entity, {key: _number(key, value) for key, value in body.quotas.items()})


def _number(key: str, value: float | str | None) -> float | None:
    if not isinstance(value, str):
        return value
    try:
        return parse_quota(key, value)
    except ValueError as error:
        raise RefusedError(400, str(error), f"quotas.{key}") from None


async def _remove(context: AdminContext, params: Nothing, body: Removal) -> QuotasShown:
    quotas, entity, keys = context.server.cluster.client_quotas, body.entity, body.keys
    if keys is None:
        found = quotas.matching(entity, (), strict=True) if entity else []
        keys = [key for _, values in found for key in values]
    return _altered(context.server, entity, dict.fromkeys(keys))


async def _explain(context: AdminContext, params: ClientParams, body: Nothing) -> Explanation:
    return explanation(context.server, params.client_id, params.user)


def _altered(server: ClusterServer, entity: dict[str, str | None], changes: Mapping[str, float | None]) -> QuotasShown:
    code, why = alter(server.cluster, entity, changes, validate_only=False)
    if code:
        words = f"{msgspec.json.encode(entity).decode()}: {why}"
        status = 400 if code == ErrorCode.INVALID_REQUEST else 500
        raise RefusedError(status, words, _place(server, entity, changes))
    found = server.cluster.client_quotas.matching(entity, (), strict=True)
    return QuotasShown(entity, found[0][1] if found else {})


def _place(server: ClusterServer, entity: dict[str, str | None], changes: Mapping[str, float | None]) -> str:
    refusal = server.cluster.client_quotas.refusal
    if refusal(entity, {}) is not None:
        wrong = (name for name in entity if refusal({name: entity[name]}, {}) is not None)
        return next((f"entity.{name}" for name in wrong), "entity")
    return next((f"quotas.{key}" for key, value in changes.items() if refusal(entity, {key: value})), "")


def explanation(server: ClusterServer, client_id: str, user: str) -> Explanation:
    """Return what all brokers know of a client, without side effects."""
    return Explanation(
        client_id=client_id,
        user=user,
        profile=server.config.text("quota.profile"),
        mode=server.config.text("sluice.quota.mode"),
        at_ms=server.cluster.runtime.clock.wall_ms(),
        brokers=[_seen(server, node_id, client_id, user) for node_id in server.servers],
    )


def _seen(server: ClusterServer, node_id: int, client_id: str, user: str) -> BrokerSeen:
    broker = server.brokers[node_id]
    mutation = server.cluster.controller_quotas.mutation
    now_ms = broker.throttler.time.peek(broker.clock.wall_ms())
    return BrokerSeen(
        node_id=node_id,
        quotas=explain([*broker.quotas, *([] if mutation is None else [mutation])], user, client_id, now_ms),
        connections=[
            _connection(connection, now_ms)
            for connection in server.servers[node_id].connections
            if connection.ctx.session.client_id == client_id and connection.ctx.session.user == user
        ],
    )


def _connection(connection: Connection, now_ms: int) -> ConnectionSeen:
    throttle_times = connection.ctx.session.throttle_times
    produce, fetch = (None, None) if throttle_times is None else (throttle_times.produce, throttle_times.fetch)
    return ConnectionSeen(
        peer=connection.peer,
        waits=connection.waiting,
        produce_throttle_time_avg_ms=None if produce is None else produce.average(now_ms),
        produce_throttle_time_max_ms=None if produce is None else produce.maximum(now_ms),
        fetch_throttle_time_avg_ms=None if fetch is None else fetch.average(now_ms),
        fetch_throttle_time_max_ms=None if fetch is None else fetch.maximum(now_ms),
    )


OPERATIONS = (
    Operation.of("GET", _PATH, "Return all altered quotas by entity.", _list),
    Operation.of("PUT", _PATH, "Alter quotas of an entity, all or none.", _alter),
    Operation.of("DELETE", _PATH, "Remove quotas of an entity.", _remove),
    Operation.of("GET", f"{_PATH}/explain", "Explain why a client is throttled, with its quotas and rates.", _explain),
)
