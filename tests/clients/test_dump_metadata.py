"""Kafka's kafka-dump-log reads our metadata log and prints the records that we wrote."""

import json
from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log.batches import batches_in, messages_in, record_version
from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.controller.metadata_log.image import METADATA_VERSION
from sluice.protocol.metadata import RECORD_TYPES
from sluice.protocol.metadata.topics import RemoveTopicRecord
from tests.clients.kafka_commands import kafka_command
from tests.support.kafka_json import to_json
from tests.unit.broker.controller.metadata_log.logs import open_log, topic, topic_id

pytestmark = pytest.mark.kafka_commands

_PAYLOAD = " payload: "


def test_dump_log_reads_the_metadata_log_and_its_snapshot(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append(topic(1, 3, retention_ms="5"))
    log.append([*topic(2), RemoveTopicRecord(topic_id=topic_id(2))])
    (segment,) = (tmp_path / METADATA_DIRECTORY).glob("*.log")
    assert dumped(segment) == ours(segment, log.image.features[METADATA_VERSION])
    log.compact()
    (checkpoint,) = (tmp_path / METADATA_DIRECTORY).glob("*.checkpoint")
    assert dumped(checkpoint) == ours(checkpoint, log.image.features[METADATA_VERSION])
    assert len(ours(checkpoint, 33)) == 3 + 1 + 3 + 1, "levels, a topic, its partitions, its config"


def dumped(path: Path) -> list[tuple[int, object]]:
    """Return version and content of each metadata record that the tool prints."""
    output = kafka_command("DumpLogSegments", "--cluster-metadata-decoder", "--files", str(path)).text
    payloads = [json.loads(line.split(_PAYLOAD)[1]) for line in output.splitlines() if _PAYLOAD in line]
    return [(payload["version"], payload["data"]) for payload in payloads]


def ours(path: Path, metadata_version: int) -> list[tuple[int, object]]:
    """Return version and content of each metadata record that we read."""
    return [
        (record_version(message, metadata_version), to_json(message, record_version(message, metadata_version)))
        for batch in batches_in(path.read_bytes())
        for _, message in messages_in(batch)
        if type(message) in RECORD_TYPES.values()
    ]
