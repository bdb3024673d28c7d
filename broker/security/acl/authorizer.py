"""Whether somebody may do something to a resource, by the access control lists of the cluster (KIP-11, KIP-801).

Follows StandardAuthorizer and its data. There is one where `authorizer.class.name` is set, and none otherwise:

    1. `super.users` may do everything.
    2. An entry counts whose pattern applies to the resource's name, whose principal is the client's or `User:*`, whose
       host is the client's address or `*`, and whose operation is ALL or the one in question. An ALLOW entry for
       another operation counts too, where that implies it: see `_IMPLYING`. A DENY entry implies nothing.
    3. One DENY that counts: no. Else one ALLOW that counts: yes.
    4. Else no; but if no entry of any kind has a pattern that applies to the name, `allow.everyone.if.no.acl.found`.

Every answer is a line of the audit log, `sluice.broker.authorizer`: refusals at INFO, what is allowed at DEBUG. Answers
that only choose what a client is shown are not logged; Kafka has them at TRACE.
"""

import logging
from collections.abc import Collection

from sluice.broker.requests.context import RequestContext
from sluice.config.broker_config import Config

from .acl import WILDCARD, WILDCARD_PRINCIPAL, Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from .acl_store import Acls

_audit = logging.getLogger("sluice.broker.authorizer")

_ALLOW, _DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
# For each operation those whose ALLOW entries allow it, as bits.
_IMPLYING = [1 << operation | 1 << AclOperation.ALL for operation in AclOperation]
for _other in (AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER):
    _IMPLYING[AclOperation.DESCRIBE] |= 1 << _other
_IMPLYING[AclOperation.DESCRIBE_CONFIGS] |= 1 << AclOperation.ALTER_CONFIGS
_SUPER_USER = "SuperUser"
_DEFAULT_ALLOW, _DEFAULT_DENY = "DefaultAllow", "DefaultDeny"
# A name that no entry should have: Kafka asks about it to find out who may do everything.
ANY_NAME = "hardcode"

# What decided, as the audit log prints it: an entry, or one of the rules above.
_Rule = Acl | str


class Authorizer:
    """Answers by the entries as they are now."""

    def __init__(self, config: Config, acls: Acls) -> None:
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
        """Whether the client may; `references` is how often its request names the resource."""
        principal, host = ctx.session.principal, ctx.session.client_host[1:]
        allowed, rule = self.decide(principal, host, operation, resource_type, name)
        level = logging.DEBUG if allowed else logging.INFO
        if (log_allowed if allowed else log_denied) and _audit.isEnabledFor(level):
            based_on = f"MatchingAcl(acl={rule})" if isinstance(rule, Acl) else rule
            line = (
                f"Principal = {principal} is {'Allowed' if allowed else 'Denied'} operation = {operation.name} "
                f"from host = {host} on resource = {_camel_case(resource_type.name)}:LITERAL:{name} "
                f"for request = {ctx.route.api_name} with resourceRefCount = {references} based on rule {based_on}"
            )
            # Names are what clients make them: one with a line's end in it must not look like two lines.
            _audit.log(level, line if line.isprintable() else ascii(line)[1:-1])
        return allowed

    def decide(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> tuple[bool, _Rule]:
        """The answer, and what it is based on."""
        if principal in self._super_users:
            return True, _SUPER_USER
        implying = _IMPLYING[operation]
        allowing: Acl | None = None
        known = False
        for entries in self._acls.on(resource_type, name):
            known = True
            for who in (principal, WILDCARD_PRINCIPAL):
                for acl in entries.get(who, ()):
                    if acl.host not in (WILDCARD, host):
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

    def authorize_by_resource_type(
        self, ctx: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the client may do it to some resource of the type (Authorizer.authorizeByResourceType)."""
        may_everything = self.authorize(ctx, operation, resource_type, ANY_NAME, references=0, log_denied=False)
        return may_everything or self.allows_some(
            ctx.session.principal, ctx.session.client_host[1:], operation, resource_type
        )

    def allows_some(self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType) -> bool:
        """Whether an entry allows it on all names, or on one, be that a prefix, which no other entry takes away."""
        counting = [
            acl
            for acl in self._acls.of(principal, resource_type)
            if acl.host in (WILDCARD, host) and acl.operation in (operation, AclOperation.ALL)
        ]
        allowed = {acl[1:3] for acl in counting if acl.permission_type == _ALLOW}  # name and type of their patterns
        denied = {acl[1:3] for acl in counting if acl.permission_type == _DENY}
        everything = (WILDCARD, PatternType.LITERAL)
        if everything in denied:
            return False
        return everything in allowed or any(not _is_taken_away(pattern, denied) for pattern in allowed)


def _is_taken_away(pattern: tuple[str, PatternType], denied: Collection[tuple[str, PatternType]]) -> bool:
    """Whether all that a pattern applies to is denied by one other: itself, or a prefix of its name."""
    name = pattern[0]
    return pattern in denied or any((name[:end], PatternType.PREFIXED) in denied for end in range(1, len(name) + 1))


def _camel_case(name: str) -> str:
    return name.title().replace("_", "")
