"""What a data directory has is taken up again: what its metadata log tells, or topics that nothing tells of.

Where the log knows of no topic, those that are there are taken as they are, so that a directory with copies of a
Kafka's partitions is one to start from: the topic's id is in `partition.metadata`, the number of partitions is what is
there. Where it knows of topics, the directories of others are stray, as in Kafka: the process died as a topic came or
went. They are left alone, and put aside when a topic of their name is created.
"""

import logging

from sluice.broker.controller.cluster import Cluster
from sluice.broker.log.disk.log_directory import LogDirectory
from sluice.errors import SluiceError
from sluice.protocol.uuids import uuid_from_printed

from .metadata_restore import open_metadata

log = logging.getLogger("sluice.broker")


def take_up(cluster: Cluster, directory: LogDirectory) -> None:
    """Makes the cluster, which has its brokers, what the directory says. Raises SluiceError."""
    try:
        cluster.metadata_log = open_metadata(cluster, directory.path, directory.directory_id)
        if cluster.topics:
            _tell_strays(cluster, directory)
        else:
            _adopt_topics(cluster, directory)
    except OSError as error:
        raise SluiceError(f"{error.filename or directory.path}: {error.strerror}") from None


def _adopt_topics(cluster: Cluster, directory: LogDirectory) -> None:
    """Adds to the cluster, which has none, the topics in `directory`."""
    found: dict[str, dict[int, str]] = {}
    for topic, index, printed_id in directory.partitions():
        found.setdefault(topic, {})[index] = printed_id
    topics = [
        (
            topic,
            next(filter(None, map(uuid_from_printed, partitions.values())), None),
            [max(0, directory.latest_epoch(f"{topic}-{index}")) for index in range(max(partitions) + 1)],
        )
        for topic, partitions in found.items()
    ]
    if cluster.adopt(topics):
        raise SluiceError(f"{directory.path}: the metadata log cannot be written")
    if found:
        log.info("topics found", extra={"topics": " ".join(found)})


def _tell_strays(cluster: Cluster, directory: LogDirectory) -> None:
    strays = [
        f"{topic}-{index}"
        for topic, index, _ in directory.partitions()
        if topic not in cluster.topics or cluster.topics[topic].partition(index) is None
    ]
    if strays:
        log.warning("directories of no partition of this cluster", extra={"directories": " ".join(strays)})
