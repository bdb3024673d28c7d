"""ApiVersions, InitProducerId, FindCoordinator, DescribeCluster and OffsetForLeaderEpoch."""

from typing import Any

import pytest

from sluice.broker.exchange.registry import HANDLERS
from sluice.protocol.apis import offset_for_leader_epoch as api
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

# -- ApiVersions -------------------------------------------------------------------------------------------------------


def api_versions(name: str = "a", version: str = "1", **fields: Any) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version, **fields)


CLIENT_SOFTWARE = {
    "Java client": ("apache-kafka-java", "3.9.0", 0),
    "one character each": ("a", "1", 0),
    "empty name": ("", "1", 42),
    "empty version": ("a", "", 42),
    "name with a leading dash": ("-a", "1", 42),
    "name with a trailing dot": ("a.", "1", 42),
    "blank": ("a b", "1", 42),
    "non-ASCII letter": ("ä", "1", 42),
    "newline": ("a", "1\n", 42),
}


@pytest.mark.parametrize("version", range(3, 6))
@pytest.mark.parametrize(("name", "software_version", "code"), CLIENT_SOFTWARE.values(), ids=CLIENT_SOFTWARE)
def test_client_software_name_and_version_are_validated_as_in_kip_511(
    version: int, name: str, software_version: str, code: int
) -> None:
    assert VirtualBroker().client().call(api_versions(name, software_version), version).error_code == code


def listed_features(version: int, release: str = "all") -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
    """Return supported ranges, finalized levels, and their epoch."""
    response = VirtualBroker(f"sluice.kafka.release={release}").client().call(api_versions(), version)
    supported = {feature.name: (feature.min_version, feature.max_version) for feature in response.supported_features}
    assert all(feature.min_version_level == feature.max_version_level for feature in response.finalized_features)
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    return supported, finalized, response.finalized_features_epoch


@pytest.mark.parametrize("version", [4, 5])
def test_features_equal_kafka_4_4(version: int) -> None:
    supported, finalized, epoch = listed_features(version)
    assert supported.items() >= {"transaction.version": (0, 2), "metadata.version": (7, 33)}.items()
    assert finalized.items() >= {"transaction.version": 2, "metadata.version": 33}.items()
    assert epoch >= 0, "clients ignore features with a negative epoch"


@pytest.mark.parametrize("version", [4, 5])
def test_group_version_is_a_feature_only_if_consumer_groups_are_served(version: int) -> None:
    supported, finalized, _ = listed_features(version)
    served = 68 in HANDLERS  # ConsumerGroupHeartbeat
    assert ("group.version" in supported, "group.version" in finalized) == (served, served)


def test_features_with_minimum_level_0_are_hidden_in_api_versions_3() -> None:
    # Java clients up to 3.7 cannot parse them.
    supported, finalized, _ = listed_features(3)
    assert supported == {"metadata.version": (7, 33)}
    assert finalized["transaction.version"] == 2


@pytest.mark.parametrize("version", range(3))
def test_api_versions_before_3_returns_no_features(version: int) -> None:
    assert listed_features(version) == ({}, {}, -1)


OF_3_9 = {"kraft.version": (0, 1), "metadata.version": (1, 21)}


OLDER_RELEASES = {
    "Kafka 2.8, with ZooKeeper and without features": ("kafka-2.8", 3, {}),
    "Kafka 3.4": ("kafka-3.4", 3, {"metadata.version": (1, 8)}),
    "Kafka 3.9, without transaction version 2": ("kafka-3.9", 4, OF_3_9),
}


@pytest.mark.parametrize(("release", "version", "expected"), OLDER_RELEASES.values(), ids=OLDER_RELEASES)
def test_older_release_has_its_own_features(release: str, version: int, expected: dict[str, tuple[int, int]]) -> None:
    supported, finalized, _ = listed_features(version, release)
    assert supported == expected
    assert finalized == {name: levels[1] for name, levels in expected.items() if name != "kraft.version"}


MISMATCHED_IDS = {
    "no cluster id and node id": (None, -1, 0),
    "this broker": ("this", 1, 0),
    "other cluster id": ("other", 1, ErrorCode.REBOOTSTRAP_REQUIRED),
    "other node id": ("this", 2, ErrorCode.REBOOTSTRAP_REQUIRED),
    "cluster id alone": ("this", -1, ErrorCode.INVALID_REQUEST),
    "node id alone": (None, 1, ErrorCode.INVALID_REQUEST),
}


@pytest.mark.parametrize(("cluster_id", "node_id", "code"), MISMATCHED_IDS.values(), ids=MISMATCHED_IDS)
def test_mismatched_cluster_id_or_node_id_requires_a_rebootstrap(
    cluster_id: str | None, node_id: int, code: int
) -> None:
    request = api_versions(cluster_id=cluster_id, node_id=node_id)
    assert VirtualBroker("sluice.cluster.id=this").client().call(request, 5).error_code == code


# -- InitProducerId ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_each_producer_gets_its_own_id_with_epoch_0(broker: VirtualBroker, version: int) -> None:
    responses = [broker.client().call(InitProducerIdRequest(transactional_id=None), version) for _ in range(3)]
    assert [(r.error_code, r.producer_id, r.producer_epoch) for r in responses] == [(0, n, 0) for n in range(3)]


INVALID_PRODUCERS = {
    "empty transactional id": ({"transactional_id": ""}, 42),
    "producer id without epoch": ({"producer_id": 5}, 42),
    "epoch without producer id": ({"producer_epoch": 5}, 42),
    "previous producer id and epoch": ({"producer_id": 5, "producer_epoch": 5}, 0),
}


@pytest.mark.parametrize(("fields", "code"), INVALID_PRODUCERS.values(), ids=INVALID_PRODUCERS)
def test_invalid_init_producer_id_is_rejected(fields: dict[str, Any], code: int) -> None:
    request = InitProducerIdRequest(**({"transactional_id": None} | fields))
    response = VirtualBroker().client().call(request, 4)
    assert response.error_code == code
    assert (response.producer_id, response.producer_epoch) == ((-1, -1) if code else (0, 0))


# -- FindCoordinator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_broker_coordinates_each_group(version: int) -> None:
    broker = VirtualBroker("node.id=3", "advertised.listeners=PLAINTEXT://kafka.example:9093")
    found = broker.client().call(FindCoordinatorRequest(key="group"), version)
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 3, "kafka.example", 9093)
    assert found.error_message == ("NONE" if version else "")


@pytest.mark.parametrize("version", range(4, 7))
def test_several_coordinators_are_found_in_one_request(version: int) -> None:
    broker = VirtualBroker("node.id=3", "advertised.listeners=PLAINTEXT://kafka.example:9093")
    response = broker.client().call(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)
    found = [(one.key, one.error_code, one.node_id, one.host, one.port) for one in response.coordinators]
    assert found == [("a", 0, 3, "kafka.example", 9093), ("b", 0, 3, "kafka.example", 9093)]


@pytest.mark.parametrize("version", range(1, 7))
def test_find_coordinator_of_a_transactional_id_creates_the_internal_topic(version: int) -> None:
    broker = VirtualBroker("node.id=3", "transaction.state.log.num.partitions=4")
    response = broker.client().call(FindCoordinatorRequest(key="tx", coordinator_keys=["tx"], key_type=1), version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id) == (0, 3)
    assert len(broker.broker.cluster.topics["__transaction_state"].partitions) == 4


KEY_TYPES = {"share": (2, 3), "unknown": (77, 6)}


@pytest.mark.parametrize(("key_type", "message_until"), KEY_TYPES.values(), ids=KEY_TYPES)
@pytest.mark.parametrize("version", range(1, 7))
def test_find_coordinator_of_another_key_type_is_rejected(version: int, key_type: int, message_until: int) -> None:
    request = FindCoordinatorRequest(key="key", coordinator_keys=["key"], key_type=key_type)
    response = VirtualBroker().client().call(request, version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    assert found.error_message == (ErrorCode.INVALID_REQUEST.message if version <= message_until else "")


# -- DescribeCluster ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_describe_cluster_returns_the_broker(version: int) -> None:
    broker = VirtualBroker("node.id=3", "sluice.cluster.id=cluster", "advertised.listeners=PLAINTEXT://kafka:9093")
    response = broker.client().call(DescribeClusterRequest(), version)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, "cluster", 3)
    (node,) = response.brokers
    assert (node.broker_id, node.host, node.port, node.is_fenced) == (3, "kafka", 9093, False)
    assert response.cluster_authorized_operations == -0x8000_0000, "authorized operations were not requested"


def test_cluster_authorized_operations_are_returned_on_request() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    operations = VirtualBroker().client().call(request, 0).cluster_authorized_operations
    assert operations == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


ENDPOINT_TYPES = {
    "endpoint type controllers": (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
    "unknown endpoint type": (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    "endpoint type 0": (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
}


@pytest.mark.parametrize(("endpoint_type", "code"), ENDPOINT_TYPES.values(), ids=ENDPOINT_TYPES)
def test_describe_cluster_accepts_only_the_endpoint_type_brokers(endpoint_type: int, code: ErrorCode) -> None:
    response = VirtualBroker().client().call(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert (response.error_code, response.brokers) == (code, [])
    assert response.error_message


# -- OffsetForLeaderEpoch ----------------------------------------------------------------------------------------------


def end_of(broker: VirtualBroker, version: int, epoch: int, *, topic: str = "t", **more: Any) -> api.EpochEndOffset:
    partition = api.OffsetForLeaderPartition(**({"partition": 0, "leader_epoch": epoch} | more))
    request = api.OffsetForLeaderEpochRequest(topics=[api.OffsetForLeaderTopic(topic=topic, partitions=[partition])])
    (result,) = broker.client().call(request, version).topics[0].partitions
    assert isinstance(result, api.EpochEndOffset)
    return result


def with_epochs() -> VirtualBroker:
    """Return a broker with two records of epoch 0, then three of epoch 4."""
    broker = broker_with_topic()
    for epoch, count in ((0, 2), (4, 3)):
        broker.partition().leader_epoch = epoch
        for _ in range(count):
            broker.client().call(produce(9), 9)
    return broker


EPOCH_ENDS = {
    "previous epoch": (0, (0, 2)),
    "current epoch ends at the log end": (4, (4, 5)),
    "epoch without records ends with the previous one": (2, (0, 2)),
    "future epoch is undefined": (5, (-1, -1)),
    "epoch -1 is undefined": (-1, (-1, -1)),
}


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(("epoch", "expected"), EPOCH_ENDS.values(), ids=EPOCH_ENDS)
def test_epoch_ends_where_the_next_one_starts(version: int, epoch: int, expected: tuple[int, int]) -> None:
    end = end_of(with_epochs(), version, epoch)
    assert (end.error_code, end.leader_epoch if version >= 1 else expected[0], end.end_offset) == (0, *expected)


@pytest.mark.parametrize("version", range(5))
def test_unknown_partition_is_rejected(version: int) -> None:
    assert end_of(with_epochs(), version, 0, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(with_epochs(), version, 0, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("current", "code"), [(3, ErrorCode.FENCED_LEADER_EPOCH), (4, 0), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_other_current_leader_epoch_is_rejected(current: int, code: int) -> None:
    assert end_of(with_epochs(), 2, 0, current_leader_epoch=current).error_code == code
