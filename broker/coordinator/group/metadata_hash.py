"""A hash of the topics that a group subscribes to; a change requires a new assignment (KIP-1101).

Its input is that of Kafka's Utils.computeGroupHash and computeTopicHash: names, ids, partitions and their racks.
Different on purpose: the function is blake2b, not XXH3, which Python lacks; only the coordinator that wrote the hash
reads it.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from sluice.broker.metadata.topic import Topic


def metadata_hash(topics: Iterable[Topic], racks: Mapping[int, str]) -> int:
    """Return a signed 64-bit hash, 0 for no topics; `racks` are by broker id."""
    known = sorted(topics, key=lambda topic: topic.name)
    if not known:
        return 0
    hasher = blake2b(digest_size=8)
    for topic in known:
        name = topic.name.encode()
        hasher.update(topic.topic_id + len(name).to_bytes(4) + name + len(topic.partitions).to_bytes(4))
        if racks:
            hasher.update(_racks_of(topic, racks))
    return int.from_bytes(hasher.digest(), signed=True)


def _racks_of(topic: Topic, racks: Mapping[int, str]) -> bytes:
    found = (sorted(racks[one] for one in partition.replicas if one in racks) for partition in topic.partitions)
    return "".join(f"{len(those)}:{','.join(f'{len(rack)}:{rack}' for rack in those)};" for those in found).encode()
