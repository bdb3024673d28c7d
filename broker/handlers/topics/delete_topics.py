"""DeleteTopics, key 20, versions 0-6. Follows Kafka's ControllerApis.deleteTopics."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import expired, failed
from sluice.broker.requests.served_api import Charge, served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID
from sluice.quotas.mutation_quota import ControllerMutationQuota

API = served("DeleteTopics", "0-6", charge=Charge.MUTATIONS, forwarded=True)

_Quota = ControllerMutationQuota | None

_DISABLED_SINCE = 3
_BY_ID_SINCE = 6
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def handle(ctx: RequestContext, request: DeleteTopicsRequest, broker: Broker) -> Message:
    if not broker.deletes_topics:
        # Clients before v3 do not support TOPIC_DELETION_DISABLED.
        code = ErrorCode.TOPIC_DELETION_DISABLED if ctx.version >= _DISABLED_SINCE else ErrorCode.INVALID_REQUEST
        return failed(ctx, request, code)
    if ctx.version < _BY_ID_SINCE:
        requested = ctx.array(DeleteTopicState(name=name) for name in request.topic_names)
    else:
        requested = request.topics
    names = ctx.counts(state.name for state in requested if state.name is not None and state.topic_id == ZERO_UUID)
    ids = ctx.counts(state.topic_id for state in requested if state.name is None and state.topic_id != ZERO_UUID)
    names_once = ctx.array(name for name, n in names.items() if n == 1)
    ids_once = ctx.array(id_ for id_, n in ids.items() if n == 1)
    if request.timeout_ms <= 0 and (names_once or ids_once):
        return expired(ctx, request)
    responses = [_malformed(ctx, state) for state in requested if (state.name is None) == (state.topic_id == ZERO_UUID)]
    denied = _denied(ctx, broker, names_once, ids_once)
    # A topic requested by name and by id is not deleted and gets one response, for the name.
    by_name = {name: topic for name in names_once if (topic := broker.metadata.topics.get(name))}
    named_ids = {topic.topic_id for name, topic in by_name.items() if name not in denied.undeletable}
    quota = broker.throttler.mutation_quota(ctx)
    responses += [
        _delete_by_id(ctx, broker, id_, n, denied, quota) for id_, n in ids.items() if n > 1 or id_ not in named_ids
    ]
    responses += [
        _delete_by_name(ctx, broker, name, n, by_name.get(name), ids, denied, quota) for name, n in names.items()
    ]
    return DeleteTopicsResponse(responses=responses, throttle_time_ms=0 if quota is None else quota.throttle_time_ms())


class _Denied(NamedTuple):
    """`hidden`: topics that the client must not see."""

    undeletable: Collection[str]
    hidden: Collection[str]


def _denied(ctx: RequestContext, broker: Broker, names: list[str], ids: list[bytes]) -> _Denied:
    if broker.auth.authorize_cluster(ctx, AclOperation.DELETE, log_denied=False):
        return _Denied((), ())
    found = (broker.metadata.topics_by_id.get(id_) for id_ in ids)
    named = {*names, *(topic.name for topic in found if topic is not None)}
    hidden = broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, named)
    return _Denied(broker.auth.filter_denied(ctx, AclOperation.DELETE, ResourceType.TOPIC, named), hidden)


def _malformed(ctx: RequestContext, state: DeleteTopicState) -> DeletableTopicResult:
    if state.name is None:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
    return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")


def _delete_by_id(
    ctx: RequestContext, broker: Broker, topic_id: bytes, times: int, denied: _Denied, quota: _Quota
) -> DeletableTopicResult:
    state = DeleteTopicState(topic_id=topic_id)
    if times > 1:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
    topic = broker.metadata.topics_by_id.get(topic_id)
    if topic is None:
        return _failed(ctx, state, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
    if topic.name in denied.undeletable:
        state.name = None if topic.name in denied.hidden else topic.name
        return _failed(ctx, state, _DENIED, _DENIED.message)
    return _delete(ctx, broker, topic, quota)


def _delete_by_name(
    ctx: RequestContext,
    broker: Broker,
    name: str,
    times: int,
    topic: Topic | None,
    ids: Mapping[bytes, int],
    denied: _Denied,
    quota: _Quota,
) -> DeletableTopicResult:
    state = DeleteTopicState(name=name)
    if times > 1:
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name in denied.hidden or (topic is not None and name in denied.undeletable):
        return _failed(ctx, state, _DENIED, _DENIED.message)
    if topic is None:
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return _failed(ctx, state, unknown, unknown.message)
    if topic.topic_id in ids:
        state.topic_id = topic.topic_id
        message = "The provided topic name maps to an ID that was already supplied."
        return _failed(ctx, state, ErrorCode.INVALID_REQUEST, message)
    return _delete(ctx, broker, topic, quota)


def _delete(ctx: RequestContext, broker: Broker, topic: Topic, quota: _Quota) -> DeletableTopicResult:
    state = DeleteTopicState(name=topic.name, topic_id=topic.topic_id)
    if quota is not None and not quota.record(len(topic.partitions)):
        return _failed(ctx, state, ErrorCode.THROTTLING_QUOTA_EXCEEDED, None)
    code = broker.delete_topic(topic)
    if code:
        return _failed(ctx, state, code, code.message)
    return DeletableTopicResult(name=topic.name, topic_id=topic.topic_id)


def _failed(ctx: RequestContext, state: DeleteTopicState, code: ErrorCode, message: str | None) -> DeletableTopicResult:
    ctx.error_code = ctx.error_code or code
    return DeletableTopicResult(name=state.name, topic_id=state.topic_id, error_code=code, error_message=message)
