"""Listeners with TLS or SASL: principals, several listeners, and authentication counts."""

from random import Random

import pytest

from sluice.broker.broker import Broker
from sluice.broker.controller.cluster import Cluster
from sluice.broker.exchange.exchange import Exchange
from sluice.broker.network.channel_builder import ChannelBuilder
from sluice.broker.requests.runtime import Runtime
from sluice.clock import ManualClock
from sluice.config.broker_config import Config
from sluice.errors import ConfigError
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.certificates import certificates
from tests.support.sasl import authenticate, handshake, plain
from tests.support.tls_client import TlsClient
from tests.support.virtual_broker import VirtualBroker

FILES = certificates()
TRUST = f"ssl.truststore.location={FILES.ca}"
MUTUAL = ("listeners=SSL://127.0.0.1:0", *FILES.broker_overrides, TRUST, "ssl.client.auth=requested")
SASL_SSL = ("listeners=SASL_SSL://127.0.0.1:0", *FILES.broker_overrides, "sluice.sasl.users=bob:b")


def connected(broker: VirtualBroker, *, with_certificate: bool = True) -> TlsClient:
    client = TlsClient(broker, FILES.client_context(FILES.alice if with_certificate else None))
    client.shake_hands()
    return client


def user_of(broker: VirtualBroker) -> tuple[str, str]:
    (connection,) = broker.server.connections
    return connection.ctx.session.user, connection.ctx.session.principal


def test_principal_is_the_subject_of_the_client_certificate() -> None:
    broker = VirtualBroker(*MUTUAL)
    connected(broker)
    user, principal = user_of(broker)
    assert principal == f"User:{user}"
    assert user.startswith("CN=alice,OU=")
    assert user.endswith("O=Org\\, Inc")


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_mapping_rules_translate_the_certificate_subject(version: str) -> None:
    rules = "ssl.principal.mapping.rules=RULE:^CN=(.*?),.*$/$1/U,DEFAULT"
    broker = VirtualBroker(*MUTUAL, rules, f"ssl.enabled.protocols={version}")
    connected(broker)
    assert user_of(broker) == ("ALICE", "User:ALICE")


def test_client_without_a_requested_certificate_is_anonymous() -> None:
    broker = VirtualBroker(*MUTUAL)
    connected(broker, with_certificate=False)
    assert user_of(broker) == ("ANONYMOUS", "User:ANONYMOUS")


def test_client_that_matches_no_mapping_rule_is_rejected(caplog: pytest.LogCaptureFixture) -> None:
    broker = VirtualBroker(*MUTUAL, "ssl.principal.mapping.rules=RULE:^CN=bob$/bob/")
    client = connected(broker)
    assert (client.is_open, broker.server.connections) == (False, {})
    (record,) = caplog.records
    assert str(vars(record)["reason"]).startswith("no rule of ssl.principal.mapping.rules matches CN=alice,")


def test_invalid_mapping_rules_fail_the_start() -> None:
    config = Config.load(None, [*MUTUAL, "ssl.principal.mapping.rules=x"])
    broker = Broker(Cluster(Runtime(config, ManualClock(), Random(0))), {}, {})
    with pytest.raises(
        ConfigError, match=r"^--override: ssl\.principal\.mapping\.rules: invalid rule x; expected DEFAULT or "
    ):
        ChannelBuilder(broker, Exchange(broker), "SSL", lambda action: None)


def test_principal_over_sasl_ssl_is_the_authenticated_user() -> None:
    broker = VirtualBroker(*SASL_SSL, TRUST, "listener.name.sasl_ssl.ssl.client.auth=required")
    client = connected(broker)
    handshake(client)
    authenticate(client, plain("bob", "b"))
    assert user_of(broker) == ("bob", "User:bob")
    assert client.call(MetadataRequest(topics=[]), 9).brokers


def test_sasl_ssl_ignores_ssl_client_auth_without_a_listener_prefix() -> None:
    broker = VirtualBroker(*SASL_SSL, TRUST, "ssl.client.auth=required")
    client = connected(broker, with_certificate=False)
    assert handshake(client).error_code == 0


def test_each_listener_has_its_own_port_and_channel_builder() -> None:
    broker = VirtualBroker(
        "listeners=SASL_PLAINTEXT://127.0.0.1:0,PLAIN_TEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "listener.security.protocol.map=PLAIN_TEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
        *FILES.broker_overrides,
    )
    ports = {endpoint.name: endpoint.port for endpoint in broker.server.endpoints}
    assert len(set(ports.values())) == 3
    assert [listener.name for listener in broker.server.channel_builders] == ["SASL_PLAINTEXT", "SSL"]


def test_each_broker_has_every_listener() -> None:
    broker = VirtualBroker("sluice.brokers=3", "listeners=SSL://127.0.0.1:0", *FILES.broker_overrides)
    servers = broker.cluster_server.servers.values()
    assert [len(server.channel_builders) for server in servers] == [1, 1, 1]


def test_tls_authentications_are_counted() -> None:
    broker = VirtualBroker(*MUTUAL)
    connected(broker)
    TlsClient(broker, FILES.client_context()).send_plain(b"GET / HTTP/1.1\r\n\r\n")
    (listener,) = broker.server.channel_builders
    counts = listener.authentications
    assert (counts.successful, counts.successful_no_reauth, counts.failed) == (1, 1, 1)


def test_plaintext_listener_needs_no_channel_builder() -> None:
    assert VirtualBroker().server.channel_builders == []
