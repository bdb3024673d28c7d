"""What a data directory has is there after a start: of a real Kafka's, of one that was killed, of one with strays."""

from pathlib import Path
from typing import Any

import pytest

from sluice.broker.metadata.new_topic import TopicError
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

ABORT_MARKER = bytes(4)  # version and type of a control record
KAFKAS_CLUSTER_ID = "c2x1aWNlLWZpeHR1cmUtMA"
# Where the group "readers" of these nodes had got to; the transaction's end came between two of its reads.
COMMITTED = {
    "3.9.1": {("orders", 0): 35, ("orders", 1): 35, ("orders", 2): 30, ("grown", 0): 8},
    "4.4.0": {("orders", 0): 35, ("orders", 1): 35, ("orders", 2): 30, ("grown", 0): 7},
}


def start(directory: Path, *overrides: str) -> VirtualBroker:
    return VirtualBroker("node.id=1", f"log.dirs={directory}", *overrides)


def kill(broker: VirtualBroker) -> None:
    """The process is gone, and its lock with it."""
    assert broker.cluster.logs.directory is not None
    broker.cluster.logs.directory.unlock()


def stop(broker: VirtualBroker) -> None:
    broker.cluster.close()


def values(broker: VirtualBroker, topic: str, partition: int, isolation_level: int = 0) -> list[bytes | None]:
    """The values of the records of one partition, markers left out, aborted ones too where that is asked for."""
    request = fetch(topic=topic, partition=partition, isolation_level=isolation_level)
    answer = broker.client().ask(request, 11)
    (found,) = answer.responses[0].partitions
    aborted = {one.producer_id: one.first_offset for one in found.aborted_transactions or ()}
    data = fetched_bytes(answer)
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
class TestADirectoryOfARealKafka:
    """A copy of what a node in combined mode wrote."""

    @pytest.fixture
    def broker(self, release: str, tmp_path: Path) -> VirtualBroker:
        return start(unpack(release, tmp_path), f"sluice.cluster.id={KAFKAS_CLUSTER_ID}")

    def test_has_its_records(self, broker: VirtualBroker, release: str) -> None:
        written = {f"{codec}-{number}".encode() for codec in CODECS for number in range(20)}
        assert {value for index in range(3) for value in values(broker, "orders", index)} == written
        assert values(broker, "table", 0) == [str(number).encode() for number in range(10)]

    def test_knows_which_transactions_were_aborted(self, broker: VirtualBroker, release: str) -> None:
        read_committed = [value for index in range(4) for value in values(broker, "grown", index, 1)]
        assert sorted(filter(None, read_committed)) == sorted(
            [f"committed-{number}".encode() for number in range(8)]
            + [f"again-{number}".encode() for number in range(4)]
        )

    def test_has_the_offsets_of_its_groups(self, broker: VirtualBroker, release: str) -> None:
        found: dict[tuple[str, int], Any] = {}
        for topic, *partitions in (("orders", 0, 1, 2), ("grown", 0)):
            request = fetch_request(*map(int, partitions), version=7, topic=str(topic), group_id="readers")
            found |= fetched(broker.client().ask(request, 7))
        assert found == {partition: (offset, 0) for partition, offset in COMMITTED[release].items()}

    def test_has_its_transactional_ids(self, broker: VirtualBroker, release: str) -> None:
        request = DescribeTransactionsRequest(transactional_ids=["payments"])
        (state,) = broker.client().ask(request, 0).transaction_states
        assert (state.error_code, state.transaction_state) == (0, "CompleteCommit")
        client = broker.client()
        client.send(init_request("payments"), 4)
        resumed = client.answer().message
        assert resumed.producer_id == state.producer_id
        assert resumed.producer_epoch > 0, "whoever had it before is fenced"

    def test_goes_on(self, broker: VirtualBroker, release: str, tmp_path: Path) -> None:
        assert produce_one(broker, "orders", b"ours") == 35
        broker.topic("new", 2)
        stop(broker)
        again = start(tmp_path / "data", f"sluice.cluster.id={KAFKAS_CLUSTER_ID}")
        assert values(again, "orders", 0)[-1] == b"ours"
        assert len(again.cluster.topics["new"].partitions) == 2
        assert again.partition("orders").leader_epoch == 5


CODECS = ("none", "gzip", "lz4", "zstd", "snappy")


def produce_one(broker: VirtualBroker, topic: str, value: bytes) -> int:
    """The offset that a record got."""
    answer = broker.client().ask(produce(9, batch(value), topic=topic), 9)
    (result,) = answer.responses[0].partition_responses
    assert result.error_code == 0
    assert isinstance(result.base_offset, int)
    return result.base_offset


@pytest.mark.parametrize("ends", [stop, kill])
def test_topics_and_records_are_there_after_a_start(ends: Any, tmp_path: Path) -> None:
    broker = start(tmp_path)
    topic = broker.topic("t", 2, retention_ms="-1")
    produce_one(broker, "t", b"kept")
    broker.topic("gone")
    assert not broker.broker.delete_topic(broker.cluster.topics["gone"])
    ends(broker)
    again = start(tmp_path)
    assert list(again.cluster.topics) == ["t"]
    assert again.cluster.topics["t"].topic_id == topic.topic_id
    assert again.cluster.topics["t"].config.own == {"retention.ms": "-1"}
    assert values(again, "t", 0) == [b"kept"]


class TestDirectoriesThatNothingTellsOf:
    """Copies of partitions are a cluster to start from; beside a cluster's own they are not."""

    @pytest.fixture
    def copies(self, tmp_path: Path) -> Path:
        """A directory with the partitions of two topics and no metadata log."""
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

    def test_are_taken_as_they_are(self, copies: Path, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level("INFO")
        broker = start(copies)
        assert "topics found" in [record.message for record in caplog.records]
        assert {name: len(topic.partitions) for name, topic in broker.cluster.topics.items()} == {"a": 2, "b": 1}
        assert values(broker, "a", 0) == [b"copied"]
        ids = {name: topic.topic_id for name, topic in broker.cluster.topics.items()}
        kill(broker)
        assert {name: topic.topic_id for name, topic in start(copies).cluster.topics.items()} == ids, "and known then"

    def test_are_stray_beside_topics_that_are_known(
        self, copies: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = start(copies)
        stray = broker.topic("stray")
        kill(broker)
        (copies / "b-0").rename(tmp_path / "c-0")
        (copies / "stray-0" / "partition.metadata").write_text(
            f"version: 0\ntopic_id: {printed_uuid(bytes(range(16)))}"
        )
        again = start(copies)
        (line,) = [one for one in caplog.records if one.message == "directories without a partition in this cluster"]
        assert vars(line)["directories"] == "c-0"
        assert "c" not in again.cluster.topics
        assert (copies / "c-0").is_dir(), "it is left alone"
        assert again.cluster.topics["stray"].topic_id == stray.topic_id

    def test_are_put_aside_when_their_name_is_taken(self, tmp_path: Path) -> None:
        broker = start(tmp_path)
        broker.topic("a")
        broker.topic("b")
        produce_one(broker, "b", b"old")
        metadata_log = broker.cluster.metadata_log
        assert metadata_log is not None
        # The process dies when the topic's end is written and its directory still there.
        assert not metadata_log.topic_deleted(broker.cluster.topics["b"].topic_id)
        kill(broker)
        again = start(tmp_path)
        again.topic("b")
        assert values(again, "b", 0) == []


class TestWhatCannotBeMade:
    """Logs and records are both there or neither is."""

    @pytest.fixture
    def broker(self, tmp_path: Path) -> VirtualBroker:
        broker = start(tmp_path)
        broker.topic("t")
        return broker

    def test_a_topic_that_is_not_written_down_has_no_directories(
        self, broker: VirtualBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        metadata_log = broker.cluster.metadata_log
        monkeypatch.setattr(metadata_log, "append", lambda _: ErrorCode.KAFKA_STORAGE_ERROR)
        failed = broker.cluster.auto_create("n")
        assert failed == TopicError(ErrorCode.KAFKA_STORAGE_ERROR, None)
        assert not (tmp_path / "n-0").exists()

    def test_a_topic_without_a_directory_is_not_written_down(self, broker: VirtualBroker, tmp_path: Path) -> None:
        (tmp_path / "n-0").write_text("a file")
        failed = broker.cluster.auto_create("n")
        assert failed == TopicError(ErrorCode.KAFKA_STORAGE_ERROR, f"{tmp_path / 'n-0'}: File exists")
        kill(broker)
        assert list(start(tmp_path).cluster.topics) == ["t"]

    def test_neither_are_partitions(self, broker: VirtualBroker, tmp_path: Path) -> None:
        (tmp_path / "t-2").write_text("a file")
        wanted = CreatePartitionsTopic(name="t", count=4, assignments=None)
        (result,) = broker.client().ask(CreatePartitionsRequest(topics=[wanted]), 3).results
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert len(broker.cluster.topics["t"].partitions) == 1
        assert not (tmp_path / "t-1").exists()
        (tmp_path / "t-2").unlink()
        (result,) = broker.client().ask(CreatePartitionsRequest(topics=[wanted]), 3).results
        assert result.error_code == 0
        kill(broker)
        assert len(start(tmp_path).cluster.topics["t"].partitions) == 4

    def test_a_coordinator_whose_topic_cannot_be_made_is_not_available(
        self, broker: VirtualBroker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        metadata_log = broker.cluster.metadata_log
        monkeypatch.setattr(metadata_log, "append", lambda _: ErrorCode.KAFKA_STORAGE_ERROR)
        (found,) = broker.client().ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4).coordinators
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
