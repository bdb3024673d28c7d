"""`/api/v1/cluster`, `/api/v1/brokers` and `/api/v1/partitions` of the admin port: who leads what, and making brokers
stop, start, be cut off and come back.

A wrong request is answered with `{"error": "..."}`: 400 for what cannot be read, 404 for a broker, topic or partition
that is not there, 409 for what cannot be as things are.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from sluice.errors import SluiceError

from .cluster_server import UnknownResourceError
from .elections import Election
from .topic import Partition

if TYPE_CHECKING:
    from starlette.requests import Request

    from .cluster_server import ClusterServer

_LARGEST_BODY = 64 * 1024


class _Stop(msgspec.Struct, forbid_unknown_fields=True):
    controlled: bool = True


class _Leader(msgspec.Struct, forbid_unknown_fields=True):
    """Who is to lead, or how that is to be found out."""

    node: int | None = None
    election: Literal["preferred", "unclean"] | None = None


def routes(server: "ClusterServer", refused: "Callable[[Request], Response | None]") -> list[Route]:
    """What the admin port serves of the cluster; `refused` answers who may not ask."""

    def guarded(answer: "Callable[[Request], Awaitable[object]]") -> "Callable[[Request], Awaitable[Response]]":
        async def respond(request: "Request") -> Response:
            if (refusal := refused(request)) is not None:
                return refusal
            try:
                return JSONResponse(await answer(request))
            except UnknownResourceError as error:
                return JSONResponse({"error": str(error)}, status_code=404)
            except SluiceError as error:  # a port that is in use, say
                return JSONResponse({"error": str(error)}, status_code=409)
            except ValueError as error:  # msgspec's among them
                return JSONResponse({"error": str(error)}, status_code=400)

        return respond

    async def get_cluster(request: "Request") -> object:
        return describe(server)

    async def post_stop(request: "Request") -> object:
        node_id = _node_id(request)
        wanted = msgspec.json.decode(await _body(request) or b"{}", type=_Stop)
        server.stop_broker(node_id, controlled=wanted.controlled)
        return describe_broker(server, node_id)

    async def post_start(request: "Request") -> object:
        node_id = _node_id(request)
        await server.start_broker(node_id)
        return describe_broker(server, node_id)

    async def post_isolate(request: "Request") -> object:
        node_id = _node_id(request)
        server.isolate_broker(node_id)
        return describe_broker(server, node_id)

    async def post_rejoin(request: "Request") -> object:
        node_id = _node_id(request)
        server.rejoin_broker(node_id)
        return describe_broker(server, node_id)

    async def post_leader(request: "Request") -> object:
        topic, index = request.path_params["topic"], _number(request, "index")
        wanted = msgspec.json.decode(await _body(request), type=_Leader)
        if (wanted.node is None) == (wanted.election is None):
            raise ValueError('the body must be {"node": ID}, {"election": "preferred"} or {"election": "unclean"}')
        if wanted.node is not None:
            server.move_leader(topic, index, wanted.node)
        if wanted.election is not None:
            server.elect_leader(topic, index, Election[wanted.election.upper()])
        return describe_partition(server.partition(topic, index))

    posts = {"stop": post_stop, "start": post_start, "isolate": post_isolate, "rejoin": post_rejoin}
    of_brokers = [
        Route(f"/api/v1/brokers/{{node_id}}/{name}", guarded(post), methods=["POST"]) for name, post in posts.items()
    ]
    return [
        Route("/api/v1/cluster", guarded(get_cluster)),
        *of_brokers,
        Route("/api/v1/partitions/{topic}/{index}/leader", guarded(post_leader), methods=["POST"]),
    ]


def describe(server: "ClusterServer") -> dict[str, object]:
    """The cluster: its brokers, and the partitions of its topics."""
    cluster = server.cluster
    return {
        "cluster_id": cluster.cluster_id,
        "controller_id": cluster.controller_id,
        "brokers": [describe_broker(server, node_id) for node_id in server.servers],
        "topics": [
            {"name": topic.name, "partitions": [describe_partition(partition) for partition in topic.partitions]}
            for topic in cluster.topics.values()
        ],
    }


def describe_broker(server: "ClusterServer", node_id: int) -> dict[str, object]:
    """One broker: `fenced` is whether the controller takes it for dead."""
    cluster = server.cluster
    topics = cluster.topics.values()
    return {
        "id": node_id,
        "state": cluster.controller.state(node_id).value,
        "fenced": node_id in cluster.fenced,
        "listeners": {endpoint.name: str(endpoint) for endpoint in server.servers[node_id].endpoints},
        "leads": sum(partition.leader == node_id for topic in topics for partition in topic.partitions),
    }


def describe_partition(partition: Partition) -> dict[str, object]:
    """One partition, as its leader knows it; -1 for no leader."""
    return {
        "index": partition.index,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": partition.replicas,
        "isr": partition.isr,
        "adding": partition.adding,
        "removing": partition.removing,
        "high_watermark": partition.log.high_watermark,
        "log_end_offset": partition.log.log_end_offset,
    }


def _node_id(request: "Request") -> int:
    return _number(request, "node_id")


def _number(request: "Request", name: str) -> int:
    text: str = request.path_params[name]
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(f"{text!r} in the path must be a number")
    return int(text)


async def _body(request: "Request") -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST_BODY:
            raise ValueError(f"the body must have at most {_LARGEST_BODY} bytes")
    return body
