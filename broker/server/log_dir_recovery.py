"""Recovery of a data directory: topics from its metadata log, or imported from the logs themselves.

If the metadata log has no topic, the topics of the directory are imported, so that a broker can start from copies of
Kafka's partitions: `partition.metadata` has the topic's id, and the highest index plus one is the number of partitions.
Otherwise the directories of other topics are stray, as in Kafka: the process died while a topic was created or deleted.
Those with records are kept, and moved away when a topic of their name is created; empty ones are removed.
"""

import logging

from sluice.broker.controller.cluster import Cluster
from sluice.broker.log.disk.log_directory import LogDirectory
from sluice.errors import SluiceError
from sluice.protocol.uuids import uuid_from_printed

from .metadata_restore import open_metadata

log = logging.getLogger("sluice.broker")


def recover_log_dir(cluster: Cluster, directory: LogDirectory) -> None:
    """Restore the cluster, whose brokers exist. Raises SluiceError."""
    try:
        cluster.metadata_log = open_metadata(cluster, directory.path, directory.directory_id, directory.reserve.use)
        if cluster.topics:
            _log_stray_directories(cluster, directory)
        else:
            _import_topics(cluster, directory)
    except OSError as error:
        raise SluiceError(f"{error.filename or directory.path}: {error.strerror}") from None


def _import_topics(cluster: Cluster, directory: LogDirectory) -> None:
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
    if cluster.import_topics(topics):
        raise SluiceError(f"{directory.path}: cannot write the metadata log; check its permissions and disk space")
    if found:
        log.info("topics found", extra={"topics": " ".join(found)})


def _log_stray_directories(cluster: Cluster, directory: LogDirectory) -> None:
    strays = [
        f"{topic}-{index}"
        for topic, index, _ in directory.partitions()
        if (topic not in cluster.topics or cluster.topics[topic].partition(index) is None)
        and not directory.remove_empty(f"{topic}-{index}")
    ]
    if strays:
        log.warning("directories without a partition in this cluster", extra={"directories": " ".join(strays)})
