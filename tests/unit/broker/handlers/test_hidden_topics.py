"""Topics that a client must not change or know of: what single answers tell of them, and what they do not."""

from typing import Any

import pytest

from sluice.broker.security.acl.acl import CLUSTER_NAME, Acl, AclOperation, AclPermissionType, ResourceType
from sluice.protocol.apis.alter_configs import AlterableConfig, AlterConfigsRequest, AlterConfigsResource
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicState
from sluice.protocol.apis.describe_producers import DescribeProducersRequest, TopicRequest
from sluice.protocol.apis.describe_topic_partitions import DescribeTopicPartitionsRequest
from sluice.protocol.apis.describe_topic_partitions import TopicRequest as PageTopic
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, alice, secured_broker
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.virtual_broker import VirtualBroker

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NOBODYS_ID = b"?" * 16


def broker_with(*entries: Acl) -> VirtualBroker:
    """One with topics "t" and "secret", and what alice may do."""
    broker = secured_broker(AT_ONCE)
    broker.topic()
    broker.topic("secret")
    broker.broker.cluster.acls.create(entries)
    return broker


# -- deleting ----------------------------------------------------------------------------------------------------------

DELETE_T, DESCRIBE_T = acl(AclOperation.DELETE), acl(AclOperation.DESCRIBE)
DELETE_ALL = acl(AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)


def deleted(broker: VirtualBroker, *wanted: str | bytes) -> list[tuple[str | None, bytes, int, str | None]]:
    """Deletes by names and ids; each answer's name, id, error and message, those of the same name in any order."""
    states = [DeleteTopicState(name=one) if isinstance(one, str) else DeleteTopicState(topic_id=one) for one in wanted]
    answer = alice(broker).ask(DeleteTopicsRequest(topics=states), 6)
    return [(one.name, one.topic_id, one.error_code, one.error_message) for one in answer.responses]


@pytest.mark.parametrize(
    ("entries", "name", "expected"),
    [
        pytest.param([], "t", (DENIED, "Topic authorization failed."), id="topic she knows nothing of"),
        pytest.param([], "none", (DENIED, "Topic authorization failed."), id="one that is not there: she cannot tell"),
        pytest.param([DESCRIBE_T], "t", (DENIED, "Topic authorization failed."), id="topic that she may describe"),
        pytest.param(
            [acl(AclOperation.DESCRIBE, name="none")],
            "none",
            (UNKNOWN, UNKNOWN.message),
            id="one that she knows is not",
        ),
        pytest.param([DELETE_T], "t", (0, None), id="topic that she may delete"),
        pytest.param([DELETE_ALL], "t", (0, None), id="topic as she may delete all"),
        pytest.param([DELETE_ALL], "none", (UNKNOWN, UNKNOWN.message), id="one that is not there, as she may all"),
    ],
)
def test_alice_deletes_by_name(entries: list[Acl], name: str, expected: tuple[int, str | None]) -> None:
    broker = broker_with(*entries)
    ((_, topic_id, *outcome),) = deleted(broker, name)
    assert tuple(outcome) == expected
    assert (topic_id != bytes(16)) is (expected[0] == 0), "the id is told of what was deleted"
    assert ("t" in broker.broker.cluster.topics) is (expected[0] != 0)


def test_by_id_she_learns_the_names_only_of_topics_that_she_may_know_of() -> None:
    broker = broker_with(DESCRIBE_T)
    ids = {name: topic.topic_id for name, topic in broker.broker.cluster.topics.items()}
    assert deleted(broker, ids["t"], ids["secret"], NOBODYS_ID) == [
        ("t", ids["t"], DENIED, DENIED.message),
        (None, ids["secret"], DENIED, DENIED.message),
        (None, NOBODYS_ID, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message),
    ]
    assert sorted(broker.broker.cluster.topics) == ["secret", "t"]


def test_by_name_and_id_at_once_she_does_not_learn_that_they_are_one() -> None:
    broker = broker_with(DESCRIBE_T)
    topic_id = broker.broker.cluster.topics["t"].topic_id
    assert deleted(broker, "t", topic_id) == [
        ("t", topic_id, DENIED, DENIED.message),
        ("t", bytes(16), DENIED, DENIED.message),
    ]


# -- creating and changing ---------------------------------------------------------------------------------------------


def test_topics_are_created_one_by_one_as_far_as_she_may() -> None:
    broker = broker_with(acl(AclOperation.CREATE, name="new"))
    wanted = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in ("new", "other", "t")]
    answer = alice(broker).ask(CreateTopicsRequest(topics=wanted), 7)
    told = [(one.name, one.error_code, one.error_message, one.topic_config_error_code) for one in answer.topics]
    assert told == [
        ("new", 0, None, DENIED),
        ("other", DENIED, "Authorization failed.", 0),
        ("t", DENIED, "Authorization failed.", 0),
    ]
    assert (answer.topics[0].num_partitions, answer.topics[0].configs) == (-1, [])
    assert sorted(broker.broker.cluster.topics) == ["new", "secret", "t"]


def test_what_she_must_not_create_does_not_count_as_too_much() -> None:
    broker = broker_with(acl(AclOperation.CREATE, name="new"))
    wanted = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=1)
        for name, count in (("new", 1), ("huge", 10_000))
    ]
    answer = alice(broker).ask(CreateTopicsRequest(topics=wanted), 7)
    assert [one.error_code for one in answer.topics] == [0, DENIED]


def test_partitions_are_created_of_topics_that_she_may_alter() -> None:
    broker = broker_with(acl(AclOperation.ALTER))
    wanted = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in ("t", "secret", "none")]
    answer = alice(broker).ask(CreatePartitionsRequest(topics=wanted), 3)
    assert {one.name: (one.error_code, one.error_message) for one in answer.results} == {
        "t": (0, None),
        "secret": (DENIED, None),
        "none": (DENIED, None),
    }
    topics = broker.broker.cluster.topics
    assert (len(topics["t"].partitions), len(topics["secret"].partitions)) == (2, 1)


@pytest.mark.parametrize(
    ("kind", "name", "value", "code"),
    [
        pytest.param(2, "none", "x", DENIED, id="topic is not even looked for"),
        pytest.param(4, "", "x", ErrorCode.INVALID_REQUEST, id="broker first looks at its configs"),
        pytest.param(4, "", "5", ErrorCode.CLUSTER_AUTHORIZATION_FAILED, id="then asks whether she may alter them"),
    ],
)
def test_configs_are_refused_in_kafkas_order(kind: int, name: str, value: str, code: ErrorCode) -> None:
    config = AlterableConfig(name="max.message.bytes" if kind == 2 else "message.max.bytes", value=value)
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[config])
    answer = alice(broker_with()).ask(AlterConfigsRequest(resources=[resource]), 2)
    assert answer.responses[0].error_code == code


# -- describing --------------------------------------------------------------------------------------------------------


def test_names_that_cannot_be_are_told_before_anything_is_asked() -> None:
    wanted = [TopicRequest(name=name, partition_indexes=[0]) for name in ("t", "secret", "none", "?")]
    answer = alice(broker_with(acl(AclOperation.READ))).ask(DescribeProducersRequest(topics=wanted), 0)
    told = {topic.name: (topic.partitions[0].error_code, topic.partitions[0].error_message) for topic in answer.topics}
    refused = (DENIED, "Topic authorization failed.")
    assert (told["t"], told["secret"], told["none"]) == ((0, None), refused, refused)
    assert told["?"][0] == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_page_of_topics_ends_with_all_that_she_must_not_know_of() -> None:
    wanted = [PageTopic(name=name) for name in ("secret", "none", "t")]
    request = DescribeTopicPartitionsRequest(topics=wanted, response_partition_limit=1)
    answer = alice(broker_with(DESCRIBE_T)).ask(request, 0)
    told: list[Any] = [(one.name, one.error_code, one.topic_authorized_operations) for one in answer.topics]
    assert told == [("t", 0, 1 << 8), ("none", DENIED, -(2**31)), ("secret", DENIED, -(2**31))]


def test_a_regular_expression_gets_a_group_only_topics_that_its_member_may_know_of() -> None:
    every_group = acl(AclOperation.READ, ResourceType.GROUP, "*")
    hidden = acl(AclOperation.DESCRIBE, name="secret", permission_type=AclPermissionType.DENY)
    broker = broker_with(every_group, acl(AclOperation.DESCRIBE, name="*"), hidden)
    member = ConsumerMember(broker, regex="[st].*")
    member.client = alice(broker)
    member.join()
    for _ in range(3):
        assert not member.heartbeat().error_code
    assert member.partitions == {"t": {0}}
