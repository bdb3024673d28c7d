"""Matching of ACL filters (ResourcePatternFilter, AccessControlEntryFilter)."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import Acl, AclOperation, AclPermissionType, PatternType, ResourceType
from tests.support.acls import acl, acl_filter

LITERAL = acl(AclOperation.READ, name="orders")
PREFIXED = acl(AclOperation.READ, name="ord", pattern_type=PatternType.PREFIXED)
EVERY = acl(AclOperation.READ, name="*")
OTHER = acl(AclOperation.READ, name="bills")
ALL = (LITERAL, PREFIXED, EVERY, OTHER)


FILTERS = {
    "empty filter": ({}, ALL),
    "name without a pattern type": ({"resource_name": "orders"}, (LITERAL,)),
    "any pattern type, name of a prefix": ({"resource_name": "ord", "pattern_type": PatternType.ANY}, (PREFIXED,)),
    "MATCH with a name": ({"resource_name": "orders", "pattern_type": PatternType.MATCH}, (LITERAL, PREFIXED, EVERY)),
    "MATCH without a name": ({"pattern_type": PatternType.MATCH}, ALL),
    "MATCH with *": ({"resource_name": "*", "pattern_type": PatternType.MATCH}, (EVERY,)),
    "LITERAL with *": ({"resource_name": "*", "pattern_type": PatternType.LITERAL}, (EVERY,)),
    "all prefixes": ({"pattern_type": PatternType.PREFIXED}, (PREFIXED,)),
    "prefix without entries": ({"resource_name": "orders", "pattern_type": PatternType.PREFIXED}, ()),
    "other resource type": ({"resource_type": ResourceType.GROUP}, ()),
    "unknown resource type": ({"resource_type": ResourceType.UNKNOWN}, ()),
    "other principal": ({"principal": "User:bob"}, ()),
    "User:* is not a wildcard": ({"principal": "User:*"}, ()),
    "other host": ({"host": "127.0.0.1"}, ()),
    "ALL is not a wildcard": ({"operation": AclOperation.ALL}, ()),
    "other permission type": ({"permission_type": AclPermissionType.DENY}, ()),
}


@pytest.mark.parametrize(("fields", "matched"), FILTERS.values(), ids=FILTERS)
def test_filter_matches(fields: dict[str, Any], matched: tuple[Acl, ...]) -> None:
    assert tuple(one for one in ALL if acl_filter(**fields).matches(one)) == matched


@pytest.mark.parametrize("kind", [ResourceType, PatternType, AclOperation, AclPermissionType])
def test_undefined_number_is_unknown(
    kind: type[ResourceType] | type[PatternType] | type[AclOperation] | type[AclPermissionType],
) -> None:
    assert (kind(99).name, kind(-1).name) == ("UNKNOWN", "UNKNOWN")


def test_entry_is_formatted_as_in_kafka() -> None:
    assert str(LITERAL) == (
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, "
        "operation=READ, permissionType=ALLOW]"
    )
