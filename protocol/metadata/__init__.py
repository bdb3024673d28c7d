"""Kafka's metadata records (KIP-631), which a KRaft cluster stores in `__cluster_metadata-0`.

Follows Kafka's MetadataRecordType and MetadataRecordSerde: a record's value is a frame version, the record's type and
its version, as unsigned varints, and then the message.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decoder, encoder
from sluice.protocol.codec.wire import read_varint, varints
from sluice.protocol.types import Versions

from . import brokers, control, log, security, settings, topics
from .message import MetadataMessage

FRAME_VERSION = 1
_HEADER_FIELDS = 3


class MetadataRecord(NamedTuple):
    message: MetadataMessage
    version: int


class UnknownRecordError(Exception):
    """A record of a newer Kafka, or not a metadata record."""


def _numbered(rows: Sequence[tuple[int, str, type[MetadataMessage]]]) -> dict[int, type[MetadataMessage]]:
    for type_, versions, cls in rows:
        cls.TYPE = type_
        cls.VERSIONS = Versions(versions, flexible="0+")
    return {cls.TYPE: cls for _, _, cls in rows}


# Types and versions.
RECORD_TYPES = _numbered(
    (
        (0, "0-4", brokers.RegisterBrokerRecord),
        (1, "0", brokers.UnregisterBrokerRecord),
        (2, "0", topics.TopicRecord),
        (3, "0-2", topics.PartitionRecord),
        (4, "0", settings.ConfigRecord),
        (5, "0-2", topics.PartitionChangeRecord),
        (7, "0", brokers.FenceBrokerRecord),
        (8, "0", brokers.UnfenceBrokerRecord),
        (9, "0", topics.RemoveTopicRecord),
        (10, "0", security.DelegationTokenRecord),
        (11, "0", security.UserScramCredentialRecord),
        (12, "0", settings.FeatureLevelRecord),
        (14, "0", settings.ClientQuotaRecord),
        (15, "0", log.ProducerIdsRecord),
        (17, "0-3", brokers.BrokerRegistrationChangeRecord),
        (18, "0", security.AccessControlEntryRecord),
        (19, "0", security.RemoveAccessControlEntryRecord),
        (20, "0", log.NoOpRecord),
        (21, "0", log.ZkMigrationStateRecord),
        (22, "0", security.RemoveUserScramCredentialRecord),
        (23, "0", log.BeginTransactionRecord),
        (24, "0", log.EndTransactionRecord),
        (25, "0", log.AbortTransactionRecord),
        (26, "0", security.RemoveDelegationTokenRecord),
        (27, "0", brokers.RegisterControllerRecord),
        (28, "0", topics.ClearElrRecord),
        (29, "0", brokers.UnregisterControllerRecord),
    )
)
CONTROL_TYPES = _numbered(
    (
        (2, "0-1", control.LeaderChangeMessage),
        (3, "0", control.SnapshotHeaderRecord),
        (4, "0", control.SnapshotFooterRecord),
        (5, "0", control.KRaftVersionRecord),
        (6, "0", control.VotersRecord),
    )
)


def encode_value(message: MetadataMessage, version: int) -> bytes:
    parts: list[bytes | memoryview] = [varints[FRAME_VERSION], varints[message.TYPE], varints[version]]
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def decode_value(value: bytes) -> MetadataRecord:
    """Return the message in a record's value, and its version.

    Raises:
        UnknownRecordError: Kafka 4.4 does not have the frame version, type or version.
        RemoteProtocolError: The value is malformed.
    """
    buffer = memoryview(value)
    frame_version, record_type, version, position = _header(buffer)
    if frame_version != FRAME_VERSION:
        raise UnknownRecordError(f"frame version {frame_version} (supported: {FRAME_VERSION})")
    cls = RECORD_TYPES.get(record_type)
    if cls is None:
        raise UnknownRecordError(f"record type {record_type}, version {version} (supported: types up to {_LAST_TYPE})")
    versions = cls.VERSIONS
    if not versions.min <= version <= versions.max:
        supported = f"{versions.min} to {versions.max}"
        raise UnknownRecordError(f"{cls.__name__} (type {record_type}) version {version} (supported: {supported})")
    return MetadataRecord(decoder(cls, version)(buffer, position, len(value)), version)


_LAST_TYPE = max(RECORD_TYPES)


def _header(buffer: memoryview) -> tuple[int, int, int, int]:
    position = 0
    header = []
    try:
        for _ in range(_HEADER_FIELDS):
            number = buffer[position]
            position += 1
            if number > 0x7F:
                number, position = read_varint(buffer, position, number)
            header.append(number)
    except IndexError:
        raise RemoteProtocolError(f"metadata record: truncated (at byte {len(buffer)} of {len(buffer)})") from None
    return header[0], header[1], header[2], position
