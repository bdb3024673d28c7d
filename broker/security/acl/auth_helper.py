"""What the client that asks may do: the questions that handlers put to the authorizer, as Kafka's AuthHelper does.

Where there is none everybody may do everything, and the question costs a call; Produce and Fetch do not even make that,
but look for themselves whether there is one.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from sluice.broker.requests.context import RequestContext

from .acl import CLUSTER_NAME, AclOperation, ResourceType

# The operations that KIP-430's bit fields tell of (AclEntry.supportedOperations).
_TOLD = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
}


def allowed(
    ctx: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str, *, log_denied: bool = True
) -> bool:
    """Whether the client may do it to this resource. `log_denied`: whether a refusal is worth a line of the audit log;
    it is not where another permission will do as well, or only what is shown depends on it.
    """
    authorizer = ctx.broker.authorizer
    return authorizer is None or authorizer.authorize(ctx, operation, resource_type, name, log_denied=log_denied)


def allowed_on_cluster(ctx: RequestContext, operation: AclOperation, *, log_denied: bool = True) -> bool:
    """Whether the client may do it to the cluster."""
    return allowed(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME, log_denied=log_denied)


def refusal_on_cluster(ctx: RequestContext, operation: AclOperation) -> str | None:
    """Why the client must not do it to the cluster, in words that go with CLUSTER_AUTHORIZATION_FAILED; None if it may.
    They are Kafka's, which prints all of the request where here is its name.
    """
    if allowed_on_cluster(ctx, operation):
        return None
    return f"Request {ctx.route.api_name} needs {operation.name} permission."


def refused(
    ctx: RequestContext,
    operation: AclOperation,
    resource_type: ResourceType,
    names: Iterable[str],
    *,
    log_denied: bool = True,
) -> Collection[str]:
    """Those of the resources to which the client must not do it; of each is asked once."""
    authorizer = ctx.broker.authorizer
    if authorizer is None:
        return ()
    return {
        name
        for name, times in Counter(names).items()
        if not authorizer.authorize(ctx, operation, resource_type, name, references=times, log_denied=log_denied)
    }


def allowed_on_any(ctx: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
    """Whether the client may do it to some resource of the type."""
    authorizer = ctx.broker.authorizer
    return authorizer is None or authorizer.authorize_by_resource_type(ctx, operation, resource_type)


def operations(ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
    """All that the client may do to a resource, as the bit field of KIP-430."""
    authorizer = ctx.broker.authorizer
    return sum(
        1 << operation
        for operation in _TOLD[resource_type]
        if authorizer is None
        or authorizer.authorize(ctx, operation, resource_type, name, log_allowed=False, log_denied=False)
    )


def operations_on_cluster(ctx: RequestContext) -> int:
    """All that the client may do to the cluster; nothing for one that may not even describe it."""
    if not allowed_on_cluster(ctx, AclOperation.DESCRIBE):
        return 0
    return operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)
