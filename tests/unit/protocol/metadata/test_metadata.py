"""Metadata records against Kafka's own: bytes its classes made of each version, and logs its nodes wrote."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.errors import RemoteProtocolError
from sluice.protocol.json import from_json, to_json
from sluice.protocol.metadata import (
    CONTROL_TYPES,
    RECORD_TYPES,
    UnknownRecordError,
    decode_value,
    encode_value,
)
from sluice.protocol.metadata.message import MetadataMessage
from sluice.protocol.metadata.topics import TopicRecord
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import Record, iter_records
from tests.support.kafka_data import RELEASES, unpack
from tests.unit.protocol.messages import decoded, encoded, full, messages

# What Kafka 4.4.0's MetadataRecordSerde writes for each record in each version, once with all fields set and once with
# none, and its MetadataJsonConverters' form of it.
KAFKAS = [json.loads(line) for line in (Path(__file__).parent / "kafka_records.jsonl").read_text().splitlines()]
CLASSES = {cls.__name__: cls for cls in RECORD_TYPES.values()}
VERSIONS = [
    (cls, version)
    for cls in (*RECORD_TYPES.values(), *CONTROL_TYPES.values())
    for version in range(cls.VERSIONS.min, cls.VERSIONS.max + 1)
]
TOPIC = encode_value(TopicRecord(name="t", topic_id=bytes(range(16))), 0)


@pytest.mark.parametrize("row", KAFKAS, ids=lambda row: f"{row['name']} v{row['version']}")
def test_kafkas_bytes_and_its_json_are_ours(row: dict[str, object]) -> None:
    content, version = bytes.fromhex(str(row["bytes"])), row["version"]
    read = decode_value(content)
    assert (type(read.message).__name__, read.version) == (row["name"], version)
    assert to_json(read.message, read.version) == row["json"]
    assert encode_value(read.message, read.version) == content
    described = from_json(CLASSES[str(row["name"])], read.version, row["json"])
    assert to_json(described, read.version) == row["json"]


def test_kafka_was_asked_about_every_version_of_every_record() -> None:
    asked = {(row["name"], row["version"]) for row in KAFKAS}
    assert asked == {(cls.__name__, version) for cls, version in VERSIONS if cls in RECORD_TYPES.values()}


@pytest.mark.parametrize("release", RELEASES)
def test_what_a_real_node_wrote_is_read_and_written_byte_for_byte(release: str, tmp_path: Path) -> None:
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
    """Reads a record's value, and sees that it is written the same."""
    assert record.value is not None
    read = decode_value(record.value)
    assert encode_value(read.message, read.version) == record.value
    return read.message


def again(record: Record) -> MetadataMessage:
    """The same for a control record."""
    assert record.key is not None
    assert record.value is not None
    cls, version = CONTROL_TYPES[int.from_bytes(record.key[2:4])], int.from_bytes(record.value[:2])
    message = decoded(cls, version, record.value)
    assert encoded(message, version) == record.value
    assert isinstance(message, MetadataMessage)
    return message


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=list(HealthCheck))
def test_what_is_encoded_decodes_to_the_same_message(data: st.DataObject) -> None:
    cls = data.draw(st.sampled_from(list(RECORD_TYPES.values())))
    version = data.draw(st.integers(cls.VERSIONS.min, cls.VERSIONS.max))
    original = data.draw(messages(cls, version))
    assert isinstance(original, MetadataMessage)
    assert decode_value(encode_value(original, version)) == (original, version)


@pytest.mark.parametrize(("cls", "version"), VERSIONS, ids=lambda value: getattr(value, "__name__", f"v{value}"))
def test_every_field_of_a_version_survives(cls: type[MetadataMessage], version: int) -> None:
    original = full(cls, version)
    assert decoded(cls, version, encoded(original, version)) == original


@pytest.mark.parametrize("end", range(len(TOPIC)))
def test_cut_at_any_byte_it_is_an_error(end: int) -> None:
    with pytest.raises(RemoteProtocolError, match="truncated"):
        decode_value(TOPIC[:end])


def test_bytes_left_over_are_an_error() -> None:
    with pytest.raises(RemoteProtocolError, match="1 trailing bytes"):
        decode_value(TOPIC + b"\0")


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        pytest.param(b"\0\2\0", "frame version 0 (supported: 1)", id="the frame of Kafka 2.8's preview"),
        pytest.param(b"\2\2\0", "frame version 2 (supported: 1)", id="a newer frame"),
        pytest.param(b"\1\6\0", "record type 6, version 0 (supported: types up to 29)", id="a type nobody has"),
        pytest.param(b"\1\xe8\7\3", "record type 1000, version 3 (supported: types up to 29)", id="a newer type"),
        pytest.param(b"\1\2\1", "TopicRecord (type 2) version 1 (supported: 0 to 0)", id="a newer version"),
    ],
)
def test_what_no_known_kafka_writes_is_named(value: bytes, refusal: str) -> None:
    with pytest.raises(UnknownRecordError) as caught:
        decode_value(value)
    assert str(caught.value) == refusal
