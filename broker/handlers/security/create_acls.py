"""CreateAcls, key 30, versions 0-3 (KIP-140). Existing entries are no error.

Follows AclApis.handleCreateAcls and AclControlManager.createAcls, with the same order and messages of checks.
"""

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.resource import ApiError
from sluice.broker.metadata.features import METADATA_VERSION, Features
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import CLUSTER_NAME, Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from sluice.broker.security.acl.cidr import cidr_problem
from sluice.protocol.apis.create_acls import AclCreation, AclCreationResult, CreateAclsRequest, CreateAclsResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .describe_acls import expect_known

API = served("CreateAcls", "0-3", forwarded=True)

_RANGES_SINCE = 32  # metadata.version 4.4-IV1; releases before 4.4 validate no host
_TOO_MANY = "Unable to perform excessively large batch operation."


def handle(ctx: RequestContext, request: CreateAclsRequest, broker: Broker) -> Message:
    creations = request.creations
    for requested in creations:
        expect_known(
            requested.resource_type, requested.resource_pattern_type, requested.operation, requested.permission_type
        )
    if broker.authorizer is None:
        return failed(ctx, request, ErrorCode.SECURITY_DISABLED, "No Authorizer is configured.")
    if (denial := broker.auth.cluster_denial(ctx, AclOperation.ALTER)) is not None:
        return failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, denial)
    acls = ctx.array(_acl(requested) for requested in creations)
    if any(_is_filter(acl) for acl in acls):
        return failed(ctx, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    results = [_result(ctx, _problem(acl, broker.features)) for acl in acls]
    valid = ctx.array((acl, result) for acl, result in zip(acls, results, strict=True) if not result.error_code)
    code = broker.cluster.acls.create(acl for acl, _ in valid)
    if code:
        ctx.error_code = ctx.error_code or code
        for _, result in valid:
            result.error_code = code
            result.error_message = _TOO_MANY if code == ErrorCode.POLICY_VIOLATION else code.message
    return CreateAclsResponse(results=results)


def _acl(requested: AclCreation) -> Acl:
    return Acl(
        ResourceType(requested.resource_type),
        requested.resource_name,
        PatternType(requested.resource_pattern_type),
        requested.principal,
        requested.host,
        AclOperation(requested.operation),
        AclPermissionType(requested.permission_type),
    )


def _is_filter(acl: Acl) -> bool:
    # Only filters may have ANY or MATCH; as in Kafka, the whole request fails.
    return (
        acl.resource_type == ResourceType.ANY
        or acl.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or acl.operation == AclOperation.ANY
        or acl.permission_type == AclPermissionType.ANY
    )


def _problem(acl: Acl, features: Features) -> ApiError | None:
    problems = (
        (
            acl.resource_type == ResourceType.CLUSTER and acl.resource_name != CLUSTER_NAME,
            f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}",
        ),
        (not acl.resource_name, "Invalid empty resource name"),
        (acl.resource_type == ResourceType.UNKNOWN, "Invalid resourceType UNKNOWN"),
        (acl.pattern_type == PatternType.UNKNOWN, "Invalid patternType UNKNOWN"),
        (acl.operation == AclOperation.UNKNOWN, "Invalid operation UNKNOWN"),
        (acl.permission_type == AclPermissionType.UNKNOWN, "Invalid permissionType UNKNOWN"),
        (
            ":" not in acl.principal,
            f"Could not parse principal from `{acl.principal}` "
            "(no colon is present separating the principal type from the principal name)",
        ),
        (not acl.host, "Host pattern cannot be null or empty"),
    )
    message = next((message for is_wrong, message in problems if is_wrong), None)
    if message is None and "/" in acl.host and features.max_level(METADATA_VERSION) >= _RANGES_SINCE:
        if features.level(METADATA_VERSION) < _RANGES_SINCE:
            return ApiError(
                ErrorCode.UNSUPPORTED_VERSION,
                "CIDR-based ACL host patterns require metadata version 4.4-IV1 or higher.",
            )
        problem = cidr_problem(acl.host)
        message = None if problem is None else f"Invalid CIDR notation '{acl.host}': {problem}"
    return None if message is None else ApiError(ErrorCode.INVALID_REQUEST, message)


def _result(ctx: RequestContext, problem: ApiError | None) -> AclCreationResult:
    if problem is None:
        return AclCreationResult()
    ctx.error_code = ctx.error_code or problem.code
    return AclCreationResult(error_code=problem.code, error_message=problem.message)
