"""How settings get to a client, and what is told of them: by the tables of the clients that there are drivers for."""

import pytest

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes import PROBES, Setting
from sluice.audit.subjects.client import Client, Known, installed
from sluice.audit.subjects.clients.aiokafka import CLIENT as AIOKAFKA
from sluice.audit.subjects.clients.confluent_kafka import CLIENT as CONFLUENT_KAFKA
from sluice.audit.subjects.clients.java import CLIENT as JAVA
from sluice.audit.subjects.clients.kafka_python import CLIENT as KAFKA_PYTHON
from sluice.audit.subjects.clients.sluice import CLIENT as SLUICE
from sluice.client.config import producer_config

CLIENTS = (AIOKAFKA, CONFLUENT_KAFKA, JAVA, KAFKA_PYTHON, SLUICE)


@pytest.mark.parametrize(
    ("client", "given", "own"),
    [
        pytest.param(AIOKAFKA, {"retry.backoff.ms": 50}, {"retry_backoff_ms": 50}, id="by its own name"),
        pytest.param(AIOKAFKA, {"delivery.timeout.ms": 50}, {}, id="one that it has not is left out"),
        pytest.param(AIOKAFKA, {"fetch.max.wait.ms": 50}, {}, id="one of another role is left out"),
        pytest.param(
            CONFLUENT_KAFKA,
            {"request.timeout.ms": 50},
            {"log_level": 3, "socket.timeout.ms": 50, "request.timeout.ms": 50},
            id="one that is two, and what it is always given",
        ),
        pytest.param(SLUICE, {"retry.backoff.ms": 50}, {"retry.backoff.ms": 50}, id="ours has Kafka's"),
    ],
)
def test_a_client_is_given(client: Client, given: dict[str, Setting], own: dict[str, Setting]) -> None:
    assert client.own(Role.PRODUCER, given) == own


def test_what_was_given_is_in_force_and_else_what_is_documented() -> None:
    settings = KAFKA_PYTHON.info(Role.PRODUCER, {"retry.backoff.ms": 7}, "3").settings
    assert settings["retry.backoff.ms"] == 7
    assert settings["reconnect.backoff.max.ms"] == 30_000
    assert (
        KAFKA_PYTHON.info(Role.PRODUCER, {"retry.backoff.max.ms": 7}, "3").settings["retry.backoff.max.ms"] == 1000
    ), "it has no such setting: it is the KIP's"


def test_a_setting_without_a_default_is_not_known_unless_it_is_given() -> None:
    client = Client("c", "c", "", (Known("a", ("b",), None),), frozenset(), frozenset())
    assert client.info(Role.ADMIN, {}, "").settings == {}
    assert client.info(Role.ADMIN, {"a": 1}, "").settings == {"a": 1}


def test_what_it_cannot_be_given_it_lacks() -> None:
    lacks = KAFKA_PYTHON.info(Role.PRODUCER, {}, "3").lacks
    assert {"retry.backoff.max.ms", "metadata.recovery.strategy"} <= lacks
    assert lacks.isdisjoint({"retry.backoff.ms", "delivery.timeout.ms"})


def test_a_reconnect_backoff_that_is_set_alone_has_no_maximum() -> None:
    given = {"reconnect.backoff.ms": 200}
    assert all("reconnect.backoff.max.ms" not in client.info(Role.PRODUCER, given, "").settings for client in CLIENTS)


def test_ours_has_the_defaults_of_its_own_table() -> None:
    config = producer_config({"bootstrap.servers": "127.0.0.1:1"})
    told = SLUICE.info(Role.PRODUCER, {}, "").settings
    assert {name: config.value(name) for name in told if name != "acks"} == {
        name: value for name, value in told.items() if name != "acks"
    }


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_every_setting_of_a_probe_is_some_clients(client: Client) -> None:
    known = {row.name for one in CLIENTS for row in one.settings}
    assert {name for probe in PROBES.values() for name in probe.settings} <= known
    assert client.kips.isdisjoint(client.before)
    assert len({(row.name, role) for row in client.settings for role in row.roles}) == sum(
        len(row.roles) for row in client.settings
    ), "no setting has two rows for one role"


def test_what_is_not_installed_has_no_version() -> None:
    assert installed("a-client-that-nobody-wrote") == ""
    assert installed("aiokafka")
