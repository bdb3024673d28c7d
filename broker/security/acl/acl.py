"""Entries of access control lists, and filters for them (KIP-11).

A resource pattern is a literal name, `*` for all, or a prefix (KIP-290). Numbers are those on the wire and in metadata
records; names are Kafka's: AclOperation, AclPermissionType, ResourceType, PatternType, StandardAcl, AclBindingFilter.
"""

from enum import IntEnum
from typing import NamedTuple, Self

WILDCARD = "*"  # every resource (as a literal name) or every host
WILDCARD_PRINCIPAL = "User:*"
CLUSTER_NAME = "kafka-cluster"


class _Number(IntEnum):
    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)  # UNKNOWN


class ResourceType(_Number):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(_Number):
    UNKNOWN = 0
    ANY = 1
    MATCH = 2  # in a filter: all patterns that match the name
    LITERAL = 3
    PREFIXED = 4


class AclOperation(_Number):
    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermissionType(_Number):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class Acl(NamedTuple):
    """One entry. Entries sort by resource; Kafka's own order compares names in reverse."""

    resource_type: ResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str  # "User:alice", "User:*"
    host: str  # "127.0.0.1", "127.0.0.0/8", "*"
    operation: AclOperation
    permission_type: AclPermissionType

    def __str__(self) -> str:
        return (
            f"StandardAcl[resourceType={self.resource_type.name}, resourceName={self.resource_name}, "
            f"patternType={self.pattern_type.name}, principal={self.principal}, host={self.host}, "
            f"operation={self.operation.name}, permissionType={self.permission_type.name}]"
        )


class AclFilter(NamedTuple):
    """A filter for entries; None and ANY match all."""

    resource_type: ResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: AclPermissionType

    def matches(self, acl: Acl) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self._matches_pattern(acl)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self.operation in (AclOperation.ANY, acl.operation)
            and self.permission_type in (AclPermissionType.ANY, acl.permission_type)
        )

    def _matches_pattern(self, acl: Acl) -> bool:
        name = self.resource_name
        if self.pattern_type == PatternType.MATCH and name is not None:
            if acl.pattern_type == PatternType.PREFIXED:
                return name.startswith(acl.resource_name)
            return acl.resource_name in (name, WILDCARD)
        alike = self.pattern_type in (PatternType.ANY, PatternType.MATCH, acl.pattern_type)
        return alike and name in (None, acl.resource_name)
