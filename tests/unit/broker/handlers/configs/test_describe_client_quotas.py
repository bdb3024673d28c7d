"""DescribeClientQuotas: what was altered and matches; the filters that Kafka refuses."""

from typing import Any

import pytest

from sluice.protocol.apis.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Component = tuple[str, int, str | None]  # type, match type, name


def ask(*components: Component, strict: bool = False, version: int = 1) -> Any:
    broker = VirtualBroker("quota.producer.default=5000")
    quotas = broker.broker.cluster.client_quotas
    quotas.alter({"user": "alice"}, {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.5})
    quotas.alter({"user": None}, {"producer_byte_rate": 3000.0})
    quotas.alter({"user": "alice", "client-id": "c"}, {"producer_byte_rate": 4000.0})
    wanted = [ComponentData(entity_type=type_, match_type=kind, match=name) for type_, kind, name in components]
    return broker.client().ask(DescribeClientQuotasRequest(components=wanted, strict=strict), version)


@pytest.mark.parametrize("version", range(2))
def test_entities_are_told_with_what_was_set_for_them(version: int) -> None:
    response = ask(version=version)
    assert response.error_code == 0
    found = [
        (
            [(part.entity_type, part.entity_name) for part in entry.entity],
            {one.key: one.value for one in entry.values},
        )
        for entry in response.entries
    ]
    assert found == [
        ([("user", "alice")], {"producer_byte_rate": 1000.0, "consumer_byte_rate": 2000.5}),
        ([("user", None)], {"producer_byte_rate": 3000.0}),
        ([("user", "alice"), ("client-id", "c")], {"producer_byte_rate": 4000.0}),
    ]


@pytest.mark.parametrize(
    ("components", "strict", "names"),
    [
        pytest.param([("user", EXACT, "alice")], True, [["alice"]], id="a user, strictly"),
        pytest.param([("user", EXACT, "alice")], False, [["alice"], ["alice", "c"]], id="a user"),
        pytest.param([("user", DEFAULT, None)], False, [[None]], id="the default user"),
        pytest.param([("user", SPECIFIED, None)], True, [["alice"], [None]], id="any user, strictly"),
        pytest.param(
            [("user", EXACT, "alice"), ("client-id", SPECIFIED, None)], True, [["alice", "c"]], id="a user's client ids"
        ),
        pytest.param([("ip", SPECIFIED, None)], False, [], id="any address"),
    ],
)
def test_a_filter_has_a_component_for_each_type(components: list[Component], strict: bool, names: list[Any]) -> None:
    response = ask(*components, strict=strict)
    assert [[part.entity_name for part in entry.entity] for entry in response.entries] == names


ALONE = "IP filter component should not be used with user or clientId filter component."


@pytest.mark.parametrize(
    ("components", "code", "message"),
    [
        pytest.param(
            [("colour", EXACT, "red")],
            ErrorCode.UNSUPPORTED_VERSION,
            "Unsupported entity type colour",
            id="an unknown type: 35",
        ),
        pytest.param([("", EXACT, "a")], ErrorCode.INVALID_REQUEST, "Invalid empty entity type.", id="no type: 42"),
        pytest.param(
            [("user", EXACT, "a"), ("user", SPECIFIED, None)],
            ErrorCode.INVALID_REQUEST,
            "Entity type user cannot appear more than once in the filter.",
            id="a type twice: 42",
        ),
        pytest.param(
            [("user", EXACT, None)],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
            id="a name that is missing: 42",
        ),
        pytest.param(
            [("user", DEFAULT, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
            id="the default with a name: 42",
        ),
        pytest.param(
            [("user", SPECIFIED, "a")],
            ErrorCode.INVALID_REQUEST,
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
            id="any with a name: 42",
        ),
        pytest.param(
            [("user", 9, None)], ErrorCode.INVALID_REQUEST, "Unknown match type 9", id="an unknown match type: 42"
        ),
        pytest.param(
            [("ip", SPECIFIED, None), ("user", EXACT, "a")],
            ErrorCode.INVALID_REQUEST,
            f"Invalid entity filter component combination. {ALONE}",
            id="an address and a user: 42",
        ),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(components: list[Component], code: ErrorCode, message: str) -> None:
    response = ask(*components)
    assert (response.error_code, response.error_message, response.entries) == (code, message, None)
