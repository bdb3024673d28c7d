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


@pytest.mark.parametrize(
    ("fields", "matched"),
    [
        pytest.param({}, ALL, id="empty filter"),
        pytest.param({"resource_name": "orders"}, (LITERAL,), id="name without a pattern type"),
        pytest.param(
            {"resource_name": "ord", "pattern_type": PatternType.ANY},
            (PREFIXED,),
            id="any pattern type, name of a prefix",
        ),
        pytest.param(
            {"resource_name": "orders", "pattern_type": PatternType.MATCH},
            (LITERAL, PREFIXED, EVERY),
            id="MATCH with a name",
        ),
        pytest.param({"pattern_type": PatternType.MATCH}, ALL, id="MATCH without a name"),
        pytest.param({"resource_name": "*", "pattern_type": PatternType.MATCH}, (EVERY,), id="MATCH with *"),
        pytest.param({"resource_name": "*", "pattern_type": PatternType.LITERAL}, (EVERY,), id="LITERAL with *"),
        pytest.param({"pattern_type": PatternType.PREFIXED}, (PREFIXED,), id="all prefixes"),
        pytest.param(
            {"resource_name": "orders", "pattern_type": PatternType.PREFIXED}, (), id="prefix without entries"
        ),
        pytest.param({"resource_type": ResourceType.GROUP}, (), id="other resource type"),
        pytest.param({"resource_type": ResourceType.UNKNOWN}, (), id="unknown resource type"),
        pytest.param({"principal": "User:bob"}, (), id="other principal"),
        pytest.param({"principal": "User:*"}, (), id="User:* is not a wildcard"),
        pytest.param({"host": "127.0.0.1"}, (), id="other host"),
        pytest.param({"operation": AclOperation.ALL}, (), id="ALL is not a wildcard"),
        pytest.param({"permission_type": AclPermissionType.DENY}, (), id="other permission type"),
    ],
)
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
