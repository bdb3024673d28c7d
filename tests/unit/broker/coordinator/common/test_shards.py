"""The partitions that a coordinator leads: loading and unloading."""

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, Partition
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_COORDINATOR = ErrorCode.NOT_COORDINATOR
DELAY_MS = 1_000


class Coordinator:
    """A coordinator that records which partitions it loads and unloads."""

    def __init__(self, delay_ms: int = 0) -> None:
        self.broker = VirtualBroker(f"sluice.coordinator.load.delay.ms={delay_ms}", "offsets.topic.num.partitions=3")
        self.events: list[tuple[str, int]] = []
        log = CoordinatorLog(self.broker.broker, GROUP_METADATA_TOPIC)
        self.shards = CoordinatorShards(
            self.broker.broker,
            log,
            lambda partition: self.events.append(("recovered", partition.index)),
            lambda partition: self.events.append(("resigned", partition.index)),
        )
        self.partition: Partition = log.partition_of("group")

    def error(self) -> ErrorCode:
        return self.shards.error("group")


def test_led_partition_is_loaded_on_first_use() -> None:
    coordinator = Coordinator()
    assert coordinator.error() == ErrorCode.NONE
    assert coordinator.error() == ErrorCode.NONE
    assert coordinator.events == [("recovered", coordinator.partition.index)]


def test_load_led_loads_all_led_partitions() -> None:
    coordinator = Coordinator()
    coordinator.shards.load_led()
    assert coordinator.events == [("recovered", index) for index in range(3)]


def test_load_led_does_not_create_the_topic(broker: VirtualBroker) -> None:
    log = CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC)
    CoordinatorShards(broker.broker, log, lambda _: None, lambda _: None).load_led()
    assert GROUP_METADATA_TOPIC not in broker.broker.cluster.topics


def test_partition_returns_load_in_progress_until_the_load_delay_has_passed() -> None:
    coordinator = Coordinator(DELAY_MS)
    coordinator.shards.load(coordinator.partition)
    assert (coordinator.error(), coordinator.shards.is_loading) == (LOADING, True)
    coordinator.broker.advance(DELAY_MS - 1)
    assert (coordinator.error(), coordinator.events) == (LOADING, [])
    coordinator.broker.advance(1)
    assert (coordinator.error(), coordinator.shards.is_loading) == (ErrorCode.NONE, False)
    assert coordinator.events == [("recovered", coordinator.partition.index)]


def test_second_load_of_a_partition_does_nothing() -> None:
    coordinator = Coordinator()
    for _ in range(2):
        coordinator.shards.load(coordinator.partition)
    assert coordinator.events == [("recovered", coordinator.partition.index)]


@pytest.mark.parametrize("loads_again", [False, True], ids=["not loaded again", "loaded again"])
def test_partition_unloaded_during_its_load_is_not_recovered(
    loads_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = Coordinator(DELAY_MS)
    monkeypatch.setattr(type(coordinator.broker.broker.replicas), "leads", lambda *_: False)
    coordinator.shards.load(coordinator.partition)
    coordinator.broker.advance(DELAY_MS - 1)
    coordinator.shards.unload(coordinator.partition)
    assert coordinator.error() == NOT_COORDINATOR
    if loads_again:
        coordinator.shards.load(coordinator.partition)
    coordinator.broker.advance(1)  # the first load would end here
    assert coordinator.events == []
    assert coordinator.error() == (LOADING if loads_again else NOT_COORDINATOR)


def test_second_unload_of_a_partition_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator()
    coordinator.shards.load(coordinator.partition)
    monkeypatch.setattr(type(coordinator.broker.broker.replicas), "leads", lambda *_: False)
    for _ in range(2):
        coordinator.shards.unload(coordinator.partition)
    assert coordinator.error() == NOT_COORDINATOR
    assert coordinator.events == [("recovered", coordinator.partition.index), ("resigned", coordinator.partition.index)]
