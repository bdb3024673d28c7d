"""Authorization by the access control lists of the cluster (KIP-11, KIP-801).

Follows StandardAuthorizer and its data, and AuthHelper. Requires `authorizer.class.name`.

    1. `super.users` are allowed everything.
    2. An entry applies if its pattern matches the name, its principal is the client's or `User:*`, its host is `*`, the
       client's or a range with it, and its operation is ALL or the requested one. An ALLOW entry also applies if its
       operation implies the requested one (`_IMPLYING`).
    3. A DENY entry that applies denies. Else an ALLOW entry that applies allows.
    4. Else denied, unless no entry's pattern matches the name and `allow.everyone.if.no.acl.found` is set.

Each decision is a line of the log `sluice.broker.authorizer`: denials at INFO, the rest at DEBUG. Unlike in Kafka,
decisions that only filter a response are not logged.
"""

import logging
from collections.abc import Collection, Iterable

from sluice.broker.requests.context import RequestContext
from sluice.config.broker_config import Config

from .acl import (
    CLUSTER_NAME,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Acl,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from .acl_store import Acls
from .cidr import is_in_range

_audit = logging.getLogger("sluice.broker.authorizer")

_ALLOW, _DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
# The operations whose ALLOW entries allow each operation, as bits.
_IMPLYING = [1 << operation | 1 << AclOperation.ALL for operation in AclOperation]
for _other in (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER):
    _IMPLYING[AclOperation.DESCRIBE] |= 1 << _other
_IMPLYING[AclOperation.DESCRIBE_CONFIGS] |= 1 << AclOperation.ALTER_CONFIGS
_SUPER_USER = "SuperUser"
_DEFAULT_ALLOW, _DEFAULT_DENY = "DefaultAllow", "DefaultDeny"
# Kafka's placeholder for a name without entries.
ANY_NAME = "hardcode"

# An entry, or the name of another rule.
_Rule = Acl | str


_SUPPORTED_OPERATIONS = {
    resource_type: tuple(AclOperation[name] for name in names.split())
    for resource_type, names in (
        (ResourceType.TOPIC, "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"),
        (ResourceType.GROUP, "READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS"),
        (ResourceType.CLUSTER, "CREATE ALTER DESCRIBE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE"),
    )
}


class Authorizer:
    def __init__(self, config: Config, acls: Acls | None) -> None:
        """Allow every operation without `acls`. Produce and Fetch check for that before a call, to save it."""
        self._acls = acls
        self._super_users = frozenset(config.text("super.users").split(";"))
        self._allows_without_acls = config.boolean("allow.everyone.if.no.acl.found")

    def authorize(
        self,
        ctx: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        references: int = 1,
        log_allowed: bool = True,
        log_denied: bool = True,
    ) -> bool:
        """Return the decision; the request names the resource `references` times.

        Without `log_denied` a denial is not logged: another permission may suffice, or only the response is filtered.
        """
        if self._acls is None:
            return True
        principal, host = ctx.session.principal, ctx.session.client_host[1:]
        allowed, rule = self.decide(principal, host, operation, resource_type, name)
        level = logging.DEBUG if allowed else logging.INFO
        if (log_allowed if allowed else log_denied) and _audit.isEnabledFor(level):
            based_on = f"MatchingAcl(acl={rule})" if isinstance(rule, Acl) else rule
            line = (
                f"Principal = {principal} is {'Allowed' if allowed else 'Denied'} operation = {operation.name} "
                f"from host = {host} on resource = {resource_type.name.title().replace('_', '')}:LITERAL:{name} "
                f"for request = {ctx.route.api_name} with resourceRefCount = {references} based on rule {based_on}"
            )
            # Clients choose names: a line break in one must not forge a second line.
            _audit.log(level, line if line.isprintable() else ascii(line)[1:-1])
        return allowed

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
        if self._acls is None:
            return ()
        denied: dict[str, None] = ctx.mapping()
        for name, times in ctx.counts(ctx.sliced(names)).items():
            if not self.authorize(ctx, operation, resource_type, name, references=times, log_denied=log_denied):
                denied[name] = None
        return denied

    def have_hidden_topics(self, ctx: RequestContext, groups: list[set[str]]) -> list[bool]:
        """Return whether the client may not describe a topic, for the topics of each group."""
        topics = {topic for group in groups for topic in group}
        hidden = self.filter_denied(ctx, AclOperation.DESCRIBE, ResourceType.TOPIC, topics)
        return [any(topic in hidden for topic in group) for group in groups]

    def authorize_any(self, ctx: RequestContext, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether the client may access any name (AuthorizerUtils.authorizeByResourceType)."""
        may_everything = self.authorize(ctx, operation, resource_type, ANY_NAME, references=0, log_denied=False)
        return may_everything or self.allows_some(
            ctx.session.principal, ctx.session.client_host[1:], operation, resource_type
        )

    def authorized_operations(self, ctx: RequestContext, resource_type: ResourceType, name: str) -> int:
        """Return the bit field of KIP-430."""
        return sum(
            1 << operation
            for operation in _SUPPORTED_OPERATIONS[resource_type]
            if self.authorize(ctx, operation, resource_type, name, log_allowed=False, log_denied=False)
        )

    def authorized_cluster_operations(self, ctx: RequestContext) -> int:
        """Return 0 without permission to describe the cluster."""
        if not self.authorize_cluster(ctx, AclOperation.DESCRIBE):
            return 0
        return self.authorized_operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)

    def decide(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> tuple[bool, _Rule]:
        assert self._acls is not None
        if principal in self._super_users:
            return True, _SUPER_USER
        implying = _IMPLYING[operation]
        allowing: Acl | None = None
        known = False
        for entries in self._acls.on(resource_type, name):
            known = True
            for acl_principal in (principal, WILDCARD_PRINCIPAL):
                for acl in entries.get(acl_principal, ()):
                    if acl.host not in (WILDCARD, host) and not is_in_range(host, acl.host):
                        continue
                    if acl.permission_type is _ALLOW:
                        if implying >> acl.operation & 1:
                            allowing = acl
                    elif acl.operation in (operation, AclOperation.ALL):
                        return False, acl
        if allowing is not None:
            return True, allowing
        if not known and self._allows_without_acls:
            return True, _DEFAULT_ALLOW
        return False, _DEFAULT_DENY

    def allows_some(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Return whether an entry allows all names, or a name or prefix that no DENY entry covers."""
        assert self._acls is not None
        counting = [
            acl
            for acl in self._acls.of(principal, resource_type)
            if (acl.host in (WILDCARD, host) or is_in_range(host, acl.host))
            and acl.operation in (operation, AclOperation.ALL)
        ]
        allowed = {acl[1:3] for acl in counting if acl.permission_type == _ALLOW}
        denied = {acl[1:3] for acl in counting if acl.permission_type == _DENY}
        everything = (WILDCARD, PatternType.LITERAL)
        if everything in denied:
            return False
        return everything in allowed or any(not _is_denied(pattern, denied) for pattern in allowed)


def _is_denied(pattern: tuple[str, PatternType], denied: Collection[tuple[str, PatternType]]) -> bool:
    name = pattern[0]
    return pattern in denied or any((name[:end], PatternType.PREFIXED) in denied for end in range(1, len(name) + 1))
