"""`/api/v1/cluster`, `/api/v1/brokers` and `/api/v1/partitions` of the admin port: who leads what, and making brokers
stop, start, be cut off and come back.
"""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from sluice.broker.admin.operation import AdminContext, Nothing, Operation, RefusedError
from sluice.broker.controller.elections import Election
from sluice.broker.metadata.topic import Partition
from sluice.broker.server.cluster_server import ClusterServer
from sluice.text.typed_decoding import ACCEPTED

_NodeId = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a node id", extra=ACCEPTED)]
_Index = Annotated[int, Meta(ge=0, le=2**31 - 1, description="a number of a partition", extra=ACCEPTED)]


class BrokerParams(Struct, forbid_unknown_fields=True):
    """Which broker."""

    node_id: _NodeId


class PartitionParams(Struct, forbid_unknown_fields=True):
    """Which partition."""

    topic: str
    index: _Index


class Stop(Struct, forbid_unknown_fields=True):
    """How a broker stops: `controlled`, it gives up what it leads first; else it is gone as if it was killed."""

    controlled: bool = True


class Leader(Struct, forbid_unknown_fields=True):
    """Who is to lead (`node`), or how that is to be found out (`election`): one of the two."""

    node: _NodeId | None = None
    election: Literal["preferred", "unclean"] | None = None


class BrokerShown(Struct):
    """One broker: `fenced` is whether the controller takes it for dead."""

    id: int
    state: Literal["running", "stopped", "isolated"]
    fenced: bool
    listeners: dict[str, str]
    leads: int


class PartitionShown(Struct):
    """One partition, as its leader knows it; -1 for no leader."""

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
    """A topic and its partitions."""

    name: str
    partitions: list[PartitionShown]


class ClusterShown(Struct):
    """The cluster: its brokers, and the partitions of its topics."""

    cluster_id: str
    controller_id: int
    brokers: list[BrokerShown]
    topics: list[TopicShown]


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
        words = 'the body must be {"node": ID}, {"election": "preferred"} or {"election": "unclean"}'
        raise RefusedError(400, words)
    if body.node is not None:
        context.server.move_leader(params.topic, params.index, body.node)
    if body.election is not None:
        context.server.elect_leader(params.topic, params.index, Election[body.election.upper()])
    return describe_partition(context.server.partition(params.topic, params.index))


def describe(server: ClusterServer) -> ClusterShown:
    """The cluster as it is now."""
    cluster = server.cluster
    return ClusterShown(
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        brokers=[describe_broker(server, node_id) for node_id in server.servers],
        topics=[
            TopicShown(topic.name, [describe_partition(partition) for partition in topic.partitions])
            for topic in cluster.topics.values()
        ],
    )


def describe_broker(server: ClusterServer, node_id: int) -> BrokerShown:
    """One broker."""
    cluster = server.cluster
    topics = cluster.topics.values()
    return BrokerShown(
        id=node_id,
        state=cluster.controller.state(node_id).value,
        fenced=node_id in cluster.fenced,
        listeners={endpoint.name: str(endpoint) for endpoint in server.servers[node_id].endpoints},
        leads=sum(partition.leader == node_id for topic in topics for partition in topic.partitions),
    )


def describe_partition(partition: Partition) -> PartitionShown:
    """One partition."""
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
# A row of a table is read across, not down.
OPERATIONS = (
    Operation.of("GET", "/api/v1/cluster", "The brokers, and who leads which partition.", _get_cluster,
                 params=Nothing, body=Nothing, answer=ClusterShown),
    Operation.of("POST", f"{_BROKER}/stop", "Stops a broker.", _stop,
                 params=BrokerParams, body=Stop, answer=BrokerShown, errors=_GONE),
    Operation.of("POST", f"{_BROKER}/start", "Starts a broker that was stopped, where it was.", _start,
                 params=BrokerParams, body=Nothing, answer=BrokerShown, errors=_GONE),
    Operation.of("POST", f"{_BROKER}/isolate", "Cuts a broker off from controller and other brokers.", _isolate,
                 params=BrokerParams, body=Nothing, answer=BrokerShown, errors=_GONE),
    Operation.of("POST", f"{_BROKER}/rejoin", "Ends that.", _rejoin,
                 params=BrokerParams, body=Nothing, answer=BrokerShown, errors=_GONE),
    Operation.of("POST", f"{_PARTITION}/leader", "Moves the leader of a partition, or has one elected.", _lead,
                 params=PartitionParams, body=Leader, answer=PartitionShown, errors=_GONE),
)
# fmt: on
