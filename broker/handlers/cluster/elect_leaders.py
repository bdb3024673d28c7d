"""ElectLeaders, key 43, versions 0-2. Follows ReplicationControlManager.electLeaders."""

from sluice.broker.broker import Broker
from sluice.broker.controller.elections import Election
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import expired, failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import elect_leaders as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("ElectLeaders", "0-2", forwarded=True)

_ELECTIONS = {election.value: election for election in (Election.PREFERRED, Election.UNCLEAN)}


def handle(ctx: RequestContext, request: api.ElectLeadersRequest, broker: Broker) -> Message:
    """For all topics (null), omit partitions that need no election."""
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    if request.topic_partitions is not None and not request.topic_partitions:
        return api.ElectLeadersResponse()
    if request.timeout_ms <= 0:
        return expired(ctx, request)
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        return failed(ctx, request, ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}")
    if request.topic_partitions is None:
        topics = list(broker.metadata.topics.values())
        return api.ElectLeadersResponse(
            replica_election_results=[_elect_all(ctx, broker, topic, election) for topic in topics]
        )
    return api.ElectLeadersResponse(
        replica_election_results=[
            api.ReplicaElectionResult(
                topic=requested.topic,
                partition_result=[
                    _elect(ctx, broker, requested.topic, index, election) for index in requested.partitions
                ],
            )
            for requested in request.topic_partitions
        ]
    )


def _elect_all(ctx: RequestContext, broker: Broker, topic: Topic, election: Election) -> api.ReplicaElectionResult:
    before = ctx.error_code
    results = [_elect(ctx, broker, topic.name, partition.index, election) for partition in topic.partitions]
    needed = [result for result in results if result.error_code != ErrorCode.ELECTION_NOT_NEEDED]
    ctx.error_code = before or next((result.error_code for result in needed if result.error_code), ErrorCode.NONE)
    return api.ReplicaElectionResult(topic=topic.name, partition_result=needed)


def _elect(ctx: RequestContext, broker: Broker, name: str, index: int, election: Election) -> api.PartitionResult:
    cluster = broker.cluster
    topic = broker.metadata.topics.get(name)
    if topic is None:
        return _failed(ctx, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partition(index)
    if partition is None:
        return _failed(ctx, index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    error = cluster.controller.elect_leader(partition, election)
    if error:
        return _failed(ctx, index, error, error.message)
    return api.PartitionResult(partition_id=index, error_message=None)


def _failed(ctx: RequestContext, index: int, code: ErrorCode, message: str) -> api.PartitionResult:
    ctx.error_code = ctx.error_code or code
    return api.PartitionResult(partition_id=index, error_code=code, error_message=message)
