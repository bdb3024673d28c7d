"""The hash of the metadata of a group's topics."""

from collections.abc import Iterable

from sluice.broker.coordinator.group import metadata_hash as module
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import Topic
from tests.support.virtual_broker import VirtualBroker


def metadata_hash(topics: Iterable[Topic]) -> int:
    return module.metadata_hash(topics, {})


def test_hash_of_no_topics_is_zero() -> None:
    assert metadata_hash([]) == 0


def test_hash_depends_on_topic_ids_names_and_partition_counts_but_not_on_order(broker: VirtualBroker) -> None:
    one, two = broker.topic("one", 1), broker.topic("two", 2)
    hashes = [metadata_hash(topics) for topics in ([one], [two], [one, two])]
    assert len(set(hashes)) == 3
    assert metadata_hash([two, one]) == hashes[2]
    same = Topic("one", one.topic_id, one.config)
    assert metadata_hash([same]) != hashes[0], "the hash depends on the partition count"
    same.partitions = one.partitions
    assert metadata_hash([same]) == hashes[0]
    broker.broker.delete_topic(one)
    assert metadata_hash([broker.topic("one", 1)]) != hashes[0], "the hash depends on the topic id"


def test_hash_is_a_signed_64_bit_number(broker: VirtualBroker) -> None:
    hashes = [metadata_hash([broker.topic(f"t{number}")]) for number in range(20)]
    assert all(-(2**63) <= value < 2**63 for value in hashes)
    assert min(hashes) < 0


def test_hash_depends_on_the_racks_of_each_partition_but_not_on_the_order_of_replicas() -> None:
    broker = VirtualBroker("sluice.brokers=3")
    broker.cluster.create(NewTopic("t", assignments=((0, (1, 2)), (1, (2, 3)))))
    topic = broker.cluster.topics["t"]
    several: list[dict[int, str]] = [{}, {1: "a"}, {2: "a"}, {1: "a", 2: "b"}, {1: "a", 2: "b", 3: "a"}]
    hashes = [module.metadata_hash([topic], racks) for racks in several]
    assert len(set(hashes)) == len(several)
    topic.partitions[0].replicas = (2, 1)
    assert [module.metadata_hash([topic], racks) for racks in several] == hashes
    topic.partitions[0].replicas = (3, 1)
    assert module.metadata_hash([topic], several[-1]) != hashes[-1]
