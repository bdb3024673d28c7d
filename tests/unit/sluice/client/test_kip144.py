"""KIP-144, reconnect backoff: the testable statements, in virtual time. Each test name has a statement's number.

The broker closes each connection at once. Not covered: statement 15, about connections between brokers.
"""

from itertools import pairwise
from math import inf
from statistics import mean

import pytest

from sluice.client.config import Profile, admin_config
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.network_client import NetworkClient
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateResponse
from sluice.protocol.apis.sasl_handshake import SaslHandshakeResponse
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import ScriptedBroker, VirtualNetwork

ONE, TWO, WELL = Node(1, "a", 9092), Node(2, "b", 9092), Node(3, "c", 9092)
SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": 'M required username="alice" password="alice-secret";',
}
STEPS = [50, 100, 200, 400, 800, 1000, 1000]


class Reconnecting:
    """A client that connects to two failing nodes; a third, healthy node returns the metadata."""

    def __init__(self, seed: int = 0, *, profile: Profile = "kafka", sasl: bool = False, **given: int) -> None:
        self.network = VirtualNetwork()
        self.one = self.network.broker(1, "a:9092")
        self.two = self.network.broker(2, "b:9092")
        self.well = self.network.broker(WELL.id, "c:9092")
        named = {name.replace("_", "."): value for name, value in given.items()}
        config = admin_config({"bootstrap.servers": "c:9092", **named, **(SASL if sasl else {})}, profile)
        for broker in (self.one, self.two, self.well):
            broker.responses["SaslHandshake"] = lambda _: SaslHandshakeResponse()
            broker.responses["SaslAuthenticate"] = lambda _: SaslAuthenticateResponse()
        metadata = Metadata(config.retry_backoff(lambda low, high: low), 300_000, equivalent_backoff=None)
        self.client: NetworkClient = self.network.client(config, metadata, seed=seed)
        self.client.wakeup()
        self.network.advance(0)
        self.want(WELL, ms=1)

    def want(self, *nodes: Node, ms: int) -> None:
        """Connect to the nodes for this time, and poll whenever a node may be ready."""
        until_ms = self.network.now_ms + ms
        while (left_ms := until_ms - self.network.now_ms) > 0:
            now_ms = self.network.clock.monotonic_ms()
            for node in nodes:
                self.client.ready(node, now_ms)
            self.network.advance(0)
            delay_ms = min(self.client.poll_delay_ms(node.id, now_ms) for node in nodes)
            # While a connection attempt is pending, the node's delay is the whole setup timeout, not the rest of it.
            self.network.advance(min(left_ms, 1 if delay_ms == inf else max(1, delay_ms), 500))


def gaps(broker: ScriptedBroker) -> list[float]:
    return [later - earlier for earlier, later in pairwise(broker.attempted_at_ms)]


def closed_at_once(reconnecting: Reconnecting, ms: int) -> list[float]:
    """Connect to node 1, which closes each connection at once, and return the gaps."""
    reconnecting.one.closes_at_once = True
    reconnecting.want(ONE, ms=ms)
    return gaps(reconnecting.one)


def refused(reconnecting: Reconnecting) -> list[float]:
    """Connect to node 1, which refuses each connection, and return the gaps at the cap."""
    reconnecting.one.refuses = True
    reconnecting.want(ONE, ms=15_000)
    return gaps(reconnecting.one)[5:]


def within(found: list[float], steps: list[int], most: int) -> bool:
    """Return whether gaps are within 20 % of the steps and at most `most`; attempts start at whole milliseconds."""
    return len(found) >= len(steps) and all(
        0.8 * step <= gap <= min(1.2 * step, most) + 1 for gap, step in zip(found, steps, strict=False)
    )


@pytest.fixture(params=range(5))
def seed(request: pytest.FixtureRequest) -> int:
    number = request.param
    assert isinstance(number, int)
    return number


def test_kip144_01_each_consecutive_failure_doubles_the_backoff(seed: int) -> None:
    found = closed_at_once(Reconnecting(seed), ms=5000)
    assert within(found, STEPS, 1000), found


def test_kip144_02_backoff_at_the_cap_is_800_to_1000_ms(seed: int) -> None:
    at_the_cap = refused(Reconnecting(seed))
    assert len(at_the_cap) >= 10
    assert all(800 <= gap <= 1000 for gap in at_the_cap), at_the_cap


def test_kip144_02_with_the_kip_profile_jitter_exceeds_the_cap() -> None:
    clients = [Reconnecting(seed, profile="kip", reconnect_backoff_max_ms=1000) for seed in range(5)]
    found = [gap for client in clients for gap in refused(client)]
    assert all(800 <= gap <= 1201 for gap in found), found
    assert max(found) > 1050


def test_kip144_03_api_versions_response_resets_the_backoff(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    assert closed_at_once(reconnecting, ms=3000)[-1] > 300
    reconnecting.one.closes_at_once = False
    reconnecting.want(ONE, ms=1500)
    assert reconnecting.client.is_ready(1, reconnecting.network.clock.monotonic_ms())
    dropped_ms = reconnecting.network.now_ms
    reconnecting.one.drop()
    reconnecting.want(ONE, ms=100)
    assert 40 <= reconnecting.one.attempted_at_ms[-1] - dropped_ms <= 60


def test_kip144_04_connection_alone_does_not_reset_the_backoff(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.one.responses["ApiVersions"] = lambda _: "disconnect"
    reconnecting.want(ONE, ms=4000)
    assert len(reconnecting.one.connected_at_ms) == len(reconnecting.one.attempted_at_ms)
    assert within(gaps(reconnecting.one), STEPS[:6], 1000), gaps(reconnecting.one)


def test_kip144_05_backoff_applies_after_a_successful_connection(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.want(ONE, ms=10)
    reconnecting.one.drop()
    reconnecting.want(ONE, ms=100)
    assert within(gaps(reconnecting.one), [50 + 10], 1000), gaps(reconnecting.one)


def test_kip144_06_nodes_back_off_independently(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    closed_at_once(reconnecting, ms=3000)
    reconnecting.two.closes_at_once = True
    began_ms = reconnecting.network.now_ms
    reconnecting.want(ONE, TWO, ms=1000)
    assert reconnecting.two.attempted_at_ms[0] == began_ms
    assert within(gaps(reconnecting.two), STEPS[:3], 1000), gaps(reconnecting.two)


CONSTANT_BACKOFF = {
    "07 only the base set": ({"reconnect_backoff_ms": 200}, 200),
    "08 maximum below the base": ({"reconnect_backoff_ms": 500, "reconnect_backoff_max_ms": 200}, 200),
}


@pytest.mark.parametrize(("given", "constant"), CONSTANT_BACKOFF.values(), ids=CONSTANT_BACKOFF)
def test_kip144_07_and_08_constant_backoff_has_no_jitter(given: dict[str, int], constant: int, seed: int) -> None:
    found = closed_at_once(Reconnecting(seed, profile="kafka", sasl=False, **given), ms=2000)
    assert set(found) == {constant}


def test_kip144_09_jitter_is_uniform_and_drawn_once_per_disconnect() -> None:
    third = [closed_at_once(Reconnecting(seed), ms=500)[2] for seed in range(60)]
    assert all(160 <= gap <= 240 for gap in third)
    assert min(third) < 170
    assert max(third) > 230
    # The mean of 60 draws with a deviation of 23 has a standard error of 3: three times that.
    assert abs(mean(third) - 200) < 9


def test_kip144_10_no_second_attempt_starts_while_one_is_pending() -> None:
    reconnecting = Reconnecting()
    reconnecting.one.hangs = True
    reconnecting.want(ONE, ms=5000)
    assert len(reconnecting.one.attempted_at_ms) == 1
    coordinator = Node(2**31 - 1 - ONE.id, ONE.host, ONE.port)
    reconnecting.want(coordinator, ms=10)
    assert len(reconnecting.one.attempted_at_ms) == 2, "the coordinator has a separate connection"


def test_kip144_11_idle_client_does_not_reconnect() -> None:
    reconnecting = Reconnecting()
    reconnecting.want(ONE, ms=10)
    reconnecting.one.drop()
    reconnecting.network.advance(60_000)
    assert len(reconnecting.one.attempted_at_ms) == 1
    reconnecting.want(ONE, ms=10)
    assert len(reconnecting.one.attempted_at_ms) == 2


def test_kip144_13_client_rebootstraps_when_all_nodes_are_down() -> None:
    reconnecting = Reconnecting(reconnect_backoff_ms=1000)
    for broker in (reconnecting.well, reconnecting.one, reconnecting.two):
        broker.refuses = True
        broker.drop()
    reconnecting.network.advance(10_000)
    assert reconnecting.client.metadata.cluster.is_bootstrap


def test_kip144_14_setup_timeout_grows_from_10_s_to_30_s(seed: int) -> None:
    reconnecting = Reconnecting(seed, reconnect_backoff_ms=0)
    reconnecting.one.hangs = True
    reconnecting.want(ONE, ms=150_000)
    assert within([gap / 1000 for gap in gaps(reconnecting.one)], [10, 20, 30], 30), gaps(reconnecting.one)


def test_kip144_12_authentication_failure_counts_twice(seed: int) -> None:
    reconnecting = Reconnecting(seed, sasl=True)
    refusal = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED)
    reconnecting.one.responses["SaslAuthenticate"] = lambda _: refusal
    reconnecting.want(ONE, ms=3000)
    assert within(gaps(reconnecting.one), [100, 400, 1000], 1000), gaps(reconnecting.one)
