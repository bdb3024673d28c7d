"""What DescribeGroups and the Describe APIs of consumer, share and Streams groups have in common (KafkaApis)."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

from sluice.broker.broker import Broker
from sluice.broker.coordinator.common.coordinator_log import partition_for
from sluice.broker.coordinator.group.group import Group
from sluice.broker.handlers.java_hash_map import in_hash_map_order, topic_partition_hash
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.errors import ErrorCode

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


class _Request(Protocol):
    @property
    def group_ids(self) -> list[str]: ...
    @property
    def include_authorized_operations(self) -> bool: ...


class _DescribedGroup(Protocol):
    group_id: str
    error_code: int
    authorized_operations: int


G = TypeVar("G", bound=Group)
D = TypeVar("D", bound=_DescribedGroup)


class Kind(NamedTuple):
    name: str
    is_served: bool
    hidden: str  # the message for a group with topics that the client may not describe
    has_messages: bool = False  # whether errors of the coordinator have one


def describe_groups(
    ctx: RequestContext,
    broker: Broker,
    request: _Request,
    kind: Kind,
    group_class: type[G],
    described_class: Callable[..., D],
    describe: Callable[[G], D],
    topics_of: Callable[[D], set[str]],
) -> list[D]:
    def failed(group_id: str, error: ErrorCode, message: str | None = None) -> D:
        return described_class(group_id=group_id, error_code=error, error_message=message)

    def described(group_id: str) -> D:
        error = broker.groups.error(group_id)
        if error:
            return failed(group_id, error, error.message if kind.has_messages else None)
        group = broker.groups.groups.get(group_id)
        if isinstance(group, group_class):
            return describe(group)
        problem = "not found" if group is None else f"is not a {kind.name} group"
        return failed(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")

    if not kind.is_served:
        ctx.error_code = ErrorCode.UNSUPPORTED_VERSION
        return ctx.array(failed(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in request.group_ids)
    allowed, denied = authorize_description(ctx, broker, request.group_ids)
    found = ctx.array(failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED) for group_id in denied)
    found.extend(failed(group_id, ErrorCode.INVALID_GROUP_ID) for group_id in allowed if not group_id)
    found.extend(map(described, by_shard(ctx, broker, ctx.array(filter(None, allowed)))))
    if request.include_authorized_operations:
        for group in found:
            if not group.error_code:
                group.authorized_operations = broker.auth.authorized_operations(ctx, ResourceType.GROUP, group.group_id)
    if broker.authorizer is not None:
        are_hidden = broker.auth.have_hidden_topics(ctx, ctx.array(map(topics_of, found)))
        found = ctx.array(
            failed(group.group_id, ErrorCode.TOPIC_AUTHORIZATION_FAILED, kind.hidden) if is_hidden else group
            for group, is_hidden in zip(found, are_hidden, strict=True)
        )
    ctx.error_code = next((group.error_code for group in found if group.error_code), 0)
    return found


def authorize_description(ctx: RequestContext, broker: Broker, group_ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the groups that the client may describe, and the others, which Kafka returns first."""
    allowed: list[str] = ctx.array()
    denied: list[str] = ctx.array()
    for group_id in group_ids:
        may_describe = broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id)
        (allowed if may_describe else denied).append(group_id)
    return allowed, denied


def by_shard(ctx: RequestContext, broker: Broker, group_ids: list[str]) -> list[str]:
    """Return groups by the partitions of their coordinators, as Kafka does, with its order of the partitions."""
    topic = broker.metadata.topics.get(GROUP_METADATA_TOPIC)
    if topic is None or len(group_ids) == 1:
        return group_ids
    by_partition: dict[int, list[str]] = {}
    for group_id in group_ids:
        by_partition.setdefault(partition_for(topic, group_id).index, []).append(group_id)
    # Kafka adds the partitions by `computeIfAbsent`, which puts each in front of the others in its bucket.
    ordered = in_hash_map_order(reversed(by_partition), partial(topic_partition_hash, topic.name))
    return ctx.array(chain.from_iterable(by_partition[index] for index in ordered))
