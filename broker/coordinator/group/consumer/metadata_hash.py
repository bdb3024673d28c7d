"""A hash of the topics that a group subscribes to; a change requires a new assignment (KIP-1101).

Its input is that of Kafka's Utils.computeGroupHash and computeTopicHash, without racks. Different on purpose: the
function is blake2b, not XXH3, which Python lacks; only the coordinator that wrote the hash reads it.
"""

from collections.abc import Iterable
from hashlib import blake2b

from sluice.broker.metadata.topic import Topic


def metadata_hash(topics: Iterable[Topic]) -> int:
    """Return a signed 64-bit hash; 0 for no topics."""
    known = sorted(topics, key=lambda topic: topic.name)
    if not known:
        return 0
    hasher = blake2b(digest_size=8)
    for topic in known:
        name = topic.name.encode()
        hasher.update(topic.topic_id + len(name).to_bytes(4) + name + len(topic.partitions).to_bytes(4))
    return int.from_bytes(hasher.digest(), signed=True)
