"""What a data directory has is taken up again: what its metadata log tells, and topics that nothing tells of.

Those are taken as they are, so that a directory with copies of a Kafka's partitions is one to start from: the topic's
id is in `partition.metadata`, the number of partitions is what is there. Kafka would put such directories aside as
stray.
"""

import logging

from sluice.errors import SluiceError

from .cluster import Cluster
from .log.disk.log_directory import LogDirectory, uuid_from_printed
from .metadata_log.restore import open_metadata

log = logging.getLogger("sluice.broker")


def take_up(cluster: Cluster, directory: LogDirectory) -> None:
    """Makes the cluster, which has its brokers, what the directory says. Raises SluiceError."""
    try:
        cluster.metadata_log = open_metadata(cluster, directory.path, directory.directory_id)
        _adopt_topics(cluster, directory)
    except OSError as error:
        raise SluiceError(f"{error.filename or directory.path}: {error.strerror}") from None


def _adopt_topics(cluster: Cluster, directory: LogDirectory) -> None:
    """Adds to the cluster the topics in `directory` that it does not have."""
    found: dict[str, dict[int, str]] = {}
    for topic, index, printed_id in directory.partitions():
        if topic not in cluster.topics:
            found.setdefault(topic, {})[index] = printed_id
    for topic, partitions in found.items():
        ids = filter(None, map(uuid_from_printed, partitions.values()))
        epochs = [max(0, directory.latest_epoch(f"{topic}-{index}")) for index in range(max(partitions) + 1)]
        if cluster.adopt(topic, next(ids, None), epochs):
            raise SluiceError(f"{directory.path}: the metadata log cannot be written")
    if found:
        log.info("topics found", extra={"topics": " ".join(found)})
