"""DescribeQuorum, key 55, versions 0-2 (KIP-595).

Follows KafkaRaftClient.handleDescribeQuorumRequest. Different on purpose: the first broker is described as the only
controller, all other live brokers as observers without a delay. Without a data directory, the log is described as a
single no-op record.
"""

from itertools import islice

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import METADATA_TOPIC
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import describe_quorum as api
from sluice.protocol.errors import ErrorCode

API = served("DescribeQuorum", "0-2", forwarded=True)

_LEADER_EPOCH = 1  # the controller never moves


def handle(ctx: RequestContext, request: api.DescribeQuorumRequest, broker: Broker) -> api.DescribeQuorumResponse:
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.DESCRIBE)) is not None:
        ctx.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return api.DescribeQuorumResponse(error_code=ctx.error_code, error_message=denial)
    asked = ((topic, one) for topic in request.topics for one in topic.partitions)
    first_two = [(topic.topic_name, one.partition_index) for topic, one in islice(asked, 2)]
    if first_two == [(METADATA_TOPIC, 0)]:
        return _quorum(ctx, broker)
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ctx.error_code = unknown if first_two else ErrorCode.NONE
    return api.DescribeQuorumResponse(
        topics=[
            api.ResponseTopicData(
                topic_name=topic.topic_name,
                partitions=[
                    api.ResponsePartitionData(
                        partition_index=partition.partition_index, error_code=unknown, error_message=unknown.message
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _quorum(ctx: RequestContext, broker: Broker) -> api.DescribeQuorumResponse:
    cluster = broker.cluster
    leader_id, end_offset = cluster.quorum_leader_id, cluster.metadata_end_offset
    replicas = {
        node_id: api.ReplicaState(
            replica_id=node_id,
            log_end_offset=end_offset,
            last_fetch_timestamp=ctx.now_ms,
            last_caught_up_timestamp=ctx.now_ms,
        )
        for node_id in sorted({leader_id, *(node.node_id for node in broker.metadata.live_brokers)})
    }
    partition = api.ResponsePartitionData(
        leader_id=leader_id,
        leader_epoch=_LEADER_EPOCH,
        high_watermark=end_offset,
        current_voters=[replicas.pop(leader_id)],
        observers=list(replicas.values()),
    )
    at = ctx.session.endpoint_of(cluster.brokers[leader_id])
    return api.DescribeQuorumResponse(
        topics=[api.ResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        nodes=[api.Node(node_id=leader_id, listeners=[api.Listener(name=at.name, host=at.host, port=at.port)])],
    )
