"""DeleteTopics, key 20, versions 0-6: by name, from v6 on also by id (KIP-516); v5 says why not, and may be refused for
its rate (KIP-599). Follows Kafka's ControllerApis.deleteTopics. Fetches and produces that wait for a deleted partition
are answered.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Union

from sluice.broker.cluster import Topic
from sluice.broker.context import RequestContext
from sluice.protocol.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

if TYPE_CHECKING:
    from sluice.quotas.mutation_quota import ControllerMutationQuota

_Quota = Union["ControllerMutationQuota", None]

_DISABLED_SINCE = 3
_BY_ID_SINCE = 6
_QUOTA_IS_STRICT_SINCE = 5


def handle(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """One answer a topic; one that is given twice, be it by name and by id, is not deleted."""
    if ctx.version < _BY_ID_SINCE:
        wanted = [DeleteTopicState(name=name) for name in request.topic_names]
    else:
        wanted = request.topics
    if not ctx.broker.deletes_topics:
        # Clients before version 3 know no error of its own for it.
        code = ErrorCode.TOPIC_DELETION_DISABLED if ctx.version >= _DISABLED_SINCE else ErrorCode.INVALID_REQUEST
        return DeleteTopicsResponse(
            responses=[_failed(ctx, state, code, "Topic deletion is disabled.") for state in wanted]
        )
    names = Counter(state.name for state in wanted if state.name is not None and state.topic_id == ZERO_UUID)
    ids = Counter(state.topic_id for state in wanted if state.name is None and state.topic_id != ZERO_UUID)
    responses = [_malformed(ctx, state) for state in wanted if (state.name is None) == (state.topic_id == ZERO_UUID)]
    # A topic that is given by name and by id stays, and has one answer: the name's.
    by_name = {name: topic for name, n in names.items() if n == 1 and (topic := ctx.broker.cluster.topics.get(name))}
    named_ids = {topic.topic_id for topic in by_name.values()}
    quota = ctx.broker.enforcement.mutation_quota(ctx, _QUOTA_IS_STRICT_SINCE)
    responses += [_delete_by_id(ctx, id_, n, quota) for id_, n in ids.items() if n > 1 or id_ not in named_ids]
    responses += [_delete_by_name(ctx, name, n, by_name.get(name), ids, quota) for name, n in names.items()]
    return DeleteTopicsResponse(responses=responses, throttle_time_ms=0 if quota is None else quota.throttle_time_ms())


def _malformed(ctx: RequestContext, state: DeleteTopicState) -> DeletableTopicResult:
    if state.name is None:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")


def _delete_by_id(ctx: RequestContext, topic_id: bytes, times: int, quota: _Quota) -> DeletableTopicResult:
    state = DeleteTopicState(topic_id=topic_id)
    if times > 1:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    topic = ctx.broker.cluster.topics_by_id.get(topic_id)
    if topic is None:
        return _failed(ctx, state, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
    return _delete(ctx, topic, quota)


def _delete_by_name(
    ctx: RequestContext, name: str, times: int, topic: Topic | None, ids: Mapping[bytes, int], quota: _Quota
) -> DeletableTopicResult:
    state = DeleteTopicState(name=name)
    if times > 1:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _failed(ctx, state, unknown, unknown.message)
    if topic.topic_id in ids:
        state.topic_id = topic.topic_id
        message = "The provided topic name maps to an ID that was already supplied."
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, message)
    return _delete(ctx, topic, quota)


def _delete(ctx: RequestContext, topic: Topic, quota: _Quota) -> DeletableTopicResult:
    if quota is not None and not quota.record(len(topic.partitions)):
        state = DeleteTopicState(name=topic.name, topic_id=topic.topic_id)
        return _failed(ctx, state, ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
    ctx.broker.delete_topic(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _failed(ctx: RequestContext, state: DeleteTopicState, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    ctx.error_code = ctx.error_code or code
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code, error_message=message)
