"""The table of Kafka's APIs in docs/reference/api-coverage.md agrees with the registry."""

from sluice.broker.exchange.registry import HANDLERS
from tools.docs.reference.api_coverage import kafka_apis


def test_every_api_key_up_to_the_last_is_listed_once() -> None:
    found = kafka_apis()
    assert [api.api_key for api in found] == list(range(len(found)))


def test_api_is_served_or_has_a_reason() -> None:
    assert {api.api_key for api in kafka_apis() if not api.not_served} == HANDLERS.keys()
