"""Produce and Fetch requests whose records are validated or converted in the worker."""

from typing import Any

import pytest

from sluice.broker.handlers.records import down_conversion
from sluice.broker.log import partition_log
from sluice.broker.requests.worker import Worker
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.compression import GZIP, NAMES, NONE, ZSTD
from sluice.protocol.records.record import Record
from tests.support.held_worker import HeldWorker
from tests.support.records import batch, fetch, fetched_bytes, produce, records_for
from tests.support.virtual_broker import WALL_START_MS, Client, VirtualBroker, broker_with_topic

KEYED = build_batch([Record(offset, WALL_START_MS, b"key", b"") for offset in range(60)], compression=GZIP)
NOT_KEYED = build_batch([Record(offset, WALL_START_MS, None, b"") for offset in range(60)], compression=GZIP)


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_log, "SHORT_RECORDS", 50)
    monkeypatch.setattr(partition_log, "SHORT_SECTION_BYTES", 10_000)
    monkeypatch.setattr(down_conversion, "_SHORT_BYTES", 300)


def with_worker(*overrides: str, **configs: Any) -> tuple[VirtualBroker, HeldWorker]:
    broker = broker_with_topic(*overrides, **configs)
    worker = broker.cluster.runtime.worker = HeldWorker()
    return broker, worker


def with_long_batch() -> tuple[VirtualBroker, HeldWorker, Client]:
    """Return a broker whose worker holds a long batch for a compacted topic, and the client that sent it."""
    broker, worker = with_worker(cleanup_policy="compact")
    client = broker.client()
    client.send(produce(9, KEYED), 9)
    return broker, worker, client


def partition_response(response: Any) -> Any:
    return response.responses[0].partition_responses[0]


LONG = {
    "many records in a compacted topic": (9, KEYED, {"cleanup_policy": "compact"}),
    "a large section in a compacted topic": (
        9,
        build_batch([Record(0, WALL_START_MS, b"key", bytes(20_000))], compression=ZSTD),
        {"cleanup_policy": "compact"},
    ),
    "another codec than the topic's": (9, KEYED, {"compression_type": "lz4"}),
    "many messages": (2, records_for(2, *[b""] * 60), {}),
    "many compressed messages": (2, records_for(2, *[b""] * 60, compression=GZIP), {}),
    "many batches": (2, batch(b"v") * 30, {}),
}


@pytest.mark.parametrize(("version", "records", "configs"), LONG.values(), ids=LONG)
def test_long_records_are_validated_in_the_worker(version: int, records: bytes, configs: dict[str, Any]) -> None:
    broker, worker = with_worker(**configs)
    client, other = broker.client(), broker.client()
    client.send(produce(version, records), version)
    assert other.call(ApiVersionsRequest(), 0)
    assert (len(worker), client.responses) == (1, [])
    worker.work()
    assert client.response().api == "Produce"
    plain = broker_with_topic(**configs)
    response = plain.client().call(produce(version, records), version)
    assert plain.partition().log.log_end_offset == broker.partition().log.log_end_offset
    if not partition_response(response).error_code:
        stored = [fetched_bytes(each.client().call(fetch(0), 11)) for each in (broker, plain)]
        assert stored[0] == stored[1]


SHORT = {"few records": batch(b"v", compression=GZIP), "records up to the limit": batch(*[b"v"] * 50)}


@pytest.mark.parametrize("records", SHORT.values(), ids=SHORT)
def test_short_records_are_validated_at_once(records: bytes) -> None:
    broker, worker = with_worker()
    assert broker.client().call(produce(9, records), 9)
    assert not len(worker)


def test_long_batch_follows_batches_that_were_appended_meanwhile() -> None:
    broker, worker = with_worker(cleanup_policy="compact")
    client, other = broker.client(), broker.client()
    client.send_together((produce(9, KEYED), 9), (ApiVersionsRequest(), 0))
    other.call(produce(9, build_batch([Record(0, WALL_START_MS, b"key", b"")])), 9)
    worker.work()
    long, after = client.take_responses()
    assert partition_response(long.message).base_offset == 1
    assert after.api == "ApiVersions", "requests of one connection are answered in order"
    assert broker.partition().log.log_end_offset == 61


def test_invalid_long_batch_is_refused_after_its_validation() -> None:
    broker, worker = with_worker(cleanup_policy="compact")
    client = broker.client()
    client.send(produce(9, NOT_KEYED), 9)
    worker.work()
    response = partition_response(client.response().message)
    assert response.error_code == ErrorCode.INVALID_RECORD
    assert len(response.record_errors) == 60
    assert broker.partition().log.log_end_offset == 0


def test_long_batch_for_a_topic_deleted_meanwhile_is_refused() -> None:
    broker, worker, client = with_long_batch()
    broker.broker.delete_topic(broker.cluster.topics["t"])
    worker.work()
    assert partition_response(client.response().message).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_long_batch_of_a_disconnected_client_is_appended() -> None:
    broker, worker, client = with_long_batch()
    reader = broker.client()
    reader.send(fetch(max_wait_ms=10_000), 12)
    client.leave()
    worker.work()
    assert broker.partition().log.log_end_offset > 0
    assert fetched_bytes(reader.response().message)


@pytest.mark.parametrize("leaves", [False, True], ids=["", "of a disconnected client"])
def test_long_batch_counts_as_a_request_in_flight_until_its_validation(leaves: bool) -> None:
    _, worker, client = with_long_batch()
    memory = client.connection.request_memory
    assert memory.reserved_bytes == len(KEYED)
    if leaves:
        client.leave()
    worker.work()
    assert memory.reserved_bytes == 0


def test_error_in_the_worker_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, worker, client = with_long_batch()
    monkeypatch.setattr(partition_log, "validate", None)
    worker.work()
    assert not client.is_open
    assert [record.getMessage() for record in caplog.records] == ["request failed"]


# -- Fetch of old clients ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [NONE, GZIP], ids=NAMES.__getitem__)
@pytest.mark.parametrize("version", [1, 3])
def test_long_records_are_converted_for_old_clients_in_the_worker(version: int, codec: int) -> None:
    broker, worker = with_worker()
    client, other = broker.client(), broker.client()
    client.call(produce(9, batch(*[b"v"] * 60, compression=codec)), 9)
    client.send(fetch(0), version)
    assert other.call(ApiVersionsRequest(), 0)
    assert (len(worker), client.responses) == (1, [])
    worker.work()
    converted = fetched_bytes(client.response().message)
    broker.cluster.runtime.worker = Worker()
    assert converted == fetched_bytes(client.call(fetch(0), version))


def test_long_poll_of_an_old_client_converts_in_the_worker() -> None:
    broker, worker = with_worker()
    client = broker.client()
    client.send(fetch(0, max_wait_ms=1000), 1)
    broker.client().call(produce(9, batch(*[b"v"] * 60, compression=GZIP)), 9)
    assert len(worker) == 1
    worker.work()
    assert len(fetched_bytes(client.response().message)) > 0


def test_throttled_fetch_of_an_old_client_converts_in_the_worker() -> None:
    broker, worker = with_worker("quota.consumer.default=10", "quota.profile=kip-13")
    client = broker.client()
    client.call(produce(9, batch(*[b"v"] * 60, compression=GZIP)), 9)
    client.send(fetch(0), 1)
    throttle_ms = 0
    while not len(worker):
        broker.advance(1)
        throttle_ms += 1
    worker.work()
    response = client.response()
    assert response.throttle_time_ms == throttle_ms > 0
    assert len(fetched_bytes(response.message)) > 0
