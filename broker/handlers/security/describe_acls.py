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
    requested = AclFilter(
        ResourceType(request.resource_type_filter),
        request.resource_name_filter,
        PatternType(request.pattern_type_filter),
        request.principal_filter,
        request.host_filter,
        AclOperation(request.operation),
        AclPermissionType(request.permission_type),
    )
    expect_known(request.resource_type_filter, request.pattern_type_filter, request.operation, request.permission_type)
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


def expect_known(*numbers: int) -> None:
    """Raise if any number is UNKNOWN (0), on which Kafka closes the connection."""
    if 0 in numbers:
        raise RemoteProtocolError("ACL request: UNKNOWN (0) as type of a resource, pattern, operation or permission")
