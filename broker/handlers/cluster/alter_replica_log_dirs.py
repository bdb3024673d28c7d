"""AlterReplicaLogDirs, key 34, versions 0-2 (KIP-113). Follows ReplicaManager.alterReplicaLogDirs.

A broker has one log directory, the only one that is accepted.
"""

from collections.abc import Iterable

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
    requested: dict[str, dict[int, str]] = ctx.mapping()
    for directory in request.dirs:
        for topic in directory.topics:
            paths = requested.get(topic.name)
            if paths is None:
                paths = requested[topic.name] = ctx.mapping()
            for index in topic.partitions:
                paths[index] = directory.path
    results = []
    for name in ctx.array(sorted(requested)):
        paths = requested[name]
        indexes = ctx.array(sorted(paths))
        if indexes:
            moves = ((index, _move(broker, name, index, paths[index])) for index in indexes)
            results.append(_result(ctx, name, moves))
    return api.AlterReplicaLogDirsResponse(results=results)


def _denied(ctx: RequestContext, request: api.AlterReplicaLogDirsRequest) -> api.AlterReplicaLogDirsResponse:
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    topics = (topic for directory in request.dirs for topic in directory.topics)
    return api.AlterReplicaLogDirsResponse(
        results=[_result(ctx, topic.name, ((index, code) for index in topic.partitions)) for topic in topics]
    )


def _result(
    ctx: RequestContext, name: str, codes: Iterable[tuple[int, ErrorCode]]
) -> api.AlterReplicaLogDirTopicResult:
    result = api.AlterReplicaLogDirTopicResult(topic_name=name)
    for index, code in codes:
        ctx.error_code = ctx.error_code or code
        result.partitions.append(api.AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code))
    return result


def _move(broker: Broker, name: str, index: int, path: str) -> ErrorCode:
    if len(f"{name}-{index}") > _MAX_NAME_CHARS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path != log_dir(broker.cluster.logs):
        return ErrorCode.LOG_DIR_NOT_FOUND
    partition = broker.metadata.partition(name, index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.node_id in partition.replicas else ErrorCode.REPLICA_NOT_AVAILABLE
