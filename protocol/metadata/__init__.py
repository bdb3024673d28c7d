"""Kafka's metadata records (KIP-631), which a KRaft cluster stores in `__cluster_metadata-0`.

Follows Kafka's MetadataRecordType and MetadataRecordSerde: a record's value is a frame version, the record's type and
its version, as unsigned varints, and then the message.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sluice.errors import RemoteProtocolError
from sluice.protocol.codec.compile import decoder, encoder
from sluice.protocol.codec.wire import read_varint, varints

from . import brokers, control, log, security, settings, topics
from .message import MetadataMessage

FRAME_VERSION = 1
_HEADER_FIELDS = 3


class MetadataRecord(NamedTuple):
    message: MetadataMessage
    version: int


class UnknownRecordError(Exception):
    """A record of a newer Kafka, or not a metadata record."""


def _by_type(classes: Iterable[type[MetadataMessage]]) -> dict[int, type[MetadataMessage]]:
    return {cls.TYPE: cls for cls in classes}


RECORD_TYPES = _by_type(
    (
        brokers.RegisterBrokerRecord,
        brokers.UnregisterBrokerRecord,
        topics.TopicRecord,
        topics.PartitionRecord,
        settings.ConfigRecord,
        topics.PartitionChangeRecord,
        brokers.FenceBrokerRecord,
        brokers.UnfenceBrokerRecord,
        topics.RemoveTopicRecord,
        security.DelegationTokenRecord,
        security.UserScramCredentialRecord,
        settings.FeatureLevelRecord,
        settings.ClientQuotaRecord,
        log.ProducerIdsRecord,
        brokers.BrokerRegistrationChangeRecord,
        security.AccessControlEntryRecord,
        security.RemoveAccessControlEntryRecord,
        log.NoOpRecord,
        log.ZkMigrationStateRecord,
        security.RemoveUserScramCredentialRecord,
        log.BeginTransactionRecord,
        log.EndTransactionRecord,
        log.AbortTransactionRecord,
        security.RemoveDelegationTokenRecord,
        brokers.RegisterControllerRecord,
        topics.ClearElrRecord,
        brokers.UnregisterControllerRecord,
    )
)
CONTROL_TYPES = _by_type(
    (
        control.LeaderChangeMessage,
        control.SnapshotHeaderRecord,
        control.SnapshotFooterRecord,
        control.KRaftVersionRecord,
        control.VotersRecord,
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
