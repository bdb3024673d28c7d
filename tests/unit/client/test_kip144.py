"""KIP-144, reconnect backoff: the testable statements, in virtual time. Each test is one of them, by its number.

A broker that closes each connection at once is tried again after what the client waited. Not here: 15, of brokers among
themselves.
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
    """A client that wants to talk to some nodes. A third, which is well, tells it of them."""

    def __init__(self, seed: int = 0, *, profile: Profile = "kafka", sasl: bool = False, **given: int) -> None:
        self.network = VirtualNetwork()
        self.one = self.network.broker(1, "a:9092")
        self.two = self.network.broker(2, "b:9092")
        self.well = self.network.broker(WELL.id, "c:9092")
        named = {name.replace("_", "."): value for name, value in given.items()}
        config = admin_config({"bootstrap.servers": "c:9092", **named, **(SASL if sasl else {})}, profile)
        for broker in (self.one, self.two, self.well):
            broker.answers["SaslHandshake"] = lambda _: SaslHandshakeResponse()
            broker.answers["SaslAuthenticate"] = lambda _: SaslAuthenticateResponse()
        metadata = Metadata(config.retry_backoff(lambda low, high: low), 300_000, equivalent_backoff=None)
        self.client: NetworkClient = self.network.client(config, metadata, seed=seed)
        self.client.wakeup()
        self.network.advance(0)
        self.want(WELL, ms=1)

    def want(self, *nodes: Node, ms: int) -> None:
        """Wants the nodes for so long, and looks again whenever it may be worth it."""
        until_ms = self.network.now_ms + ms
        while (left_ms := until_ms - self.network.now_ms) > 0:
            now_ms = self.network.clock.monotonic_ms()
            for node in nodes:
                self.client.ready(node, now_ms)
            self.network.advance(0)
            delay_ms = min(self.client.poll_delay_ms(node.id, now_ms) for node in nodes)
            # While a node is connected to, its delay is the whole setup timeout, however much of it is over.
            self.network.advance(min(left_ms, 1 if delay_ms == inf else max(1, delay_ms), 500))


def gaps(broker: ScriptedBroker) -> list[float]:
    """How long it took from each attempt to the next."""
    return [later - earlier for earlier, later in pairwise(broker.attempted_at_ms)]


def within(found: list[float], steps: list[int], most: int) -> bool:
    """Whether gaps are 20 % around steps, and at most so long. An attempt begins with the next whole millisecond."""
    return len(found) >= len(steps) and all(
        0.8 * step <= gap <= min(1.2 * step, most) + 1 for gap, step in zip(found, steps, strict=False)
    )


@pytest.fixture(params=range(5))
def seed(request: pytest.FixtureRequest) -> int:
    number = request.param
    assert isinstance(number, int)
    return number


def test_kip144_01_each_failure_in_a_row_doubles_the_wait(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.one.closes_at_once = True
    reconnecting.want(ONE, ms=5000)
    assert within(gaps(reconnecting.one), STEPS, 1000), gaps(reconnecting.one)


def test_kip144_02_at_the_cap_it_is_800_to_1000_ms(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.one.refuses = True
    reconnecting.want(ONE, ms=15_000)
    at_the_cap = gaps(reconnecting.one)[5:]
    assert len(at_the_cap) >= 10
    assert all(800 <= gap <= 1000 for gap in at_the_cap), at_the_cap


def test_kip144_02_by_the_text_jitter_goes_above_the_cap() -> None:
    found = [
        gap
        for seed in range(5)
        for gap in gaps(_failing(Reconnecting(seed, profile="kip", reconnect_backoff_max_ms=1000)))[5:]
    ]
    assert all(800 <= gap <= 1201 for gap in found), found
    assert max(found) > 1050


def _failing(reconnecting: Reconnecting) -> ScriptedBroker:
    reconnecting.one.refuses = True
    reconnecting.want(ONE, ms=15_000)
    return reconnecting.one


def test_kip144_03_an_answer_to_api_versions_resets_it(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.one.closes_at_once = True
    reconnecting.want(ONE, ms=3000)
    assert gaps(reconnecting.one)[-1] > 300
    reconnecting.one.closes_at_once = False
    reconnecting.want(ONE, ms=1500)
    assert reconnecting.client.is_ready(1, reconnecting.network.clock.monotonic_ms())
    dropped_ms = reconnecting.network.now_ms
    reconnecting.one.drop()
    reconnecting.want(ONE, ms=100)
    assert 40 <= reconnecting.one.attempted_at_ms[-1] - dropped_ms <= 60


def test_kip144_04_a_connection_alone_resets_nothing(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.one.answers["ApiVersions"] = lambda _: "disconnect"
    reconnecting.want(ONE, ms=4000)
    assert len(reconnecting.one.connected_at_ms) == len(reconnecting.one.attempted_at_ms)
    assert within(gaps(reconnecting.one), STEPS[:6], 1000), gaps(reconnecting.one)


def test_kip144_05_after_a_good_connection_there_is_a_wait_too(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.want(ONE, ms=10)
    reconnecting.one.drop()
    reconnecting.want(ONE, ms=100)
    assert within(gaps(reconnecting.one), [50 + 10], 1000), gaps(reconnecting.one)


def test_kip144_06_one_nodes_failures_are_not_anothers(seed: int) -> None:
    reconnecting = Reconnecting(seed)
    reconnecting.one.closes_at_once = True
    reconnecting.want(ONE, ms=3000)
    reconnecting.two.closes_at_once = True
    began_ms = reconnecting.network.now_ms
    reconnecting.want(ONE, TWO, ms=1000)
    assert reconnecting.two.attempted_at_ms[0] == began_ms
    assert within(gaps(reconnecting.two), STEPS[:3], 1000), gaps(reconnecting.two)


@pytest.mark.parametrize(
    ("given", "constant"),
    [
        pytest.param({"reconnect_backoff_ms": 200}, 200, id="07 the base set alone"),
        pytest.param({"reconnect_backoff_ms": 500, "reconnect_backoff_max_ms": 200}, 200, id="08 a maximum below it"),
    ],
)
def test_kip144_07_and_08_a_constant_has_no_jitter(given: dict[str, int], constant: int, seed: int) -> None:
    reconnecting = Reconnecting(seed, profile="kafka", sasl=False, **given)
    reconnecting.one.closes_at_once = True
    reconnecting.want(ONE, ms=2000)
    assert set(gaps(reconnecting.one)) == {constant}


def test_kip144_09_jitter_is_drawn_once_a_disconnect_and_even() -> None:
    third = []
    for seed in range(60):
        reconnecting = Reconnecting(seed)
        reconnecting.one.closes_at_once = True
        reconnecting.want(ONE, ms=500)
        third.append(gaps(reconnecting.one)[2])
    assert all(160 <= gap <= 240 for gap in third)
    assert min(third) < 170
    assert max(third) > 230
    assert abs(mean(third) - 200) < 9  # the mean of 60 draws with a deviation of 23 is off by 3: three times that


def test_kip144_10_no_second_attempt_begins_while_one_is_under_way() -> None:
    reconnecting = Reconnecting()
    reconnecting.one.hangs = True
    reconnecting.want(ONE, ms=5000)
    assert len(reconnecting.one.attempted_at_ms) == 1
    coordinator = Node(2**31 - 1 - ONE.id, ONE.host, ONE.port)
    reconnecting.want(coordinator, ms=10)
    assert len(reconnecting.one.attempted_at_ms) == 2, "the coordinator's connection is another"


def test_kip144_11_a_client_with_nothing_to_send_does_not_reconnect() -> None:
    reconnecting = Reconnecting()
    reconnecting.want(ONE, ms=10)
    reconnecting.one.drop()
    reconnecting.network.advance(60_000)
    assert len(reconnecting.one.attempted_at_ms) == 1
    reconnecting.want(ONE, ms=10)
    assert len(reconnecting.one.attempted_at_ms) == 2


def test_kip144_13_with_all_nodes_down_the_client_goes_back_to_bootstrap() -> None:
    reconnecting = Reconnecting(reconnect_backoff_ms=1000)
    for broker in (reconnecting.well, reconnecting.one, reconnecting.two):
        broker.refuses = True
        broker.drop()
    reconnecting.network.advance(10_000)
    assert reconnecting.client.metadata.cluster.is_bootstrap


def test_kip144_14_an_attempt_may_take_10_s_at_first_and_30_s_at_last(seed: int) -> None:
    reconnecting = Reconnecting(seed, reconnect_backoff_ms=0)
    reconnecting.one.hangs = True
    reconnecting.want(ONE, ms=150_000)
    assert within([gap / 1000 for gap in gaps(reconnecting.one)], [10, 20, 30], 30), gaps(reconnecting.one)


def test_kip144_12_an_authentication_that_fails_counts_twice(seed: int) -> None:
    reconnecting = Reconnecting(seed, sasl=True)
    refusal = SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED)
    reconnecting.one.answers["SaslAuthenticate"] = lambda _: refusal
    reconnecting.want(ONE, ms=3000)
    assert within(gaps(reconnecting.one), [100, 400, 1000], 1000), gaps(reconnecting.one)
