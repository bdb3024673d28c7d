"""Client settings beyond the producer's vectors: accepted values, rejections and warnings."""

import logging
from random import Random

import pytest

from sluice.client.backoff import ExponentialBackoff, KipReconnectBackoff, KipRetryBackoff
from sluice.client.config import ClientConfig, Given, admin_config, consumer_config, producer_config
from sluice.client.config_table import ADMIN, CONSUMER, PRODUCER, Table
from sluice.client.consumer import Consumer
from sluice.client.producer import Producer
from sluice.errors import ConfigError

SERVERS = {"bootstrap.servers": "127.0.0.1:9092"}
PROTOCOLS = "security.protocol: expected one of plaintext, ssl, sasl_plaintext, sasl_ssl, got GSSAPI"
CLIENTS = {"producer": producer_config, "consumer": consumer_config, "admin": admin_config}


def config(client: str, **given: str | int) -> ClientConfig:
    return CLIENTS[client](SERVERS | {name.replace("_", "."): value for name, value in given.items()})


@pytest.mark.parametrize("table", [PRODUCER, CONSUMER, ADMIN], ids=lambda table: table.client)
def test_every_default_is_valid(table: Table) -> None:
    assert set(table.properties).isdisjoint(table.without_effect)
    for row in table.properties.values():
        assert row.default is None or row.kind.parse(row.default) is not None


DEFAULTS = [
    ("producer", "linger.ms", 5),
    ("producer", "receive.buffer.bytes", 32768),
    ("producer", "connections.max.idle.ms", 540_000),
    ("consumer", "receive.buffer.bytes", 65536),
    ("consumer", "max.poll.records", 500),
    ("consumer", "isolation.level", "read_uncommitted"),
    ("admin", "connections.max.idle.ms", 300_000),
    ("admin", "default.api.timeout.ms", 60_000),
]


@pytest.mark.parametrize(("client", "name", "value"), DEFAULTS)
def test_defaults_are_kafkas(client: str, name: str, value: object) -> None:
    assert config(client).value(name) == value


PYTHON_OBJECTS = {
    "a number": ({"linger.ms": 20}, "linger.ms", 20),
    "a truth value": ({"enable.idempotence": False}, "enable.idempotence", False),
    "a list": ({"bootstrap.servers": ["a:1", "b:2"]}, "bootstrap.servers", ("a:1", "b:2")),
    "text": ({"bootstrap.servers": "a:1, [::1]:2"}, "bootstrap.servers", ("a:1", "[::1]:2")),
}


@pytest.mark.parametrize(("given", "name", "value"), PYTHON_OBJECTS.values(), ids=PYTHON_OBJECTS)
def test_values_may_be_python_objects(given: Given, name: str, value: object) -> None:
    assert producer_config(SERVERS | dict(given)).value(name) == value


REJECTED = [
    ("producer", {"linger.ms": "soon"}, "linger.ms: expected an integer of at least 0, got soon"),
    ("producer", {"linger_ms": "5"}, "linger_ms: no such property. Did you mean linger.ms?"),
    ("producer", {"xyzzy": "5"}, "xyzzy: no such property"),
    ("producer", {"client.id": "a\nb", "acks": "2\n"}, r"acks: expected one of all, -1, 0, 1, got '2\n'"),
    ("producer", {"transactional.id": ""}, "transactional.id: expected text that is not empty, got ''"),
    ("producer", {"transactional.id": "t", "acks": "1"}, "transactional.id requires enable.idempotence=true"),
    ("producer", {"enable.idempotence": "true", "acks": "1"}, "enable.idempotence=true requires acks all, got 1"),
    (
        "producer",
        {"max.in.flight.requests.per.connection": 6},
        "enable.idempotence=true requires max.in.flight.requests.per.connection at most 5, got 6",
    ),
    (
        "producer",
        {"transaction.two.phase.commit.enable": True, "transaction.timeout.ms": 1},
        "transaction.timeout.ms cannot be set with transaction.two.phase.commit.enable=true",
    ),
    (
        "producer",
        {"delivery.timeout.ms": 30_004},
        "delivery.timeout.ms: expected at least linger.ms + request.timeout.ms (30005), got 30004",
    ),
    ("consumer", {"enable.auto.commit": True}, "enable.auto.commit=true requires group.id"),
    (
        "consumer",
        {"auto.offset.reset": "by_duration:-P1D"},
        "auto.offset.reset: expected earliest, latest, none or by_duration:PnDTnHnM.nS, got by_duration:-P1D",
    ),
    (
        "consumer",
        {"group.protocol": "CONSUMER", "session.timeout.ms": 1, "heartbeat.interval.ms": 1},
        "heartbeat.interval.ms, session.timeout.ms cannot be set with group.protocol=consumer",
    ),
    ("admin", {"linger.ms": 5}, "linger.ms: no such property"),
    ("admin", {"security.protocol": "GSSAPI"}, PROTOCOLS),
]


@pytest.mark.parametrize(("client", "given", "line"), REJECTED)
def test_rejection_names_the_setting(client: str, given: Given, line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CLIENTS[client](SERVERS | dict(given))
    assert str(caught.value) == f"{client}: {line}"


@pytest.mark.parametrize("servers", ["", "a", "a:0", "a:65536", "a:9092,a:9092", "a:9092,,b:9092", ":9092"])
def test_bootstrap_servers_are_unique_host_and_port_pairs(servers: str) -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers: expected HOST:PORT, separated by commas, each once"):
        admin_config({"bootstrap.servers": servers})


def test_bootstrap_servers_are_required() -> None:
    with pytest.raises(ConfigError, match=r"^admin: bootstrap\.servers is missing"):
        admin_config({})


@pytest.mark.parametrize("value", ["P1D", "PT1H", "P1DT2H3M4.5S", "pt0s"])
def test_offset_reset_accepts_a_duration(value: str) -> None:
    assert config("consumer", auto_offset_reset=f"by_duration:{value}").text("auto.offset.reset").endswith(value)


@pytest.mark.parametrize("value", ["by_duration", "by_duration:", "by_duration:P", "by_duration:PT", "EARLIEST"])
def test_offset_reset_rejects_an_invalid_duration(value: str) -> None:
    with pytest.raises(ConfigError):
        config("consumer", auto_offset_reset=value)


WITHOUT_EFFECT = [("producer", "key.serializer"), ("consumer", "key.deserializer"), ("admin", "bootstrap.controllers")]


@pytest.mark.parametrize(("client", "name"), WITHOUT_EFFECT)
def test_setting_without_effect_is_accepted_and_logged(
    client: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "sluice.client"):
        config(client, **{name: "any"})
    (record,) = caplog.records
    assert vars(record)["names"] == name


def test_consumer_without_a_group_has_auto_commit_disabled() -> None:
    assert not config("consumer").boolean("enable.auto.commit")
    assert config("consumer", group_id="g").boolean("enable.auto.commit")


def test_default_client_ids_are_kafkas() -> None:
    assert config("producer", transactional_id="t").text("client.id") == "producer-t"
    assert config("consumer", group_id="g", group_instance_id="i").text("client.id") == "consumer-g-i"
    assert config("consumer", group_instance_id="i").text("client.id") == "consumer-null-i"
    one, two = (config("producer").text("client.id") for _ in range(2))
    assert int(two.removeprefix("producer-")) == int(one.removeprefix("producer-")) + 1
    assert config("producer", client_id="mine").text("client.id") == "mine"
    assert config("admin").text("client.id").startswith("adminclient-")


def test_idle_time_below_the_poll_interval_logs_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    warned = config("consumer", connections_max_idle_ms=1000)
    assert list(warned.warnings) == ["connections_idle_before_poll"]
    assert [record.getMessage() for record in caplog.records] == list(warned.warnings.values())


class TestProfileKip:
    def test_kip_144_profile_starts_with_100_ms(self) -> None:
        assert producer_config(SERVERS, "kip").integer("reconnect.backoff.ms") == 100
        assert producer_config(SERVERS | {"reconnect.backoff.ms": 70}, "kip").integer("reconnect.backoff.ms") == 70
        assert producer_config(SERVERS).integer("reconnect.backoff.ms") == 50

    def test_kip_91_profile_leaves_time_for_a_retry(self) -> None:
        given = SERVERS | {"delivery.timeout.ms": 30_005}
        assert producer_config(given).integer("delivery.timeout.ms") == 30_005
        with pytest.raises(ConfigError, match=r"at least linger\.ms \+ request\.timeout\.ms \+ retry\.backoff\.ms"):
            producer_config(given, "kip")

    def test_backoffs_follow_the_kips(self) -> None:
        uniform = Random(0).uniform
        kip, kafka = producer_config(SERVERS, "kip"), producer_config(SERVERS)
        assert isinstance(kip.retry_backoff(uniform), KipRetryBackoff)
        assert isinstance(kip.reconnect_backoff(uniform), KipReconnectBackoff)
        for backoff in (kafka.retry_backoff(uniform), kafka.reconnect_backoff(uniform)):
            assert isinstance(backoff, ExponentialBackoff)
        assert kafka.connection_setup_timeout(uniform).backoff(9) > 20_000


@pytest.mark.parametrize("client", CLIENTS)
def test_unsupported_kafka_setting_is_valid_but_rejected_by_the_client(client: str) -> None:
    taken = config(client, client_dns_lookup="resolve_canonical_bootstrap_servers_only")
    with pytest.raises(ConfigError) as refused:
        taken.ensure_supported()
    assert str(refused.value) == (
        f"{client}: client.dns.lookup=resolve_canonical_bootstrap_servers_only: names of bootstrap.servers are not "
        "replaced by canonical ones here; use_all_dns_ips is accepted"
    )
    config(client).ensure_supported()


@pytest.mark.parametrize("made", [Producer, Consumer], ids=lambda made: made.__name__)
def test_client_with_an_unsupported_setting_is_not_created(made: type[Producer] | type[Consumer]) -> None:
    with pytest.raises(ConfigError, match=r"client\.dns\.lookup="):
        made({**SERVERS, "client.dns.lookup": "resolve_canonical_bootstrap_servers_only"})
