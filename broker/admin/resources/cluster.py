"""`/api/v1/cluster`, `/api/v1/brokers` and `/api/v1/partitions`: cluster state, stops, isolation and leaders."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from sluice.broker.admin.operation import AdminContext, Nothing, Operation, RefusedError
from sluice.broker.controller.elections import Election
from sluice.broker.metadata.topic import Partition
from sluice.broker.server.cluster_server import ClusterServer
from sluice.text.typed_decoding import ACCEPTED

_NodeId = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a node id", extra=ACCEPTED)]
_Index = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a partition index", extra=ACCEPTED)]


class BrokerParams(Struct, forbid_unknown_fields=True):
    node_id: _NodeId


class PartitionParams(Struct, forbid_unknown_fields=True):
    topic: str
    index: _Index


class Stop(Struct, forbid_unknown_fields=True):
    """How to stop. If `controlled`, the broker gives up its leaderships first; else it stops as if killed."""

    controlled: bool = True


class Leader(Struct, forbid_unknown_fields=True):
    """The new leader (`node`), or how to elect one (`election`): set exactly one."""

    node: _NodeId | None = None
    election: Literal["preferred", "unclean"] | None = None


class UpstreamShown(Struct):
    """The broker behind a broker of a proxy; `reachable` is whether the last connection to it was made."""

    address: str
    reachable: bool


class BrokerShown(Struct):
    """One broker.

    fenced: whether the controller considers it dead
    leads: number of partitions it leads; absent at a proxy
    upstream: at a proxy, the broker behind it
    """

    id: int
    state: Literal["running", "stopped", "isolated"]
    fenced: bool
    listeners: dict[str, str]
    leads: int | UnsetType = UNSET
    upstream: UpstreamShown | UnsetType = UNSET


class PartitionShown(Struct):
    """One partition; `leader` is -1 if there is none."""

    index: int
    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]
    adding: list[int]
    removing: list[int]
    high_watermark: int
    log_end_offset: int


class TopicShown(Struct):
    name: str
    partitions: list[PartitionShown]


class ClusterShown(Struct):
    """The cluster: its brokers, and the partitions of its topics.

    topics: absent at a proxy, whose topics are those of the cluster behind it
    upstream: at a proxy, the bootstrap servers of the cluster behind it
    """

    cluster_id: str
    controller_id: int
    brokers: list[BrokerShown]
    topics: list[TopicShown] | UnsetType = UNSET
    upstream: str | UnsetType = UNSET


async def _get_cluster(context: AdminContext, params: Nothing, body: Nothing) -> ClusterShown:
    return describe(context.server)


async def _stop(context: AdminContext, params: BrokerParams, body: Stop) -> BrokerShown:
    context.server.stop_broker(params.node_id, controlled=body.controlled)
    return describe_broker(context.server, params.node_id)


async def _start(context: AdminContext, params: BrokerParams, body: Nothing) -> BrokerShown:
    await context.server.start_broker(params.node_id)
    return describe_broker(context.server, params.node_id)


async def _isolate(context: AdminContext, params: BrokerParams, body: Nothing) -> BrokerShown:
    context.server.isolate_broker(params.node_id)
    return describe_broker(context.server, params.node_id)


async def _rejoin(context: AdminContext, params: BrokerParams, body: Nothing) -> BrokerShown:
    context.server.rejoin_broker(params.node_id)
    return describe_broker(context.server, params.node_id)


async def _lead(context: AdminContext, params: PartitionParams, body: Leader) -> PartitionShown:
    if (body.node is None) == (body.election is None):
        words = 'expected the body {"node": ID}, {"election": "preferred"} or {"election": "unclean"}'
        raise RefusedError(400, words)
    if body.node is not None:
        context.server.move_leader(params.topic, params.index, body.node)
    if body.election is not None:
        context.server.elect_leader(params.topic, params.index, Election[body.election.upper()])
    return describe_partition(context.server.partition(params.topic, params.index))


def describe(server: ClusterServer) -> ClusterShown:
    cluster = server.cluster
    brokers = [describe_broker(server, node_id) for node_id in server.servers]
    if (behind := server.upstream_cluster_state()) is not None:
        return ClusterShown(cluster.cluster_id, behind.controller_id, brokers, upstream=behind.bootstrap)
    return ClusterShown(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=brokers,
        topics=[
            TopicShown(topic.name, [describe_partition(partition) for partition in topic.partitions])
            for topic in cluster.topics.values()
        ],
    )


def describe_broker(server: ClusterServer, node_id: int) -> BrokerShown:
    cluster = server.cluster
    shown = BrokerShown(
        id=node_id,
        state=cluster.controller.state(node_id).value,
        fenced=node_id in cluster.fenced,
        listeners={endpoint.name: str(endpoint) for endpoint in server.servers[node_id].endpoints},
    )
    if (behind := server.upstream_state(node_id)) is not None:
        shown.upstream = UpstreamShown(behind.address, behind.is_reachable)
    else:
        topics = cluster.topics.values()
        shown.leads = sum(partition.leader == node_id for topic in topics for partition in topic.partitions)
    return shown


def describe_partition(partition: Partition) -> PartitionShown:
    return PartitionShown(
        index=partition.index,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        replicas=list(partition.replicas),
        isr=list(partition.isr),
        adding=list(partition.adding),
        removing=list(partition.removing),
        high_watermark=partition.log.high_watermark,
        log_end_offset=partition.log.log_end_offset,
    )


_BROKER, _PARTITION = "/api/v1/brokers/{node_id}", "/api/v1/partitions/{topic}/{index}"
_GONE = (404, 409)

# fmt: off
# one operation per row
OPERATIONS = (
    Operation.of("GET", "/api/v1/cluster", "Return the brokers, topics and partition leaders.", _get_cluster),
    Operation.of("POST", f"{_BROKER}/stop", "Stop a broker.", _stop, errors=_GONE),
    Operation.of("POST", f"{_BROKER}/start", "Start a stopped broker on its former addresses.", _start, errors=_GONE),
    Operation.of("POST", f"{_BROKER}/isolate", "Cut a broker off from the controller and the other brokers.", _isolate,
                 errors=_GONE),
    Operation.of("POST", f"{_BROKER}/rejoin", "End a broker's isolation.", _rejoin, errors=_GONE),
    Operation.of("POST", f"{_PARTITION}/leader", "Move the leader of a partition, or elect one.", _lead, errors=_GONE),
)
# fmt: on
