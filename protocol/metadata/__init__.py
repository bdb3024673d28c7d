"""The records of Kafka's own metadata format (KIP-631), which a KRaft cluster keeps in `__cluster_metadata-0`.

Follows the message definitions of Kafka's metadata module, MetadataRecordType for the numbers, and MetadataRecordSerde
for the frame: a record's value is a frame version, the record's type and its version, as unsigned varints, and then
the message. All types up to Kafka 4.4 are here; `control.py` has those that the quorum writes in control batches.
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
    """A message and the version it is written in."""

    message: MetadataMessage
    version: int


class UnknownRecordError(Exception):
    """A metadata record that a newer Kafka wrote, or no Kafka."""


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
    """The value of the record that says `message`, in `version` of it."""
    parts: list[bytes | memoryview] = [varints[FRAME_VERSION], varints[message.TYPE], varints[version]]
    encoder(type(message), version)(message, parts)
    return b"".join(parts)


def decode_value(value: bytes) -> MetadataRecord:
    """The message in the value of a record, and its version.

    Raises UnknownRecordError for a frame version, type or version that Kafka 4.4 does not have, RemoteProtocolError for
    what is cut short or not the message it says it is.
    """
    buffer = memoryview(value)
    frame_version, record_type, version, position = _header(buffer)
    if frame_version != FRAME_VERSION:
        raise UnknownRecordError(f"frame version {frame_version} (known is {FRAME_VERSION})")
    cls = RECORD_TYPES.get(record_type)
    if cls is None:
        raise UnknownRecordError(f"record type {record_type}, version {version} (known are types up to {_LAST_TYPE})")
    versions = cls.VERSIONS
    if not versions.min <= version <= versions.max:
        known = f"{versions.min} to {versions.max}"
        raise UnknownRecordError(f"{cls.__name__} (type {record_type}) version {version} (known are {known})")
    return MetadataRecord(decoder(cls, version)(buffer, position, len(value)), version)


_LAST_TYPE = max(RECORD_TYPES)


def _header(buffer: memoryview) -> tuple[int, int, int, int]:
    """Frame version, type, version, and the position after them."""
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
