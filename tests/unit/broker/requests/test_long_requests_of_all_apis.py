"""A long request of each API: the response is that in one piece, and other clients are served in between."""

import gc
from collections.abc import Iterator
from typing import Any

import pytest

from bench.large_requests import Shape, shapes
from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.requests.served_api import Charge
from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.codec.pausing import PausingDict, PausingList
from sluice.protocol.message import Message, fields_of
from tests.support.virtual_broker import Client, VirtualBroker, broker_with_topic

VERSIONS = [
    pytest.param(key, version, id=f"{API_KEYS[key].name} v{version}")
    for key, handler in HANDLERS.items()
    for version in dict.fromkeys((handler.min_version, handler.max_version))
]
LONG, LONG_RECORDS = 3_000, 20_000  # bytes: more than is handled at once, of Produce and Fetch, too
# Arrays that the handler does not iterate over, and why.
NOT_ITERATED = {
    "ConsumerGroupHeartbeat.topic_partitions": "rejected, because the member joins",
    "DescribeClientQuotas.components": "rejected at the second component of a type",
    "Fetch.forgotten_topics_data.partitions": "ignored without a session",
    "JoinGroup.protocols": "copied: the change of the group must not pause",
    "LeaveGroup.members": "500 members leave together",
    "ListConfigResources.resource_types": "rejected at the first type",
    "ListTransactions.producer_id_filters": "compared with transactions, of which there are none",
    "ShareAcknowledge.topics": "rejected without a session",
    "ShareFetch.topics.partitions.acknowledgement_batches": "rejected in the first request of a session",
    "StreamsGroupTopologyDescriptionUpdate": "rejected, because descriptions are not stored",
    "SyncGroup.assignments": "copied: the change of the group must not pause",
}


def made(slice_ms: float) -> VirtualBroker:
    broker = broker_with_topic("group.initial.rebalance.delay.ms=0", partitions=4)
    broker.cluster.runtime.long_requests.slice_ms = slice_ms
    return broker


def is_array(cls: type[Message], path: str) -> bool:
    name, _, rest = path.partition(".")
    field = next((field for field in fields_of(cls) if field.name == name), None)
    if field is None:  # the tagged fields
        return False
    return is_array(field.struct, rest) if rest and field.struct else field.is_array


def responses(client: Client, into: list[tuple[Client, bytes]]) -> None:
    client.on_bytes = lambda data: into.append((client, data))


def response_in_one_piece(broker: VirtualBroker, shape: Shape) -> bytes:
    client = broker.client()
    received: list[tuple[Client, bytes]] = []
    responses(client, received)
    client.send_bytes(shape.frame)
    return b"".join(data for _, data in received)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that gets an entry for each part of an array that is iterated over."""
    parts_of, pauses = PausingList._parts, list[None]()

    def counted(array: PausingList[object]) -> Iterator[list[object]]:
        for part in parts_of(array):
            yield part
            pauses.append(None)

    monkeypatch.setattr(PausingList, "_parts", counted)
    return pauses


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_long_request_of_each_api(key: int, version: int, pauses: list[None]) -> None:
    api = API_KEYS[key].name
    before = arrays()  # of other tests
    whole, sliced = made(1e9), made(0.0)
    size = LONG_RECORDS if HANDLERS[key].api.charge in (Charge.PRODUCE_BYTES, Charge.FETCH_BYTES) else LONG
    for shape in shapes(key, version, size, sliced.partition().topic.topic_id):
        received: list[tuple[Client, bytes]] = []
        slow, quick = sliced.client(), sliced.client()
        for client in (slow, quick):
            responses(client, received)
            sliced.loop.call_soon(client.deliver)
        slow._sent += shape.frame
        quick._sent += quick.frame(DescribeClusterRequest(), 1)
        pauses.clear()
        sliced.settle()
        expected = response_in_one_piece(whole, shape)
        assert b"".join(data for client, data in received if client is slow) == expected, shape.name
        path = shape.name.removesuffix(" distinct")
        if is_array(API_KEYS[key].request, path) and not f"{api}.{path}".startswith(tuple(NOT_ITERATED)):
            assert pauses, f"{shape.name}: no pause in the handler"
            assert received[0][0] is quick, f"{shape.name}: another client was not served in between"
    if not arrays().keys() <= before.keys():  # perhaps garbage
        gc.collect()
    # A kept array would pause whichever long request runs when it is read.
    assert arrays().keys() <= before.keys()


def arrays() -> dict[int, PausingList[Any] | PausingDict[Any, Any]]:
    """Return the arrays and dicts of long requests in memory, by identity."""
    return {id(one): one for one in gc.get_objects() if isinstance(one, PausingList | PausingDict)}
