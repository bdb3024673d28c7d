"""The NetworkClient in virtual time: connections, requests and metadata over scripted brokers, to the millisecond."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from sluice.client.config import admin_config
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.client.network.network_client import SOFTWARE_NAME, NetworkClient, software_version
from sluice.protocol.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from sluice.protocol.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from sluice.protocol.apis.metadata import MetadataResponse
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, Asked, ScriptedBroker, VirtualNetwork

NODE = Node(1, "a", 9092)


class Middle:
    """Chance that always takes the middle: a factor of 1, and the first of the nodes."""

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2

    def randrange(self, _stop: int) -> int:
        return 0


class Setup:
    """A client and the broker it knows, in virtual time. `done`: what was completed, and when."""

    def __init__(self, servers: str = "a:9092", max_in_flight: int = 5, **named: str) -> None:
        self.network = VirtualNetwork()
        self.broker = self.network.broker(1, "a:9092")
        config = admin_config(
            {"bootstrap.servers": servers, **{name.replace("_", "."): value for name, value in named.items()}}
        )
        middle = Middle()
        backoff = config.retry_backoff(middle.uniform)
        metadata = Metadata(backoff, config.integer("metadata.max.age.ms"), equivalent_backoff=backoff)
        self.client: NetworkClient = self.network.client(
            config,
            metadata,
            max_in_flight=max_in_flight,
            seed=middle,  # type: ignore[arg-type]  # as much of a Random as it uses
        )
        self.done: list[tuple[float, Exchange]] = []

    def connected(self) -> "Setup":
        """After the first metadata came, and a connection to the node is ready."""
        self.client.wakeup()
        self.advance(0)
        self.client.ready(NODE, self.now_ms)
        self.advance(0)
        assert self.client.is_ready(1, self.now_ms)
        self.broker.received.clear()
        return self

    @property
    def now_ms(self) -> float:
        return self.network.clock.monotonic_ms()

    def advance(self, ms: float) -> None:
        self.network.advance(ms)

    def send(self, request: Request | None = None) -> Exchange:
        return self.client.send(1, request or request_of(DescribeClusterRequest()), self._done, self.now_ms)

    def _done(self, exchange: Exchange) -> None:
        self.done.append((self.network.now_ms, exchange))

    def failures(self) -> list[tuple[float, str]]:
        return [(at_ms, type(exchange.failure()).__name__) for at_ms, exchange in self.done]


def answer_with(message: DescribeClusterResponse) -> Callable[[Asked], DescribeClusterResponse]:
    return lambda _asked: message


class TestConnecting:
    def test_a_new_client_asks_for_versions_and_then_for_metadata(self) -> None:
        setup = Setup()
        setup.client.wakeup()
        setup.advance(0)
        assert [asked.api for asked in setup.broker.received] == ["ApiVersions", "Metadata"]
        assert setup.broker.received[0].message.client_software_name == "sluice"
        assert setup.client.metadata.cluster.nodes == {1: NODE}
        assert setup.client.metadata.cluster.cluster_id == "scripted"

    def test_the_node_has_a_connection_of_its_own_beside_the_bootstrap_one(self) -> None:
        setup = Setup().connected()
        assert setup.broker.connected_at_ms == [0, 0]

    @pytest.mark.parametrize(
        ("highest", "expected"),
        [pytest.param(3, [5, 3], id="what it says"), pytest.param(0, [5, 0], id="down to version 0")],
    )
    def test_a_broker_that_does_not_know_the_version_is_asked_in_one_it_knows(
        self, highest: int, expected: list[int]
    ) -> None:
        setup = Setup()
        setup.broker.versions["ApiVersions"] = (0, highest)
        setup.client.wakeup()
        setup.advance(0)
        assert [asked.version for asked in setup.broker.asked("ApiVersions")] == expected
        assert setup.broker.asked("Metadata")
        assert len(setup.broker.connected_at_ms) == 1

    def test_brokers_of_before_2_4_say_nothing_and_are_asked_in_version_0(self) -> None:
        setup = Setup()

        def old(asked: Asked) -> ApiVersionsResponse | None:
            if asked.version:
                asked.answer(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), version=0)
                return None
            answer = setup.broker.api_versions(asked)
            assert isinstance(answer, ApiVersionsResponse)
            return answer

        setup.broker.answers["ApiVersions"] = old
        setup.client.wakeup()
        setup.advance(0)
        assert [asked.version for asked in setup.broker.asked("ApiVersions")] == [5, 0]
        assert setup.broker.asked("Metadata")

    def test_another_error_of_api_versions_closes_the_connection(self) -> None:
        setup = Setup()
        setup.broker.answers["ApiVersions"] = lambda _: ApiVersionsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        setup.client.wakeup()
        setup.advance(0)
        assert setup.client.connection_failed(-1)

    def test_a_host_is_resolved_and_its_addresses_are_tried_in_turn(self) -> None:
        setup = Setup("host:9092", metadata_recovery_strategy="none")
        setup.network.names["host"] = ["10.0.0.1", "a"]
        setup.client.wakeup()
        setup.advance(200)
        assert setup.network.resolved == ["host"]
        assert setup.broker.connected_at_ms[0] > 0
        assert setup.client.metadata.cluster.nodes == {1: NODE}

    def test_a_host_that_is_not_known_is_a_failed_attempt(self) -> None:
        setup = Setup("nowhere:9092", metadata_recovery_strategy="none")
        setup.network.names["nowhere"] = []
        setup.client.wakeup()
        setup.advance(10)
        assert setup.client.connection_failed(-1)

    def test_the_last_failure_is_that_of_the_last_address_until_a_node_is_ready(self) -> None:
        setup = Setup("host:9092", metadata_recovery_strategy="none")
        setup.network.names["host"] = ["10.0.0.1", "a"]
        setup.broker.refuses = True
        setup.client.wakeup()
        setup.advance(0)
        assert setup.client.connection_failed(-1)
        assert setup.client.last_failure is None
        setup.advance(200)
        assert str(setup.client.last_failure) == ("host:9092 (id -1): could not connect: refused by ('a', 9092)")
        setup.broker.refuses = False
        setup.advance(2000)
        assert setup.client.metadata.cluster.nodes == {1: NODE}
        assert setup.client.last_failure is None

    def test_setting_up_takes_ten_seconds_and_then_twenty(self) -> None:
        setup = Setup(metadata_recovery_strategy="none", reconnect_backoff_ms="0")
        setup.broker.hangs = True
        setup.client.wakeup()
        setup.advance(60_000)
        attempts = setup.broker.attempted_at_ms
        gaps = [later - earlier for earlier, later in pairwise(attempts)]
        # Longer than the timeout, so one ms more; and metadata waits for its own backoff after each failure.
        assert [round(gap, -3) for gap in gaps] == [10_000, 20_000]
        assert all(gap >= timeout + 1 for gap, timeout in zip(gaps, (10_000, 20_000), strict=True))

    def test_an_idle_connection_is_closed(self) -> None:
        setup = Setup(connections_max_idle_ms="1000").connected()
        setup.advance(999)
        assert setup.client.is_ready(1, setup.now_ms)
        setup.advance(1)
        assert setup.client.connection_failed(1)

    def test_closing_a_node_forgets_its_backoff(self) -> None:
        setup = Setup().connected()
        setup.client.disconnect(1)
        assert not setup.client.ready(NODE, setup.now_ms)
        assert not setup.client.states.can_connect(1, setup.now_ms)
        setup.client.close_node(1)
        assert setup.client.states.can_connect(1, setup.now_ms)


class TestRequests:
    def test_an_answer_completes_its_request(self) -> None:
        setup = Setup().connected()
        setup.broker.answers["DescribeCluster"] = answer_with(DescribeClusterResponse(cluster_id="c"))
        exchange = setup.send()
        assert setup.done == [], "never from within send"
        setup.advance(0)
        assert [done for _, done in setup.done] == [exchange]
        assert isinstance(exchange.response, DescribeClusterResponse)
        assert exchange.response.cluster_id == "c"
        assert exchange.failure() is None
        assert setup.client.in_flight() == 0

    def test_the_newest_version_both_know_is_sent(self) -> None:
        setup = Setup()
        setup.broker.versions["ListGroups"] = (0, 3)
        setup.connected()
        versions: list[int] = []

        def build(version: int) -> ListGroupsRequest:
            versions.append(version)
            return ListGroupsRequest()

        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse()
        exchange = setup.send(Request(ListGroupsRequest.API_KEY, build))
        setup.advance(0)
        assert versions == [exchange.version] == [3]

    @pytest.mark.parametrize(
        ("served", "oldest", "error"),
        [
            pytest.param((0, -1), None, "ListGroups is not served by this broker", id="not served"),
            pytest.param((0, 3), 4, "ListGroups: the broker serves versions 0 to 3; expected 4 to 5", id="too old"),
        ],
    )
    def test_without_such_a_version_nothing_is_sent(
        self, served: tuple[int, int], oldest: int | None, error: str
    ) -> None:
        setup = Setup()
        setup.broker.versions["ListGroups"] = served
        setup.connected()
        exchange = setup.send(request_of(ListGroupsRequest(), oldest=oldest))
        assert setup.done == []
        setup.advance(0)
        assert setup.failures() == [(0, "UnsupportedVersionException")]
        assert str(exchange.failure()) == error
        assert setup.broker.received == []

    def test_no_more_than_so_many_are_on_their_way(self) -> None:
        setup = Setup(max_in_flight=2).connected()
        for _ in range(2):
            assert setup.client.ready(NODE, setup.now_ms)
            setup.send()
        assert not setup.client.ready(NODE, setup.now_ms)
        setup.advance(0)
        setup.broker.received[0].answer(DescribeClusterResponse())
        setup.advance(0)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_a_timeout_closes_the_connection_and_fails_all_that_is_on_it(self) -> None:
        setup = Setup(request_timeout_ms="1000").connected()
        setup.send()
        setup.advance(400)
        setup.send()
        setup.advance(600)
        assert setup.done == [], "longer than the timeout, not as long"
        setup.advance(1)
        assert setup.failures() == [(1001, "TimeoutException"), (1001, "TimeoutException")]
        assert setup.client.connection_failed(1)

    def test_whoever_is_told_of_a_timeout_may_close_others_that_took_too_long(self) -> None:
        setup = Setup(request_timeout_ms="1000")
        setup.network.broker(2, "b:9092")
        setup.connected()
        setup.client.ready(Node(2, "b", 9092), setup.now_ms)
        setup.advance(0)
        setup.client.send(1, request_of(DescribeClusterRequest()), lambda _: setup.client.disconnect(2), setup.now_ms)
        setup.client.send(2, request_of(DescribeClusterRequest()), setup._done, setup.now_ms)
        setup.advance(1001)
        assert setup.failures() == [(1001, "DisconnectException")]

    def test_a_request_may_have_a_timeout_of_its_own(self) -> None:
        setup = Setup(request_timeout_ms="1000").connected()
        setup.send(request_of(DescribeClusterRequest(), timeout_ms=5000))
        setup.advance(5000)
        assert setup.done == []
        setup.advance(1)
        assert setup.failures() == [(5001, "TimeoutException")]

    def test_a_lost_connection_fails_all_that_is_on_it_in_order(self) -> None:
        setup = Setup().connected()
        exchanges = [setup.send(), setup.send()]
        setup.advance(5)
        setup.broker.drop()
        setup.advance(0)
        assert setup.failures() == [(5, "DisconnectException"), (5, "DisconnectException")]
        assert [done for _, done in setup.done] == exchanges

    def test_what_needs_no_answer_is_done_when_it_has_left(self) -> None:
        setup = Setup().connected()
        message = DescribeClusterRequest()
        request = Request(DescribeClusterRequest.API_KEY, lambda _: message, expects_response=False)
        setup.broker.ends[-1].wire.is_stuck = True
        exchange = setup.send(request)
        setup.advance(5)
        assert setup.done == []
        assert not setup.client.ready(NODE, setup.now_ms), "nothing is sent behind what has not left"
        setup.broker.ends[-1].wire.unstick()
        assert setup.done == [(5, exchange)]
        setup.send(request)
        setup.advance(0)
        assert len(setup.done) == 2
        assert exchange.failure() is None

    @pytest.mark.parametrize(
        "spoil",
        [
            pytest.param(lambda asked: asked.answer(DescribeClusterResponse(), correlation_id=999), id="another's"),
            pytest.param(lambda asked: asked._end.send(b"\0\0\0\5\0\0\0\0\0"), id="cut short"),
            pytest.param(lambda asked: asked._end.send(b"\xff\0\0\0"), id="of an impossible size"),
        ],
    )
    def test_an_answer_that_cannot_be_right_closes_the_connection(self, spoil: Callable[[Asked], None]) -> None:
        setup = Setup().connected()
        setup.send()
        setup.advance(0)
        spoil(setup.broker.received[0])
        setup.advance(0)
        assert setup.failures() == [(0, "DisconnectException")]
        assert setup.client.connection_failed(1)

    def test_an_answer_to_nothing_closes_the_connection(self) -> None:
        setup = Setup().connected()
        setup.broker.ends[-1].send(b"\0\0\0\4\0\0\0\0")
        setup.advance(0)
        assert setup.client.connection_failed(1)

    def test_a_callers_mistake_takes_nothing_from_others(self, caplog: pytest.LogCaptureFixture) -> None:
        setup = Setup().connected()

        def fail(_exchange: Exchange) -> None:
            raise RuntimeError

        setup.broker.answers["DescribeCluster"] = answer_with(DescribeClusterResponse())
        setup.client.send(1, request_of(DescribeClusterRequest()), fail, setup.now_ms)
        setup.send()
        setup.advance(0)
        assert len(setup.done) == 1
        assert "response handler failed" in caplog.text

    @pytest.mark.parametrize("size", [1000, 1_000_000], ids=["small", "large"])
    def test_records_stay_what_they_are_when_more_is_read(self, size: int) -> None:
        setup = Setup().connected()

        def answer(_asked: Asked) -> FetchResponse:
            records = bytes([65 + len(setup.broker.received)]) * size
            partition = PartitionData(partition_index=0, records=records)
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])

        setup.broker.answers["Fetch"] = answer
        for _ in range(3):
            setup.send(request_of(FetchRequest(), latest=12))
            setup.advance(0)
        found = []
        for _, exchange in setup.done:
            assert isinstance(exchange.response, FetchResponse)
            records = exchange.response.responses[0].partitions[0].records
            assert isinstance(records, memoryview)
            found.append(bytes(records))
        assert found == [b"B" * size, b"C" * size, b"D" * size]

    def test_closing_fails_what_is_on_its_way_and_sends_nothing_more(self) -> None:
        setup = Setup().connected()
        setup.send()
        setup.client.close()
        assert setup.failures() == [(0, "DisconnectException")]
        setup.client.wakeup()
        assert not setup.client.ready(NODE, setup.now_ms)
        setup.advance(100_000)
        assert setup.client.in_flight() == 0


class TestThrottling:
    """KIP-219."""

    def test_nothing_is_sent_on_a_throttled_connection(self) -> None:
        setup = Setup().connected()
        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=500)
        setup.send(request_of(ListGroupsRequest()))
        setup.advance(0)
        assert not setup.client.ready(NODE, setup.now_ms)
        assert setup.client.poll_delay_ms(1, setup.now_ms) == 500
        setup.advance(499)
        assert not setup.client.ready(NODE, setup.now_ms)
        setup.advance(1)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_other_connections_to_the_same_broker_go_on(self) -> None:
        setup = Setup().connected()
        coordinator = Node(2**31 - 1 - NODE.id, NODE.host, NODE.port)
        setup.client.ready(coordinator, setup.now_ms)
        setup.advance(0)
        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=500)
        setup.send(request_of(ListGroupsRequest()))
        setup.advance(0)
        assert not setup.client.ready(NODE, setup.now_ms)
        assert setup.client.ready(coordinator, setup.now_ms)

    def test_versions_whose_answers_are_held_back_do_not_wait_twice(self) -> None:
        setup = Setup()
        setup.broker.versions["ListGroups"] = (0, 1)
        setup.connected()
        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=500)
        setup.send(request_of(ListGroupsRequest()))
        setup.advance(0)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_what_is_on_its_way_gets_the_time_added(self) -> None:
        setup = Setup(request_timeout_ms="1000").connected()
        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=500)
        setup.send(request_of(ListGroupsRequest()))
        setup.send()
        setup.advance(1500)
        assert len(setup.done) == 1
        setup.advance(1)
        assert setup.failures()[1:] == [(1501, "TimeoutException")]

    def test_a_reconnect_does_not_end_it(self) -> None:
        setup = Setup().connected()
        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=5000)
        setup.send(request_of(ListGroupsRequest()))
        setup.advance(0)
        setup.broker.drop()
        for _ in range(1000):
            setup.client.ready(NODE, setup.now_ms)
            setup.advance(1)
        assert setup.client.states.is_connected(1)
        assert not setup.client.ready(NODE, setup.now_ms)
        setup.advance(4000)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_throttle_times_are_counted_by_node(self) -> None:
        setup = Setup().connected()
        times = iter([300, 100])
        setup.broker.answers["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=next(times))
        setup.send(request_of(ListGroupsRequest()))
        setup.advance(300)
        setup.send(request_of(ListGroupsRequest()))
        setup.advance(0)
        assert setup.client.throttle_times.of_node(1, setup.now_ms).max == 300
        assert setup.client.throttle_times.of_node(-1, setup.now_ms) == (0, 0)


class TestMetadata:
    def test_comes_before_everything_else(self) -> None:
        setup = Setup().connected()
        setup.advance(1000)
        setup.client.metadata.request_update()
        assert not setup.client.is_ready(1, setup.now_ms)
        setup.advance(0)
        assert setup.client.is_ready(1, setup.now_ms)

    def test_is_asked_again_when_it_is_old(self) -> None:
        setup = Setup(metadata_max_age_ms="10000", connections_max_idle_ms="-1").connected()
        setup.advance(9_999)
        assert setup.broker.asked("Metadata") == []
        setup.advance(1)
        assert setup.broker.asked_at_ms("Metadata") == [10_000]

    def test_an_empty_answer_is_a_failure(self) -> None:
        setup = Setup()
        setup.broker.answers["Metadata"] = lambda _: MetadataResponse()
        setup.client.wakeup()
        setup.advance(1600)
        assert setup.broker.asked_at_ms("Metadata") == [0, 100, 300, 700, 1500]

    def test_is_wanted_after_a_disconnect(self) -> None:
        setup = Setup().connected()
        setup.advance(1000)
        setup.broker.drop()
        setup.advance(200)
        assert len(setup.broker.asked("Metadata")) == 1

    def test_nothing_is_connected_before_something_is_wanted(self) -> None:
        setup = Setup()
        setup.advance(1000)
        assert setup.broker.attempted_at_ms == []
        setup.client.metadata.request_update()
        setup.advance(0)
        assert setup.broker.asked("Metadata")

    def test_listeners_hear_of_it(self) -> None:
        setup = Setup()
        heard: list[int] = []
        setup.client.listen(lambda: heard.append(setup.client.metadata.update_version))
        setup.client.wakeup()
        setup.advance(0)
        assert heard[-1] == 2  # bootstrap was the first


class TestLeastLoadedNode:
    def test_is_the_one_with_the_fewest_requests(self) -> None:
        setup = Setup()
        setup.network.broker(2, "b:9092")
        setup.connected()
        two = Node(2, "b", 9092)
        setup.client.ready(two, setup.now_ms)
        setup.advance(0)
        setup.send()
        assert setup.client.least_loaded_node(setup.now_ms) == (two, True)

    def test_else_the_one_that_is_being_connected_to(self) -> None:
        setup = Setup("a:9092,b:9092")
        other = setup.network.broker(2, "b:9092")
        other.hangs = setup.broker.hangs = True
        setup.client.ready(Node(-2, "b", 9092), setup.now_ms)
        assert setup.client.least_loaded_node(setup.now_ms).node == Node(-2, "b", 9092)

    def test_else_the_one_that_was_not_tried_for_the_longest_time(self) -> None:
        setup = Setup("a:9092,b:9092")
        for node_id, host in ((-2, "b"), (-1, "a")):
            setup.client.states.connecting(node_id, setup.now_ms, host)
            setup.client.states.disconnected(node_id, setup.now_ms)
            setup.advance(1000)
        assert setup.client.least_loaded_node(setup.now_ms) == (Node(-2, "b", 9092), False)

    def test_of_nodes_in_backoff_there_is_none(self) -> None:
        setup = Setup()
        setup.broker.refuses = True
        setup.client.ready(Node(-1, "a", 9092), setup.now_ms)
        setup.advance(0)
        least_loaded = setup.client.least_loaded_node(setup.now_ms)
        assert least_loaded.is_hopeless


class TestRebootstrap:
    """KIP-899 and KIP-1102."""

    def moved(self, **given: Any) -> tuple[Setup, ScriptedBroker]:
        """A client whose only node is gone, while the bootstrap server is still there, as another broker."""
        setup = Setup("b:9092", **given)
        other = setup.network.broker(2, "b:9092")
        other.answers["Metadata"] = setup.broker.metadata
        del setup.network.brokers["b", 9092]
        setup.network.brokers["b", 9092] = other
        other.node_id = -1  # no broker of the cluster: an address that leads to one
        setup.client.wakeup()
        setup.advance(1000)
        assert list(setup.client.metadata.cluster.nodes) == [1]
        setup.broker.refuses = True
        setup.broker.drop()
        other.drop()
        other.received.clear()
        return setup, other

    def test_without_a_node_that_can_be_reached_it_begins_again(self) -> None:
        setup, other = self.moved(reconnect_backoff_ms="500")
        setup.advance(2000)
        assert other.asked("Metadata")

    def test_or_not_as_it_is_configured(self) -> None:
        setup, other = self.moved(reconnect_backoff_ms="500", metadata_recovery_strategy="none")
        setup.advance(10_000)
        assert not other.asked("Metadata")

    def test_after_a_time_without_metadata_all_nodes_are_left(self) -> None:
        setup = Setup(metadata_recovery_rebootstrap_trigger_ms="5000", metadata_max_age_ms="1000").connected()
        setup.broker.answers["Metadata"] = lambda _: None
        setup.advance(5000)
        assert not setup.client.metadata.cluster.is_bootstrap
        setup.advance(1100)
        assert setup.client.metadata.cluster.is_bootstrap

    def test_when_the_broker_says_so(self) -> None:
        setup = Setup(metadata_max_age_ms="1000").connected()
        setup.broker.answers["Metadata"] = lambda _: MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        setup.advance(1000)
        assert setup.client.metadata.cluster.is_bootstrap


def test_a_broker_that_drops_a_request_is_asked_again_only_by_its_caller() -> None:
    setup = Setup().connected()
    setup.broker.answers["DescribeCluster"] = lambda _: DISCONNECT
    setup.send()
    setup.advance(10_000)
    assert len(setup.broker.asked("DescribeCluster")) == 1
    assert setup.failures() == [(0, "DisconnectException")]


@pytest.mark.parametrize(
    ("version", "told"),
    [
        pytest.param("1.2.3", "1.2.3", id="of a release"),
        pytest.param("1.2.4.dev7+gabc1234.d20260102", "1.2.4.dev7-gabc1234.d20260102", id="of what is between two"),
        pytest.param("1!2.0_x", "1-2.0-x", id="of any other form"),
    ],
)
def test_brokers_take_the_version_that_they_are_told(version: str, told: str) -> None:
    assert software_version(version) == told
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version(version))
    assert re.fullmatch(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", request.client_software_version)  # KIP-511
