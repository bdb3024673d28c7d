"""DescribeLogDirs, key 35, versions 0-5 (KIP-113).

Follows ReplicaManager.describeLogDirs. There is one directory: `log.dirs` or, without it, memory of
`sluice.log.memory.bytes`. Different on purpose: full memory has no usable bytes but accepts records, as the oldest are
deleted.
"""

from sluice.broker.broker import Broker
from sluice.broker.log.log_manager import LogManager
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import describe_log_dirs as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("DescribeLogDirs", "0-5")

_MEMORY = "memory"


def log_dir(logs: LogManager) -> str:
    return _MEMORY if logs.directory is None else logs.directory.path


def handle(ctx: RequestContext, request: api.DescribeLogDirsRequest, broker: Broker) -> Message:
    if not broker.auth.authorize_cluster(ctx, AclOperation.DESCRIBE):
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    topics = broker.metadata.topics
    requested: dict[str, set[int]] = {}
    if request.topics is None:
        requested = {name: set(range(len(topic.partitions))) for name, topic in topics.items()}
    for item in request.topics or ():
        topic = topics.get(item.topic)
        if topic is not None:  # unknown ones are left out at once, as a dict of millions takes 0.05 s to grow
            indexes = requested.setdefault(topic.name, set())
            indexes.update(index for index in item.partitions if topic.partition(index) is not None)
    described = [_describe(broker.node_id, topics[name], indexes) for name, indexes in ctx.array(requested.items())]
    total_bytes, usable_bytes = _space(broker.cluster.logs)
    return api.DescribeLogDirsResponse(
        results=[
            api.DescribeLogDirsResult(
                log_dir=log_dir(broker.cluster.logs),
                topics=[topic for topic in described if topic.partitions],
                total_bytes=total_bytes,
                usable_bytes=usable_bytes,
            )
        ]
    )


def _space(logs: LogManager) -> tuple[int, int]:
    if logs.directory is not None:
        return logs.directory.space()
    budget = logs.budget
    return budget.limit_bytes, max(0, budget.limit_bytes - budget.used_bytes)


def _describe(node_id: int, topic: Topic, indexes: set[int]) -> api.DescribeLogDirsTopic:
    return api.DescribeLogDirsTopic(
        name=topic.name,
        partitions=[
            api.DescribeLogDirsPartition(partition_index=partition.index, partition_size=partition.log.size_in_bytes)
            for partition in topic.partitions
            if partition.index in indexes and node_id in partition.replicas
        ],
    )
