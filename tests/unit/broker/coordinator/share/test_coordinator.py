"""The share coordinator and its persister: records, fencing, loads, moves of leaders, snapshots and pruning."""

from pathlib import Path

import pytest

from sluice.broker.coordinator.share.coordinator import ShareCoordinator
from sluice.broker.coordinator.share.persisted import PartitionSummary, SharePartitionId, StateBatch, StateWrite
from sluice.broker.coordinator.share.state import ShareState
from sluice.broker.metadata.topic import SHARE_GROUP_STATE_TOPIC, Partition
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.errors import ErrorCode
from tests.support.coordinators import move_leader
from tests.support.virtual_broker import VirtualBroker

ONE_PARTITION = "share.coordinator.state.topic.num.partitions=1"
FIVE_MINUTES = 300_000


class Shared:
    """A share partition of topic t, and the results of requests about it."""

    def __init__(self, *overrides: str) -> None:
        self.cluster = VirtualBroker(ONE_PARTITION, *overrides)
        self.topic = self.cluster.topic("t", 2)
        self.key = SharePartitionId("g", self.topic.topic_id, 0)
        self.results: list[object] = []

    @property
    def coordinator(self) -> ShareCoordinator:
        leader = self.cluster.broker.leader_of(self.state_partition)
        assert leader is not None
        return leader.share_coordinator

    @property
    def state_partition(self) -> Partition:
        return self.cluster.cluster.internal_topic(SHARE_GROUP_STATE_TOPIC).partitions[0]

    @property
    def state(self) -> ShareState | None:
        return self.coordinator.state(self.key)

    def initialize(self, start_offset: int = 0, state_epoch: int = 0, partition: int = 0) -> object:
        offsets = {self.topic.topic_id: {partition: start_offset}}
        self.cluster.broker.share_persister.initialize_state("g", offsets, state_epoch, self.results.append)
        return self.result()

    def write(self, *batches: StateBatch, start: int = -1, epochs: tuple[int, int] = (0, 0)) -> object:
        write = StateWrite(*epochs, start, 1, list(batches))
        self.cluster.broker.share_persister.write_state(self.key, write, self.results.append)
        return self.result()

    def read(self, leader_epoch: int) -> object:
        def done(code: ErrorCode, state: ShareState | None) -> None:
            self.results.append(code or state)

        self.cluster.broker.share_persister.read_state(self.key, leader_epoch, done)
        return self.result()

    def summary(self) -> object:
        partitions = {self.topic.topic_id: [0]}
        self.cluster.broker.share_persister.read_summary("g", partitions, self.results.append)
        result = self.result()
        return result if not isinstance(result, dict) else result[self.topic.topic_id][0]

    def delete(self) -> object:
        self.cluster.broker.share_persister.delete_state("g", {self.topic.topic_id: [0]}, self.results.append)
        return self.result()

    def result(self) -> object:
        self.cluster.broker.actions.complete()
        self.cluster.settle()
        return self.results.pop() if self.results else None

    def reload(self) -> None:
        coordinator, partition = self.coordinator, self.state_partition
        coordinator.shards.unload(partition)
        assert coordinator.state(self.key) is None
        coordinator.shards.load(partition)


def in_topic(shared: Shared, code: ErrorCode) -> object:
    return {shared.topic.topic_id: {0: code}}


def test_the_state_is_that_of_all_updates_also_after_a_load() -> None:
    shared = Shared("share.coordinator.snapshot.update.records.per.snapshot=3")
    assert shared.initialize(5) == in_topic(shared, ErrorCode.NONE)
    assert shared.summary() == PartitionSummary(ErrorCode.NONE, 5, 0, 0, 0)
    for number in range(9):
        first = 10 + number
        assert shared.write(StateBatch(first, first, 2, 1), start=5) == ErrorCode.NONE
        known = shared.state
        assert known is not None
        assert known.batches == [StateBatch(10, first, 2, 1)]
        assert known.snapshot_epoch == (number + 1) // 4  # every fourth record is a snapshot
        shared.reload()
        assert shared.state == known
    assert shared.write(start=15) == ErrorCode.NONE
    assert shared.read(-1) == shared.state
    assert shared.state is not None
    assert shared.state.batches == [StateBatch(15, 18, 2, 1)]
    assert shared.summary() == PartitionSummary(ErrorCode.NONE, 15, 0, 0, 1)
    assert shared.delete() == in_topic(shared, ErrorCode.NONE)
    shared.reload()
    assert shared.summary() == PartitionSummary()


EPOCHS = {
    "current epochs": ((3, 7), ErrorCode.NONE),
    "unknown epochs": ((-1, -1), ErrorCode.NONE),
    "an older leader": ((3, 6), ErrorCode.FENCED_LEADER_EPOCH),
    "an older state": ((2, 7), ErrorCode.FENCED_STATE_EPOCH),
}


@pytest.mark.parametrize(("epochs", "expected"), EPOCHS.values(), ids=EPOCHS)
def test_old_epochs_are_fenced(epochs: tuple[int, int], expected: ErrorCode) -> None:
    shared = Shared()
    shared.initialize(state_epoch=3)
    assert isinstance(shared.read(7), ShareState)  # a leader announces its epoch when it reads
    shared.reload()
    assert shared.write(StateBatch(0, 0, 2, 1), epochs=epochs) == expected
    assert shared.read(6) == ErrorCode.FENCED_LEADER_EPOCH
    assert shared.initialize(state_epoch=2) == in_topic(shared, ErrorCode.FENCED_STATE_EPOCH)


def test_start_offsets_and_epochs_do_not_move_back() -> None:
    shared = Shared()
    shared.initialize(5)
    shared.write(start=7)
    shared.write(start=6)
    assert shared.summary() == PartitionSummary(ErrorCode.NONE, 7, 0, 0, 1)
    shared.read(4)
    shared.initialize(2, state_epoch=1)
    assert shared.read(3) == ErrorCode.FENCED_LEADER_EPOCH
    assert isinstance(shared.read(4), ShareState)
    assert shared.summary() == PartitionSummary(ErrorCode.NONE, 2, 1, 0, 0), "a known epoch is not written again"


def test_requests_about_unknown_partitions_fail() -> None:
    shared = Shared()
    assert shared.write() == shared.read(0) == ErrorCode.INVALID_REQUEST  # not initialized
    assert shared.summary() == PartitionSummary()
    assert shared.initialize(partition=2) is None  # UNKNOWN_TOPIC_OR_PARTITION is retried four times
    shared.cluster.advance(20_000)
    assert shared.result() == {shared.topic.topic_id: {2: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}}
    shared.initialize()
    shared.cluster.broker.delete_topic(shared.topic)
    assert shared.state is None


def test_another_broker_continues_after_a_move() -> None:
    shared = Shared("sluice.brokers=3")
    shared.initialize()
    assert shared.write(StateBatch(0, 4, 2, 1)) == ErrorCode.NONE
    before, leader = shared.state, shared.state_partition.leader
    move_leader(shared.cluster, shared.state_partition, leader % 3 + 1)
    assert shared.state == before
    old = shared.cluster.cluster_server.brokers[leader].share_coordinator
    assert old.state(shared.key) is None
    results: list[ErrorCode] = []
    old.write(shared.key, StateWrite(0, 0, 0, 0, []), results.append)
    assert results == [ErrorCode.NOT_COORDINATOR]
    assert shared.write(StateBatch(5, 5, 2, 1)) == ErrorCode.NONE


def test_a_request_is_repeated_while_the_coordinator_loads() -> None:
    shared = Shared("sluice.coordinator.load.delay.ms=1500")
    assert shared.initialize() is None
    shared.cluster.advance(1_300)
    assert shared.result() is None
    shared.cluster.advance(2_400)  # the second backoff
    assert shared.result() == in_topic(shared, ErrorCode.NONE)


def test_records_before_the_last_snapshots_are_deleted() -> None:
    shared = Shared("share.coordinator.snapshot.update.records.per.snapshot=3")
    shared.initialize()
    shared.initialize(partition=1)
    for number in range(9):
        shared.write(StateBatch(number, number, 2, 1))
    log, before = shared.state_partition.log, shared.state
    assert log.log_start_offset == 0
    shared.cluster.advance(FIVE_MINUTES)  # the idle partition gets a new snapshot
    shared.cluster.advance(FIVE_MINUTES)
    assert log.log_start_offset >= 9
    shared.reload()
    assert shared.state is not None
    assert before is not None
    assert shared.state.batches == before.batches


def test_the_state_survives_a_restart(tmp_path: Path) -> None:
    shared = Shared(f"log.dirs={tmp_path}")
    shared.initialize(3)
    shared.write(StateBatch(4, 6, 0, 2), start=3)
    before = shared.state
    shared.cluster.broker.close()
    shared.cluster.cluster.close()
    again = VirtualBroker(ONE_PARTITION, f"log.dirs={tmp_path}")
    assert again.broker.share_coordinator.state(shared.key) == before
    config = again.cluster.topics[SHARE_GROUP_STATE_TOPIC].config
    assert config.integer("retention.ms") == -1


KEYS = {
    "a share partition": (6, "g:AAECAwQFBgcICQoLDA0ODw:0", ErrorCode.NONE),
    "an invalid key": (6, "g", ErrorCode.INVALID_REQUEST),
    "before version 6": (5, "g:AAECAwQFBgcICQoLDA0ODw:0", ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize(("version", "key", "expected"), KEYS.values(), ids=KEYS)
def test_brokers_find_the_share_coordinator(version: int, key: str, expected: ErrorCode) -> None:
    broker = VirtualBroker()
    response = broker.client().call(FindCoordinatorRequest(key_type=2, coordinator_keys=[key]), version)
    assert response.coordinators[0].error_code == expected
