"""The NetworkClient over scripted brokers in virtual time, exact to the millisecond."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sluice.client.config import admin_config
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.client.network.network_client import SOFTWARE_NAME, NetworkClient, software_version
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from sluice.protocol.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from sluice.protocol.apis.metadata import MetadataResponse
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import DISCONNECT, Middle, ReceivedRequest, ScriptedBroker, VirtualNetwork

NODE = Node(1, "a", 9092)


class Setup:
    """A client and its bootstrap broker in virtual time; `done` lists completed exchanges and their times."""

    def __init__(self, servers: str = "a:9092", max_in_flight: int = 5, **named: str) -> None:
        self.network = VirtualNetwork()
        self.broker = self.network.broker(1, "a:9092")
        config = admin_config(
            {"bootstrap.servers": servers, **{name.replace("_", "."): value for name, value in named.items()}}
        )
        middle = Middle()
        backoff = config.retry_backoff(middle.uniform)
        metadata = Metadata(backoff, config.integer("metadata.max.age.ms"), equivalent_backoff=backoff)
        self.client: NetworkClient = self.network.client(config, metadata, max_in_flight=max_in_flight, seed=middle)
        self.done: list[tuple[float, Exchange]] = []

    def connected(self) -> "Setup":
        """Return a client with metadata and a ready connection to the node."""
        self.wakeup()
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

    def wakeup(self, ms: float = 0) -> None:
        """Let the client connect, and let this time pass."""
        self.client.wakeup()
        self.advance(ms)

    def send(self, request: Request | None = None) -> Exchange:
        return self.client.send(1, request or request_of(DescribeClusterRequest()), self._done, self.now_ms)

    def _done(self, exchange: Exchange) -> None:
        self.done.append((self.network.now_ms, exchange))

    def throttle(self, ms: int) -> None:
        """Receive a response with this throttle time."""
        self.broker.responses["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=ms)
        self.send(request_of(ListGroupsRequest()))
        self.advance(0)

    def failures(self) -> list[tuple[float, str]]:
        return [(at_ms, type(exchange.failure()).__name__) for at_ms, exchange in self.done]


@pytest.fixture
def setup() -> Setup:
    return Setup()


NAMED_VERSIONS = {
    "none: version 0": ([], [5, 0]),
    "1, which it refuses too: version 0": ([ApiVersion(api_key=18, max_version=1)], [5, 1, 0]),
}


DOWNGRADES = {"to the broker's version": (3, [5, 3]), "down to version 0": (0, [5, 0])}


class TestConnecting:
    def test_new_client_requests_api_versions_then_metadata(self, setup: Setup) -> None:
        setup.wakeup()
        assert [request.api for request in setup.broker.received] == ["ApiVersions", "Metadata"]
        assert setup.broker.received[0].message.client_software_name == "sluice"
        assert setup.client.metadata.cluster.nodes == {1: NODE}
        assert setup.client.metadata.cluster.cluster_id == "scripted"

    def test_node_has_a_connection_separate_from_the_bootstrap_connection(self) -> None:
        setup = Setup().connected()
        assert setup.broker.connected_at_ms == [0, 0]

    @pytest.mark.parametrize(("highest", "expected"), DOWNGRADES.values(), ids=DOWNGRADES)
    def test_unsupported_api_versions_version_is_downgraded(self, highest: int, expected: list[int]) -> None:
        setup = Setup()
        setup.broker.versions["ApiVersions"] = (0, highest)
        setup.wakeup()
        assert [request.version for request in setup.broker.requests("ApiVersions")] == expected
        assert setup.broker.requests("Metadata")
        assert len(setup.broker.connected_at_ms) == 1

    @pytest.mark.parametrize(("known", "versions"), NAMED_VERSIONS.values(), ids=NAMED_VERSIONS)
    def test_api_versions_has_a_version_that_the_broker_names(
        self, setup: Setup, known: list[ApiVersion], versions: list[int]
    ) -> None:
        def refuse(request: ReceivedRequest) -> None:
            api_keys = known if request.version == 5 else []
            error = ErrorCode.UNSUPPORTED_VERSION
            request.respond(ApiVersionsResponse(error_code=error, api_keys=api_keys), version=0)

        setup.broker.responses["ApiVersions"] = refuse
        setup.wakeup()
        assert [request.version for request in setup.broker.requests("ApiVersions")] == versions
        assert setup.client.connection_failed(-1), "a refused version 0 closes the connection"

    def test_brokers_before_2_4_receive_api_versions_0(self, setup: Setup) -> None:

        def old(request: ReceivedRequest) -> ApiVersionsResponse | None:
            if request.version:
                request.respond(ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), version=0)
                return None
            response = setup.broker.api_versions(request)
            assert isinstance(response, ApiVersionsResponse)
            return response

        setup.broker.responses["ApiVersions"] = old
        setup.wakeup()
        assert [request.version for request in setup.broker.requests("ApiVersions")] == [5, 0]
        assert setup.broker.requests("Metadata")

    def test_other_api_versions_error_closes_the_connection(self, setup: Setup) -> None:
        setup.broker.responses["ApiVersions"] = lambda _: ApiVersionsResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
        setup.wakeup()
        assert setup.client.connection_failed(-1)

    def test_host_is_resolved_and_its_addresses_are_tried_in_turn(self) -> None:
        setup = Setup("host:9092", metadata_recovery_strategy="none")
        setup.network.names["host"] = ["10.0.0.1", "a"]
        setup.wakeup(200)
        assert setup.network.resolved == ["host"]
        assert setup.broker.connected_at_ms[0] > 0
        assert setup.client.metadata.cluster.nodes == {1: NODE}

    def test_unresolvable_host_is_a_failed_attempt(self) -> None:
        setup = Setup("nowhere:9092", metadata_recovery_strategy="none")
        setup.network.names["nowhere"] = []
        setup.wakeup(10)
        assert setup.client.connection_failed(-1)

    def test_last_failure_is_kept_until_a_node_is_ready(self) -> None:
        setup = Setup("host:9092", metadata_recovery_strategy="none")
        setup.network.names["host"] = ["10.0.0.1", "a"]
        setup.broker.refuses = True
        setup.wakeup()
        assert setup.client.connection_failed(-1)
        assert setup.client.last_failure is None
        setup.advance(200)
        assert str(setup.client.last_failure) == ("host:9092 (id -1): could not connect: refused by ('a', 9092)")
        setup.broker.refuses = False
        setup.advance(2000)
        assert setup.client.metadata.cluster.nodes == {1: NODE}
        assert setup.client.last_failure is None

    def test_idle_connection_is_closed(self) -> None:
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


NO_COMMON_VERSION = {
    "not served": ((0, -1), None, "ListGroups is not served by this broker"),
    "too old": ((0, 3), 4, "ListGroups: the broker serves versions 0 to 3; expected 4 to 5"),
}


INVALID_RESPONSES = {
    "another's": lambda request: request.respond(DescribeClusterResponse(), correlation_id=999),
    "cut short": lambda request: request._end.send(b"\0\0\0\5\0\0\0\0\0"),
    "an invalid frame size": lambda request: request._end.send(b"\xff\0\0\0"),
}


class TestRequests:
    def test_response_completes_its_request(self) -> None:
        setup = Setup().connected()
        setup.broker.responses["DescribeCluster"] = lambda _: DescribeClusterResponse(cluster_id="c")
        exchange = setup.send()
        assert setup.done == [], "never from within send"
        setup.advance(0)
        assert [done for _, done in setup.done] == [exchange]
        assert isinstance(exchange.response, DescribeClusterResponse)
        assert exchange.response.cluster_id == "c"
        assert exchange.failure() is None
        assert setup.client.in_flight() == 0

    def test_newest_common_version_is_sent(self, setup: Setup) -> None:
        setup.broker.versions["ListGroups"] = (0, 3)
        setup.connected()
        versions: list[int] = []

        def build(version: int) -> ListGroupsRequest:
            versions.append(version)
            return ListGroupsRequest()

        setup.broker.responses["ListGroups"] = lambda _: ListGroupsResponse()
        exchange = setup.send(Request(ApiKey.LIST_GROUPS, build))
        setup.advance(0)
        assert versions == [exchange.version] == [3]

    @pytest.mark.parametrize(("served", "oldest", "error"), NO_COMMON_VERSION.values(), ids=NO_COMMON_VERSION)
    def test_request_without_a_common_version_is_not_sent(
        self, setup: Setup, served: tuple[int, int], oldest: int | None, error: str
    ) -> None:
        setup.broker.versions["ListGroups"] = served
        setup.connected()
        exchange = setup.send(request_of(ListGroupsRequest(), oldest=oldest))
        assert setup.done == []
        setup.advance(0)
        assert setup.failures() == [(0, "UnsupportedVersionException")]
        assert str(exchange.failure()) == error
        assert setup.broker.received == []

    def test_requests_in_flight_are_limited(self) -> None:
        setup = Setup(max_in_flight=2).connected()
        for _ in range(2):
            assert setup.client.ready(NODE, setup.now_ms)
            setup.send()
        assert not setup.client.ready(NODE, setup.now_ms)
        setup.advance(0)
        setup.broker.received[0].respond(DescribeClusterResponse())
        setup.advance(0)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_request_timeout_closes_the_connection_and_fails_all_its_requests(self) -> None:
        setup = Setup(request_timeout_ms="1000").connected()
        setup.send()
        setup.advance(400)
        setup.send()
        setup.advance(600)
        assert setup.done == [], "after more than the timeout"
        setup.advance(1)
        assert setup.failures() == [(1001, "TimeoutException"), (1001, "TimeoutException")]
        assert setup.client.connection_failed(1)

    def test_timeout_callback_may_close_another_overdue_connection(self) -> None:
        setup = Setup(request_timeout_ms="1000")
        setup.network.broker(2, "b:9092")
        setup.connected()
        setup.client.ready(Node(2, "b", 9092), setup.now_ms)
        setup.advance(0)
        setup.client.send(1, request_of(DescribeClusterRequest()), lambda _: setup.client.disconnect(2), setup.now_ms)
        setup.client.send(2, request_of(DescribeClusterRequest()), setup._done, setup.now_ms)
        setup.advance(1001)
        assert setup.failures() == [(1001, "DisconnectException")]

    def test_request_may_have_a_separate_timeout(self) -> None:
        setup = Setup(request_timeout_ms="1000").connected()
        setup.send(request_of(DescribeClusterRequest(), timeout_ms=5000))
        setup.advance(5000)
        assert setup.done == []
        setup.advance(1)
        assert setup.failures() == [(5001, "TimeoutException")]

    def test_lost_connection_fails_all_its_requests_in_order(self) -> None:
        setup = Setup().connected()
        exchanges = [setup.send(), setup.send()]
        setup.advance(5)
        setup.broker.drop()
        setup.advance(0)
        assert setup.failures() == [(5, "DisconnectException"), (5, "DisconnectException")]
        assert [done for _, done in setup.done] == exchanges

    def test_request_without_a_response_completes_when_written(self) -> None:
        setup = Setup().connected()
        message = DescribeClusterRequest()
        request = Request(ApiKey.DESCRIBE_CLUSTER, lambda _: message, expects_response=False)
        setup.broker.ends[-1].wire.is_stuck = True
        exchange = setup.send(request)
        setup.advance(5)
        assert setup.done == []
        assert not setup.client.ready(NODE, setup.now_ms), "no request is sent after unflushed data"
        setup.broker.ends[-1].wire.unstick()
        assert setup.done == [(5, exchange)]
        setup.send(request)
        setup.advance(0)
        assert len(setup.done) == 2
        assert exchange.failure() is None

    @pytest.mark.parametrize("spoil", INVALID_RESPONSES.values(), ids=INVALID_RESPONSES)
    def test_invalid_response_closes_the_connection(self, spoil: Callable[[ReceivedRequest], None]) -> None:
        setup = Setup().connected()
        setup.send()
        setup.advance(0)
        spoil(setup.broker.received[0])
        setup.advance(0)
        assert setup.failures() == [(0, "DisconnectException")]
        assert setup.client.connection_failed(1)

    def test_unexpected_response_closes_the_connection(self) -> None:
        setup = Setup().connected()
        setup.broker.ends[-1].send(b"\0\0\0\4\0\0\0\0")
        setup.advance(0)
        assert setup.client.connection_failed(1)

    def test_failing_callback_closes_the_client(self, caplog: pytest.LogCaptureFixture) -> None:
        setup = Setup().connected()

        def fail(_exchange: Exchange) -> None:
            raise RuntimeError

        setup.broker.responses["DescribeCluster"] = lambda _: DescribeClusterResponse()
        setup.client.send(1, request_of(DescribeClusterRequest()), fail, setup.now_ms)
        setup.send()
        setup.advance(0)
        assert setup.failures() == [(0, "DisconnectException")]
        assert setup.client.is_closed
        assert str(setup.client.failure).startswith("the handler of DescribeCluster responses failed: RuntimeError()")

    @pytest.mark.parametrize("size", [1000, 1_000_000], ids=["small", "large"])
    def test_records_stay_intact_while_more_data_is_read(self, size: int) -> None:
        setup = Setup().connected()

        def respond(_request: ReceivedRequest) -> FetchResponse:
            records = bytes([65 + len(setup.broker.received)]) * size
            partition = PartitionData(partition_index=0, records=records)
            return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])])

        setup.broker.responses["Fetch"] = respond
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

    def test_closing_fails_pending_requests_and_sends_no_more(self) -> None:
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

    def test_throttled_connection_sends_nothing(self) -> None:
        setup = Setup().connected()
        setup.throttle(500)
        assert not setup.client.ready(NODE, setup.now_ms)
        assert setup.client.poll_delay_ms(1, setup.now_ms) == 500
        setup.advance(499)
        assert not setup.client.ready(NODE, setup.now_ms)
        setup.advance(1)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_other_connections_to_the_same_broker_continue(self) -> None:
        setup = Setup().connected()
        coordinator = Node(2**31 - 1 - NODE.id, NODE.host, NODE.port)
        setup.client.ready(coordinator, setup.now_ms)
        setup.advance(0)
        setup.throttle(500)
        assert not setup.client.ready(NODE, setup.now_ms)
        assert setup.client.ready(coordinator, setup.now_ms)

    def test_api_versions_without_client_throttling_do_not_wait_twice(self, setup: Setup) -> None:
        setup.broker.versions["ListGroups"] = (0, 1)
        setup.connected()
        setup.throttle(500)
        assert setup.client.ready(NODE, setup.now_ms)

    def test_pending_requests_have_their_timeout_extended_by_the_throttle_time(self) -> None:
        setup = Setup(request_timeout_ms="1000").connected()
        setup.broker.responses["ListGroups"] = lambda _: ListGroupsResponse(throttle_time_ms=500)
        setup.send(request_of(ListGroupsRequest()))
        setup.send()
        setup.advance(1500)
        assert len(setup.done) == 1
        setup.advance(1)
        assert setup.failures()[1:] == [(1501, "TimeoutException")]

    def test_throttle_times_are_counted_by_node(self) -> None:
        setup = Setup().connected()
        setup.throttle(300)
        setup.advance(300)
        setup.throttle(100)
        assert setup.client.throttle_times.of_node(1, setup.now_ms).max == 300
        assert setup.client.throttle_times.of_node(-1, setup.now_ms) == (0, 0)


class TestMetadata:
    def test_metadata_is_requested_first(self) -> None:
        setup = Setup().connected()
        setup.advance(1000)
        setup.client.metadata.request_update()
        assert not setup.client.is_ready(1, setup.now_ms)
        setup.advance(0)
        assert setup.client.is_ready(1, setup.now_ms)

    def test_metadata_is_requested_again_when_it_expires(self) -> None:
        setup = Setup(metadata_max_age_ms="10000", connections_max_idle_ms="-1").connected()
        setup.advance(9_999)
        assert setup.broker.requests("Metadata") == []
        setup.advance(1)
        assert setup.broker.request_times_ms("Metadata") == [10_000]

    def test_empty_metadata_is_a_failure(self, setup: Setup) -> None:
        setup.broker.responses["Metadata"] = lambda _: MetadataResponse()
        setup.wakeup(1600)
        assert setup.broker.request_times_ms("Metadata") == [0, 100, 300, 700, 1500]

    def test_metadata_is_requested_after_a_disconnect(self) -> None:
        setup = Setup().connected()
        setup.advance(1000)
        setup.broker.drop()
        setup.advance(200)
        assert len(setup.broker.requests("Metadata")) == 1

    def test_an_update_that_a_lost_request_requests_is_not_a_failed_one(self) -> None:
        """After a failed update, the next one would wait for the retry backoff."""
        setup = Setup(retry_backoff_ms="1000").connected()
        setup.advance(2000)

        def done(_exchange: Exchange) -> None:
            setup.client.metadata.request_update()

        setup.client.send(1, request_of(DescribeClusterRequest()), done, setup.now_ms)
        setup.advance(0)
        setup.broker.ends[-1].close()
        setup.advance(100)
        assert len(setup.broker.requests("Metadata")) == 1

    def test_no_connection_is_opened_without_a_need(self, setup: Setup) -> None:
        setup.advance(1000)
        assert setup.broker.attempted_at_ms == []
        setup.client.metadata.request_update()
        setup.advance(0)
        assert setup.broker.requests("Metadata")

    def test_listeners_receive_metadata_updates(self, setup: Setup) -> None:
        heard: list[int] = []
        setup.client.listen(lambda: heard.append(setup.client.metadata.update_version))
        setup.wakeup()
        assert heard[-1] == 2  # the first update is the bootstrap list


class TestLeastLoadedNode:
    def test_least_loaded_node_has_the_fewest_requests(self, setup: Setup) -> None:
        setup.network.broker(2, "b:9092")
        setup.connected()
        two = Node(2, "b", 9092)
        setup.client.ready(two, setup.now_ms)
        setup.advance(0)
        setup.send()
        assert setup.client.least_loaded_node(setup.now_ms) == (two, True)

    def test_least_loaded_node_may_be_connecting(self) -> None:
        setup = Setup("a:9092,b:9092")
        other = setup.network.broker(2, "b:9092")
        other.hangs = setup.broker.hangs = True
        setup.client.ready(Node(-2, "b", 9092), setup.now_ms)
        assert setup.client.least_loaded_node(setup.now_ms).node == Node(-2, "b", 9092)

    def test_least_loaded_node_is_the_longest_untried(self) -> None:
        setup = Setup("a:9092,b:9092")
        for node_id, host in ((-2, "b"), (-1, "a")):
            setup.client.states.connecting(node_id, setup.now_ms, host)
            setup.client.states.disconnected(node_id, setup.now_ms)
            setup.advance(1000)
        assert setup.client.least_loaded_node(setup.now_ms) == (Node(-2, "b", 9092), False)

    def test_least_loaded_node_is_none_during_backoff(self, setup: Setup) -> None:
        setup.broker.refuses = True
        setup.client.ready(Node(-1, "a", 9092), setup.now_ms)
        setup.advance(0)
        assert setup.client.least_loaded_node(setup.now_ms).is_hopeless


class TestRebootstrap:
    """KIP-899 and KIP-1102."""

    def moved(self, **given: Any) -> tuple[Setup, ScriptedBroker]:
        """Return a client whose only node is gone, and whose bootstrap server is another broker."""
        setup = Setup("b:9092", **given)
        other = setup.network.broker(2, "b:9092")
        other.responses["Metadata"] = setup.broker.metadata
        del setup.network.brokers["b", 9092]
        setup.network.brokers["b", 9092] = other
        other.node_id = -1  # a proxy or load balancer, not a broker of the cluster
        setup.wakeup(1000)
        assert list(setup.client.metadata.cluster.nodes) == [1]
        setup.broker.refuses = True
        setup.broker.drop()
        other.drop()
        other.received.clear()
        return setup, other

    def test_rebootstrap_can_be_disabled(self) -> None:
        setup, other = self.moved(reconnect_backoff_ms="500", metadata_recovery_strategy="none")
        setup.advance(10_000)
        assert not other.requests("Metadata")

    def test_rebootstrap_after_a_time_without_metadata(self) -> None:
        setup = Setup(metadata_recovery_rebootstrap_trigger_ms="5000", metadata_max_age_ms="1000").connected()
        setup.broker.responses["Metadata"] = lambda _: None
        setup.advance(5000)
        assert not setup.client.metadata.cluster.is_bootstrap
        setup.advance(1100)
        assert setup.client.metadata.cluster.is_bootstrap

    def test_rebootstrap_required_error_rebootstraps(self) -> None:
        setup = Setup(metadata_max_age_ms="1000").connected()
        setup.broker.responses["Metadata"] = lambda _: MetadataResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
        setup.advance(1000)
        assert setup.client.metadata.cluster.is_bootstrap


def test_dropped_request_is_repeated_only_by_its_caller() -> None:
    setup = Setup().connected()
    setup.broker.responses["DescribeCluster"] = lambda _: DISCONNECT
    setup.send()
    setup.advance(10_000)
    assert len(setup.broker.requests("DescribeCluster")) == 1
    assert setup.failures() == [(0, "DisconnectException")]


SOFTWARE_VERSIONS = {
    "a release": ("1.2.3", "1.2.3"),
    "a development version": ("1.2.4.dev7+gabc1234.d20260102", "1.2.4.dev7-gabc1234.d20260102"),
    "any other form": ("1!2.0_x", "1-2.0-x"),
}


@pytest.mark.parametrize(("version", "expected"), SOFTWARE_VERSIONS.values(), ids=SOFTWARE_VERSIONS)
def test_client_software_version_is_accepted_by_brokers(version: str, expected: str) -> None:
    assert software_version(version) == expected
    request = ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=software_version(version))
    assert re.fullmatch(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?", request.client_software_version)  # KIP-511
