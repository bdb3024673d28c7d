"""The number that tells whether the topics of a group have changed."""

from sluice.broker.coordinator.group.consumer.metadata_hash import metadata_hash
from sluice.broker.metadata.topic import Topic
from tests.support.virtual_broker import VirtualBroker


def test_no_topics_are_zero() -> None:
    assert metadata_hash([]) == 0


def test_it_is_of_ids_names_and_numbers_of_partitions_in_whatever_order() -> None:
    broker = VirtualBroker()
    one, two = broker.topic("one", 1), broker.topic("two", 2)
    hashes = [metadata_hash(topics) for topics in ([one], [two], [one, two])]
    assert len(set(hashes)) == 3
    assert metadata_hash([two, one]) == hashes[2]
    same = Topic("one", one.topic_id, one.config)
    assert metadata_hash([same]) != hashes[0], "it has no partitions"
    same.partitions = one.partitions
    assert metadata_hash([same]) == hashes[0]
    broker.broker.delete_topic(one)
    assert metadata_hash([broker.topic("one", 1)]) != hashes[0], "it has another id"


def test_it_is_a_signed_number_of_64_bits() -> None:
    broker = VirtualBroker()
    hashes = [metadata_hash([broker.topic(f"t{number}")]) for number in range(20)]
    assert all(-(2**63) <= one < 2**63 for one in hashes)
    assert min(hashes) < 0
