"""Fault actions on connections, in virtual time: effects on clients, hit counts and journal events."""

import ssl
from contextlib import suppress

import pytest

from sluice.broker.faults.actions import connections
from sluice.broker.faults.rule import Rule
from sluice.journal_events import ConnectionClosed
from sluice.journal_events import Fault as FaultEvent
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from tests.support.certificates import certificates
from tests.support.faults import add, rule_error
from tests.support.records import fetch, produce_of
from tests.support.sasl import SASL, handshake, logged_in, plain
from tests.support.tls_client import TlsClient
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker, broker_with_topic
from tests.support.virtual_proxy import proxy_with_topic

CERTIFICATES = certificates()
TLS = ("listeners=SSL://127.0.0.1:0", *CERTIFICATES.broker_overrides)
RATE = 10_000


@pytest.fixture(params=[broker_with_topic, proxy_with_topic], ids=["broker", "proxy"])
def broker(request: pytest.FixtureRequest) -> VirtualBroker:
    started: VirtualBroker = request.param(JOURNAL)
    return started


def journalled_hits(broker: VirtualBroker) -> list[tuple[str, str, int]]:
    """Return rule, action and connection of each hit in the journal."""
    return [(one.rule_id, one.action, one.connection) for one in broker.journal.events() if isinstance(one, FaultEvent)]


def is_answered(client: Client) -> bool:
    client.send(ApiVersionsRequest(), 0)
    client.broker.settle()
    return bool(client.take_responses())


# -- refused connections -----------------------------------------------------------------------------------------------


def test_closed_port_accepts_no_connection_until_the_rule_ends(broker: VirtualBroker) -> None:
    (endpoint,) = broker.server.endpoints
    before = broker.client()
    fault = add(broker, Rule("refuse-connections", id="shut", during="5s"))
    assert endpoint.port not in broker.loop.factories
    assert is_answered(before)
    assert (fault.hits, journalled_hits(broker)) == (1, [("shut", "refuse-connections", -1)])
    broker.advance(5_000)
    assert is_answered(broker.client())


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_connections_are_closed_as_the_schedule_specifies(broker: VirtualBroker, how: str) -> None:
    fault = add(broker, Rule(connections.RefuseConnections(how), id="no", schedule="1 fail, 1 pass, repeat"))  # type: ignore[arg-type]  # a valid literal
    clients = [broker.client() for _ in range(4)]
    broker.settle()
    assert [client.is_open for client in clients] == [False, True, False, True]
    assert [client.transport.aborted for client in clients[::2]] == [how == "rst"] * 2
    assert (fault.hits, journalled_hits(broker)) == (
        2,
        [("no", "refuse-connections", 1), ("no", "refuse-connections", 3)],
    )
    closed = [one for one in broker.journal.events() if isinstance(one, ConnectionClosed)]
    assert [(one.by_client, one.reason) for one in closed] == [(False, "fault rule no")] * 2


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_tls_clients_are_refused_before_their_handshake(how: str) -> None:
    broker = VirtualBroker(JOURNAL, *TLS)
    fault = add(broker, Rule(connections.RefuseConnections(how), times=1))  # type: ignore[arg-type]  # a valid literal
    refused = TlsClient(broker, CERTIFICATES.client_context())
    broker.settle()
    assert (refused.closed_at_ms, refused.transport.writes, fault.hits) == (broker.now_ms, [], 1)
    accepted = TlsClient(broker, CERTIFICATES.client_context())
    accepted.shake_hands()
    assert is_answered(accepted)
    assert fault.hits == 1, "the rule is matched once per connection"


def test_restarted_broker_refuses_while_the_rule_lasts() -> None:
    broker = VirtualBroker("sluice.brokers=2")
    fault = add(broker, Rule("refuse-connections", broker=2))
    broker.cluster_server.stop_broker(2)
    broker.run(broker.cluster_server.start_broker(2))
    (endpoint,) = broker.cluster_server.servers[2].endpoints
    assert endpoint.port not in broker.loop.factories
    assert fault.hits == 2
    fault.remove()
    broker.settle()
    assert is_answered(broker.client(node_id=2))
    assert is_answered(broker.client(node_id=1))


def test_only_the_named_listener_refuses() -> None:
    broker = VirtualBroker(
        "listeners=PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
    )
    fault = add(broker, Rule("refuse-connections", listener="OTHER"))
    first, other = broker.server.endpoints
    assert [one.port in broker.loop.factories for one in (first, other)] == [True, False]
    fault.remove()
    broker.settle()
    assert [one.port in broker.loop.factories for one in (first, other)] == [True, True]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (Rule("refuse-connections", times=3), "fault.times: a closed port refuses all connections"),
        (Rule("refuse-connections", listener="SSL"), "fault.listener: unknown listener; expected one of PLAIN"),
        (Rule("silent-connections", client_id="x"), "fault.client_id: does not apply to silent-connections"),
        (Rule("stall-tls"), "fault.action: expected a listener that uses TLS; PLAINTEXT uses PLAINTEXT"),
        (Rule("stall-sasl"), "fault.action: expected a listener that uses SASL; PLAINTEXT uses PLAINTEXT"),
        (Rule("bandwidth"), "fault.action: expected in_bytes_per_s, out_bytes_per_s or both"),
        (
            Rule(connections.Bandwidth(in_bytes_per_s=0)),
            "fault.action.in_bytes_per_s: expected 50k, 1M, 64Ki, or a number of bytes per second, above 0",
        ),
        (Rule(connections.Bandwidth(out_bytes_per_s="fast")), "fault.action.out_bytes_per_s: expected 50k, "),
        (Rule("drop-idle"), "fault.action: drop-idle requires fields: idle missing"),
        (Rule(connections.DropIdle(0)), "fault.action.idle: expected more than 0, got 0"),
    ],
    ids=lambda value: value.action if isinstance(value, Rule) and isinstance(value.action, str) else "",
)
def test_invalid_rule_is_rejected_with_its_path(broker: VirtualBroker, rule: Rule, problem: str) -> None:
    assert rule_error(broker, rule).startswith(problem)


# -- silent and stalled connections ------------------------------------------------------------------------------------


def test_silent_connection_is_answered_when_the_rule_ends(broker: VirtualBroker) -> None:
    before = broker.client()
    fault = add(broker, Rule("silent-connections", times=1))
    silent, after = broker.client(), broker.client()
    silent.send(ApiVersionsRequest(), 0)
    broker.advance(120_000)
    assert (silent.responses, silent.is_open, fault.hits) == ([], True, 1)
    assert [is_answered(before), is_answered(after)] == [True, True]
    fault.remove()
    broker.settle()
    assert silent.response()


def test_silent_connection_is_counted_and_closes_with_its_broker(broker: VirtualBroker) -> None:
    add(broker, Rule("silent-connections"))
    silent = broker.client()
    assert len(broker.server.connections) == 1
    broker.cluster_server.stop_broker(1, controlled=False)
    broker.settle()
    assert silent.closed_at_ms is not None


@pytest.mark.parametrize("kind", ["silent-connections", "stall-tls"])
def test_stalled_tls_handshake_continues_when_the_rule_ends(kind: str) -> None:
    broker = VirtualBroker(JOURNAL, *TLS)
    fault = add(broker, Rule(kind, id="stall", times=1))
    client = TlsClient(broker, CERTIFICATES.client_context())
    with suppress(ssl.SSLWantReadError):
        client.tls.do_handshake()
    client.send_plain(client.take_outgoing())
    broker.advance(120_000)
    assert (client.transport.writes, client.is_open) == ([], True), "a stalled handshake never times out"
    assert (fault.hits, journalled_hits(broker)) == (1, [("stall", kind, -1)])
    fault.remove()
    broker.settle()
    client.shake_hands()
    assert is_answered(client)


def test_connection_action_names() -> None:
    assert connections.StallTls().kind == "stall-tls"
    assert connections.SilentConnections().kind == "silent-connections"


def test_stalled_sasl_exchange_continues_when_the_rule_ends() -> None:
    broker = VirtualBroker(JOURNAL, *SASL)
    fault = add(broker, Rule("stall-sasl"))
    client = broker.client()
    assert is_answered(client)
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    client.send(MetadataRequest(topics=[]), 9)
    broker.advance(60_000)
    assert (client.responses, client.is_open, fault.hits) == ([], True, 1)
    fault.remove()
    broker.settle()
    assert [one.api for one in client.take_responses()] == ["SaslAuthenticate", "Metadata"]
    assert client.connection.ctx.session.user == "alice"


def test_sasl_handshake_can_be_stalled() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule(connections.StallSasl("handshake")))
    client = broker.client()
    assert is_answered(client)
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    broker.advance(60_000)
    assert not client.responses
    fault.remove()
    assert client.response().message.error_code == 0
    assert is_answered(logged_in(broker))


def test_stalled_wrong_password_is_rejected_when_the_rule_ends() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule("stall-sasl"))
    client = broker.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain(password="wrong")), 2)
    fault.remove()
    broker.advance(1_000)
    assert client.response().message.error_code
    assert not client.is_open


def test_client_that_disconnects_while_stalled_is_removed() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule("stall-sasl"))
    client = broker.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    client.leave()
    fault.remove()
    broker.settle()
    assert not broker.server.connections
    assert fault.enabled


# -- limited bandwidth -------------------------------------------------------------------------------------------------


def test_bandwidth_applies_to_open_and_new_connections(broker: VirtualBroker) -> None:
    before = broker.client()
    before.call(produce_of(50_000, 9, "client"), 9)
    fault = add(broker, Rule(connections.Bandwidth(out_bytes_per_s="10k")))
    after = broker.client()
    began_ms = broker.now_ms
    for client in (before, after):
        client.send(fetch(0), 11)
    broker.advance(10_000)
    responses = [client.response() for client in (before, after)]
    assert [one.at_ms - began_ms for one in responses] == pytest.approx([one.size / 10 for one in responses], abs=60)
    assert fault.hits == 2
    fault.remove()
    assert before.call(fetch(0), 11), "responses are no longer delayed"


def test_bandwidth_applies_to_the_named_client_after_its_first_request(broker: VirtualBroker) -> None:
    existing = broker.client("slow-1")
    assert is_answered(existing)
    fault = add(broker, Rule(connections.Bandwidth(in_bytes_per_s=RATE), client_id="slow-*"))
    slow, fast = broker.client("slow-2"), broker.client("fast")
    assert [is_answered(slow), is_answered(fast)] == [True, True]
    assert fault.hits == 2
    for client in (existing, slow, fast):
        client.send(produce_of(20_000, 9, client.client_id), 9)
    assert [bool(client.take_responses()) for client in (existing, slow, fast)] == [False, False, True]
    broker.advance(2_100)
    assert existing.response()
    assert slow.response()


def test_bandwidth_can_start_at_a_connection_age(broker: VirtualBroker) -> None:
    fault = add(broker, Rule(connections.Bandwidth(in_bytes_per_s=100), connection_older_than="1s"))
    client = broker.client()
    assert is_answered(client)
    broker.advance(1_001)
    assert is_answered(client)
    assert fault.hits == 1
    client.send(produce_of(1_000, 9, "client"), 9)
    broker.advance(1_000)
    assert not client.responses


def test_bandwidth_for_a_principal_starts_after_authentication() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule(connections.Bandwidth(in_bytes_per_s=RATE), principal="User:alice"))
    logged_in(broker, "bob")
    assert fault.hits == 0
    logged_in(broker, "alice")
    assert fault.hits == 1


def test_slowest_of_several_bandwidths_applies_in_any_order_of_removal(client: Client, broker: VirtualBroker) -> None:
    slow, slower = (add(broker, Rule(connections.Bandwidth(in_bytes_per_s=rate))) for rate in (RATE, 100))
    client.send(produce_of(10_000, 9, "client"), 9)
    broker.advance(2_000)
    assert not client.responses
    slower.remove()
    broker.advance(1_100)
    assert client.response()
    slow.remove()
    client.call(produce_of(10_000, 9, "client"), 9)


# -- dropped connections -----------------------------------------------------------------------------------------------


def test_idle_connection_is_dropped_and_counted(broker: VirtualBroker) -> None:
    idle, busy = broker.client(), broker.client()
    fault = add(broker, Rule(connections.DropIdle("2s"), id="nat"))
    for _ in range(4):
        broker.advance(1_000)
        assert is_answered(busy)
    assert (fault.hits, journalled_hits(broker)) == (1, [("nat", "drop-idle", 1)])
    idle.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (idle.responses, idle.is_open) == ([], True)


def test_dropped_connection_stays_dropped_after_the_rule_ends(broker: VirtualBroker) -> None:
    dropped = broker.client()
    fault = add(broker, Rule(connections.DropIdle("2s")))
    broker.advance(1_500)
    kept = broker.client()
    broker.advance(1_000)
    fault.remove()
    broker.advance(60_000)
    assert [is_answered(dropped), is_answered(kept)] == [False, True]


def test_new_connection_is_answered_after_an_idle_one_was_dropped(broker: VirtualBroker) -> None:
    add(broker, Rule(connections.DropIdle("2s")))
    broker.client()
    broker.advance(2_000)
    assert is_answered(broker.client())
