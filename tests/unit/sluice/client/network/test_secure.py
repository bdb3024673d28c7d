"""TLS and SASL connections to a real broker, and failures on either side."""

import asyncio

import pytest

from sluice import Broker, testing
from sluice.client.admin import AdminClient
from sluice.client.config import admin_config
from sluice.client.errors import AuthenticationException, SaslAuthenticationException
from sluice.errors import ConfigError
from sluice.faults import Error

USERS = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sluice.sasl.users": "alice:alice-secret"}


def sasl(mechanism: str, *, secret: str = "alice-secret", protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    return {
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'some.LoginModule required username="alice" password="{secret}";',
    }


async def brokers_seen(config: dict[str, str], given: dict[str, str]) -> int:
    """Return the number of brokers that a client with these settings sees."""
    async with Broker(config=config) as broker, AdminClient({"bootstrap.servers": broker.bootstrap, **given}) as admin:
        return len((await admin.describe_cluster(timeout_ms=20_000)).brokers)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_correct_password_authenticates(mechanism: str) -> None:
    assert testing.run(brokers_seen(USERS, sasl(mechanism))) == 1


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_wrong_password_fails_at_once(mechanism: str) -> None:
    with pytest.raises(SaslAuthenticationException):
        testing.run(brokers_seen(USERS, sasl(mechanism, secret="guessed")))


def test_unsupported_mechanism_fails_at_once() -> None:
    config = USERS | {"sasl.enabled.mechanisms": "PLAIN"}
    with pytest.raises(AuthenticationException, match="does not accept SCRAM-SHA-512; expected one of PLAIN"):
        testing.run(brokers_seen(config, sasl("SCRAM-SHA-512")))


@pytest.mark.parametrize("api", ["SaslHandshake", "SaslAuthenticate"])
def test_an_error_of_another_kind_is_retried(api: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        async with Broker(config=USERS) as broker:
            broker.faults.add(Error("UNKNOWN_SERVER_ERROR"), api=api, times=1)
            async with AdminClient({"bootstrap.servers": broker.bootstrap, **sasl("PLAIN")}) as admin:
                return len((await admin.describe_cluster(timeout_ms=20_000)).brokers)

    assert testing.run(main()) == 1
    assert not [record for record in caplog.records if record.exc_info]


INCONSISTENT = [
    (
        {"security.protocol": "SASL_PLAINTEXT"},
        "admin: security.protocol=sasl_plaintext requires sasl.mechanism and sasl.jaas.config",
    ),
    (sasl("PLAIN") | {"sasl.jaas.config": "secret"}, "admin: sasl.jaas.config=[hidden]: expected MODULE required"),
    (
        sasl("PLAIN") | {"sasl.jaas.config": 'M required user="alice";'},
        "admin: sasl.jaas.config=[hidden]: has no username and no password",
    ),
    (sasl("GSSAPI"), "admin: sasl.mechanism: expected one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
]


@pytest.mark.parametrize(("given", "line"), INCONSISTENT)
def test_inconsistent_settings_are_rejected(given: dict[str, str], line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        admin_config({"bootstrap.servers": "127.0.0.1:1", **given})
    assert str(caught.value).startswith(line)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", ["ssl.truststore.location", "ssl.keystore.location"])
def test_unreadable_file_is_named(name: str) -> None:
    async def main() -> None:
        AdminClient({"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SSL", name: "/nowhere.pem"})

    with pytest.raises(ConfigError, match=rf"^admin: {name}=/nowhere\.pem: No such file or directory$"):
        asyncio.run(main())
