"""Recovery of topics from a data directory of Kafka, after a crash, and with stray directories."""

from pathlib import Path
from typing import Any

import pytest

from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.describe_transactions import DescribeTransactionsRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records
from sluice.protocol.uuids import printed_uuid
from tests.support.groups import fetch_request, fetched
from tests.support.kafka_data import RELEASES, unpack
from tests.support.records import batch, fetch, fetched_bytes, produce
from tests.support.transactions import init_request
from tests.support.virtual_broker import VirtualBroker
from tests.unit.broker.controller.metadata_log.cluster_metadata import log_of

ABORT_MARKER = bytes(4)  # version and type of a control record
KAFKAS_CLUSTER_ID = "c2x1aWNlLWZpeHR1cmUtMA"
# Committed offsets of the group "readers", which read before or after the last transaction marker.
COMMITTED = {
    "3.9.1": {("orders", 0): 35, ("orders", 1): 35, ("orders", 2): 30, ("grown", 0): 8},
    "4.4.0": {("orders", 0): 35, ("orders", 1): 35, ("orders", 2): 30, ("grown", 0): 7},
}


def start(directory: Path, *overrides: str) -> VirtualBroker:
    return VirtualBroker("node.id=1", f"log.dirs={directory}", *overrides)


def kill(broker: VirtualBroker) -> None:
    """Release the lock of the data directory, as the end of the process does."""
    assert broker.cluster.logs.directory is not None
    broker.cluster.logs.directory.unlock()


def stop(broker: VirtualBroker) -> None:
    broker.cluster.close()


def values(broker: VirtualBroker, topic: str, partition: int, isolation_level: int = 0) -> list[bytes | None]:
    """Return the values of one partition without markers and, with read_committed, without aborted records."""
    request = fetch(topic=topic, partition=partition, isolation_level=isolation_level)
    response = broker.client().call(request, 11)
    (found,) = response.responses[0].partitions
    aborted = {one.producer_id: one.first_offset for one in found.aborted_transactions or ()}
    data = fetched_bytes(response)
    kept: list[bytes | None] = []
    for position, header in iter_batches(data):
        records = list(iter_records(data[position : position + header.size_in_bytes]))
        if header.is_control:
            if records[0].key == ABORT_MARKER:
                del aborted[header.producer_id]
        elif header.base_offset < aborted.get(header.producer_id, 2**63):
            kept += [record.value for record in records]
    return kept


@pytest.mark.parametrize("release", RELEASES)
class TestKafkaDirectory:
    """A copy of the data directory of a Kafka node in combined mode."""

    @pytest.fixture
    def broker(self, release: str, tmp_path: Path) -> VirtualBroker:
        return start(unpack(release, tmp_path), f"sluice.cluster.id={KAFKAS_CLUSTER_ID}")

    def test_records_are_readable(self, broker: VirtualBroker, release: str) -> None:
        written = {f"{codec}-{number}".encode() for codec in CODECS for number in range(20)}
        assert {value for index in range(3) for value in values(broker, "orders", index)} == written
        assert values(broker, "table", 0) == [str(number).encode() for number in range(10)]

    def test_aborted_transactions_are_skipped(self, broker: VirtualBroker, release: str) -> None:
        read_committed = [value for index in range(4) for value in values(broker, "grown", index, 1)]
        assert sorted(filter(None, read_committed)) == sorted(
            [f"committed-{number}".encode() for number in range(8)]
            + [f"again-{number}".encode() for number in range(4)]
        )

    def test_committed_offsets_are_restored(self, broker: VirtualBroker, release: str) -> None:
        found: dict[tuple[str, int], Any] = {}
        for topic, *partitions in (("orders", 0, 1, 2), ("grown", 0)):
            request = fetch_request(*map(int, partitions), version=7, topic=str(topic), group_id="readers")
            found |= fetched(broker.client().call(request, 7))
        assert found == {partition: (offset, 0) for partition, offset in COMMITTED[release].items()}

    def test_transactional_ids_are_restored(self, broker: VirtualBroker, release: str) -> None:
        request = DescribeTransactionsRequest(transactional_ids=["payments"])
        (state,) = broker.client().call(request, 0).transaction_states
        assert (state.error_code, state.transaction_state) == (0, "CompleteCommit")
        client = broker.client()
        resumed = client.call(init_request("payments"), 4)
        assert resumed.producer_id == state.producer_id
        assert resumed.producer_epoch > 0, "the previous producer is fenced"

    def test_broker_continues_the_cluster(self, broker: VirtualBroker, release: str, tmp_path: Path) -> None:
        assert produce_one(broker, "orders", b"ours") == 35
        broker.topic("new", 2)
        stop(broker)
        restarted = start(tmp_path / "data", f"sluice.cluster.id={KAFKAS_CLUSTER_ID}")
        assert values(restarted, "orders", 0)[-1] == b"ours"
        assert len(restarted.cluster.topics["new"].partitions) == 2
        assert restarted.partition("orders").leader_epoch == 5


CODECS = ("none", "gzip", "lz4", "zstd", "snappy")


def produce_one(broker: VirtualBroker, topic: str, value: bytes) -> int:
    """Append one record; return its offset."""
    response = broker.client().call(produce(9, batch(value), topic=topic), 9)
    (result,) = response.responses[0].partition_responses
    assert result.error_code == 0
    assert isinstance(result.base_offset, int)
    return result.base_offset


@pytest.mark.parametrize("end_broker", [stop, kill])
def test_topics_and_records_are_restored(end_broker: Any, tmp_path: Path) -> None:
    broker = start(tmp_path)
    topic = broker.topic("t", 2, retention_ms="-1")
    produce_one(broker, "t", b"kept")
    broker.topic("deleted")
    assert not broker.broker.delete_topic(broker.cluster.topics["deleted"])
    end_broker(broker)
    restarted = start(tmp_path)
    assert list(restarted.cluster.topics) == ["t"]
    assert restarted.cluster.topics["t"].topic_id == topic.topic_id
    assert restarted.cluster.topics["t"].config.own == {"retention.ms": "-1"}
    assert values(restarted, "t", 0) == [b"kept"]


class TestDirectoriesWithoutMetadata:
    """Partition directories without metadata start a new cluster, but are stray in an existing one."""

    @pytest.fixture
    def copies(self, tmp_path: Path) -> Path:
        """Return a directory with the partitions of two topics and no metadata log."""
        broker = start(tmp_path)
        broker.topic("a", 2)
        broker.topic("b")
        produce_one(broker, "a", b"copied")
        stop(broker)
        log = tmp_path / "__cluster_metadata-0"
        for path in log.iterdir():
            path.unlink()
        log.rmdir()
        return tmp_path

    def test_without_a_cluster_they_become_topics(self, copies: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        broker = start(copies)
        assert "topics found" in [record.message for record in caplog.records]
        assert {name: len(topic.partitions) for name, topic in broker.cluster.topics.items()} == {"a": 2, "b": 1}
        assert values(broker, "a", 0) == [b"copied"]
        ids = {name: topic.topic_id for name, topic in broker.cluster.topics.items()}
        kill(broker)
        assert {name: topic.topic_id for name, topic in start(copies).cluster.topics.items()} == ids, (
            "topic ids are kept"
        )

    def test_in_an_existing_cluster_they_are_stray(
        self, copies: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = start(copies)
        stray = broker.topic("stray")
        kill(broker)
        (copies / "a-0").rename(tmp_path / "c-0")
        (copies / "b-0").rename(tmp_path / "d-0")
        (copies / "stray-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {printed_uuid(bytes(range(16)))}"
        )
        restarted = start(copies)
        (line,) = [one for one in caplog.records if one.message == "directories without a partition in this cluster"]
        assert vars(line)["directories"] == "c-0"
        assert not {"c", "d"} & restarted.cluster.topics.keys()
        assert (copies / "c-0").is_dir(), "records are kept"
        assert not (copies / "d-0").exists(), "an empty directory is removed, as of a topic whose creation was killed"
        assert restarted.cluster.topics["stray"].topic_id == stray.topic_id

    def test_directory_of_a_deleted_topic_is_not_reused_by_a_new_topic_of_its_name(self, tmp_path: Path) -> None:
        broker = start(tmp_path)
        broker.topic("a")
        broker.topic("b")
        produce_one(broker, "b", b"old")
        # The process dies after the deletion is recorded and before the directory is removed.
        assert not log_of(broker).topic_deleted(broker.cluster.topics["b"].topic_id)
        kill(broker)
        restarted = start(tmp_path)
        restarted.topic("b")
        assert values(restarted, "b", 0) == []


class TestFailedCreation:
    """Directories and metadata records are created together or not at all."""

    @pytest.fixture
    def broker(self, tmp_path: Path) -> VirtualBroker:
        broker = start(tmp_path)
        broker.topic("t")
        return broker

    def test_topic_without_a_metadata_record_has_no_directories(
        self, broker: VirtualBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(broker.cluster.metadata_log, "append", lambda _: ErrorCode.KAFKA_STORAGE_ERROR)
        error = broker.cluster.auto_create(NewTopic("n"))
        assert error == TopicError(ErrorCode.KAFKA_STORAGE_ERROR, None)
        assert not (tmp_path / "n-0").exists()

    def test_topic_without_a_directory_has_no_metadata_record(self, broker: VirtualBroker, tmp_path: Path) -> None:
        (tmp_path / "n-0").write_text("a file")
        error = broker.cluster.auto_create(NewTopic("n"))
        assert error == TopicError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tmp_path / 'n-0'}: File exists")
        kill(broker)
        assert list(start(tmp_path).cluster.topics) == ["t"]

    def test_partition_without_a_directory_has_no_metadata_record(self, broker: VirtualBroker, tmp_path: Path) -> None:
        (tmp_path / "t-2").write_text("a file")
        new_partitions = CreatePartitionsTopic(name="t", count=4, assignments=None)
        request = CreatePartitionsRequest(topics=[new_partitions], timeout_ms=1000)
        (result,) = broker.client().call(request, 3).results
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(broker.cluster.topics["t"].partitions) == 1
        assert not (tmp_path / "t-1").exists()
        (tmp_path / "t-2").unlink()
        (result,) = broker.client().call(request, 3).results
        assert result.error_code == 0
        kill(broker)
        assert len(start(tmp_path).cluster.topics["t"].partitions) == 4

    def test_coordinator_is_not_available_if_its_topic_cannot_be_created(
        self, broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(broker.cluster.metadata_log, "append", lambda _: ErrorCode.KAFKA_STORAGE_ERROR)
        (found,) = broker.client().call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4).coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
