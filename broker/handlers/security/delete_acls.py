"""DeleteAcls, key 31, versions 0-3 (KIP-140). In v0, patterns are LITERAL.

Follows AclApis.handleDeleteAcls and AclControlManager.deleteAcls.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import Acl, AclFilter, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.broker.security.acl.acl_store import MAX_PER_REQUEST
from sluice.protocol.apis import delete_acls as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .describe_acls import filter_of

API = served("DeleteAcls", "0-3", forwarded=True)

_TOO_MANY = f"Cannot remove more than {MAX_PER_REQUEST} acls in a single delete operation."


def handle(ctx: RequestContext, request: api.DeleteAclsRequest, broker: Broker) -> Message:
    filters = ctx.array(filter_of(requested) for requested in request.filters)
    if broker.authorizer is None:
        return failed(ctx, request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    acls = broker.cluster.acls
    found = ctx.array(acls.matching(requested) if _problem(requested) is None else [] for requested in filters)
    removed = dict.fromkeys(acl for matching in found for acl in matching)
    if len(removed) > MAX_PER_REQUEST:
        return failed(ctx, request, ErrorCode.INVALID_REQUEST, _TOO_MANY)
    if code := acls.delete(removed):
        return failed(ctx, request, code, code.message)
    return api.DeleteAclsResponse(
        filter_results=[
            _result(ctx, _problem(requested), matching) for requested, matching in zip(filters, found, strict=True)
        ]
    )


def _problem(requested: AclFilter) -> str | None:
    if requested.resource_type == ResourceType.UNKNOWN or requested.pattern_type == PatternType.UNKNOWN:
        return "Unknown patternFilter."
    if requested.operation == AclOperation.UNKNOWN or requested.permission_type == AclPermissionType.UNKNOWN:
        return "Unknown entryFilter."
    return None


def _result(ctx: RequestContext, problem: str | None, matching: list[Acl]) -> api.DeleteAclsFilterResult:
    if problem is not None:
        ctx.error_code = ctx.error_code or ErrorCode.INVALID_REQUEST
        return api.DeleteAclsFilterResult(error_code=ErrorCode.INVALID_REQUEST, error_message=problem)
    return api.DeleteAclsFilterResult(
        error_message=None,
        matching_acls=[
            api.DeleteAclsMatchingAcl(
                error_message=None,
                resource_type=acl.resource_type,
                resource_name=acl.resource_name,
                pattern_type=acl.pattern_type,
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission_type,
            )
            for acl in matching
        ],
    )
