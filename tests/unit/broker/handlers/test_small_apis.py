"""The APIs of one page each: ApiVersions, InitProducerId, FindCoordinator, DescribeCluster, OffsetForLeaderEpoch."""

from typing import Any

import pytest

from sluice.broker.dispatch.registry import HANDLERS
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.describe_cluster import DescribeClusterRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from sluice.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.records import produce
from tests.support.virtual_broker import VirtualBroker

# -- ApiVersions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3, 6))
@pytest.mark.parametrize(
    ("name", "software_version", "code"),
    [
        pytest.param("apache-kafka-java", "3.9.0", 0, id="Java client"),
        pytest.param("a", "1", 0, id="one character each"),
        pytest.param("", "1", 42, id="no name"),
        pytest.param("a", "", 42, id="no version"),
        pytest.param("-a", "1", 42, id="name that begins with a dash"),
        pytest.param("a.", "1", 42, id="name that ends with a dot"),
        pytest.param("a b", "1", 42, id="blank"),
        pytest.param("ä", "1", 42, id="letter beyond ASCII"),
        pytest.param("a", "1\n", 42, id="newline"),
    ],
)
def test_a_clients_name_and_version_are_checked_as_kip_511_says(
    version: int, name: str, software_version: str, code: int
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    assert VirtualBroker().client().ask(request, version).error_code == code


def listed_features(version: int, release: str = "all") -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
    """Supported ranges, finalized levels, and their epoch."""
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    response = VirtualBroker(f"sluice.kafka.release={release}").client().ask(request, version)
    supported = {one.name: (one.min_version, one.max_version) for one in response.supported_features}
    assert all(one.min_version_level == one.max_version_level for one in response.finalized_features)
    finalized = {one.name: one.max_version_level for one in response.finalized_features}
    return supported, finalized, response.finalized_features_epoch


@pytest.mark.parametrize("version", [4, 5])
def test_the_features_are_those_of_kafka_4_4(version: int) -> None:
    supported, finalized, epoch = listed_features(version)
    assert supported.items() >= {"transaction.version": (0, 2), "metadata.version": (7, 33)}.items()
    assert finalized.items() >= {"transaction.version": 2, "metadata.version": 33}.items()
    assert epoch >= 0, "to a client such features are not known"


@pytest.mark.parametrize("version", [4, 5])
def test_consumer_groups_are_a_feature_only_where_they_are_served(version: int) -> None:
    supported, finalized, _ = listed_features(version)
    served = 68 in HANDLERS  # ConsumerGroupHeartbeat
    assert ("group.version" in supported, "group.version" in finalized) == (served, served)


def test_what_begins_with_level_0_is_not_told_to_clients_of_api_versions_3() -> None:
    # Java clients up to 3.7 cannot read it.
    supported, finalized, _ = listed_features(3)
    assert supported == {"metadata.version": (7, 33)}
    assert finalized["transaction.version"] == 2


@pytest.mark.parametrize("version", range(3))
def test_the_first_versions_of_api_versions_know_no_features(version: int) -> None:
    assert listed_features(version) == ({}, {}, -1)


@pytest.mark.parametrize(
    ("release", "version", "expected"),
    [
        pytest.param("kafka-2.8", 3, {}, id="broker with ZooKeeper has none"),
        pytest.param("kafka-3.4", 3, {"metadata.version": (1, 8)}, id="3.4"),
        pytest.param("kafka-3.9", 4, {"metadata.version": (1, 21)}, id="3.9: transactions without epochs of their own"),
    ],
)
def test_an_older_release_has_its_own_features(
    release: str, version: int, expected: dict[str, tuple[int, int]]
) -> None:
    supported, finalized, _ = listed_features(version, release)
    assert supported == expected
    assert finalized == {name: levels[1] for name, levels in expected.items()}


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        pytest.param(None, -1, 0, id="whoever it is"),
        pytest.param("this", 1, 0, id="this broker"),
        pytest.param("other", 1, ErrorCode.REBOOTSTRAP_REQUIRED, id="another cluster"),
        pytest.param("this", 2, ErrorCode.REBOOTSTRAP_REQUIRED, id="another broker"),
    ],
)
def test_a_client_that_means_another_broker_is_told_to_bootstrap_again(
    cluster_id: str | None, node_id: int, code: int
) -> None:
    request = ApiVersionsRequest(
        client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=node_id
    )
    assert VirtualBroker("sluice.cluster.id=this").client().ask(request, 5).error_code == code


# -- InitProducerId ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(6))
def test_every_producer_gets_an_id_of_its_own_with_epoch_0(version: int) -> None:
    broker = VirtualBroker()
    answers = [broker.client().ask(InitProducerIdRequest(transactional_id=None), version) for _ in range(3)]
    assert [(one.error_code, one.producer_id, one.producer_epoch) for one in answers] == [(0, n, 0) for n in range(3)]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"transactional_id": ""}, 42, id="empty transactional id"),
        pytest.param({"producer_id": 5}, 42, id="id without epoch"),
        pytest.param({"producer_epoch": 5}, 42, id="epoch without id"),
        pytest.param({"producer_id": 5, "producer_epoch": 5}, 0, id="id and epoch from before"),
    ],
)
def test_what_init_producer_id_refuses(fields: dict[str, Any], code: int) -> None:
    request = InitProducerIdRequest(**({"transactional_id": None} | fields))
    response = VirtualBroker().client().ask(request, 4)
    assert response.error_code == code
    assert (response.producer_id, response.producer_epoch) == ((-1, -1) if code else (0, 0))


# -- FindCoordinator ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(4))
def test_the_coordinator_of_a_group_is_the_broker(version: int) -> None:
    broker = VirtualBroker("node.id=3", "advertised.listeners=PLAINTEXT://kafka.example:9093")
    found = broker.client().ask(FindCoordinatorRequest(key="group"), version)
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 3, "kafka.example", 9093)


@pytest.mark.parametrize("version", range(4, 7))
def test_coordinators_of_many_groups_are_found_at_once(version: int) -> None:
    broker = VirtualBroker("node.id=3", "advertised.listeners=PLAINTEXT://kafka.example:9093")
    response = broker.client().ask(FindCoordinatorRequest(coordinator_keys=["a", "b"]), version)
    assert [(one.key, one.error_code, one.node_id, one.host, one.port) for one in response.coordinators] == [
        ("a", 0, 3, "kafka.example", 9093),
        ("b", 0, 3, "kafka.example", 9093),
    ]


@pytest.mark.parametrize("version", range(1, 7))
def test_the_coordinator_of_a_transactional_id_is_the_broker_and_its_topic_is_there(version: int) -> None:
    broker = VirtualBroker("node.id=3", "transaction.state.log.num.partitions=4")
    response = broker.client().ask(FindCoordinatorRequest(key="tx", coordinator_keys=["tx"], key_type=1), version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id) == (0, 3)
    assert len(broker.broker.cluster.topics["__transaction_state"].partitions) == 4


@pytest.mark.parametrize("key_type", [2, 77], ids=["share", "unknown"])
@pytest.mark.parametrize("version", range(1, 7))
def test_nothing_else_has_a_coordinator(version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key="key", coordinator_keys=["key"], key_type=key_type)
    response = VirtualBroker().client().ask(request, version)
    found = response.coordinators[0] if version >= 4 else response
    assert (found.error_code, found.node_id, found.host, found.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)
    assert found.error_message


# -- DescribeCluster ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_the_broker(version: int) -> None:
    broker = VirtualBroker("node.id=3", "sluice.cluster.id=cluster", "advertised.listeners=PLAINTEXT://kafka:9093")
    response = broker.client().ask(DescribeClusterRequest(), version)
    assert (response.error_code, response.cluster_id, response.controller_id) == (0, "cluster", 3)
    assert [(one.broker_id, one.host, one.port, one.is_fenced) for one in response.brokers] == [
        (3, "kafka", 9093, False)
    ]
    assert response.cluster_authorized_operations == -0x8000_0000, "it was not asked for"


def test_permissions_of_the_cluster_are_told_where_they_are_asked_for() -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    told = VirtualBroker().client().ask(request, 0).cluster_authorized_operations
    assert told == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        pytest.param(2, ErrorCode.MISMATCHED_ENDPOINT_TYPE, id="controllers, asked of a broker"),
        pytest.param(3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, id="what nobody knows"),
        pytest.param(0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, id="nothing"),
    ],
)
def test_only_brokers_can_be_asked_for(endpoint_type: int, code: ErrorCode) -> None:
    response = VirtualBroker().client().ask(DescribeClusterRequest(endpoint_type=endpoint_type), 1)
    assert (response.error_code, response.brokers) == (code, [])
    assert response.error_message


# -- OffsetForLeaderEpoch ----------------------------------------------------------------------------------------------


def end_of(broker: VirtualBroker, version: int, epoch: int, *, topic: str = "t", **more: Any) -> EpochEndOffset:
    wanted = OffsetForLeaderPartition(**({"partition": 0, "leader_epoch": epoch} | more))
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])])
    (found,) = broker.client().ask(request, version).topics[0].partitions
    assert isinstance(found, EpochEndOffset)
    return found


def with_epochs() -> VirtualBroker:
    """Two records of epoch 0, then three of epoch 4."""
    broker = VirtualBroker()
    broker.topic()
    for epoch, count in ((0, 2), (4, 3)):
        broker.partition().leader_epoch = epoch
        for _ in range(count):
            broker.client().ask(produce(9), 9)
    return broker


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(
    ("epoch", "expected"),
    [
        pytest.param(0, (0, 2), id="one that ended"),
        pytest.param(4, (4, 5), id="current one: the end of the log"),
        pytest.param(2, (0, 2), id="one between: the one before it"),
        pytest.param(5, (-1, -1), id="one of the future: nothing is known"),
        pytest.param(-1, (-1, -1), id="none"),
    ],
)
def test_an_epoch_ended_where_the_next_began(version: int, epoch: int, expected: tuple[int, int]) -> None:
    found = end_of(with_epochs(), version, epoch)
    assert (found.error_code, found.leader_epoch if version >= 1 else expected[0], found.end_offset) == (0, *expected)


@pytest.mark.parametrize("version", range(5))
def test_the_epoch_of_an_unknown_partition_is_error_3(version: int) -> None:
    assert end_of(with_epochs(), version, 0, topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(with_epochs(), version, 0, partition=1).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("current", "code"), [(3, ErrorCode.FENCED_LEADER_EPOCH), (4, 0), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_a_client_of_another_leader_epoch_is_told_so(current: int, code: int) -> None:
    assert end_of(with_epochs(), 2, 0, current_leader_epoch=current).error_code == code
