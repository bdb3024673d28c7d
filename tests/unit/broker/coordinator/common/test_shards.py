"""Which partitions a coordinator has: they come, load, and go."""

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC, Partition
from sluice.protocol.errors import ErrorCode
from tests.support.virtual_broker import VirtualBroker

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
NOT_HERE = ErrorCode.NOT_COORDINATOR
DELAY_MS = 1_000


class Coordinator:
    """What a coordinator does with its partitions, written down."""

    def __init__(self, delay_ms: int = 0) -> None:
        self.broker = VirtualBroker(f"sluice.coordinator.load.delay.ms={delay_ms}", "offsets.topic.num.partitions=3")
        self.did: list[tuple[str, int]] = []
        log = CoordinatorLog(self.broker.broker, GROUP_METADATA_TOPIC)
        self.shards = CoordinatorShards(
            self.broker.broker,
            log,
            lambda partition: self.did.append(("recovered", partition.index)),
            lambda partition: self.did.append(("resigned", partition.index)),
        )
        self.partition: Partition = log.partition_of("group")

    def error(self) -> ErrorCode:
        return self.shards.error("group")


def test_a_partition_that_is_led_is_loaded_when_it_is_first_asked_about() -> None:
    coordinator = Coordinator()
    assert coordinator.error() == ErrorCode.NONE
    assert coordinator.error() == ErrorCode.NONE
    assert coordinator.did == [("recovered", coordinator.partition.index)]


def test_all_that_are_led_can_be_loaded_at_once() -> None:
    coordinator = Coordinator()
    coordinator.shards.load_led()
    assert coordinator.did == [("recovered", index) for index in range(3)]


def test_nothing_is_loaded_before_the_topic_is_there() -> None:
    broker = VirtualBroker()
    log = CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC)
    CoordinatorShards(broker.broker, log, lambda _: None, lambda _: None).load_led()
    assert GROUP_METADATA_TOPIC not in broker.broker.cluster.topics


def test_loading_takes_as_long_as_it_is_told_to_take() -> None:
    coordinator = Coordinator(DELAY_MS)
    coordinator.shards.load(coordinator.partition)
    assert (coordinator.error(), coordinator.shards.is_loading) == (LOADING, True)
    coordinator.broker.advance(DELAY_MS - 1)
    assert (coordinator.error(), coordinator.did) == (LOADING, [])
    coordinator.broker.advance(1)
    assert (coordinator.error(), coordinator.shards.is_loading) == (ErrorCode.NONE, False)
    assert coordinator.did == [("recovered", coordinator.partition.index)]


def test_what_is_loaded_is_not_loaded_again() -> None:
    coordinator = Coordinator()
    for _ in range(2):
        coordinator.shards.load(coordinator.partition)
    assert coordinator.did == [("recovered", coordinator.partition.index)]


@pytest.mark.parametrize("leads_again", [False, True], ids=["for good", "and comes back"])
def test_a_partition_that_goes_while_it_loads_is_not_recovered(
    leads_again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator = Coordinator(DELAY_MS)
    monkeypatch.setattr(type(coordinator.broker.broker.replicas), "leads", lambda *_: False)
    coordinator.shards.load(coordinator.partition)
    coordinator.broker.advance(DELAY_MS - 1)
    coordinator.shards.unload(coordinator.partition)
    assert coordinator.error() == NOT_HERE
    if leads_again:
        coordinator.shards.load(coordinator.partition)
    coordinator.broker.advance(1)  # the first load would be over
    assert coordinator.did == []
    assert coordinator.error() == (LOADING if leads_again else NOT_HERE)


def test_what_goes_is_dropped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator()
    coordinator.shards.load(coordinator.partition)
    monkeypatch.setattr(type(coordinator.broker.broker.replicas), "leads", lambda *_: False)
    for _ in range(2):
        coordinator.shards.unload(coordinator.partition)
    assert coordinator.error() == NOT_HERE
    assert coordinator.did == [("recovered", coordinator.partition.index), ("resigned", coordinator.partition.index)]
