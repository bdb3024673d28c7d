"""ACLs for tests: a broker with an authorizer, and a connection of alice."""

from collections.abc import Sequence
from typing import Any

from sluice.broker.security.acl.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import Client, VirtualBroker

STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
AUTHORIZER_ON = f"authorizer.class.name={STANDARD_AUTHORIZER}"
# Clients without authentication set up the tests.
ANONYMOUS_MAY_ALL = "super.users=User:ANONYMOUS"
ALICE = "User:alice"
# Of DescribeAcls and DeleteAcls.
FILTER_OF_ALL: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


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
    """Return an ACL; by default it allows alice an operation on topic "t"."""
    return Acl(resource_type, name, pattern_type, principal, host, operation, permission_type)


def in_memory(created: Sequence[tuple[bytes, Acl]], deleted: Sequence[bytes]) -> ErrorCode:
    """Store ACLs only in memory, without the metadata log."""
    return ErrorCode.NONE


def acl_filter(**fields: Any) -> AclFilter:
    """Return a filter that matches everything except for these fields."""
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
    """Return a broker with an authorizer, in which clients without authentication are super users."""
    return VirtualBroker(AUTHORIZER_ON, ANONYMOUS_MAY_ALL, *overrides)


def alice(broker: VirtualBroker) -> Client:
    """Open a connection that is authenticated as alice."""
    client = broker.client()
    client.connection.ctx.session.user = "alice"
    return client
