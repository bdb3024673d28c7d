"""Acknowledgements of ShareFetch and ShareAcknowledge: checks of the request, and the result of each partition.

Follows KafkaApis.handleAcknowledgements and validateAcknowledgementBatches.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.metadata.features import SHARE_VERSION
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.broker.share.delivery import REJECT, RENEW, AcknowledgementBatch, AcknowledgeResult
from sluice.broker.share.sessions import MemberKey, ShareSession, TopicIdPartition
from sluice.protocol.apis import share_fetch
from sluice.protocol.apis.fetch import NodeEndpoint
from sluice.protocol.errors import ErrorCode

_RENEWS_SINCE = 2
_LONGEST_MEMBER_ID = 36

Batch = share_fetch.AcknowledgementBatch
Results = Mapping[TopicIdPartition, AcknowledgeResult]


def access_error(ctx: RequestContext, broker: Broker, operation: AclOperation, group_id: str) -> ErrorCode:
    if not broker.features.level(SHARE_VERSION):
        return ErrorCode.UNSUPPORTED_VERSION
    is_allowed = broker.auth.authorize(ctx, operation, ResourceType.GROUP, group_id)
    return ErrorCode.NONE if is_allowed else ErrorCode.GROUP_AUTHORIZATION_FAILED


def member_of(
    ctx: RequestContext, broker: Broker, group_id: str | None, member_id: str | None
) -> MemberKey | ErrorCode:
    if group_id is None:
        return ErrorCode.INVALID_REQUEST if broker.features.level(SHARE_VERSION) else ErrorCode.UNSUPPORTED_VERSION
    if error := access_error(ctx, broker, AclOperation.READ, group_id):
        return error
    if not member_id or len(member_id) > _LONGEST_MEMBER_ID:
        return ErrorCode.INVALID_REQUEST
    return MemberKey(group_id, member_id)


def topic_errors(
    ctx: RequestContext, broker: Broker, partitions: Iterable[TopicIdPartition], session: ShareSession | None = None
) -> dict[TopicIdPartition, ErrorCode]:
    """Return the errors of partitions, which a session knows even after their topics are deleted."""
    partitions = ctx.array(partitions)
    by_id = broker.metadata.topics_by_id
    names = [topic.name for topic_id, _ in partitions if (topic := by_id.get(topic_id)) is not None]
    denied = broker.auth.filter_denied(ctx, AclOperation.READ, ResourceType.TOPIC, names)
    errors: dict[TopicIdPartition, ErrorCode] = ctx.mapping()
    for one in partitions:
        topic = by_id.get(one[0])
        is_unknown = topic is None if session is None else one in session.unknown
        if is_unknown:
            errors[one] = ErrorCode.UNKNOWN_TOPIC_ID
        elif topic is not None and topic.name in denied:
            errors[one] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or topic.partition(one[1]) is None:
            errors[one] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return errors


def acknowledge(
    ctx: RequestContext,
    broker: Broker,
    member: MemberKey,
    requested: Mapping[TopicIdPartition, Sequence[Batch]],
    done: Callable[[Results], None],
    *,
    renews: bool,
) -> None:
    largest_type = RENEW if ctx.version >= _RENEWS_SINCE else REJECT
    errors = topic_errors(ctx, broker, requested)
    results: dict[TopicIdPartition, AcknowledgeResult] = ctx.mapping()
    empty: dict[TopicIdPartition, AcknowledgeResult] = ctx.mapping()
    valid: dict[TopicIdPartition, list[AcknowledgementBatch]] = ctx.mapping()
    for one, batches in requested.items():
        error = errors.get(one, ErrorCode.NONE)
        if error is not ErrorCode.UNKNOWN_TOPIC_ID and not _are_valid(batches, largest_type, renews=renews):
            error = ErrorCode.INVALID_REQUEST
        if error:
            results[one] = AcknowledgeResult(error)
        elif not batches:
            empty[one] = AcknowledgeResult(ErrorCode.NONE)
        else:
            valid[one] = [
                AcknowledgementBatch(it.first_offset, it.last_offset, it.acknowledge_types.copy()) for it in batches
            ]
    if not valid:
        done(results)  # without the empty ones, as in Kafka
        return
    results.update(empty)
    missing = ctx.counts(valid)

    def finished(one: TopicIdPartition, result: AcknowledgeResult) -> None:
        results[one] = result
        missing.pop(one, None)
        if not missing:
            done(results)

    for one, converted in valid.items():
        broker.share_partitions.acknowledge(member, one, converted, partial(finished, one))


def _are_valid(batches: Iterable[Batch], largest_type: int, *, renews: bool) -> bool:
    previous_end = -1
    for batch in batches:
        types, count = batch.acknowledge_types, batch.last_offset - batch.first_offset + 1
        if count < 1 or batch.first_offset < previous_end or len(types) not in (1, count):
            return False
        if not types or min(types) < 0 or max(types) > largest_type or (RENEW in types and not renews):
            return False
        previous_end = batch.last_offset
    return True


_HAS_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Leaders:
    def __init__(self, ctx: RequestContext, broker: Broker) -> None:
        self._ctx = ctx
        self._broker = broker
        self.endpoints: dict[int, NodeEndpoint] = {}

    def after(self, topic_id: bytes, index: int, code: int) -> tuple[int, int]:
        metadata = self._broker.metadata
        topic = metadata.topics_by_id.get(topic_id)
        partition = None if topic is None or code not in _HAS_MOVED else topic.partition(index)
        known = None if partition is None else metadata.leadership(partition)
        if known is None:
            return 0, 0
        leader = metadata.leader(known)
        if leader is not None:
            at = self._ctx.session.endpoint_of(leader)
            self.endpoints[leader.node_id] = NodeEndpoint(leader.node_id, at.host, at.port, leader.rack)
        return known.leader, known.leader_epoch
