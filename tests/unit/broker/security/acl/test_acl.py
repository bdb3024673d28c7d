"""Which entries a filter means (ResourcePatternFilter, AccessControlEntryFilter)."""

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
        pytest.param({}, ALL, id="nothing given: all"),
        pytest.param({"resource_name": "orders"}, (LITERAL,), id="a name and any pattern: the patterns of that name"),
        pytest.param(
            {"resource_name": "ord", "pattern_type": PatternType.ANY}, (PREFIXED,), id="any pattern, by a prefix's name"
        ),
        pytest.param(
            {"resource_name": "orders", "pattern_type": PatternType.MATCH},
            (LITERAL, PREFIXED, EVERY),
            id="MATCH: all patterns that apply to the name",
        ),
        pytest.param({"pattern_type": PatternType.MATCH}, ALL, id="MATCH without a name: all"),
        pytest.param(
            {"resource_name": "*", "pattern_type": PatternType.MATCH}, (EVERY,), id="MATCH of *: a name as others"
        ),
        pytest.param(
            {"resource_name": "*", "pattern_type": PatternType.LITERAL}, (EVERY,), id="the literal *: itself alone"
        ),
        pytest.param({"pattern_type": PatternType.PREFIXED}, (PREFIXED,), id="all prefixes"),
        pytest.param(
            {"resource_name": "orders", "pattern_type": PatternType.PREFIXED}, (), id="a prefix that nobody has"
        ),
        pytest.param({"resource_type": ResourceType.GROUP}, (), id="another type of resource"),
        pytest.param({"resource_type": ResourceType.UNKNOWN}, (), id="a type that nobody knows"),
        pytest.param({"principal": "User:bob"}, (), id="another principal"),
        pytest.param({"principal": "User:*"}, (), id="User:* is a principal as others"),
        pytest.param({"host": "127.0.0.1"}, (), id="another host"),
        pytest.param({"operation": AclOperation.ALL}, (), id="ALL is an operation as others"),
        pytest.param({"permission_type": AclPermissionType.DENY}, (), id="the other permission"),
    ],
)
def test_filter_matches(fields: dict[str, Any], matched: tuple[Acl, ...]) -> None:
    assert tuple(one for one in ALL if acl_filter(**fields).matches(one)) == matched


@pytest.mark.parametrize("kind", [ResourceType, PatternType, AclOperation, AclPermissionType])
def test_a_number_that_nobody_defined_is_unknown(
    kind: type[ResourceType] | type[PatternType] | type[AclOperation] | type[AclPermissionType],
) -> None:
    assert (kind(99).name, kind(-1).name) == ("UNKNOWN", "UNKNOWN")


def test_an_entry_is_printed_as_kafka_prints_it() -> None:
    assert str(LITERAL) == (
        "StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, principal=User:alice, host=*, "
        "operation=READ, permissionType=ALLOW]"
    )
