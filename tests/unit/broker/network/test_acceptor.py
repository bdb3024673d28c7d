"""Connection limits, as clients experience them, in virtual time.

With a limit of 1 connection/s, the first ten are admitted at once and the next one waits a second.
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
    """Open connections and send a request on each."""
    clients = [broker.client(host=host, listener=listener) for _ in range(count)]
    for client in clients:
        client.send(ApiVersionsRequest(), 0)
    return clients


def answered_ms(clients: list[Client]) -> list[float | None]:
    """Return the time of each client's first response; None if it has none."""
    return [client.responses[0].at_ms if client.responses else None for client in clients]


def configure(broker: VirtualBroker, **configs: str) -> None:
    """Alter configs of all brokers, written with underscores for dots."""
    dotted = {name.replace("_", "."): value for name, value in configs.items()}
    own = broker.broker.config.cluster_defaults() | dotted
    assert broker.broker.configs.replace(BROKER, "", own, validate_only=False) is None
    broker.settle()


def limit_address(broker: VirtualBroker, address: str | None, rate: float | None) -> None:
    broker.cluster.client_quotas.alter({"ip": address}, {"connection_creation_rate": rate})


def test_broker_without_limits_has_no_acceptor(broker: VirtualBroker) -> None:
    assert answered_ms(connect(broker, 50)) == [0] * 50
    assert broker.server.acceptor is None


# -- creation rate -----------------------------------------------------------------------------------------------------


def test_connections_above_the_creation_rate_are_admitted_one_after_the_other() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    clients = connect(broker, 13)
    assert answered_ms(clients) == [0] * 10 + [None] * 3
    assert not clients[10].transport.reading, "a connection that waits for admission is not read"
    broker.advance(999)
    assert answered_ms(clients)[10:] == [None] * 3
    broker.advance(1)
    # A connection is charged when it becomes the first that waits: the 12th at 1 s, the 13th at 2 s.
    assert answered_ms(clients)[10:] == [1_000, None, None]
    broker.advance(20_000)
    assert answered_ms(clients)[10:] == [1_000, 2_000, 3_000]


def test_connection_that_closes_while_it_waits_does_not_delay_the_next_one() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    first, second, third = connect(broker, 13)[10:]
    for client in (first, second):
        client.connection.cut()
    broker.advance(20_000)
    assert answered_ms([third]) == [2_000]
    assert [client.responses for client in (first, second)] == [[], []]


LISTENERS = {"other listener": (0, [1_000]), "inter-broker listener": (1, [0])}


@pytest.mark.parametrize(("listener", "expected"), LISTENERS.values(), ids=LISTENERS)
def test_inter_broker_listener_does_not_wait_for_the_broker_wide_rate(listener: int, expected: list[float]) -> None:
    # The prefix listener.name.internal overrides the setting for all listeners.
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


# -- connection count --------------------------------------------------------------------------------------------------


def test_connection_above_the_limit_waits_until_another_closes() -> None:
    broker = VirtualBroker("max.connections=2")
    first, _, third, fourth = connect(broker, 4)
    broker.advance(60_000)
    assert answered_ms([third, fourth]) == [None, None]
    first.leave()
    assert answered_ms([third, fourth]) == [60_000, None]
    third.leave()
    assert answered_ms([fourth]) == [60_000]


def test_listener_has_its_own_connection_limit() -> None:
    broker = VirtualBroker(TWO, MAP, "listener.name.external.max.connections=1")
    assert answered_ms(connect(broker, 2)) == [0, None]
    assert answered_ms(connect(broker, 3, listener=1)) == [0] * 3


def test_inter_broker_connection_closes_the_least_recently_used_connection() -> None:
    broker = VirtualBroker(TWO, MAP, INTER_BROKER, "max.connections=2", "listener.name.internal.max.connections=9")
    first, second = connect(broker, 2)
    broker.advance(1_000)
    first.send(ApiVersionsRequest(), 0)
    assert answered_ms(connect(broker, listener=1)) == [1_000]
    broker.settle()
    assert (first.is_open, second.is_open) == (True, False)


def test_connection_above_the_limit_of_its_address_is_closed() -> None:
    broker = VirtualBroker("max.connections.per.ip=1", "max.connections.per.ip.overrides=10.0.0.2:2,::1:1")
    one, two = connect(broker, host="10.0.0.1"), connect(broker, 2, host="10.0.0.2")
    excess = [broker.client(host=host) for host in ("10.0.0.1", "10.0.0.2")]
    broker.settle()
    assert (answered_ms(one), answered_ms(two)) == ([0], [0, 0])
    assert [client.closed_at_ms for client in excess] == [0, 0]
    one[0].leave()
    assert answered_ms(connect(broker, host="10.0.0.1")) == [0]


# -- creation rate per address -----------------------------------------------------------------------------------------


def test_connection_above_the_creation_rate_of_its_address_is_closed_after_a_delay(broker: VirtualBroker) -> None:
    limit_address(broker, "10.0.0.1", 1.0)
    assert answered_ms(connect(broker, 10, host="10.0.0.1")) == [0] * 10
    (rejected,) = connect(broker, host="10.0.0.1")
    assert answered_ms(connect(broker, 20, host="10.0.0.2")) == [0] * 20, "other addresses do not wait"
    broker.advance(999)
    assert (rejected.responses, rejected.is_open) == ([], True)
    broker.advance(1)
    assert (rejected.responses, rejected.closed_at_ms) == ([], 1_000)
    broker.advance(10_000)
    assert answered_ms(connect(broker, host="10.0.0.1")) == [11_000], (
        "a connection rejected for its address is not counted"
    )


def test_default_creation_rate_applies_to_each_address(broker: VirtualBroker) -> None:
    limit_address(broker, None, 1.0)
    for host in ("10.0.0.1", "10.0.0.2"):
        assert answered_ms(connect(broker, 11, host=host)) == [0] * 10 + [None]
    limit_address(broker, None, None)
    assert answered_ms(connect(broker, 5, host="10.0.0.1")) == [0] * 5


# -- changes at runtime ------------------------------------------------------------------------------------------------


def test_existing_connections_count_when_a_limit_is_set(broker: VirtualBroker) -> None:
    first, _ = connect(broker, 2)
    configure(broker, max_connections="2")
    waiting = connect(broker)
    assert answered_ms(waiting) == [None]
    first.leave()
    assert answered_ms(waiting) == [0]


def test_raised_limit_admits_waiting_connections() -> None:
    broker = VirtualBroker("max.connections=1")
    clients = connect(broker, 300)
    broker.advance(500)
    configure(broker, max_connections="250")
    assert answered_ms(clients) == [0] + [500] * 249 + [None] * 50
    configure(broker)  # removed: the limit of the start applies again
    clients[0].leave()
    assert answered_ms(clients)[250] is None


def test_lowered_limit_closes_the_least_recently_used_connections(broker: VirtualBroker) -> None:
    clients = connect(broker, 3)
    broker.advance(1_000)
    clients[1].send(ApiVersionsRequest(), 0)
    configure(broker, max_connections="1")
    assert [client.is_open for client in clients] == [False, True, False]


def test_raised_rate_does_not_shorten_a_delay_in_progress() -> None:
    broker = VirtualBroker("max.connection.creation.rate=1")
    clients = connect(broker, 13)[10:]
    broker.advance(300)
    configure(broker, max_connection_creation_rate="1000")
    assert answered_ms(clients) == [None] * 3
    broker.advance(700)
    assert answered_ms(clients) == [1_000] * 3


def test_connection_limit_of_a_listener_can_be_altered() -> None:
    broker = VirtualBroker(TWO, MAP)
    defaults = broker.broker.config.cluster_defaults()
    limited = defaults | {"listener.name.external.max.connections": "1"}
    assert broker.broker.configs.replace(BROKER, "", limited, validate_only=False) is None
    assert answered_ms(connect(broker, 2)) == [0, None]
    assert answered_ms(connect(broker, 2, listener=1)) == [0, 0]
    assert broker.broker.configs.replace(BROKER, "", defaults, validate_only=False) is None
    assert answered_ms(connect(broker, 2)) == [0, 0], "connections that wait are admitted first"


INVALID_CONFIGS = [
    ({"listener.name.plaintext.max.connections": "0"}, "Invalid listener.name.plaintext.max.connections 0"),
    ({"listener.name.plaintext.max.connections.per.ip": "1"}, "Cannot update these configs at default cluster level"),
    ({"max.connections": "0"}, "Invalid max.connections 0"),
    ({"max.connection.creation.rate": "0"}, "Invalid max.connection.creation.rate 0"),
    ({"max.connections": "x"}, "Invalid value x for configuration max.connections: Not a number of type INT"),
    ({"max.connections.per.ip.overrides": "a"}, "Error parsing configuration property"),
]


@pytest.mark.parametrize(("configs", "message"), INVALID_CONFIGS)
def test_invalid_dynamic_config_is_rejected(broker: VirtualBroker, configs: dict[str, str], message: str) -> None:
    rejection = broker.broker.configs.replace(BROKER, "", configs, validate_only=False)
    assert rejection is not None
    assert message in (rejection.message or "")


INVALID_LIMITS = [
    ("max.connections.per.ip=0", "max.connections.per.ip: expected at least 1, unless max.connections.per.ip.over"),
    ("max.connections.per.ip.overrides=:5", "expected HOST:COUNT"),
    ("max.connections.per.ip.overrides=::1:-1", "expected HOST:COUNT"),
    ("max.connections=-1", "max.connections: expected an integer"),
]


@pytest.mark.parametrize(("property_", "message"), INVALID_LIMITS)
def test_invalid_limit_fails_the_start(property_: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace(".", r"\.")):
        VirtualBroker(property_)


def test_rates_of_idle_addresses_are_removed(broker: VirtualBroker) -> None:
    limit_address(broker, None, 1.0)
    connect(broker)
    acceptor = broker.server.acceptor
    assert acceptor is not None
    broker.advance(3_600_000)
    assert list(acceptor.quotas.address_rates) == ["127.0.0.1"]
    broker.advance(60_000)
    assert acceptor.quotas.address_rates == {}
