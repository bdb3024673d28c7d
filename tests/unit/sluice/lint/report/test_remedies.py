"""Remedies for the library that a client's software name, or default client id, shows."""

import pytest

from sluice.lint.clients import ClientKey
from sluice.lint.report.remedies import library, remedies
from tests.support.lint_results import RULES

REMEDY = RULES["lost-records"].remedy


LIBRARIES = [
    ("shop", "apache-kafka-java", "java"),
    ("shop", "librdkafka", "librdkafka"),
    ("shop", "confluent-kafka-python", "librdkafka"),
    ("shop", "kgo", "franz_go"),
    ("shop", "kafka-python", "aiokafka"),
    ("aiokafka-0.14.0", "", "aiokafka"),
    ("kafkajs", "", "kafkajs"),
    ("shop", "", None),
    ("kafkajs", "sarama", None),
]


@pytest.mark.parametrize(("client_id", "software", "field"), LIBRARIES)
def test_the_library_of_a_client(client_id: str, software: str, field: str | None) -> None:
    assert library(ClientKey(client_id, software, "1")) == field


@pytest.mark.parametrize(
    ("software", "names"),
    [
        (["apache-kafka-java"], ["Java client"]),
        (["apache-kafka-java", "kgo"], ["Java client", "franz-go"]),
        (["kafka-python"], []),  # it has no such setting
        (["sarama"], ["Java client", "librdkafka", "franz-go", "KafkaJS"]),
        ([], ["Java client", "librdkafka", "franz-go", "KafkaJS"]),
    ],
    ids=["one", "two", "a library without the setting", "an unknown one", "no client"],
)
def test_remedies_are_those_of_the_libraries(software: list[str], names: list[str]) -> None:
    assert [name for name, _ in remedies(REMEDY, [ClientKey("shop", each, "1") for each in software])] == names
