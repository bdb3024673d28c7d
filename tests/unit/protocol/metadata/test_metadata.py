"""Metadata records compared with Kafka's: bytes from its classes for each version, and logs from its nodes."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.metadata import CONTROL_TYPES, RECORD_TYPES, UnknownRecordError, decode_value, encode_value
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.topics import TopicRecord
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import Record, iter_records
from tests.support.kafka_data import RELEASES, unpack
from tests.support.kafka_json import from_json, to_json
from tests.unit.protocol.messages import decoded, encoded, full, messages

# The output of Kafka 4.4.0's MetadataRecordSerde for each record in each version, once with all fields set and once
# with none, and its JSON by the MetadataJsonConverters.
KAFKAS = [json.loads(line) for line in (Path(__file__).parent / "kafka_records.jsonl").read_text().splitlines()]
CLASSES = {cls.__name__: cls for cls in RECORD_TYPES.values()}
VERSIONS = [
    (cls, version)
    for cls in (*RECORD_TYPES.values(), *CONTROL_TYPES.values())
    for version in range(cls.VERSIONS.min, cls.VERSIONS.max + 1)
]
TOPIC = encode_value(TopicRecord(name="t", topic_id=bytes(range(16))), 0)


@pytest.mark.parametrize("row", KAFKAS, ids=lambda row: f"{row['name']} v{row['version']}")
def test_bytes_and_json_equal_kafkas(row: dict[str, object]) -> None:
    content, version = bytes.fromhex(str(row["bytes"])), row["version"]
    read = decode_value(content)
    assert (type(read.message).__name__, read.version) == (row["name"], version)
    assert to_json(read.message, read.version) == row["json"]
    assert encode_value(read.message, read.version) == content
    described = from_json(CLASSES[str(row["name"])], read.version, row["json"])
    assert to_json(described, read.version) == row["json"]


def test_every_version_of_every_record_has_kafka_output() -> None:
    covered = {(row["name"], row["version"]) for row in KAFKAS}
    assert covered == {(cls.__name__, version) for cls, version in VERSIONS if cls in RECORD_TYPES.values()}


@pytest.mark.parametrize("release", RELEASES)
def test_log_of_a_real_node_round_trips_byte_for_byte(release: str, tmp_path: Path) -> None:
    directory = unpack(release, tmp_path)
    seen: set[str] = set()
    for file in (directory / "__cluster_metadata-0" / "00000000000000000000.log", *directory.rglob("*.checkpoint")):
        data = file.read_bytes()
        for position, header in iter_batches(data):
            for record in iter_records(data[position : position + header.size_in_bytes]):
                message = again(record) if header.is_control else again_metadata(record)
                seen.add(type(message).__name__)
    assert {"TopicRecord", "PartitionRecord", "ConfigRecord", "ClientQuotaRecord", "AccessControlEntryRecord"} <= seen
    assert {"UserScramCredentialRecord", "ProducerIdsRecord", "RemoveTopicRecord", "LeaderChangeMessage"} <= seen


def again_metadata(record: Record) -> MetadataMessage:
    """Decode a record's value and check that encoding it returns the same bytes."""
    assert record.value is not None
    read = decode_value(record.value)
    assert encode_value(read.message, read.version) == record.value
    return read.message


def again(record: Record) -> MetadataMessage:
    """Do the same with a control record."""
    assert record.key is not None
    assert record.value is not None
    cls, version = CONTROL_TYPES[int.from_bytes(record.key[2:4])], int.from_bytes(record.value[:2])
    message = decoded(cls, version, record.value)
    assert encoded(message, version) == record.value
    assert isinstance(message, MetadataMessage)
    return message


@given(data=st.data())
@settings(suppress_health_check=list(HealthCheck))
def test_encoded_message_decodes_to_itself(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(list(RECORD_TYPES.values())))
    version = data.draw(st.integers(cls.VERSIONS.min, cls.VERSIONS.max))
    original = data.draw(messages(cls, version))
    assert isinstance(original, MetadataMessage)
    assert decode_value(encode_value(original, version)) == (original, version)


@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=lambda value: getattr(value, "__name__", f"v{value}"))
def test_every_field_of_a_version_round_trips(cls: type[MetadataMessage], version: int) -> None:
    original = full(cls, version)
    assert decoded(cls, version, encoded(original, version)) == original


@pytest.mark.parametrize("end", range(len(TOPIC)))
def test_truncated_record_is_an_error(end: int) -> None:
    with pytest.raises(RemoteProtocolError, match="truncated"):
        decode_value(TOPIC[:end])


def test_trailing_bytes_are_an_error() -> None:
    with pytest.raises(RemoteProtocolError, match="1 trailing bytes"):
        decode_value(TOPIC + b"\0")


UNSUPPORTED = {
    "the frame of Kafka 2.8's preview": (b"\0\2\0", "frame version 0 (supported: 1)"),
    "a newer frame": (b"\2\2\0", "frame version 2 (supported: 1)"),
    "an unknown type": (b"\1\6\0", "record type 6, version 0 (supported: types up to 29)"),
    "a newer type": (b"\1\xe8\7\3", "record type 1000, version 3 (supported: types up to 29)"),
    "a newer version": (b"\1\2\1", "TopicRecord (type 2) version 1 (supported: 0 to 0)"),
}


@pytest.mark.parametrize(("value", "refusal"), UNSUPPORTED.values(), ids=UNSUPPORTED)
def test_unsupported_record_is_named(value: bytes, refusal: str) -> None:
    with pytest.raises(UnknownRecordError) as caught:
        decode_value(value)
    assert str(caught.value) == refusal
