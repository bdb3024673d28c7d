"""Consumer groups in other APIs: offset commit and fetch, list, describe and delete."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.consumer.group import ConsumerGroup
from sluice.broker.coordinator.group.consumer.member import ClassicMetadata
from sluice.broker.coordinator.group.consumer.member import ConsumerMember as KnownMember
from sluice.broker.coordinator.group.group import Commit, NewOffset
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.apis.describe_groups import DescribeGroupsRequest
from sluice.protocol.apis.list_groups import ListGroupsRequest
from sluice.protocol.apis.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember, consumer_group
from tests.support.groups import commit_code, commit_request, fetch_request, fetched
from tests.support.virtual_broker import VirtualBroker

STALE, UNKNOWN, ILLEGAL = ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION


def make_broker(partitions: int = 4) -> VirtualBroker:
    broker = VirtualBroker(AT_ONCE)
    broker.topic("t", partitions)
    return broker


# -- offset commits ----------------------------------------------------------------------------------------------------


def make_group(topic: Topic, classic: ClassicMetadata | None = None) -> ConsumerGroup:
    """Return a group whose member "m" is in epoch 9; it owns t-0 since epoch 5 and must revoke t-1, owned since 7."""
    group = ConsumerGroup("group")
    topic_id = topic.topic_id
    group.put(
        KnownMember("m", 9, 8, assigned={topic_id: {0: 5}}, pending_revocation={topic_id: {1: 7}}, classic=classic)
    )
    return group


def commit(topic: Topic, partition: int = 0, **fields: Any) -> Commit:
    new = NewOffset(topic, partition, 1, -1, "")
    known: dict[str, Any] = {
        "group_id": "group",
        "member_id": "m",
        "group_instance_id": None,
        "generation_id": 9,
        "version": 9,
        "offsets": [new],
    }
    return Commit(**(known | fields))


@pytest.mark.parametrize(
    ("fields", "code", "classic_code"),
    [
        pytest.param({}, 0, 0, id="current epoch"),
        pytest.param({"partition": 3}, 0, 0, id="current epoch, other partition"),
        pytest.param({"generation_id": 10}, STALE, ILLEGAL, id="future epoch"),
        pytest.param({"generation_id": 5}, 0, 0, id="first epoch of the partition"),
        pytest.param({"generation_id": 4}, STALE, ILLEGAL, id="epoch before the partition"),
        pytest.param({"generation_id": 7, "partition": 1}, 0, 0, id="first epoch of a partition to revoke"),
        pytest.param({"generation_id": 6, "partition": 1}, STALE, ILLEGAL, id="epoch before a partition to revoke"),
        pytest.param({"generation_id": 8, "partition": 3}, STALE, ILLEGAL, id="earlier epoch, other partition"),
        pytest.param({"member_id": "x"}, UNKNOWN, UNKNOWN, id="unknown member"),
        pytest.param({"member_id": "", "generation_id": -1}, UNKNOWN, UNKNOWN, id="no member"),
        pytest.param(
            {"member_id": "", "generation_id": -1, "transactional": True}, 0, 0, id="transaction without member"
        ),
        pytest.param({"generation_id": 10, "transactional": True}, STALE, ILLEGAL, id="transaction, future epoch"),
        pytest.param({"version": 8}, ErrorCode.UNSUPPORTED_VERSION, 0, id="version without member epochs"),
        pytest.param({"version": 0, "transactional": True}, 0, 0, id="transaction, version 0"),
    ],
)
def test_commit_requires_valid_member_and_epoch(fields: dict[str, Any], code: int, classic_code: int) -> None:
    topic = make_broker().partition().topic
    request = commit(topic, **fields)
    assert make_group(topic).commit_error(request) == code
    assert make_group(topic, ClassicMetadata(1, ())).commit_error(request) == classic_code


def test_commit_without_member_id_is_accepted_for_an_empty_group() -> None:
    topic = make_broker().partition().topic
    assert ConsumerGroup("group").commit_error(commit(topic, member_id="", generation_id=-1)) == 0
    assert ConsumerGroup("group").commit_error(commit(topic)) == UNKNOWN


def test_one_invalid_partition_rejects_the_whole_commit() -> None:
    topic = make_broker().partition().topic
    offsets = [NewOffset(topic, index, 1, -1, "") for index in (0, 2)]
    assert make_group(topic).commit_error(commit(topic, generation_id=5, offsets=offsets)) == STALE


@pytest.mark.parametrize(
    ("member_id", "epoch", "code", "classic_code"),
    [
        pytest.param(None, -1, 0, 0, id="no member"),
        pytest.param("m", 9, 0, 0, id="current epoch"),
        pytest.param("m", 8, STALE, ILLEGAL, id="earlier epoch"),
        pytest.param("x", 9, UNKNOWN, UNKNOWN, id="unknown member"),
        pytest.param(None, 9, UNKNOWN, UNKNOWN, id="epoch without member id"),
    ],
)
def test_offset_fetch_requires_valid_member_and_epoch(
    member_id: str | None, epoch: int, code: int, classic_code: int
) -> None:
    topic = make_broker().partition().topic
    assert make_group(topic).offset_fetch_error(member_id, epoch) == code
    assert make_group(topic, ClassicMetadata(1, ())).offset_fetch_error(member_id, epoch) == classic_code


def test_member_commits_and_fetches_in_its_epoch() -> None:
    broker = make_broker()
    member = ConsumerMember(broker, "m")
    member.join()
    client = broker.client()
    known: dict[str, Any] = {"member_id": "m", "generation_id_or_member_epoch": member.epoch}
    assert commit_code(client.call(commit_request(42, **known), 9)) == 0
    stale = known | {"generation_id_or_member_epoch": member.epoch + 1}
    assert commit_code(client.call(commit_request(43, **stale), 9)) == STALE
    response = client.call(fetch_request(0, member_id="m", member_epoch=member.epoch), 9)
    assert fetched(response) == {("t", 0): (42, 0)}
    [group] = client.call(fetch_request(0, member_id="m", member_epoch=1), 9).groups
    assert group.error_code == STALE


# -- list, describe, delete --------------------------------------------------------------------------------------------


def test_list_groups_returns_group_type_and_state() -> None:
    broker = make_broker()
    one, two = ConsumerMember(broker, "one"), ConsumerMember(broker, "two")
    client = broker.client()

    def listed(**fields: Any) -> list[tuple[str, str, str]]:
        groups = client.call(ListGroupsRequest(**fields), 5).groups
        return [(group.group_type, group.protocol_type, group.group_state) for group in groups]

    one.join()
    assert listed() == [("consumer", "consumer", "Stable")]
    two.join()
    assert listed() == [("consumer", "consumer", "Reconciling")]
    one.leave()
    assert listed(types_filter=["Consumer"]) == [("consumer", "consumer", "Assigning")]
    assert listed(types_filter=["classic"]) == []
    two.leave()
    assert listed(states_filter=["empty"]) == [("consumer", "consumer", "Empty")]


@pytest.mark.parametrize(("version", "code"), [(5, 0), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_describe_groups_reports_a_consumer_group_as_dead(version: int, code: int) -> None:
    broker = make_broker()
    ConsumerMember(broker, "m").join()
    [group] = broker.client().call(DescribeGroupsRequest(groups=["group"]), version).groups
    assert (group.group_state, group.error_code) == ("Dead", code)
    if code:
        assert group.error_message == "Group group is not a classic group."


def test_group_is_deleted_only_without_members() -> None:
    broker = make_broker()
    member = ConsumerMember(broker, "m")
    member.join()
    client = broker.client()

    def delete() -> int:
        [result] = client.call(DeleteGroupsRequest(groups_names=["group"]), 2).results
        code: int = result.error_code
        return code

    assert delete() == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    assert delete() == 0
    assert delete() == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("member", "code"),
    [
        pytest.param({"topics": ["t"]}, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, id="subscribed by name"),
        pytest.param({"regex": "[a-z]"}, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, id="subscribed by regular expression"),
        pytest.param({"topics": ["u"]}, 0, id="not subscribed"),
    ],
)
def test_offsets_of_subscribed_topics_are_not_deleted(member: dict[str, Any], code: int) -> None:
    broker = make_broker()
    ConsumerMember(broker, "m", **member).join()
    partitions = [OffsetDeleteRequestPartition(partition_index=0)]
    topics = [OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    response = broker.client().call(OffsetDeleteRequest(group_id="group", topics=topics), 0)
    assert (response.error_code, response.topics[0].partitions[0].error_code) == (0, code)


def test_group_without_members_and_offsets_is_removed_after_retention() -> None:
    broker = make_broker()
    member = ConsumerMember(broker, "m")
    member.join()
    broker.advance(0)
    member.leave()
    assert consumer_group(broker).is_empty
    broker.advance(600_000)
    assert "group" not in broker.broker.groups.groups
