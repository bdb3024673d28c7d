"""Fetches from one partition: leader epochs, diverging logs, followers, and bytes that complete a delayed fetch."""

from typing import Any

import pytest

from sluice.protocol.apis.fetch import FetchRequest, ReplicaState
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, batch_of, fetch, fetched, produce, records_of
from tests.support.virtual_broker import WALL_START_MS, ReceivedResponse, VirtualBroker, broker_with_topic

LONG_MS = 10_000


def broker_of_epochs(*epochs: int) -> VirtualBroker:
    """Return a broker that leads a partition with one record per leader epoch, in the last epoch."""
    broker = VirtualBroker()
    partition = broker.topic().partitions[0]
    for epoch in epochs:
        partition.leader_epoch = epoch
        assert partition.log.append(memoryview(bytearray(batch(b"v"))), WALL_START_MS, epoch).error_code == 0
    return broker


def fetch_from(broker: VirtualBroker, version: int, offset: int, **fields: Any) -> ReceivedResponse:
    """Return the response to one fetch with a long `max_wait_ms`."""
    client = broker.client()
    topic_id = broker.partition().topic.topic_id
    client.send(fetch(offset, topic_id=topic_id, max_wait_ms=LONG_MS, **fields), version)
    return client.response()


# -- epochs ------------------------------------------------------------------------------------------------------------


DIVERGING = {
    "at the end of an epoch": (2, 2, None),
    "inside an epoch": (1, 2, None),
    "at the start of the log, with an earlier epoch": (0, 0, None),
    "beyond the end of the epoch": (3, 2, (2, 2)),
    "an epoch that the leader does not have: the end of the previous epoch": (3, 5, (2, 2)),
    "beyond the end of the leader's current epoch": (5, 7, (7, 4)),
    "after the start of the log, with an earlier epoch": (1, 0, (0, 0)),
}


@pytest.mark.parametrize("version", range(12, 19))
@pytest.mark.parametrize(("offset", "last_fetched_epoch", "expected"), DIVERGING.values(), ids=DIVERGING)
def test_fetch_returns_the_diverging_epoch(
    version: int, offset: int, last_fetched_epoch: int, expected: tuple[int, int] | None
) -> None:
    broker = broker_of_epochs(1, 2, 7, 7)
    response = fetch_from(broker, version, offset, last_fetched_epoch=last_fetched_epoch)
    data = fetched(response.message)
    assert (response.at_ms, data.error_code, data.high_watermark, data.log_start_offset) == (0, 0, 4, 0)
    if expected is None:
        assert data.diverging_epoch is None
        assert len(records_of(data)) > 0
    else:
        assert data.diverging_epoch is not None
        assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == expected
        assert records_of(data) == b""


UNUSABLE_EPOCHS = {"unknown epoch": (4, 8, 0), "offset below the log start offset": (0, 2, 1)}


@pytest.mark.parametrize(("offset", "last_fetched_epoch", "deleted_to"), UNUSABLE_EPOCHS.values(), ids=UNUSABLE_EPOCHS)
def test_fetch_without_a_usable_epoch_returns_offset_out_of_range(
    offset: int, last_fetched_epoch: int, deleted_to: int
) -> None:
    broker = broker_of_epochs(1, 2, 7, 7)
    broker.partition().log.delete_records_before(deleted_to)
    response = fetch_from(broker, 12, offset, last_fetched_epoch=last_fetched_epoch)
    assert (response.at_ms, fetched(response.message).error_code) == (0, ErrorCode.OFFSET_OUT_OF_RANGE)


@pytest.mark.parametrize(("last_fetched_epoch", "code"), [(0, 0), (1, ErrorCode.OFFSET_OUT_OF_RANGE)])
def test_empty_log_has_only_its_leader_epoch(last_fetched_epoch: int, code: int) -> None:
    broker = broker_of_epochs()
    client = broker.client()
    data = fetched(client.call(fetch(0, last_fetched_epoch=last_fetched_epoch), 12))
    assert (data.error_code, data.diverging_epoch) == (code, None)


@pytest.mark.parametrize("epoch", [-1, -2])
def test_negative_leader_epoch_is_ignored(epoch: int) -> None:
    broker = broker_of_epochs(7)
    assert fetched(fetch_from(broker, 12, 0, current_leader_epoch=epoch).message).error_code == 0


@pytest.mark.parametrize("version", range(9, 19))
@pytest.mark.parametrize(("epoch", "code"), [(6, ErrorCode.FENCED_LEADER_EPOCH), (8, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_fenced_leader_epoch_returns_the_current_leader_from_version_16(version: int, epoch: int, code: int) -> None:
    client = broker_of_epochs(7).client()
    topic_id = client.broker.partition().topic.topic_id
    message = client.call(fetch(0, topic_id=topic_id, current_leader_epoch=epoch), version)
    data = fetched(message)
    assert data.error_code == code
    if version >= 16 and code == ErrorCode.FENCED_LEADER_EPOCH:
        leader, advertised = data.current_leader, client.connection.advertised
        assert leader is not None
        assert (leader.leader_id, leader.leader_epoch) == (1, 7)
        assert [(node.node_id, node.host, node.port) for node in message.node_endpoints] == [
            (1, advertised.host, advertised.port)
        ]
    else:
        assert data.current_leader is None
        assert message.node_endpoints == []


# -- followers ---------------------------------------------------------------------------------------------------------


def of_follower(version: int, broker: VirtualBroker, **fields: Any) -> FetchRequest:
    request = fetch(0, topic_id=broker.partition().topic.topic_id, max_wait_ms=LONG_MS, **fields)
    if version >= 15:
        request.replica_state = ReplicaState(replica_id=2)
    else:
        request.replica_id = 2
    return request


@pytest.mark.parametrize("version", range(19))
def test_fetch_of_a_broker_without_a_replica_returns_not_leader_or_follower(version: int) -> None:
    broker = broker_of_epochs(7)
    client = broker.client()
    response = client.exchange(of_follower(version, broker), version)
    data = fetched(response.message)
    assert (response.at_ms, data.error_code) == (0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert (data.current_leader is not None) == (version >= 16)


@pytest.mark.parametrize("version", range(9, 19))
def test_fetch_of_a_broker_without_a_replica_in_the_current_epoch_is_rejected(version: int) -> None:
    broker = broker_of_epochs(7)
    client = broker.client()
    client.send(of_follower(version, broker, current_leader_epoch=7), version)
    assert fetched(client.response().message).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


@pytest.mark.parametrize("profile", ["by-version", "kip-13", "kafka-1.1", "kafka-4.4"])
@pytest.mark.parametrize("version", [7, 12])
def test_fetch_of_a_follower_is_exempt_from_quotas(profile: str, version: int) -> None:
    broker = broker_with_topic("quota.consumer.default=1", f"quota.profile={profile}")
    client = broker.client()
    for _ in range(100):
        assert client.call(of_follower(version, broker), version).throttle_time_ms == 0


# -- bytes that complete a delayed fetch -------------------------------------------------------------------------------


MIN_BYTES = {
    "bytes up to the partition limit count, not whole batches": (2_400, 2_500, 0),
    "min_bytes equal to the partition limit": (2_500, 2_500, 0),
    "min_bytes above the partition limit": (2_501, 2_500, LONG_MS),
    "min_bytes equal to the log size": (5_000, 1 << 20, 0),
    "min_bytes above the log size": (5_001, 1 << 20, LONG_MS),
}


@pytest.mark.parametrize(("min_bytes", "partition_max_bytes", "at_ms"), MIN_BYTES.values(), ids=MIN_BYTES)
@pytest.mark.parametrize("segment_bytes", [2_000, 1 << 20], ids=["in several segments", "in one segment"])
@pytest.mark.parametrize("profile", ["kip-13", "kafka-4.4"])
def test_delayed_fetch_completes_when_min_bytes_are_available(
    min_bytes: int, partition_max_bytes: int, at_ms: int, segment_bytes: int, profile: str
) -> None:
    broker = broker_with_topic(f"log.segment.bytes={segment_bytes}", f"quota.profile={profile}")
    client = broker.client()
    for _ in range(5):
        client.call(produce(9, batch_of(1_000)), 9)
    client.send(fetch(0, max_wait_ms=LONG_MS, min_bytes=min_bytes, partition_max_bytes=partition_max_bytes), 12)
    broker.advance(LONG_MS)
    assert client.response().at_ms == at_ms


def test_fetch_above_the_high_watermark_returns_no_records_and_does_not_wait() -> None:
    broker = broker_with_topic("sluice.replication.delay.ms=1000")
    client = broker.client()
    client.call(produce(9), 9)
    response = fetch_from(broker, 12, 1)
    assert (response.at_ms, fetched(response.message).error_code) == (0, 0)
