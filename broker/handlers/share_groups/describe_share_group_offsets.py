"""DescribeShareGroupOffsets, key 90, versions 0-1 (KIP-932). Null topics request all.

Follows KafkaApis.handleDescribeShareGroupOffsetsRequest.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import NamedTuple

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.share.offsets import DescribedTopics
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis import describe_share_group_offsets as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .acknowledgements import access_error

API = served("DescribeShareGroupOffsets", "0-1")

_NO_OFFSET = -1
_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class _Wait(NamedTuple):
    group: api.DescribeShareGroupOffsetsResponseGroup
    topics: list[api.DescribeShareGroupOffsetsRequestTopic] | None


_Described = tuple[_Wait, Callable[[], DescribedTopics]]


def handle(ctx: RequestContext, request: api.DescribeShareGroupOffsetsRequest, broker: Broker) -> Message | Outcome:
    groups: list[api.DescribeShareGroupOffsetsResponseGroup] = []
    waits: list[_Wait] = ctx.array()
    for requested in request.groups:
        group = api.DescribeShareGroupOffsetsResponseGroup(group_id=requested.group_id)
        groups.append(group)
        error = _error(ctx, broker, requested)
        if error:
            group.error_code, ctx.error_code = error, ctx.error_code or error
            group.error_message = error.message if error is not ErrorCode.GROUP_AUTHORIZATION_FAILED else None
        elif requested.topics is None or requested.topics:
            waits.append(_Wait(group, requested.topics))

    def start(done: Callable[[list[_Described]], None]) -> None:
        results: list[_Described] = ctx.array()

        def described(wait: _Wait, build: Callable[[], DescribedTopics]) -> None:
            results.append((wait, build))
            if len(results) == len(waits):
                done(results)

        for wait in waits:
            names = None if wait.topics is None else _visible(ctx, broker, wait.topics)
            broker.groups.share_offsets.describe(wait.group.group_id, names, partial(described, wait), ctx.sliced)
        if not waits:
            done(results)

    def respond(results: list[_Described]) -> Message:
        for wait, build in results:
            wait.group.topics = _authorized(ctx, broker, wait, build())
        return api.DescribeShareGroupOffsetsResponse(groups=groups)

    return respond_when_done(ctx, start, respond)


def _error(ctx: RequestContext, broker: Broker, requested: api.DescribeShareGroupOffsetsRequestGroup) -> ErrorCode:
    if error := access_error(ctx, broker, AclOperation.DESCRIBE, requested.group_id):
        return error
    if requested.topics is None:
        return broker.groups.error(requested.group_id)
    # As in Kafka, an internal error of the persister: no group id, or a topic without partitions or a negative one.
    invalid = [
        one.topic_name for one in requested.topics if not requested.group_id or min(one.partitions, default=-1) < 0
    ]
    visible = set(invalid).intersection(broker.metadata.topics).difference(_hidden(ctx, broker, invalid))
    return ErrorCode.UNKNOWN_SERVER_ERROR if visible else ErrorCode.NONE


def _visible(
    ctx: RequestContext, broker: Broker, topics: list[api.DescribeShareGroupOffsetsRequestTopic]
) -> dict[str, dict[int, None]]:
    hidden = _hidden(ctx, broker, (topic.topic_name for topic in topics))
    visible: dict[str, dict[int, None]] = ctx.mapping()
    for topic in topics:
        if topic.topic_name not in hidden:
            visible.setdefault(topic.topic_name, {}).update(dict.fromkeys(topic.partitions))
    return visible


def _authorized(ctx: RequestContext, broker: Broker, wait: _Wait, found: DescribedTopics) -> DescribedTopics:
    """Leave out topics that the client must not see, or return an error for those that it requested."""
    hidden = _hidden(ctx, broker, (topic.topic_name for topic in wait.topics or found))
    if not hidden:
        return found
    if wait.topics is None:
        return [topic for topic in ctx.sliced(found) if topic.topic_name not in hidden]
    denied = [
        api.DescribeShareGroupOffsetsResponseTopic(
            topic_name=topic.topic_name,
            partitions=[
                api.DescribeShareGroupOffsetsResponsePartition(
                    partition_index=index, start_offset=_NO_OFFSET, error_code=_DENIED, error_message=_DENIED.message
                )
                for index in topic.partitions
            ],
        )
        for topic in wait.topics
        if topic.topic_name in hidden
    ]
    return found + denied


def _hidden(ctx: RequestContext, broker: Broker, names: Iterable[str]) -> Collection[str]:
    return broker.auth.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
