"""The versions in which records are written, by the cluster's metadata.version (Kafka's MetadataVersion).

A log that Kafka created keeps its metadata.version.
"""

from sluice.protocol.metadata.brokers import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.topics import PartitionChangeRecord, PartitionRecord

LATEST_METADATA_VERSION = 33  # 4.4-IV2
METADATA_TRANSACTIONS = 13  # since 3.6-IV1 records may be in transactions (KIP-868)
_ZK_MIGRATION, _DIRECTORIES, _ELR, _CORDONED_LOG_DIRS = 8, 17, 23, 30  # 3.4-IV0, 3.7-IV2, 4.0-IV1, 4.3-IV0
# Record -> first version, and the metadata versions that increment it; all other records have version 0.
_VERSIONS: dict[type[MetadataMessage], tuple[int, ...]] = {
    RegisterBrokerRecord: (1, _ZK_MIGRATION, _DIRECTORIES, _CORDONED_LOG_DIRS),
    PartitionRecord: (0, _DIRECTORIES, _ELR),
    PartitionChangeRecord: (0, _DIRECTORIES, _ELR),
}


def record_version(message: MetadataMessage, metadata_version: int) -> int:
    if isinstance(message, BrokerRegistrationChangeRecord):
        # As Kafka: the lowest version that can express the change.
        return 3 if message.cordoned_log_dirs is not None else 2 if message.log_dirs else message.in_controlled_shutdown
    first, *since = _VERSIONS.get(type(message), (0,))
    return first + sum(metadata_version >= level for level in since)
