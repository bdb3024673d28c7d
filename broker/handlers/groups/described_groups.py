"""What ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe have in common (KafkaApis)."""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from sluice.broker.broker import Broker
from sluice.broker.coordinator.group.group import Group
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.errors import ErrorCode


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
        if not kind.is_served:
            return failed(group_id, ErrorCode.UNSUPPORTED_VERSION)
        if not broker.auth.authorize(ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            return failed(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        error = broker.groups.error(group_id) if group_id else ErrorCode.INVALID_GROUP_ID
        if error:
            return failed(group_id, error)
        group = broker.groups.groups.get(group_id)
        if isinstance(group, group_class):
            return describe(group)
        problem = "not found" if group is None else f"is not a {kind.name} group"
        return failed(group_id, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {problem}.")

    found = ctx.array(map(described, request.group_ids))
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
