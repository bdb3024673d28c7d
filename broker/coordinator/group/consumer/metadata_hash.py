"""One number for the topics that a group subscribes to: when it changes, so must the assignment (KIP-1101).

Follows Kafka's Utils.computeGroupHash and computeTopicHash in what goes in: id, name and number of partitions of each
topic, in the order of names. Different on purpose: the hash function is one that Python has (Kafka's is XXH3), as
nobody but the coordinator that wrote the number compares it with anything; and racks do not go in, as there is one.
"""

from collections.abc import Iterable
from hashlib import blake2b

from sluice.broker.metadata.topic import Topic


def metadata_hash(topics: Iterable[Topic]) -> int:
    """A signed number of 64 bits; 0 for no topics."""
    known = sorted(topics, key=lambda topic: topic.name)
    if not known:
        return 0
    hasher = blake2b(digest_size=8)
    for topic in known:
        name = topic.name.encode()
        hasher.update(topic.topic_id + len(name).to_bytes(4) + name + len(topic.partitions).to_bytes(4))
    return int.from_bytes(hasher.digest(), signed=True)
