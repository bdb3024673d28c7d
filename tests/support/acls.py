"""Access control lists for tests: a broker that has some, and who asks."""

from collections.abc import Sequence
from typing import Any

from sluice.broker.security.acl.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import Client, VirtualBroker

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZER_ON = f"authorizer.class.name={STANDARD_AUTHORIZER}"
# Whoever did not authenticate sets tests up.
ANONYMOUS_MAY_ALL = "super.users=User:ANONYMOUS"
ALICE = "User:alice"


def acl(
    operation: AclOperation,
    resource_type: ResourceType = ResourceType.TOPIC,
    name: str = "t",
    *,
    pattern_type: PatternType = PatternType.LITERAL,
    principal: str = ALICE,
    host: str = "*",
    permission_type: AclPermissionType = AclPermissionType.ALLOW,
) -> Acl:
    """An entry; unless told otherwise it allows alice something on topic "t"."""
    return Acl(resource_type, name, pattern_type, principal, host, operation, permission_type)


def in_memory(created: Sequence[tuple[bytes, Acl]], deleted: Sequence[bytes]) -> ErrorCode:
    """Where nothing is durable, entries come and go."""
    return ErrorCode.NONE


def acl_filter(**fields: Any) -> AclFilter:
    """A filter that matches everything but for these fields."""
    everything: dict[str, Any] = {
        "resource_type": ResourceType.ANY,
        "resource_name": None,
        "pattern_type": PatternType.ANY,
        "principal": None,
        "host": None,
        "operation": AclOperation.ANY,
        "permission_type": AclPermissionType.ANY,
    }
    return AclFilter(**(everything | fields))


def secured_broker(*overrides: str) -> VirtualBroker:
    """A broker that asks its authorizer, except for clients that did not authenticate."""
    return VirtualBroker(AUTHORIZER_ON, ANONYMOUS_MAY_ALL, *overrides)


def alice(broker: VirtualBroker) -> Client:
    """A connection of alice, as if she had authenticated."""
    client = broker.client()
    client.connection.ctx.session.user = "alice"
    return client
