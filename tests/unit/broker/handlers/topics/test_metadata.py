"""Metadata: topics by name, by id and all; auto-creation; brokers; permissions."""

import pytest

from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponseTopic
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from tests.support.virtual_broker import VirtualBroker

VERSIONS = range(14)
NOBODY = bytes(15) + b"\7"
NOT_ASKED_FOR = -0x8000_0000


def topics(
    broker: VirtualBroker, version: int, *wanted: MetadataRequestTopic | str | None, create: bool = False
) -> list[MetadataResponseTopic]:
    """Asks for these topics; None asks for all."""
    asked = [MetadataRequestTopic(name=one) if isinstance(one, str) else one for one in wanted]
    request = MetadataRequest(
        topics=None if asked == [None] else [one for one in asked if one is not None], allow_auto_topic_creation=create
    )
    found = broker.client().ask(request, version).topics
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_a_topic_has_its_partitions_led_by_the_broker(version: int) -> None:
    broker = VirtualBroker("node.id=3")
    topic = broker.topic(partitions=2)
    (found,) = topics(broker, version, "t")
    assert (found.name, found.error_code, found.is_internal) == ("t", 0, False)
    assert found.topic_id == (topic.topic_id if version >= 10 else ZERO_UUID)
    partitions = [
        (one.partition_index, one.error_code, one.leader_id, one.replica_nodes, one.isr_nodes, one.offline_replicas)
        for one in found.partitions
    ]
    assert partitions == [(0, 0, 3, [3], [3], []), (1, 0, 3, [3], [3], [])]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_broker_is_where_its_listener_says(version: int) -> None:
    broker = VirtualBroker("node.id=3", "advertised.listeners=PLAINTEXT://kafka.example:9093")
    response = broker.client().ask(MetadataRequest(topics=[]), version)
    assert [(one.node_id, one.host, one.port) for one in response.brokers] == [(3, "kafka.example", 9093)]
    assert response.controller_id == (3 if version >= 1 else -1)
    assert response.cluster_id == (broker.broker.cluster.cluster_id if version >= 2 else None)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_topics_are_asked_for_by_an_empty_list_in_version_0_and_by_null_later(version: int) -> None:
    broker = VirtualBroker()
    broker.topic("a")
    broker.topic("b")
    assert [one.name for one in topics(broker, version, *[None][: version > 0])] == ["a", "b"]


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_an_empty_list_asks_for_no_topic_from_version_1_on(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    assert topics(broker, version) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_an_unknown_topic_is_created_where_client_and_broker_allow_it(version: int) -> None:
    broker = VirtualBroker("num.partitions=3")
    (found,) = topics(broker, version, "new", create=True)
    assert (found.error_code, found.name, len(found.partitions)) == (0, "new", 3)
    assert "new" in broker.broker.cluster.topics


@pytest.mark.parametrize(
    ("broker_allows", "client_allows", "version"),
    [
        pytest.param("false", True, 9, id="broker forbids it"),
        pytest.param("true", False, 9, id="client forbids it"),
        pytest.param("false", True, 0, id="broker forbids it to an old client"),
    ],
)
def test_an_unknown_topic_is_error_3_where_it_may_not_be_created(
    broker_allows: str, client_allows: bool, version: int
) -> None:
    broker = VirtualBroker(f"auto.create.topics.enable={broker_allows}")
    (found,) = topics(broker, version, "new", create=client_allows)
    assert (found.error_code, found.name, found.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "new", [])
    assert broker.broker.cluster.topics == {}


def test_a_client_that_cannot_forbid_creation_means_it() -> None:
    broker = VirtualBroker()  # up to version 3 there is no field for it
    assert topics(broker, 3, "new", create=False)[0].error_code == 0


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("name", ["", ".", "a b", "a" * 250, "a/b"])
def test_an_invalid_name_is_error_17_and_creates_nothing(name: str, create: bool) -> None:
    broker = VirtualBroker()
    assert [one.error_code for one in topics(broker, 9, name, create=create)] == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert broker.broker.cluster.topics == {}


def test_a_name_that_collides_with_another_for_metrics_is_not_created() -> None:
    broker = VirtualBroker()
    broker.topic("a.b")
    assert topics(broker, 9, "a_b", create=True)[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("version", [12, 13])
def test_a_topic_is_found_by_its_id(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    known, unknown = topics(
        broker,
        version,
        MetadataRequestTopic(topic_id=topic.topic_id, name=None),
        MetadataRequestTopic(topic_id=NOBODY, name=None),
        create=True,
    )
    assert (known.name, known.error_code) == ("t", 0)
    assert (unknown.name, unknown.topic_id, unknown.error_code) == (None, NOBODY, ErrorCode.UNKNOWN_TOPIC_ID)


@pytest.mark.parametrize("version", [10, 11])
def test_an_id_in_versions_that_only_have_the_field_is_refused(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    found = topics(broker, version, MetadataRequestTopic(topic_id=topic.topic_id, name=None), "t")
    assert [(one.name, one.error_code) for one in found] == [
        ("", ErrorCode.INVALID_REQUEST),
        ("t", ErrorCode.INVALID_REQUEST),
    ]


def test_a_topic_asked_for_twice_is_answered_once() -> None:
    broker = VirtualBroker()
    assert len(topics(broker, 9, "new", "new", create=True)) == 1


@pytest.mark.parametrize("create", [False, True], ids=["not created", "created"])
@pytest.mark.parametrize("name", ["t", "u", "nowhere", "not a name", ""])
@pytest.mark.parametrize("version", [0, 4, 9, 11, 13])
def test_a_topic_alone_is_answered_as_among_others(version: int, name: str, create: bool) -> None:
    alone, among = VirtualBroker(), VirtualBroker()
    for broker in (alone, among):
        broker.topic()
        broker.topic("u", partitions=3)
    assert topics(alone, version, name, create=create) == topics(among, version, name, "other", create=create)[:1]


@pytest.mark.parametrize("topic_id", [None, NOBODY], ids=["known", "unknown"])
def test_a_topic_alone_is_answered_as_among_others_by_its_id(topic_id: bytes | None) -> None:
    broker = VirtualBroker()
    wanted = MetadataRequestTopic(topic_id=topic_id or broker.topic().topic_id, name=None)
    assert topics(broker, 12, wanted) == topics(broker, 12, wanted, "other")[:1]


@pytest.mark.parametrize("version", range(8, 14))
def test_permissions_are_told_only_where_they_are_asked_for(version: int) -> None:
    broker = VirtualBroker()
    broker.topic()
    names = [MetadataRequestTopic(name="t")]
    silent = broker.client().ask(MetadataRequest(topics=names), version)
    assert (silent.topics[0].topic_authorized_operations, silent.cluster_authorized_operations) == (NOT_ASKED_FOR,) * 2
    request = MetadataRequest(
        topics=names,
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=version <= 10,
    )
    told = broker.client().ask(request, version)
    # READ 3, WRITE 4, CREATE 5, DELETE 6, ALTER 7, DESCRIBE 8, DESCRIBE_CONFIGS 10, ALTER_CONFIGS 11 (AclOperation)
    assert told.topics[0].topic_authorized_operations == sum(1 << bit for bit in (3, 4, 5, 6, 7, 8, 10, 11))
    if version <= 10:
        # CREATE, ALTER, DESCRIBE, CLUSTER_ACTION 9, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE 12
        assert told.cluster_authorized_operations == sum(1 << bit for bit in (5, 7, 8, 9, 10, 11, 12))


def test_topics_that_kafka_keeps_for_itself_are_called_internal() -> None:
    broker = VirtualBroker()
    broker.topic("__consumer_offsets")
    assert topics(broker, 9, "__consumer_offsets")[0].is_internal


def test_the_journal_is_not_called_internal_as_spark_reads_no_internal_topic() -> None:
    broker = VirtualBroker()
    broker.topic("__sluice_journal")
    assert not topics(broker, 9, "__sluice_journal")[0].is_internal
