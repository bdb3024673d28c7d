"""The values of coordinator records compared with the output of Kafka 4.4.0's classes: all fields set, then none."""

import json
from pathlib import Path

import pytest

from sluice.broker.coordinator.group.modern_records import TargetMetadataValue, TargetPartitionsValue
from sluice.broker.coordinator.group.share import record_values as of_share_groups
from sluice.broker.coordinator.group.streams import record_values as of_streams_groups
from sluice.broker.coordinator.share import record_messages as of_share_state
from tests.vectors.protocol import check_message

ROWS = [json.loads(line) for line in (Path(__file__).parent / "kafka_records.jsonl").read_text().splitlines()]
CLASSES = {
    "ShareGroupTargetAssignmentMetadataValue": TargetMetadataValue,
    "ShareGroupTargetAssignmentMemberValue": TargetPartitionsValue,
    "StreamsGroupTargetAssignmentMetadataValue": TargetMetadataValue,
} | {
    name: cls
    for module in (of_share_groups, of_streams_groups, of_share_state)
    for name, cls in vars(module).items()
    if name.endswith("Value") and name != "TargetPartitionsValue" and hasattr(cls, "VERSIONS")
}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']}, {len(row['bytes']) // 2} bytes")
def test_bytes_and_json_equal_kafkas(row: dict[str, str]) -> None:
    assert check_message(CLASSES[row["name"]], 0, row["bytes"], row["json"], None) == []


def test_every_value_has_kafka_output() -> None:
    assert {row["name"] for row in ROWS} == CLASSES.keys()
