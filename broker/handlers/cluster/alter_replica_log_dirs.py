"""AlterReplicaLogDirs, key 34, versions 0-2 (KIP-113): replicas are to be in other directories of this broker.

Follows ReplicaManager.alterReplicaLogDirs. There is one directory, in which every replica is already; so what is to be
there needs nothing done, and anywhere else there is nothing.
"""

from itertools import groupby
from typing import TYPE_CHECKING

from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from sluice.protocol.errors import ErrorCode

from .describe_log_dirs import LOG_DIR

if TYPE_CHECKING:
    from sluice.broker.handlers.services import ClusterServices

API = served("AlterReplicaLogDirs", "0-2")

# While a replica moves, its new directory is called "<topic>-<partition>.<32 digits>-future"; file names end at 255.
_MAX_NAME_CHARS = 255 - len(".-future") - 32


def handle(
    ctx: RequestContext, request: AlterReplicaLogDirsRequest, broker: "ClusterServices"
) -> AlterReplicaLogDirsResponse:
    """One error code for each partition; of one that is to be in several directories the last counts."""
    requested = {
        (topic.name, index): directory.path
        for directory in request.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    may = broker.auth.authorize_cluster(ctx, AclOperation.ALTER)
    codes = {
        partition: _move(ctx, broker, *partition, path) if may else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        for partition, path in requested.items()
    }
    ctx.error_code = next((code for code in codes.values() if code), ErrorCode.NONE)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=codes[name, index])
                    for _, index in partitions
                ],
            )
            for name, partitions in groupby(sorted(codes), key=lambda partition: partition[0])
        ]
    )


def _move(ctx: RequestContext, broker: "ClusterServices", name: str, index: int, path: str) -> ErrorCode:
    if len(f"{name}-{index}") > _MAX_NAME_CHARS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != LOG_DIR:
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = broker.metadata.partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.node_id in partition.replicas else ErrorCode.REPLICA_NOT_AVAILABLE
