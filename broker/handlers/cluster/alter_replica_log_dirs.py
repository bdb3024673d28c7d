"""AlterReplicaLogDirs, key 34, versions 0-2 (KIP-113). Follows ReplicaManager.alterReplicaLogDirs.

A broker has one log directory, the only one that is accepted.
"""

from collections.abc import Mapping
from itertools import groupby

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import alter_replica_log_dirs as api
from sluice.protocol.errors import ErrorCode

from .describe_log_dirs import log_dir

API = served("AlterReplicaLogDirs", "0-2")

# A moving replica's directory is "<topic>-<partition>.<32 digits>-future"; file names have up to 255 characters.
_MAX_NAME_CHARS = 255 - len(".-future") - 32


def handle(
    ctx: RequestContext, request: api.AlterReplicaLogDirsRequest, broker: Broker
) -> api.AlterReplicaLogDirsResponse:
    if not broker.auth.authorize_cluster(ctx, AclOperation.ALTER):
        return _denied(ctx, request)
    # The last directory for a repeated partition counts.
    requested: dict[tuple[str, int], str] = ctx.mapping()
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                requested[topic.name, index] = directory.path
    codes: dict[tuple[str, int], ErrorCode] = ctx.mapping()
    for partition, path in requested.items():
        codes[partition] = _move(ctx, broker, *partition, path)
    ctx.error_code = next((code for code in codes.values() if code), ErrorCode.NONE)
    return api.AlterReplicaLogDirsResponse(
        results=[
            _result(name, {index: codes[name, index] for _, index in partitions})
            for name, partitions in groupby(ctx.array(sorted(codes)), key=lambda partition: partition[0])
        ]
    )


def _denied(ctx: RequestContext, request: api.AlterReplicaLogDirsRequest) -> api.AlterReplicaLogDirsResponse:
    code = ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    topics = (topic for directory in request.dirs for topic in directory.topics)
    return api.AlterReplicaLogDirsResponse(
        results=[_result(topic.name, dict.fromkeys(topic.partitions, code)) for topic in topics]
    )


def _result(name: str, codes: Mapping[int, ErrorCode]) -> api.AlterReplicaLogDirTopicResult:
    return api.AlterReplicaLogDirTopicResult(
        topic_name=name,
        partitions=[
            api.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
            for index, code in codes.items()
        ],
    )


def _move(ctx: RequestContext, broker: Broker, name: str, index: int, path: str) -> ErrorCode:
    if len(f"{name}-{index}") > _MAX_NAME_CHARS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != log_dir(broker.cluster.logs):
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = broker.metadata.partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.node_id in partition.replicas else ErrorCode.REPLICA_NOT_AVAILABLE
