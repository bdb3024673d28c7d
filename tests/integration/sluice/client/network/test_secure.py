"""The client's TLS over real sockets."""

import asyncio
from pathlib import Path

import pytest

from sluice import Broker
from sluice.client.admin import AdminClient
from sluice.client.errors import SslAuthenticationException
from tests.support.certificates import certificates


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


def tls(**given: str | Path) -> dict[str, str]:
    named = {f"ssl.{name.replace('_', '.')}": str(value) for name, value in given.items()}
    return {"security.protocol": "SSL", **named}


def broker_tls(protocol: str = "SSL", **given: str) -> dict[str, str]:
    named = {f"ssl.{name.replace('_', '.')}": value for name, value in given.items()}
    return {
        "listeners": f"{protocol}://127.0.0.1:0",
        "ssl.keystore.location": str(certificates().broker),
        "sluice.sasl.users": "alice:alice-secret",
        **named,
    }


SECURED = {
    "a CA certificate in a file": (broker_tls(), tls(truststore_location=certificates().ca)),
    "a CA certificate in the properties": (broker_tls(), tls(truststore_certificates=certificates().ca.read_text())),
    "a client certificate": (
        broker_tls(client_auth="required", truststore_location=str(certificates().ca)),
        tls(truststore_location=certificates().ca, keystore_location=certificates().alice),
    ),
    "a password over TLS": (
        broker_tls("SASL_SSL"),
        tls(truststore_location=certificates().ca) | sasl("SCRAM-SHA-256", protocol="SASL_SSL"),
    ),
}


@pytest.mark.parametrize(("broker", "client"), SECURED.values(), ids=SECURED)
def test_tls(broker: dict[str, str], client: dict[str, str]) -> None:
    assert asyncio.run(brokers_seen(broker, client)) == 1


def test_untrusted_broker_certificate_is_rejected() -> None:
    with pytest.raises(SslAuthenticationException, match="certificate verify failed"):
        asyncio.run(brokers_seen(broker_tls(), tls(truststore_location=certificates().other_ca)))
