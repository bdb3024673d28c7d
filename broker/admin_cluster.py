"""`/api/v1/cluster`, `/api/v1/brokers` and `/api/v1/partitions` of the admin port: who leads what, and making brokers
stop, start, be cut off and come back.
"""

from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.routing import Route

from .admin_requests import body_of, guarded
from .elections import Election
from .topic import Partition

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request
    from starlette.responses import Response

    from .cluster_server import ClusterServer


class _Stop(msgspec.Struct, forbid_unknown_fields=True):
    controlled: bool = True


class _Leader(msgspec.Struct, forbid_unknown_fields=True):
    """Who is to lead, or how that is to be found out."""

    node: int | None = None
    election: Literal["preferred", "unclean"] | None = None


def routes(server: "ClusterServer", refused: "Callable[[Request], Response | None]") -> list[Route]:
    """What the admin port serves of the cluster; `refused` answers who may not ask."""

    async def get_cluster(request: "Request") -> object:
        return describe(server)

    async def post_stop(request: "Request") -> object:
        node_id = _node_id(request)
        wanted = msgspec.json.decode(await body_of(request) or b"{}", type=_Stop)
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
        wanted = msgspec.json.decode(await body_of(request), type=_Leader)
        if (wanted.node is None) == (wanted.election is None):
            raise ValueError('the body must be {"node": ID}, {"election": "preferred"} or {"election": "unclean"}')
        if wanted.node is not None:
            server.move_leader(topic, index, wanted.node)
        if wanted.election is not None:
            server.elect_leader(topic, index, Election[wanted.election.upper()])
        return describe_partition(server.partition(topic, index))

    posts = {"stop": post_stop, "start": post_start, "isolate": post_isolate, "rejoin": post_rejoin}
    of_brokers = [
        Route(f"/api/v1/brokers/{{node_id}}/{name}", guarded(post, refused), methods=["POST"])
        for name, post in posts.items()
    ]
    return [
        Route("/api/v1/cluster", guarded(get_cluster, refused)),
        *of_brokers,
        Route("/api/v1/partitions/{topic}/{index}/leader", guarded(post_leader, refused), methods=["POST"]),
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
