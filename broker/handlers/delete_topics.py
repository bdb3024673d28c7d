"""DeleteTopics, key 20, versions 0-6: by name, from v6 on also by id (KIP-516); v5 says why not. Follows Kafka's
ControllerApis.deleteTopics. Fetches and produces that wait for a deleted partition are answered.
"""

from collections import Counter

from sluice.broker.context import RequestContext
from sluice.protocol.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

_DISABLED_SINCE = 3
_BY_ID_SINCE = 6


def handle(ctx: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """One answer a topic; one that is named twice is not deleted."""
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
    times = Counter((state.name, state.topic_id) for state in wanted)
    return DeleteTopicsResponse(
        responses=[_delete(ctx, state, times[state.name, state.topic_id]) for state in _once(wanted)]
    )


def _once(wanted: list[DeleteTopicState]) -> list[DeleteTopicState]:
    return list({(state.name, state.topic_id): state for state in wanted}.values())


def _delete(ctx: RequestContext, state: DeleteTopicState, times: int) -> DeletableTopicResult:
    cluster = ctx.broker.cluster
    if times > 1:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Duplicate topic name or id.")
    if state.name is not None and state.topic_id != ZERO_UUID:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if state.name is None and state.topic_id == ZERO_UUID:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    if state.name is None:
        topic = cluster.topics_by_id.get(state.topic_id)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = cluster.topics.get(state.name)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic is None:
        return _failed(ctx, state, unknown, unknown.message)
    ctx.broker.delete_topic(topic)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _failed(ctx: RequestContext, state: DeleteTopicState, code: ErrorCode, message: str) -> DeletableTopicResult:
    ctx.error_code = ctx.error_code or code
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code, error_message=message)
