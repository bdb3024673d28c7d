"""Settings of single listeners and SASL mechanisms."""

import pytest

from sluice.config.broker_config import Config
from sluice.config.listener_config import row_of_listener

LISTENERS = ("listeners=SASL_SSL://:1,IN://:2", "listener.security.protocol.map=SASL_SSL:SASL_SSL,IN:PLAINTEXT")
REAUTH = "connections.max.reauth.ms"


SPECIFIC = {
    "the default": ([], "PLAIN", 0),
    "the broker's": ([f"{REAUTH}=1"], "PLAIN", 1),
    "the listener's": ([f"{REAUTH}=1", f"listener.name.sasl_ssl.{REAUTH}=2"], "PLAIN", 2),
    "not another listener's": ([f"{REAUTH}=1", f"listener.name.in.{REAUTH}=2"], "PLAIN", 1),
    "the mechanism's": ([f"listener.name.sasl_ssl.{REAUTH}=2", f"listener.name.sasl_ssl.plain.{REAUTH}=3"], "PLAIN", 3),
    "not another mechanism's": (
        [f"listener.name.sasl_ssl.{REAUTH}=2", f"listener.name.sasl_ssl.scram-sha-256.{REAUTH}=3"],
        "PLAIN",
        2,
    ),
}


@pytest.mark.parametrize(("overrides", "mechanism", "value"), SPECIFIC.values(), ids=SPECIFIC)
def test_most_specific_setting_wins(overrides: list[str], mechanism: str, value: int) -> None:
    config = Config.load(None, [*LISTENERS, *overrides]).of_listener("SASL_SSL")
    assert config.integer(REAUTH, mechanism) == value
    assert config.is_set(REAUTH) == any(".plain." not in one for one in overrides if "name.in" not in one)


def test_listener_setting_can_come_from_the_environment() -> None:
    config = Config.load(None, LISTENERS, {"KAFKA_LISTENER_NAME_SASL__SSL_SSL_CLIENT_AUTH": "required"})
    assert config.of_listener("SASL_SSL").text("ssl.client.auth") == "required"
    assert config.of_listener("SASL_SSL").has_own("ssl.client.auth")
    assert not config.of_listener("IN").has_own("ssl.client.auth")
    assert config.warnings == []


PER_LISTENER = [
    ("listener.name.x.ssl.key.password", "ssl.key.password"),
    ("listener.name.x.plain.sasl.jaas.config", "sasl.jaas.config"),
    ("listener.name.x.sasl.jaas.config", "sasl.jaas.config"),
    ("listener.name.x.plain.ssl.key.password", None),
    ("listener.name.x.max.connections.per.ip", None),
    ("listener.name.x.num.partitions", None),
    ("listener.name.x", None),
]


@pytest.mark.parametrize(("name", "property_"), PER_LISTENER)
def test_properties_allowed_per_listener(name: str, property_: str | None) -> None:
    row = row_of_listener(name)
    assert (None if row is None else row.name) == property_


@pytest.mark.parametrize("listener", ["nobody", "SASL_SSL"], ids=["of no listener", "in upper case"])
def test_setting_of_an_unknown_listener_logs_a_warning(listener: str) -> None:
    name = f"listener.name.{listener}.ssl.client.auth"
    config = Config.load(None, [*LISTENERS, f"{name}=required"])
    assert config.warnings == [f"properties of unknown listeners (names are in lower case): {name}"]
    assert config.of_listener("SASL_SSL").text("ssl.client.auth") == "none"


def test_error_names_the_whole_property_and_its_source() -> None:
    name = "listener.name.sasl_ssl.plain.sasl.jaas.config"
    config = Config.load(None, [*LISTENERS, f"{name}=x"]).of_listener("SASL_SSL")
    assert str(config.wrong("sasl.jaas.config", "is wrong", "PLAIN")) == f"--override: {name}: is wrong"
    assert str(config.wrong("ssl.keystore.key", "is missing")) == "default: ssl.keystore.key: is missing"
