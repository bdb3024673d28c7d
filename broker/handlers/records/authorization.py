"""Authorization of Produce and Fetch. Follows KafkaApis.handleProduceRequest and handleFetchRequest.

A denied topic gets the same error whether or not it exists.
"""

from collections.abc import Collection, Iterator
from itertools import repeat

from sluice.broker.broker import Broker
from sluice.broker.replica.fetch_session import RequestedPartition
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.errors import ErrorCode

_TOPIC_IDS_SINCE = 13  # in Produce


def unwritable_topics(ctx: RequestContext, broker: Broker, request: ProduceRequest) -> Collection[str]:
    if broker.authorizer is None:
        return ()
    names = _names_of_partitions(ctx.version, request, broker)
    return broker.auth.filter_denied(ctx, AclOperation.WRITE, ResourceType.TOPIC, names)


def _names_of_partitions(version: int, request: ProduceRequest, broker: Broker) -> Iterator[str]:
    by_id = broker.metadata.topics_by_id
    for data in request.topic_data:
        if version < _TOPIC_IDS_SINCE:
            name = data.name
        elif (topic := by_id.get(data.topic_id)) is not None:
            name = topic.name
        else:
            continue
        yield from repeat(name, len(data.partition_data))


def deny_unreadable(
    ctx: RequestContext, broker: Broker, requested: Collection[RequestedPartition], *, for_follower: bool
) -> bool:
    """Deny the partitions that the client must not read; return whether there are any."""
    if for_follower:
        denied: Collection[str] = ()
        if broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION):
            return False
    else:
        names = (name for name in map(_name, requested) if name is not None)
        denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, names)
        if not denied:
            return False
    found = False
    for item in ctx.sliced(requested):
        if for_follower or _name(item) in denied:
            item.partition = None
            item.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            found = True
    return found


def _name(item: RequestedPartition) -> str | None:
    return item.topic if isinstance(item.topic, str) else item.name
