"""Authorization checks of handlers, as in Kafka's AuthHelper.

Without an authorizer, every operation is allowed. Produce and Fetch check for one before the call, to save it.
"""

from collections import Counter
from collections.abc import Collection, Iterable

from sluice.broker.requests.context import RequestContext

from .acl import CLUSTER_NAME, AclOperation, ResourceType
from .authorizer import Authorizer

_SUPPORTED_OPERATIONS = {
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


class AuthHelper:
    def __init__(self, authorizer: "Authorizer | None") -> None:
        self._authorizer = authorizer

    def authorize(
        self,
        ctx: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        log_denied: bool = True,
    ) -> bool:
        """Return whether an operation is allowed.

        Without `log_denied` a denial is not logged: another permission may suffice, or only the response is filtered.
        """
        authorizer = self._authorizer
        return authorizer is None or authorizer.authorize(ctx, operation, resource_type, name, log_denied=log_denied)

    def authorize_cluster(self, ctx: RequestContext, operation: AclOperation, *, log_denied: bool = True) -> bool:
        return self.authorize(ctx, operation, ResourceType.CLUSTER, CLUSTER_NAME, log_denied=log_denied)

    def cluster_denial(self, ctx: RequestContext, operation: AclOperation) -> str | None:
        """Return the message for CLUSTER_AUTHORIZATION_FAILED; None if authorized.

        The text is Kafka's, with the name of the API where Kafka prints the whole request.
        """
        if self.authorize_cluster(ctx, operation):
            return None
        return f"Request {ctx.route.api_name} needs {operation.name} permission."

    def filter_denied(
        self,
        ctx: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        log_denied: bool = True,
    ) -> Collection[str]:
        authorizer = self._authorizer
        if authorizer is None:
            return ()
        counts = Counter(ctx.sliced(names))
        denied = {
            name
            for name, times in ctx.sliced(counts.items())
            if not authorizer.authorize(ctx, operation, resource_type, name, references=times, log_denied=log_denied)
        }
        ctx.free(counts)
        return denied

    def have_hidden_topics(self, ctx: RequestContext, groups: list[set[str]]) -> list[bool]:
        """Return whether the client may not describe a topic, for the topics of each group, and empty the list."""
        topics = {topic for group in groups for topic in group}
        hidden = self.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics)
        result = [not group.isdisjoint(hidden) for group in groups]
        ctx.free(groups)
        return result

    def authorize_any(self, ctx: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        authorizer = self._authorizer
        return authorizer is None or authorizer.authorize_by_resource_type(ctx, operation, resource_type)

    def authorized_operations(self, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
        """Return the bit field of KIP-430."""
        authorizer = self._authorizer
        return sum(
            1 << operation
            for operation in _SUPPORTED_OPERATIONS[resource_type]
            if authorizer is None
            or authorizer.authorize(ctx, operation, resource_type, name, log_allowed=False, log_denied=False)
        )

    def authorized_cluster_operations(self, ctx: RequestContext) -> int:
        """Return 0 without permission to describe the cluster."""
        if not self.authorize_cluster(ctx, AclOperation.DESCRIBE):
            return 0
        return self.authorized_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)
