"""Limits of connections, as clients meet them; in virtual time.

The arithmetic of the tests: at 1 connection/s the first ten come in at once, the next waits a second.
"""

import pytest

from sluice.broker.controller.configs.resource import BROKER
from sluice.errors import ConfigError
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from tests.support.virtual_broker import Client, VirtualBroker

TWO = "listeners=EXTERNAL://127.0.0.1:0,INTERNAL://127.0.0.1:0"
MAP = "listener.security.protocol.map=EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT"
INTER_BROKER = "inter.broker.listener.name=INTERNAL"


def connect(broker: VirtualBroker, count: int = 1, *, host: str = "127.0.0.1", listener: int = 0) -> list[Client]:
    """New connections, each of which asks something at once."""
    clients = [broker.client(host=host, listener=listener) for _ in range(count)]
    for client in clients:
        client.send(ApiVersionsRequest(), 0)
    return clients


def answered_ms(clients: list[Client]) -> list[float | None]:
    """When each was answered; None: not yet."""
    return [client.answers[0].at_ms if client.answers else None for client in clients]


def leave(broker: VirtualBroker, client: Client) -> None:
    client.leave()
    broker.settle()


def configure(broker: VirtualBroker, **configs: str) -> None:
    """Alters configs of all brokers; they are written with underscores for dots."""
    dotted = {name.replace("_", "."): value for name, value in configs.items()}
    assert broker.broker.configs.replace(BROKER, "", dotted, validate_only=False) is None
    broker.settle()


def limit_address(broker: VirtualBroker, address: str | None, rate: float | None) -> None:
    broker.cluster.client_quotas.alter({"ip": address}, {"connection_creation_rate": rate})


def test_without_limits_there_is_no_acceptor() -> None:
    broker = VirtualBroker()
    assert answered_ms(connect(broker, 50)) == [0] * 50
    assert broker.server.acceptor is None


# -- how fast ----------------------------------------------------------------------------------------------------------


def test_connections_that_come_too_fast_are_taken_in_one_after_the_other() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    clients = connect(broker, 13)
    assert answered_ms(clients) == [0] * 10 + [None] * 3
    assert not clients[10].transport.reading, "who waits is not read"
    broker.advance(999)
    assert answered_ms(clients)[10:] == [None] * 3
    broker.advance(1)
    # Each is charged when it is its turn: the 12th at 1 s, when twelve have come in ten seconds.
    assert answered_ms(clients)[10:] == [1_000, None, None]
    broker.advance(20_000)
    assert answered_ms(clients)[10:] == [1_000, 2_000, 3_000]


def test_one_that_leaves_while_it_waits_holds_nobody_up() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    first, second, third = connect(broker, 13)[10:]
    for client in (first, second):
        client.connection.cut()
    broker.advance(20_000)
    assert answered_ms([third]) == [2_000]
    assert [client.answers for client in (first, second)] == [[], []]


@pytest.mark.parametrize(
    ("listener", "expected"),
    [pytest.param(0, [1_000], id="another listener"), pytest.param(1, [0], id="the brokers' own")],
)
def test_the_brokers_listener_does_not_wait_for_the_brokers_rate(listener: int, expected: list[float]) -> None:
    # Of its own rate it has none: listener.name.internal goes before what holds for all.
    broker = VirtualBroker(
        TWO,
        MAP,
        INTER_BROKER,
        "max.connection.creation.rate=1",
        "listener.name.internal.max.connection.creation.rate=9",
    )
    connect(broker, 10)
    clients = connect(broker, listener=listener)
    broker.advance(5_000)
    assert answered_ms(clients) == expected


# -- how many ----------------------------------------------------------------------------------------------------------


def test_one_too_many_waits_until_another_goes() -> None:
    broker = VirtualBroker("max.connections=2")
    first, _, third, fourth = connect(broker, 4)
    broker.advance(60_000)
    assert answered_ms([third, fourth]) == [None, None]
    leave(broker, first)
    assert answered_ms([third, fourth]) == [60_000, None]
    leave(broker, third)
    assert answered_ms([fourth]) == [60_000]


def test_a_listener_has_its_own_number() -> None:
    broker = VirtualBroker(TWO, MAP, "listener.name.external.max.connections=1")
    assert answered_ms(connect(broker, 2)) == [0, None]
    assert answered_ms(connect(broker, 3, listener=1)) == [0] * 3


def test_for_the_brokers_listener_the_connection_that_was_idle_longest_goes() -> None:
    broker = VirtualBroker(TWO, MAP, INTER_BROKER, "max.connections=2", "listener.name.internal.max.connections=9")
    first, second = connect(broker, 2)
    broker.advance(1_000)
    first.send(ApiVersionsRequest(), 0)
    assert answered_ms(connect(broker, listener=1)) == [1_000]
    broker.settle()
    assert (first.is_open, second.is_open) == (True, False)


def test_an_address_with_too_many_has_the_next_one_closed() -> None:
    broker = VirtualBroker("max.connections.per.ip=1", "max.connections.per.ip.overrides=10.0.0.2:2,::1:1")
    one, two = connect(broker, host="10.0.0.1"), connect(broker, 2, host="10.0.0.2")
    more = [broker.client(host=host) for host in ("10.0.0.1", "10.0.0.2")]
    broker.settle()
    assert (answered_ms(one), answered_ms(two)) == ([0], [0, 0])
    assert [client.closed_at_ms for client in more] == [0, 0]
    leave(broker, one[0])
    assert answered_ms(connect(broker, host="10.0.0.1")) == [0]


# -- how fast from one address -----------------------------------------------------------------------------------------


def test_an_address_that_comes_too_fast_hears_nothing_and_is_closed_later() -> None:
    broker = VirtualBroker()
    limit_address(broker, "10.0.0.1", 1.0)
    assert answered_ms(connect(broker, 10, host="10.0.0.1")) == [0] * 10
    (late,) = connect(broker, host="10.0.0.1")
    assert answered_ms(connect(broker, 20, host="10.0.0.2")) == [0] * 20, "others do not wait"
    broker.advance(999)
    assert (late.answers, late.is_open) == ([], True)
    broker.advance(1)
    assert (late.answers, late.closed_at_ms) == ([], 1_000)
    broker.advance(10_000)
    assert answered_ms(connect(broker, host="10.0.0.1")) == [11_000], "it counted for nothing"


def test_a_limit_of_all_addresses_is_one_for_each() -> None:
    broker = VirtualBroker()
    limit_address(broker, None, 1.0)
    for host in ("10.0.0.1", "10.0.0.2"):
        assert answered_ms(connect(broker, 11, host=host)) == [0] * 10 + [None]
    limit_address(broker, None, None)
    assert answered_ms(connect(broker, 5, host="10.0.0.1")) == [0] * 5


# -- while it runs -----------------------------------------------------------------------------------------------------


def test_those_that_are_there_count_when_a_limit_is_set() -> None:
    broker = VirtualBroker()
    first, _ = connect(broker, 2)
    configure(broker, max_connections="2")
    waiting = connect(broker)
    assert answered_ms(waiting) == [None]
    leave(broker, first)
    assert answered_ms(waiting) == [0]


def test_a_limit_that_is_raised_lets_those_in_that_wait() -> None:
    broker = VirtualBroker("max.connections=1")
    clients = connect(broker, 300)
    broker.advance(500)
    configure(broker, max_connections="250")
    assert answered_ms(clients) == [0] + [500] * 249 + [None] * 50
    configure(broker)  # removed: what it was started with holds
    leave(broker, clients[0])
    assert answered_ms(clients)[250] is None


def test_a_limit_that_is_lowered_closes_those_that_were_idle_longest() -> None:
    broker = VirtualBroker()
    clients = connect(broker, 3)
    broker.advance(1_000)
    clients[1].send(ApiVersionsRequest(), 0)
    configure(broker, max_connections="1")
    assert [client.is_open for client in clients] == [False, True, False]


def test_a_rate_that_is_raised_lets_the_one_that_waits_wait_on() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    clients = connect(broker, 13)[10:]
    broker.advance(300)
    configure(broker, max_connection_creation_rate="1000")
    assert answered_ms(clients) == [None] * 3
    broker.advance(700)
    assert answered_ms(clients) == [1_000] * 3


def test_the_limit_of_a_listener_can_be_altered() -> None:
    broker = VirtualBroker(TWO, MAP)
    dotted = {"listener.name.external.max.connections": "1"}
    assert broker.broker.configs.replace(BROKER, "", dotted, validate_only=False) is None
    assert answered_ms(connect(broker, 2)) == [0, None]
    assert answered_ms(connect(broker, 2, listener=1)) == [0, 0]
    assert broker.broker.configs.replace(BROKER, "", {}, validate_only=False) is None
    assert answered_ms(connect(broker, 2)) == [0, 0], "who waits comes first"


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ({"listener.name.plaintext.max.connections": "0"}, "Invalid listener.name.plaintext.max.connections 0"),
        ({"listener.name.plaintext.max.connections.per.ip": "1"}, "Cannot update these configs dynamically"),
        ({"max.connections": "0"}, "Invalid max.connections 0"),
        ({"max.connection.creation.rate": "0"}, "Invalid max.connection.creation.rate 0"),
        ({"max.connections": "x"}, "Invalid value x for configuration max.connections: must be an integer from 0 to"),
        ({"max.connections.per.ip.overrides": "a"}, "must be HOST:COUNT, separated by commas"),
    ],
)
def test_what_cannot_be_set(configs: dict[str, str], problem: str) -> None:
    broker = VirtualBroker()
    refusal = broker.broker.configs.replace(BROKER, "", configs, validate_only=False)
    assert refusal is not None
    assert problem in (refusal.message or "")


@pytest.mark.parametrize(
    ("property_", "problem"),
    [
        (
            "max.connections.per.ip=0",
            "max.connections.per.ip=0: must be at least 1, unless max.connections.per.ip.over",
        ),
        ("max.connections.per.ip.overrides=:5", "must be HOST:COUNT"),
        ("max.connections.per.ip.overrides=::1:-1", "must be HOST:COUNT"),
        ("max.connections=-1", "max.connections=-1: must be an integer"),
    ],
)
def test_a_start_with_nonsense_ends_in_one_line(property_: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem.replace(".", r"\.")):
        VirtualBroker(property_)


def test_addresses_are_forgotten_with_time() -> None:
    broker = VirtualBroker()
    limit_address(broker, None, 1.0)
    connect(broker)
    acceptor = broker.server.acceptor
    assert acceptor is not None
    broker.advance(3_600_000)
    assert list(acceptor.quotas.address_rates) == ["127.0.0.1"]
    broker.advance(60_000)
    assert acceptor.quotas.address_rates == {}
