"""DescribeClientQuotas: matching quotas, and Kafka's errors for invalid filters."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Component = tuple[str, int, str | None]  # type, match type, name
ALICE: Component = ("user", EXACT, "alice")


def call(*components: Component, strict: bool = False, version: int = 1) -> Any:
    broker = VirtualBroker("quota.producer.default=5000")
    quotas = broker.broker.cluster.client_quotas
    quotas.alter({"user": "alice"}, {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.5})
    quotas.alter({"user": None}, {"producer_byte_rate": 3000.0})
    quotas.alter({"user": "alice", "client-id": "c"}, {"producer_byte_rate": 4000.0})
    filters = [ComponentData(entity_type=type_, match_type=kind, match=name) for type_, kind, name in components]
    return broker.client().call(DescribeClientQuotasRequest(components=filters, strict=strict), version)


@pytest.mark.parametrize("version", range(2))
def test_all_quotas_of_each_entity_are_returned(version: int) -> None:
    response = call(version=version)
    assert response.error_code == 0
    described = [
        (
            [(part.entity_type, part.entity_name) for part in entry.entity],
            {quota.key: quota.value for quota in entry.values},
        )
        for entry in response.entries
    ]
    assert described == [
        ([("user", "alice")], {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.5}),
        ([("user", None)], {"producer_byte_rate": 3000.0}),
        ([("user", "alice"), ("client-id", "c")], {"producer_byte_rate": 4000.0}),
    ]


FILTERS = {
    "user, strict": ([ALICE], True, [["alice"]]),
    "user": ([ALICE], False, [["alice"], ["alice", "c"]]),
    "default user": ([("user", DEFAULT, None)], False, [[None]]),
    "any user, strict": ([("user", SPECIFIED, None)], True, [["alice"], [None]]),
    "client ids of a user": ([ALICE, ("client-id", SPECIFIED, None)], True, [["alice", "c"]]),
    "any address": ([("ip", SPECIFIED, None)], False, []),
}


@pytest.mark.parametrize(("components", "strict", "names"), FILTERS.values(), ids=FILTERS)
def test_filter_matches_entities_by_type(components: list[Component], strict: bool, names: list[Any]) -> None:
    response = call(*components, strict=strict)
    assert [[part.entity_name for part in entry.entity] for entry in response.entries] == names


INVALID = ErrorCode.INVALID_REQUEST
ALONE = "IP filter component should not be used with user or clientId filter component."


INVALID_FILTERS = {
    "unknown entity type": (
        [("colour", EXACT, "red")],
        ErrorCode.UNSUPPORTED_VERSION,
        "Unsupported entity type colour",
    ),
    "empty entity type": ([("", EXACT, "a")], INVALID, "Invalid empty entity type."),
    "duplicate entity type": (
        [("user", EXACT, "a"), ("user", SPECIFIED, None)],
        INVALID,
        "Entity type user cannot appear more than once in the filter.",
    ),
    "exact match without a name": (
        [("user", EXACT, None)],
        INVALID,
        "Request specified MATCH_TYPE_EXACT, but set match string to null.",
    ),
    "default with a name": (
        [("user", DEFAULT, "a")],
        INVALID,
        "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
    ),
    "any entity with a name": (
        [("user", SPECIFIED, "a")],
        INVALID,
        "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
    ),
    "unknown match type": ([("user", 9, None)], INVALID, "Unknown match type 9"),
    "address and user": (
        [("ip", SPECIFIED, None), ("user", EXACT, "a")],
        INVALID,
        f"Invalid entity filter component combination. {ALONE}",
    ),
}


@pytest.mark.parametrize(("components", "code", "message"), INVALID_FILTERS.values(), ids=INVALID_FILTERS)
def test_invalid_filter_is_rejected(components: list[Component], code: ErrorCode, message: str) -> None:
    response = call(*components)
    assert (response.error_code, response.error_message, response.entries) == (code, message, None)
