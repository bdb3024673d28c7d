"""Settings passed to clients, and their effective values, by the drivers' tables."""

import pytest

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import Setting
from sluice.audit.subjects import SUBJECTS
from sluice.audit.subjects.client import Client, Known, installed
from sluice.audit.subjects.clients.aiokafka import CLIENT as AIOKAFKA
from sluice.audit.subjects.clients.kafka_python import CLIENT as KAFKA_PYTHON
from sluice.audit.subjects.clients.sluice import CLIENT as SLUICE
from sluice.client.config import producer_config

# Of all ready subjects; those in virtual time are of the same clients.
CLIENTS: list[Client] = [getattr(subject, "client") for subject in SUBJECTS.values() if not subject.virtual]  # noqa: B009
CONFLUENT_KAFKA, FRANZ_GO, KAFKAJS, SARAMA = (
    next(client for client in CLIENTS if client.name == name)
    for name in ("confluent-kafka", "franz-go", "kafkajs", "sarama")
)


SETTINGS = {
    "by its own name": (AIOKAFKA, {"retry.backoff.ms": 50}, {"retry_backoff_ms": 50}),
    "a missing one is left out": (AIOKAFKA, {"delivery.timeout.ms": 50}, {}),
    "one of another role is left out": (AIOKAFKA, {"fetch.max.wait.ms": 50}, {}),
    "one split in two, and a fixed one": (
        CONFLUENT_KAFKA,
        {"request.timeout.ms": 50},
        {"log_level": 3, "socket.timeout.ms": 50, "request.timeout.ms": 50},
    ),
    "one that keeps its default": (CONFLUENT_KAFKA, {"enable.idempotence": True}, {"log_level": 3}),
    "those of options": (
        FRANZ_GO,
        {"retry.backoff.ms": 50, "enable.idempotence": True},
        {"RetryBackoffFn.base": 50, "MetadataMinAge": 50, "IdempotentWrite": True},
    ),
    "those of parameters": (KAFKAJS, {"retries": 3}, {"kafka.retry.retries": 3}),
    "a fixed one that a probe sets": (SARAMA, {"max.in.flight.requests.per.connection": 5}, {"Net.MaxOpenRequests": 5}),
    "ours has Kafka's names": (SLUICE, {"retry.backoff.ms": 50}, {"retry.backoff.ms": 50}),
}


@pytest.mark.parametrize(("client", "given", "own"), SETTINGS.values(), ids=SETTINGS)
def test_settings_of_a_client(client: Client, given: dict[str, Setting], own: dict[str, Setting]) -> None:
    assert client.own(Role.PRODUCER, given) == own


def test_effective_values_are_given_or_documented() -> None:
    settings = KAFKA_PYTHON.info(Role.PRODUCER, {"retry.backoff.ms": 7}, "3").settings
    assert settings["retry.backoff.ms"] == 7
    assert settings["reconnect.backoff.max.ms"] == 30_000
    assert (
        KAFKA_PYTHON.info(Role.PRODUCER, {"retry.backoff.max.ms": 7}, "3").settings["retry.backoff.max.ms"] == 1000
    ), "it has no such setting: the KIP's value"


def test_setting_without_a_default_is_unknown_unless_given() -> None:
    client = Client("c", "c", "", (Known("a", ("b",), None),), frozenset(), frozenset())
    assert client.info(Role.ADMIN, {}, "").settings == {}
    assert client.info(Role.ADMIN, {"a": 1}, "").settings == {"a": 1}


def test_unsupported_setting_is_missing() -> None:
    lacks = KAFKA_PYTHON.info(Role.PRODUCER, {}, "3").lacks
    assert {"retry.backoff.max.ms", "metadata.recovery.strategy"} <= lacks
    assert lacks.isdisjoint({"retry.backoff.ms", "delivery.timeout.ms"})


def test_reconnect_backoff_set_alone_has_no_maximum() -> None:
    given = {"reconnect.backoff.ms": 200}
    assert all("reconnect.backoff.max.ms" not in client.info(Role.PRODUCER, given, "").settings for client in CLIENTS)


def test_sluice_has_the_defaults_of_its_own_table() -> None:
    config = producer_config({"bootstrap.servers": "127.0.0.1:1"})
    settings = SLUICE.info(Role.PRODUCER, {}, "").settings
    assert {name: config.value(name) for name in settings if name != "acks"} == {
        name: value for name, value in settings.items() if name != "acks"
    }


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_setting_of_a_probe_exists_in_a_client(client: Client) -> None:
    known = {row.name for one in CLIENTS for row in one.settings}
    assert {name for probe in PROBES.values() for name in probe.settings} <= known
    assert client.kips.isdisjoint(client.before)
    assert len({(row.name, role) for row in client.settings for role in row.roles}) == sum(
        len(row.roles) for row in client.settings
    ), "no setting has two rows for one role"


def test_missing_library_has_no_version() -> None:
    assert installed("a-client-that-nobody-wrote") == ""
    assert installed("aiokafka")
