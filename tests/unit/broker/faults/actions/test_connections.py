"""Actions on connections, in virtual time: what their clients see, what is counted and told, and how it ends."""

import ssl
from contextlib import suppress

import pytest

from sluice.broker.faults.actions.connections import (
    Bandwidth,
    DropIdle,
    RefuseConnections,
    SilentConnections,
    StallSasl,
    StallTls,
)
from sluice.broker.faults.fault import Fault
from sluice.broker.faults.matching.errors import FaultError
from sluice.broker.faults.rule import Rule
from sluice.broker.journal.reader import JournalReader
from sluice.journal_events import AnyEvent, ConnectionClosed
from sluice.journal_events import Fault as FaultEvent
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.apis.sasl_handshake import SaslHandshakeRequest
from tests.support.certificates import certificates
from tests.support.records import fetch, produce_of
from tests.support.sasl import SASL, logged_in, plain
from tests.support.tls_client import TlsClient
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker

CERTIFICATES = certificates()
TLS = ("listeners=SSL://127.0.0.1:0", *CERTIFICATES.broker_overrides)
RATE = 10_000


@pytest.fixture
def broker() -> VirtualBroker:
    broker = VirtualBroker(JOURNAL)
    broker.topic()
    return broker


def add(broker: VirtualBroker, rule: Rule) -> Fault:
    return broker.cluster_server.faults.add(rule)


def refusal(broker: VirtualBroker, rule: Rule) -> str:
    with pytest.raises(FaultError) as refused:
        broker.cluster_server.faults.check(rule)
    return str(refused.value)


def events(broker: VirtualBroker) -> list[AnyEvent]:
    assert broker.cluster.journal is not None
    return JournalReader(broker.cluster.journal, broker.clock).events()


def told(broker: VirtualBroker) -> list[tuple[str, str, int]]:
    """Rule, action and connection of each hit in the journal."""
    return [(one.rule_id, one.action, one.connection) for one in events(broker) if isinstance(one, FaultEvent)]


def answers(client: Client) -> bool:
    """Whether a client that asks is answered at once."""
    client.send(ApiVersionsRequest(), 0)
    client.broker.settle()
    return bool(client.take_answers())


# -- refused -----------------------------------------------------------------------------------------------------------


def test_a_closed_port_takes_nobody_until_the_rule_ends(broker: VirtualBroker) -> None:
    (endpoint,) = broker.server.endpoints
    before = broker.client()
    fault = add(broker, Rule("refuse-connections", id="shut", during="5s"))
    assert endpoint.port not in broker.loop.factories
    assert answers(before)
    assert (fault.hits, told(broker)) == (1, [("shut", "refuse-connections", -1)])
    broker.advance(5_000)
    assert answers(broker.client())


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_connections_are_ended_at_once_as_often_as_it_says(broker: VirtualBroker, how: str) -> None:
    fault = add(broker, Rule(RefuseConnections(how), id="no", schedule="1 fail, 1 pass, repeat"))  # type: ignore[arg-type]  # one of those
    clients = [broker.client() for _ in range(4)]
    broker.settle()
    assert [client.is_open for client in clients] == [False, True, False, True]
    assert [client.transport.aborted for client in clients[::2]] == [how == "rst"] * 2
    assert (fault.hits, told(broker)) == (2, [("no", "refuse-connections", 1), ("no", "refuse-connections", 3)])
    closed = [one for one in events(broker) if isinstance(one, ConnectionClosed)]
    assert [(one.by_client, one.reason) for one in closed] == [(False, "fault rule no")] * 2


@pytest.mark.parametrize("how", ["rst", "fin"])
def test_tls_clients_are_refused_before_their_handshake(how: str) -> None:
    broker = VirtualBroker(JOURNAL, *TLS)
    fault = add(broker, Rule(RefuseConnections(how), times=1))  # type: ignore[arg-type]  # one of those
    refused = TlsClient(broker, CERTIFICATES.client_context())
    broker.settle()
    assert (refused.closed_at_ms, refused.transport.writes, fault.hits) == (broker.now_ms, [], 1)
    taken = TlsClient(broker, CERTIFICATES.client_context())
    taken.shake_hands()
    assert answers(taken)
    assert fault.hits == 1, "it is met once, at the door"


def test_a_broker_that_is_started_again_refuses_while_the_rule_lasts() -> None:
    broker = VirtualBroker("sluice.brokers=2")
    fault = add(broker, Rule("refuse-connections", broker=2))
    broker.cluster_server.stop_broker(2)
    broker.run(broker.cluster_server.start_broker(2))
    (endpoint,) = broker.cluster_server.servers[2].endpoints
    assert endpoint.port not in broker.loop.factories
    assert fault.hits == 2
    fault.remove()
    broker.settle()
    assert answers(broker.client(node_id=2))
    assert answers(broker.client(node_id=1))


def test_only_the_listener_that_is_named_refuses() -> None:
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
        (
            Rule("refuse-connections", listener="SSL"),
            "fault.listener: unknown listener; expected one of PLAIN",
        ),
        (Rule("silent-connections", client_id="x"), "fault.client_id: does not apply to silent-connections"),
        (Rule("stall-tls"), "fault.action: expected a listener that uses TLS; PLAINTEXT uses PLAINTEXT"),
        (Rule("stall-sasl"), "fault.action: expected a listener that uses SASL; PLAINTEXT uses PLAINTEXT"),
        (Rule("bandwidth"), "fault.action: expected in_bytes_per_s, out_bytes_per_s or both"),
        (
            Rule(Bandwidth(in_bytes_per_s=0)),
            "fault.action.in_bytes_per_s: expected 50k, 1M, 64Ki, or a number of bytes per second, above 0",
        ),
        (Rule(Bandwidth(out_bytes_per_s="fast")), "fault.action.out_bytes_per_s: expected 50k, "),
        (Rule("drop-idle"), "fault.action: drop-idle requires fields: idle is needed"),
        (Rule(DropIdle(0)), "fault.action.idle: expected more than 0, got 0"),
    ],
    ids=lambda value: value.action if isinstance(value, Rule) and isinstance(value.action, str) else "",
)
def test_a_rule_that_cannot_work_is_refused_with_its_place(broker: VirtualBroker, rule: Rule, problem: str) -> None:
    assert refusal(broker, rule).startswith(problem)


# -- silent, and stalled -----------------------------------------------------------------------------------------------


def test_a_silent_connection_is_answered_when_the_rule_ends(broker: VirtualBroker) -> None:
    before = broker.client()
    fault = add(broker, Rule("silent-connections", times=1))
    silent, after = broker.client(), broker.client()
    silent.send(ApiVersionsRequest(), 0)
    broker.advance(120_000)
    assert (silent.answers, silent.is_open, fault.hits) == ([], True, 1)
    assert [answers(before), answers(after)] == [True, True]
    fault.remove()
    broker.settle()
    assert silent.answer()


def test_a_silent_connection_counts_and_ends_with_its_broker(broker: VirtualBroker) -> None:
    add(broker, Rule("silent-connections"))
    silent = broker.client()
    assert len(broker.server.connections) == 1
    broker.cluster_server.stop_broker(1, controlled=False)
    broker.settle()
    assert silent.closed_at_ms is not None


@pytest.mark.parametrize("kind", ["silent-connections", "stall-tls"])
def test_a_tls_handshake_goes_on_when_the_rule_ends(kind: str) -> None:
    broker = VirtualBroker(JOURNAL, *TLS)
    fault = add(broker, Rule(kind, id="stall", times=1))
    client = TlsClient(broker, CERTIFICATES.client_context())
    with suppress(ssl.SSLWantReadError):
        client.tls.do_handshake()
    client.send_plain(client.take_outgoing())
    broker.advance(120_000)
    assert (client.transport.writes, client.is_open) == ([], True), "no time runs out while it is stalled"
    assert (fault.hits, told(broker)) == (1, [("stall", kind, -1)])
    fault.remove()
    broker.settle()
    client.shake_hands()
    assert answers(client)


def test_stall_tls_is_the_action_s_name() -> None:
    assert StallTls().kind == "stall-tls"
    assert SilentConnections().kind == "silent-connections"


def test_a_stalled_exchange_answers_what_comes_before_it_and_goes_on_when_the_rule_ends() -> None:
    broker = VirtualBroker(JOURNAL, *SASL)
    fault = add(broker, Rule("stall-sasl"))
    client = broker.client()
    assert answers(client)
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    client.send(MetadataRequest(topics=[]), 9)
    broker.advance(60_000)
    assert (client.answers, client.is_open, fault.hits) == ([], True, 1)
    fault.remove()
    broker.settle()
    assert [one.api for one in client.take_answers()] == ["SaslAuthenticate", "Metadata"]
    assert client.connection.ctx.session.user == "alice"


def test_a_handshake_of_sasl_can_be_stalled() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule(StallSasl("handshake")))
    client = broker.client()
    assert answers(client)
    client.send(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    broker.advance(60_000)
    assert not client.answers
    fault.remove()
    assert client.answer().message.error_code == 0
    assert answers(logged_in(broker))


def test_a_wrong_password_that_was_stalled_is_refused_in_the_end() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule("stall-sasl"))
    client = broker.client()
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=plain(password="wrong")), 2)
    fault.remove()
    broker.advance(1_000)
    assert client.answer().message.error_code
    assert not client.is_open


def test_who_leaves_a_stalled_exchange_is_gone() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule("stall-sasl"))
    client = broker.client()
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    client.leave()
    fault.remove()
    broker.settle()
    assert not broker.server.connections
    assert fault.enabled


# -- slow --------------------------------------------------------------------------------------------------------------


def test_a_bandwidth_holds_for_connections_that_are_open_and_those_that_come(broker: VirtualBroker) -> None:
    before = broker.client()
    before.ask(produce_of(50_000, 9, "client"), 9)
    fault = add(broker, Rule(Bandwidth(out_bytes_per_s="10k")))
    after = broker.client()
    began_ms = broker.now_ms
    for client in (before, after):
        client.send(fetch(0), 11)
    broker.advance(10_000)
    taken = [client.answer() for client in (before, after)]
    assert [one.at_ms - began_ms for one in taken] == pytest.approx([one.size / 10 for one in taken], abs=60)
    assert fault.hits == 2
    fault.remove()
    assert before.ask(fetch(0), 11), "at once"


def test_a_bandwidth_is_of_the_client_that_it_names_once_that_is_known(broker: VirtualBroker) -> None:
    open_already = broker.client("slow-1")
    assert answers(open_already)
    fault = add(broker, Rule(Bandwidth(in_bytes_per_s=RATE), client_id="slow-*"))
    slow, fast = broker.client("slow-2"), broker.client("fast")
    assert [answers(slow), answers(fast)] == [True, True]
    assert fault.hits == 2
    for client in (open_already, slow, fast):
        client.send(produce_of(20_000, 9, client.client_id), 9)
    assert [bool(client.take_answers()) for client in (open_already, slow, fast)] == [False, False, True]
    broker.advance(2_100)
    assert open_already.answer()
    assert slow.answer()


def test_a_bandwidth_can_begin_when_a_connection_is_old(broker: VirtualBroker) -> None:
    fault = add(broker, Rule(Bandwidth(in_bytes_per_s=100), connection_older_than="1s"))
    client = broker.client()
    assert answers(client)
    broker.advance(1_001)
    assert answers(client)
    assert fault.hits == 1
    client.send(produce_of(1_000, 9, "client"), 9)
    broker.advance(1_000)
    assert not client.answers


def test_a_bandwidth_that_names_who_has_logged_in_waits_for_that() -> None:
    broker = VirtualBroker(*SASL)
    fault = add(broker, Rule(Bandwidth(in_bytes_per_s=RATE), principal="User:alice"))
    logged_in(broker, "bob")
    assert fault.hits == 0
    logged_in(broker, "alice")
    assert fault.hits == 1


def test_of_several_bandwidths_the_slowest_counts_whichever_ends_first(broker: VirtualBroker) -> None:
    client = broker.client()
    slow, slower = (add(broker, Rule(Bandwidth(in_bytes_per_s=rate))) for rate in (RATE, 100))
    client.send(produce_of(10_000, 9, "client"), 9)
    broker.advance(2_000)
    assert not client.answers
    slower.remove()
    broker.advance(1_100)
    assert client.answer()
    slow.remove()
    client.ask(produce_of(10_000, 9, "client"), 9)


# -- dropped -----------------------------------------------------------------------------------------------------------


def test_an_idle_connection_is_dropped_and_counted_when_it_is(broker: VirtualBroker) -> None:
    idle, busy = broker.client(), broker.client()
    fault = add(broker, Rule(DropIdle("2s"), id="nat"))
    for _ in range(4):
        broker.advance(1_000)
        assert answers(busy)
    assert (fault.hits, told(broker)) == (1, [("nat", "drop-idle", 1)])
    idle.send(ApiVersionsRequest(), 0)
    broker.advance(60_000)
    assert (idle.answers, idle.is_open) == ([], True)


def test_what_was_dropped_stays_so_when_the_rule_ends_and_what_was_not_stays(broker: VirtualBroker) -> None:
    dropped = broker.client()
    fault = add(broker, Rule(DropIdle("2s")))
    broker.advance(1_500)
    kept = broker.client()
    broker.advance(1_000)
    fault.remove()
    broker.advance(60_000)
    assert [answers(dropped), answers(kept)] == [False, True]


def test_a_new_connection_is_as_good_as_ever(broker: VirtualBroker) -> None:
    add(broker, Rule(DropIdle("2s")))
    broker.client()
    broker.advance(2_000)
    assert answers(broker.client())
