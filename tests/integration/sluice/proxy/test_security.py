"""The security of the proxy: each side by itself, over real sockets, with our own broker as the cluster behind it."""

import pytest

from sluice import Broker, Proxy
from sluice.client.admin import AdminClient
from tests.support.certificates import certificates
from tests.support.proxy_over_sockets import Properties, bootstrap_of, client, listener, running_proxy

# What the broker's side needs, and what its client needs.
SIDES = {
    "PLAINTEXT": (listener("PLAINTEXT"), client("PLAINTEXT")),
    "SSL": (listener("SSL"), client("SSL")),
    "SSL with client certificate": (
        listener("SSL", client_auth="required"),
        client("SSL", keystore_location=str(certificates().alice)),
    ),
    "SASL_PLAINTEXT with PLAIN": (listener("SASL_PLAINTEXT"), client("SASL_PLAINTEXT", mechanism="PLAIN")),
    "SASL_SSL with SCRAM": (listener("SASL_SSL"), client("SASL_SSL", mechanism="SCRAM-SHA-512")),
}


async def brokers_seen(bootstrap: str, given: Properties) -> set[str]:
    async with AdminClient({"bootstrap.servers": bootstrap, **given}) as admin:
        return {f"{each.host}:{each.port}" for each in (await admin.describe_cluster(timeout_ms=20_000)).brokers}


@pytest.mark.parametrize("below", SIDES.values(), ids=[f"upstream {name}" for name in SIDES])
@pytest.mark.parametrize("above", SIDES.values(), ids=[f"clients {name}" for name in SIDES])
async def test_security_of_each_side(
    above: tuple[Properties, Properties], below: tuple[Properties, Properties]
) -> None:
    async with (
        Broker(config=below[0], brokers=2) as broker,
        running_proxy({"bootstrap.servers": broker.bootstrap, **below[1]}, above[0]) as proxy,
    ):
        assert await brokers_seen(bootstrap_of(proxy), above[1]) == set(bootstrap_of(proxy).split(","))


async def test_clients_of_the_test_api_authenticate_with_the_cluster() -> None:
    given = client("SASL_PLAINTEXT", "proxy", mechanism="PLAIN")
    async with (
        Broker(config=listener("SASL_PLAINTEXT")) as broker,
        Proxy(broker.bootstrap, upstream_config=given, sasl_passthrough=True) as proxy,
    ):
        assert await brokers_seen(proxy.bootstrap, client("SASL_PLAINTEXT", "alice")) == {proxy.bootstrap}
        assert {event.principal for event in proxy.journal.requests(api="DescribeCluster")} == {"User:alice"}
        assert "User:alice" in {event.principal for event in broker.journal.requests(api="DescribeCluster")}
