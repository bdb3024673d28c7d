"""DescribeAcls, key 29, versions 0-3 (KIP-140). In v0, patterns are LITERAL.

Follows AclApis.handleDescribeAcls. Resources and entries are sorted; Kafka's order is undefined.
"""

from itertools import groupby

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.errors import RemoteProtocolError
from sluice.protocol.apis import describe_acls as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("DescribeAcls", "0-3")


def handle(ctx: RequestContext, request: api.DescribeAclsRequest, broker: Broker) -> Message:
    requested = filter_of(request)
    if broker.authorizer is None:
        return failed(ctx, request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.DESCRIBE)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    found = broker.cluster.acls.matching(requested)
    return api.DescribeAclsResponse(
        resources=[
            api.DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    api.AclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission_type,
                    )
                    for acl in acls
                ],
            )
            for (resource_type, name, pattern_type), acls in groupby(found, key=lambda acl: acl[:3])
        ]
    )


def filter_of(given: api.DescribeAclsRequest) -> AclFilter:
    """Raise if a field is UNKNOWN, as `expect_known` does."""
    expect_known(given.resource_type_filter, given.pattern_type_filter, given.operation, given.permission_type)
    return AclFilter(
        ResourceType(given.resource_type_filter),
        given.resource_name_filter,
        PatternType(given.pattern_type_filter),
        given.principal_filter,
        given.host_filter,
        AclOperation(given.operation),
        AclPermissionType(given.permission_type),
    )


def expect_known(*numbers: int) -> None:
    """Raise if any number is UNKNOWN (0), on which Kafka closes the connection."""
    if 0 in numbers:
        raise RemoteProtocolError("ACL request: UNKNOWN (0) as type of a resource, pattern, operation or permission")
