"""Metadata: topics, auto-creation, brokers and authorized operations."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.virtual_broker import VirtualBroker

VERSIONS = range(14)
UNKNOWN_ID = bytes(15) + b"\7"
NOT_REQUESTED = -0x8000_0000
UNKNOWN, NO_LEADER = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE


def topics(
    broker: VirtualBroker, version: int, *targets: MetadataRequestTopic | str | None, create: bool = False
) -> list[MetadataResponseTopic]:
    """Return the metadata of these topics; a single None requests all topics."""
    requested = [MetadataRequestTopic(name=topic) if isinstance(topic, str) else topic for topic in targets]
    request = MetadataRequest(
        topics=None if requested == [None] else [topic for topic in requested if topic is not None],
        allow_auto_topic_creation=create,
    )
    found = broker.client().call(request, version).topics
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_are_led_by_the_broker(version: int) -> None:
    broker = VirtualBroker("node.id=3")
    topic = broker.topic(partitions=2)
    (found,) = topics(broker, version, "t")
    assert (found.name, found.error_code, found.is_internal) == ("t", 0, False)
    assert found.topic_id == (topic.topic_id if version >= 10 else ZERO_UUID)
    partitions = [
        (p.partition_index, p.error_code, p.leader_id, p.replica_nodes, p.isr_nodes, p.offline_replicas)
        for p in found.partitions
    ]
    assert partitions == [(0, 0, 3, [3], [3], []), (1, 0, 3, [3], [3], [])]


@pytest.mark.parametrize("version", VERSIONS)
def test_broker_has_the_address_of_its_advertised_listener(version: int) -> None:
    broker = VirtualBroker("node.id=3", "advertised.listeners=PLAINTEXT://kafka.example:9093")
    response = broker.client().call(MetadataRequest(topics=[]), version)
    assert [(node.node_id, node.host, node.port) for node in response.brokers] == [(3, "kafka.example", 9093)]
    assert response.controller_id == (3 if version >= 1 else -1)
    assert response.cluster_id == (broker.broker.cluster.cluster_id if version >= 2 else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_requested_by_an_empty_list_in_version_0_and_by_null_later(version: int) -> None:
    broker = VirtualBroker()
    broker.topic("a")
    broker.topic("b")
    assert [topic.name for topic in topics(broker, version, *[None][: version > 0])] == ["a", "b"]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_empty_list_requests_no_topics_from_version_1(topic: Topic, broker: VirtualBroker, version: int) -> None:
    assert topics(broker, version) == []


CREATED = [("new", 3, "delete"), ("__consumer_offsets", 7, "compact"), ("__transaction_state", 5, "compact")]


@pytest.mark.parametrize(("name", "partitions", "policy"), CREATED)
@pytest.mark.parametrize("version", VERSIONS)
def test_unknown_topic_is_created_for_the_next_request_if_client_and_broker_allow_it(
    version: int, name: str, partitions: int, policy: str
) -> None:
    broker = VirtualBroker(
        "num.partitions=3", "offsets.topic.num.partitions=7", "transaction.state.log.num.partitions=5"
    )
    first, second = (topics(broker, version, name, create=True)[0] for _ in range(2))
    is_internal = policy == "compact" and version > 0
    assert (first.error_code, first.partitions, first.is_internal) == (UNKNOWN, [], is_internal)
    assert (second.error_code, len(second.partitions), second.is_internal) == (0, partitions, is_internal)
    assert broker.broker.cluster.topics[name].config.names("cleanup.policy") == (policy,)


TRANSACTION_LOG = {
    "cleanup.policy": "compact",
    "compression.type": "uncompressed",
    "min.insync.replicas": "2",
    "segment.bytes": "104857600",
    "unclean.leader.election.enable": "false",
}


INTERNAL_TOPICS = {
    "offsets": (
        "__consumer_offsets",
        1,
        "offsets.topic.segment.bytes=2097152",
        {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "2097152"},
    ),
    "transactions": ("__transaction_state", 3, "", TRANSACTION_LOG),
    "transactions, with min.isr": (
        "__transaction_state",
        3,
        "transaction.state.log.min.isr=3",
        {**TRANSACTION_LOG, "min.insync.replicas": "3"},
    ),
    "transactions, with one broker less than the replication factor": (
        "__transaction_state",
        2,
        "",
        {**TRANSACTION_LOG, "min.insync.replicas": "1"},
    ),
    "transactions, with the replication factor": (
        "__transaction_state",
        2,
        "transaction.state.log.replication.factor=2",
        TRANSACTION_LOG,
    ),
    "share state": (
        "__share_group_state",
        1,
        "share.coordinator.state.topic.replication.factor=1",
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "2",
            "retention.ms": "-1",
            "segment.bytes": "104857600",
        },
    ),
}


@pytest.mark.parametrize(("name", "brokers", "override", "expected"), INTERNAL_TOPICS.values(), ids=INTERNAL_TOPICS)
def test_internal_topic_has_the_configs_of_its_coordinator(
    name: str, brokers: int, override: str, expected: dict[str, str]
) -> None:
    broker = VirtualBroker(f"sluice.brokers={brokers}", *filter(None, [override]))
    assert broker.broker.cluster.internal_topic(name).config.own == expected


CREATING_RESPONSES = {
    "0.9": ("0.9", 2, (NO_LEADER, ErrorCode.INVALID_TOPIC_EXCEPTION)),
    "1.1": ("1.1", 2, (NO_LEADER, ErrorCode.INVALID_TOPIC_EXCEPTION)),
    "controller of 2.8": ("2.8", 1, (NO_LEADER, ErrorCode.INVALID_TOPIC_EXCEPTION)),
    "other broker of 2.8": ("2.8", 2, (UNKNOWN, UNKNOWN)),
    "3.9": ("3.9", 1, (UNKNOWN, UNKNOWN)),
    "4.4": ("4.4", 1, (UNKNOWN, UNKNOWN)),
}


@pytest.mark.parametrize(("release", "node_id", "codes"), CREATING_RESPONSES.values(), ids=CREATING_RESPONSES)
def test_error_of_the_creating_response_is_that_of_the_release(
    release: str, node_id: int, codes: tuple[ErrorCode, ErrorCode]
) -> None:
    broker = VirtualBroker("sluice.brokers=2", f"sluice.kafka.release=kafka-{release}")
    broker.topic("a.b")
    client = broker.client(node_id=node_id)
    found = []
    for name in ("new", "a_b"):  # the second collides in metric names
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
        found.append(client.call(request, 0).topics[0].error_code)
    assert tuple(found) == codes
    assert set(broker.broker.cluster.topics) == {"a.b", "new"}


FORBIDDEN = {
    "broker forbids it": ("false", True, 9),
    "client forbids it": ("true", False, 9),
    "broker forbids it, version 0": ("false", True, 0),
}


@pytest.mark.parametrize(("broker_allows", "client_allows", "version"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_unknown_topic_is_an_error_if_creation_is_forbidden(
    broker_allows: str, client_allows: bool, version: int
) -> None:
    broker = VirtualBroker(f"auto.create.topics.enable={broker_allows}")
    (found,) = topics(broker, version, "new", create=client_allows)
    assert (found.error_code, found.name, found.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new", [])
    assert broker.broker.cluster.topics == {}


def test_client_that_cannot_forbid_creation_creates_the_topic() -> None:
    broker = VirtualBroker()  # versions up to 3 have no field for it
    topics(broker, 3, "new", create=False)
    assert topics(broker, 3, "new", create=False)[0].error_code == 0


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("name", ["", ".", "a b", "a" * 250, "a/b"])
def test_invalid_name_is_rejected_and_creates_nothing(broker: VirtualBroker, name: str, create: bool) -> None:
    assert [topic.error_code for topic in topics(broker, 9, name, create=create)] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert broker.broker.cluster.topics == {}


@pytest.mark.parametrize("version", [12, 13])
def test_topic_is_found_by_id(topic: Topic, broker: VirtualBroker, version: int) -> None:
    requested = [MetadataRequestTopic(topic_id=id_, name=None) for id_ in (topic.topic_id, UNKNOWN_ID)]
    known, unknown = topics(broker, version, *requested, create=True)
    assert (known.name, known.error_code) == ("t", 0)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, UNKNOWN_ID, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [12, 13])
def test_names_are_ignored_beside_an_id(broker: VirtualBroker, version: int) -> None:
    by_id = MetadataRequestTopic(topic_id=broker.topic().topic_id, name=None)
    found = topics(broker, version, "u", by_id, "new", create=True)
    assert [(topic.name, topic.error_code) for topic in found] == [("t", 0)]
    assert list(broker.broker.cluster.topics) == ["t"]


@pytest.mark.parametrize("version", [10, 11])
def test_topic_id_is_rejected_in_versions_10_and_11(broker: VirtualBroker, version: int) -> None:
    topic = broker.topic()
    found = topics(broker, version, MetadataRequestTopic(topic_id=topic.topic_id, name=None), "t")
    assert [(topic.name, topic.error_code) for topic in found] == [
        ("", ErrorCode.INVALID_REQUEST),
        ("t", ErrorCode.INVALID_REQUEST),
    ]


def test_duplicate_topic_is_returned_once(broker: VirtualBroker) -> None:
    assert len(topics(broker, 9, "new", "new", create=True)) == 1


@pytest.mark.parametrize("create", [False, True], ids=["not created", "created"])
@pytest.mark.parametrize("name", ["t", "u", "nowhere", "not a name", ""])
@pytest.mark.parametrize("version", [0, 4, 9, 11, 13])
def test_single_topic_and_list_return_the_same_metadata(version: int, name: str, create: bool) -> None:
    alone, in_list = VirtualBroker(), VirtualBroker()
    for broker in (alone, in_list):
        broker.topic()
        broker.topic("u", partitions=3)
    assert topics(alone, version, name, create=create) == topics(in_list, version, name, "other", create=create)[:1]


@pytest.mark.parametrize("topic_id", [None, UNKNOWN_ID], ids=["known", "unknown"])
def test_single_topic_id_and_list_return_the_same_metadata(broker: VirtualBroker, topic_id: bytes | None) -> None:
    by_id = MetadataRequestTopic(topic_id=topic_id or broker.topic().topic_id, name=None)
    assert topics(broker, 12, by_id) == topics(broker, 12, by_id, "other")[:1]


@pytest.mark.parametrize("version", range(8, 14))
def test_authorized_operations_are_returned_only_on_request(topic: Topic, broker: VirtualBroker, version: int) -> None:
    names = [MetadataRequestTopic(name="t")]
    plain = broker.client().call(MetadataRequest(topics=names), version)
    assert (plain.topics[0].topic_authorized_operations, plain.cluster_authorized_operations) == (NOT_REQUESTED,) * 2
    request = MetadataRequest(
        topics=names, include_topic_authorized_operations=True, include_cluster_authorized_operations=version <= 10
    )
    response = broker.client().call(request, version)
    # READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11 (AclOperation)
    assert response.topics[0].topic_authorized_operations == sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
    if version <= 10:
        # CREATE, ALTER, DESCRIBE, CLUSTER_ACTION 9, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE 12
        assert response.cluster_authorized_operations == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


def test_consumer_offsets_topic_is_internal(broker: VirtualBroker) -> None:
    broker.topic("__consumer_offsets")
    assert topics(broker, 9, "__consumer_offsets")[0].is_internal


def test_journal_topic_is_not_internal_because_spark_skips_internal_topics(broker: VirtualBroker) -> None:
    broker.topic("__sluice_journal")
    assert not topics(broker, 9, "__sluice_journal")[0].is_internal


def test_topic_with_the_name_of_the_metadata_log_is_never_created(broker: VirtualBroker) -> None:
    (found,) = topics(broker, 9, "__cluster_metadata")
    assert (found.error_code, found.is_internal) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False)
    assert not broker.cluster.topics
