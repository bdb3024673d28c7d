"""Interoperability with kafka-python, which shares no code with this codec: the same bytes in both directions."""

import warnings
from importlib import import_module

import pytest

from sluice.protocol.apis import API_KEYS
from sluice.protocol.apis.api_versions import ApiVersionsResponse
from sluice.protocol.message import Message
from tests.unit.protocol.messages import CLASSES, all_versions, encoded, full, untagged

with warnings.catch_warnings():
    # Importing kafka-python reads its schemas with a function that Python 3.11 and 3.12 deprecate.
    warnings.simplefilter("ignore", DeprecationWarning)
    THEIRS = {
        name: cls
        for module in ("admin", "consumer", "metadata", "producer", "sasl")
        for name, cls in vars(import_module(f"kafka.protocol.{module}")).items()
    }
# Its headers are of another make, its ApiVersionsResponse guesses the version, and it may be older than a version.
SHARED = {
    cls: [version for version in all_versions(cls) if version <= THEIRS[cls.__name__].max_version]
    for cls in CLASSES
    if cls.__name__ in THEIRS and cls is not ApiVersionsResponse
}

NOT_THEIRS = {
    *("AddRaftVoter", "RemoveRaftVoter", "UnregisterBroker", "UnregisterController"),
    *("ConsumerGroupDescribe", "ConsumerGroupHeartbeat", "GetTelemetrySubscriptions", "PushTelemetry"),
    *(f"{verb}DelegationToken" for verb in ("Create", "Describe", "Expire", "Renew")),
    *("ShareAcknowledge", "ShareFetch", "ShareGroupDescribe", "ShareGroupHeartbeat"),
    *(f"{verb}ShareGroupOffsets" for verb in ("Alter", "Delete", "Describe")),
    *(f"{verb}ShareGroupState" for verb in ("Delete", "Initialize", "Read", "Write")),
    *("ReadShareGroupStateSummary", "StreamsGroupDescribe", "StreamsGroupHeartbeat"),
    "StreamsGroupTopologyDescriptionUpdate",
}


def test_kafka_python_has_all_apis_except_these() -> None:
    assert {api.name for api in API_KEYS.values() if f"{api.name}Request" not in THEIRS} == NOT_THEIRS


def test_kafka_python_has_nearly_all_versions_of_its_apis() -> None:
    shared, all_of_them = (sum(map(len, versions)) for versions in (SHARED.values(), map(all_versions, SHARED)))
    assert shared > 0.95 * all_of_them


@pytest.mark.parametrize("cls", SHARED, ids=lambda cls: cls.__name__)
def test_kafka_python_reads_and_writes_the_same_bytes(cls: type[Message]) -> None:
    for version in SHARED[cls]:
        # Without tagged fields: kafka-python supports only some and drops the others.
        content = encoded(untagged(full(cls, version)), version)
        read = THEIRS[cls.__name__].decode(content, version=version)
        read._header = None  # its decoder leaves this unset, and its encoder reads it
        assert read.encode(version=version) == content, f"v{version}"
