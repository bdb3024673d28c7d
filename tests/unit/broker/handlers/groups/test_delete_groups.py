"""DeleteGroups: deletion of empty groups and their offsets."""

import pytest

from sluice.broker.metadata.topic import Topic
from sluice.broker.security.acl.acl import AclOperation, ResourceType
from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.apis.delete_groups import DeleteGroupsRequest
from sluice.protocol.errors import ErrorCode
from tests.support.acls import acl, alice, secured_broker
from tests.support.groups import Member, commit_request, fetch_request, fetched, settled_group, stable_group
from tests.support.virtual_broker import VirtualBroker


@pytest.mark.parametrize("version", range(4))
def test_each_group_has_its_own_result(topic: Topic, broker: VirtualBroker, version: int) -> None:
    stable_group(broker, "busy")
    client = broker.client()
    client.call(commit_request(group_id="simple"), 9)
    response = client.call(DeleteGroupsRequest(groups_names=["busy", "simple", "none", "simple", ""]), version)
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("busy", ErrorCode.NON_EMPTY_GROUP),
        ("simple", ErrorCode.NONE),
        ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ("", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert list(broker.broker.groups.groups) == ["busy"]
    assert fetched(client.call(fetch_request(group_id="simple"), 9)) == {("t", 0): (-1, 0)}


def test_deleted_group_is_created_again_without_its_pending_members(broker: VirtualBroker) -> None:
    (member,) = settled_group(broker, 1)
    member.leave()
    pending = Member(broker)
    pending.member_id = pending.client.call(pending.join_request(), 9).member_id
    response = broker.client().call(DeleteGroupsRequest(groups_names=["group"]), 2)
    assert response.results[0].error_code == ErrorCode.NONE
    assert len(broker.broker.groups.heartbeats) == 0
    # The new group does not know the pending member id.
    assert pending.client.call(pending.join_request(), 9).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    (newcomer,) = settled_group(broker, 1)
    assert newcomer.generation_id == 1


def test_groups_of_others_are_last_when_deleted_and_first_when_described() -> None:
    """KafkaApis.handleDeleteGroupsRequest and handleConsumerGroupDescribe."""
    broker = secured_broker()
    broker.broker.cluster.acls.create([acl(AclOperation.DELETE, ResourceType.GROUP, "mine")])
    deleted = alice(broker).call(DeleteGroupsRequest(groups_names=["theirs", "mine"]), 2).results
    described = alice(broker).call(ConsumerGroupDescribeRequest(group_ids=["mine", "theirs"]), 1).groups
    assert [one.group_id for one in deleted] == ["mine", "theirs"]
    assert [one.group_id for one in described] == ["theirs", "mine"]
