"""A metadata log in a directory and records to append to it."""

from itertools import count
from pathlib import Path

from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.controller.metadata_log.image import MetadataImage
from sluice.broker.controller.metadata_log.metadata_log import MetadataLog, open_metadata_log
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.settings import ConfigRecord
from sluice.protocol.metadata.topics import PartitionRecord, TopicRecord

FEATURES = {"metadata.version": 33, "group.version": 1, "transaction.version": 2}
NODE_ID = 1
START_MS = 1_700_000_000_000


def open_log(directory: Path, node_id: int = NODE_ID) -> MetadataLog:
    """Open the metadata log of a data directory; its clock advances 1 ms per append."""
    return open_metadata_log(str(directory), node_id, FEATURES, count(START_MS).__next__)


def reopened(directory: Path) -> MetadataImage:
    """Return the image that is recovered after the process was killed."""
    log = open_log(directory)
    log.close()
    return log.image


def state(image: MetadataImage) -> list[MetadataMessage]:
    """Return all records of an image, for comparison."""
    return list(image.records())


def metadata_files(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / METADATA_DIRECTORY).iterdir())


def config(kind: int, resource: str, name: str, value: str | None) -> ConfigRecord:
    return ConfigRecord(resource_type=kind, resource_name=resource, name=name, value=value)


def topic_id(number: int) -> bytes:
    return number.to_bytes(16)


def topic(number: int = 1, partitions: int = 1, **configs: str) -> list[MetadataMessage]:
    """Return the records of a new topic; write configs with underscores for dots."""
    name = f"topic-{number}"
    return [
        TopicRecord(name=name, topic_id=topic_id(number)),
        *(config(2, name, key.replace("_", "."), value) for key, value in configs.items()),
        *(partition(number, index) for index in range(partitions)),
    ]


def partition(number: int = 1, index: int = 0) -> PartitionRecord:
    """Return the record of a partition of `topic(number)` led by node 1."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id(number),
        replicas=[1],
        isr=[1],
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=[topic_id(77)],
    )
