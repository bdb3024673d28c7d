"""`/api/v1/quotas` of the admin port: the quotas that were altered, altering them, and why a client waits.

An entity is written as AlterClientQuotas has it, `{"user": "alice", "client-id": null}`, null for the default.
"""

from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sluice.protocol.errors import ErrorCode
from sluice.quotas.explain import BrokerSeen, ConnectionSeen, Explanation, explain

from .connection import Connection
from .context import ANONYMOUS
from .handlers.alter_client_quotas import alter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.requests import Request

    from .cluster_server import ClusterServer
    from .server import Server

_LARGEST_BODY = 64 * 1024


class _Alteration(msgspec.Struct, forbid_unknown_fields=True):
    entity: dict[str, str | None]
    quotas: dict[str, float | None]  # null removes one


class _Removal(msgspec.Struct, forbid_unknown_fields=True):
    entity: dict[str, str | None]
    keys: list[str] | None = None  # all that are set


def routes(server: "ClusterServer", refused: "Callable[[Request], Response | None]") -> list[Route]:
    """What the admin port serves of quotas; `refused` answers who may not ask."""
    quotas = server.cluster.client_quotas

    async def get_quotas(request: "Request") -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        found = quotas.matching({}, (), strict=False)
        return _json({"quotas": [{"entity": entity, "quotas": values} for entity, values in found]})

    async def put_quotas(request: "Request") -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        try:
            wanted = msgspec.json.decode(await _body(request), type=_Alteration)
        except (msgspec.MsgspecError, ValueError) as error:
            return _problem(f'the body must be {{"entity": ..., "quotas": ...}}: {error}')
        return _altered(wanted.entity, wanted.quotas)

    async def delete_quotas(request: "Request") -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        try:
            wanted = msgspec.json.decode(await _body(request), type=_Removal)
        except (msgspec.MsgspecError, ValueError) as error:
            return _problem(f'the body must be {{"entity": ..., "keys": ...}}: {error}')
        keys = wanted.keys
        if keys is None:
            found = quotas.matching(wanted.entity, (), strict=True) if wanted.entity else []
            keys = [key for _, values in found for key in values]
        return _altered(wanted.entity, dict.fromkeys(keys))

    def _altered(entity: "Mapping[str, str | None]", changes: "Mapping[str, float | None]") -> Response:
        code, problem = alter(server.cluster, entity, changes, validate_only=False)
        if code:
            words = f"{msgspec.json.encode(entity).decode()}: {problem}"
            return _problem(words, 400 if code == ErrorCode.INVALID_REQUEST else 500)
        found = quotas.matching(entity, (), strict=True)
        return _json({"entity": entity, "quotas": found[0][1] if found else {}})

    async def get_explanation(request: "Request") -> Response:
        if (refusal := refused(request)) is not None:
            return refusal
        asked = parse_qs(request.url.query, keep_blank_values=True)
        unknown = sorted(asked.keys() - {"client_id", "user"})
        if unknown or "client_id" not in asked:
            return _problem(
                "asked for are client_id and, if it is not ANONYMOUS, user"
                + "".join(f"; {name} is neither" for name in unknown)
            )
        return _json(explanation(server, asked["client_id"][-1], asked.get("user", [ANONYMOUS])[-1]))

    return [
        Route("/api/v1/quotas", get_quotas, methods=["GET"]),
        Route("/api/v1/quotas", put_quotas, methods=["PUT"]),
        Route("/api/v1/quotas", delete_quotas, methods=["DELETE"]),
        Route("/api/v1/quotas/explain", get_explanation, methods=["GET"]),
    ]


def explanation(server: "ClusterServer", client_id: str, user: str) -> Explanation:
    """What all brokers know of a client; it changes nothing."""
    return Explanation(
        client_id=client_id,
        user=user,
        profile=server.config.text("quota.profile"),
        at_ms=server.cluster.clock.wall_ms(),
        brokers=[_seen(node_id, one, client_id, user) for node_id, one in server.servers.items()],
    )


def _seen(node_id: int, server: "Server", client_id: str, user: str) -> BrokerSeen:
    broker = server.broker
    mutation = broker.cluster.controller_quotas.mutation
    now_ms = broker.enforcement.time.peek(broker.clock.wall_ms())
    return BrokerSeen(
        node_id=node_id,
        quotas=explain([*broker.quotas, *([] if mutation is None else [mutation])], user, client_id, now_ms),
        connections=[
            _connection(connection, now_ms)
            for connection in server.connections
            if connection.ctx.client_id == client_id and connection.ctx.user == user
        ],
    )


def _connection(connection: Connection, now_ms: int) -> ConnectionSeen:
    told = connection.ctx.told
    produce, fetch = (None, None) if told is None else (told.produce, told.fetch)
    return ConnectionSeen(
        peer=connection.peer,
        waits=connection.waiting,
        produce_throttle_time_avg_ms=None if produce is None else produce.average(now_ms),
        produce_throttle_time_max_ms=None if produce is None else produce.maximum(now_ms),
        fetch_throttle_time_avg_ms=None if fetch is None else fetch.average(now_ms),
        fetch_throttle_time_max_ms=None if fetch is None else fetch.maximum(now_ms),
    )


async def _body(request: "Request") -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > _LARGEST_BODY:
            raise ValueError(f"it has more than {_LARGEST_BODY} bytes")
    return body


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")


def _problem(message: str, status: int = 400) -> Response:
    return JSONResponse({"error": message}, status_code=status)
