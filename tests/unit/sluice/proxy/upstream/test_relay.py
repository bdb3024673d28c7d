"""Which Fetch responses may pass the proxy without their records being read."""

from collections.abc import Callable

import pytest

from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis import fetch as api
from sluice.proxy.upstream.forwarded_route import ForwardedRoute
from sluice.proxy.upstream.relay import without_records
from tests.support.virtual_proxy import VirtualProxy
from tools.fuzz.upstream import framed

RECORDS = bytes(range(256)) * 1024
VERSIONS = range(4, API_KEYS[ApiKey.FETCH].max_version + 1)


def partition(records: bytes | None = RECORDS, **fields: object) -> api.PartitionData:
    return api.PartitionData(high_watermark=7, records=records, **fields)  # type: ignore[arg-type]  # by name


def response(*partitions: api.PartitionData, **fields: object) -> api.FetchResponse:
    topic = api.FetchableTopicResponse(topic="t", topic_id=bytes(range(16)), partitions=[*partitions])
    return api.FetchResponse(responses=[topic], **fields)  # type: ignore[arg-type]  # by name


@pytest.fixture(scope="module")
def route_of() -> Callable[[int], ForwardedRoute]:
    routes = VirtualProxy().server.exchange.routes

    def find(version: int) -> ForwardedRoute:
        route = routes.find(ApiKey.FETCH << 16 | version)
        assert isinstance(route, ForwardedRoute)
        return route

    return find


def passes(given: api.FetchResponse, version: int, route: ForwardedRoute, received: int = 200) -> bool:
    """Return whether the rest may pass; if so, check what the proxy then reads."""
    data = framed(given, version, 1)
    frame = without_records(memoryview(data)[:received], len(data), route)
    if frame is None:
        return False
    assert frame[:] == data[:received].ljust(len(data), b"\0")
    return True


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_one_partition_pass(version: int, route_of: Callable[[int], ForwardedRoute]) -> None:
    assert passes(response(partition()), version, route_of(version))


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_the_last_partition_pass(version: int, route_of: Callable[[int], ForwardedRoute]) -> None:
    assert passes(response(partition(b"some"), partition(None), partition()), version, route_of(version), 300)


ABORTED = [api.AbortedTransaction(producer_id=1, first_offset=1)]
MANY_ABORTED = ABORTED * 1000
LEADER = api.LeaderIdAndEpoch(leader_id=1, leader_epoch=1)
ENDPOINT = api.NodeEndpoint(node_id=1, host="upstream", port=9092)


READ = {
    "aborted transactions": (response(partition(aborted_transactions=ABORTED)), 200, True),
    "too many of them": (response(partition(aborted_transactions=MANY_ABORTED)), 50_000, False),
    "the start of a partition is missing": (response(partition()), 30, False),
    "the header is missing": (response(partition()), 7, False),
    "another partition follows": (response(partition(), partition()), 200, False),
    "a partition without records follows": (response(partition(), partition(b"")), 200, False),
    "a new leader": (response(partition(current_leader=LEADER)), 200, False),
    "an address": (response(partition(), node_endpoints=[ENDPOINT]), 200, False),
    "no partition": (api.FetchResponse(), 200, False),
}


@pytest.mark.parametrize(("given", "received", "expected"), READ.values(), ids=READ)
def test_response_that_may_change_is_read(
    given: api.FetchResponse, received: int, expected: bool, route_of: Callable[[int], ForwardedRoute]
) -> None:
    assert passes(given, 17, route_of(17), received) == expected


def test_malformed_response_is_read(route_of: Callable[[int], ForwardedRoute]) -> None:
    data = framed(response(partition()), 17, 1)
    assert without_records(memoryview(data)[:200], len(data) - 1, route_of(17)) is None
    assert without_records(memoryview(data[:8] + b"\1" + data[9:])[:200], len(data), route_of(17)) is None
