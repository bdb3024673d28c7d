"""ConsumerGroupDescribe: consumer groups and their members."""

from sluice.protocol.apis.consumer_group_describe import ConsumerGroupDescribeRequest
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import AT_ONCE, ConsumerMember
from tests.support.group_members import joined
from tests.support.groups import stable_group
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


def two_members() -> tuple[VirtualBroker, ConsumerMember, ConsumerMember]:
    """Return a broker and two members: "one" has t-0 to t-3 and must revoke t-2 and t-3, which "two" awaits."""
    broker = broker_with_topic(AT_ONCE, partitions=4)
    one = joined(ConsumerMember(broker, "one", instance_id="i", assignor="uniform"), rack_id="r")
    two = joined(ConsumerMember(broker, "two"))
    one.heartbeat()
    return broker, one, two


def test_group_and_members_are_described() -> None:
    broker, _, _ = two_members()
    topic_id = broker.partition().topic.topic_id
    [group] = broker.client().call(ConsumerGroupDescribeRequest(group_ids=["group"]), 1).groups
    assert (group.group_id, group.group_state, group.assignor_name) == ("group", "Reconciling", "uniform")
    assert (group.group_epoch, group.assignment_epoch, group.authorized_operations) == (3, 3, -(2**31))
    first, second = group.members
    assert (first.member_id, first.instance_id, first.rack_id, first.member_epoch) == ("one", "i", "r", 2)
    assert (first.client_id, first.client_host, first.member_type) == ("client", "/127.0.0.1", 1)
    assert (first.subscribed_topic_names, first.subscribed_topic_regex) == (["t"], "")
    [current] = first.assignment.topic_partitions
    [target] = first.target_assignment.topic_partitions
    assert (current.topic_id, current.topic_name, current.partitions) == (topic_id, "t", [0, 1, 2, 3]), (
        "partitions stay assigned until their revocation is confirmed"
    )
    assert target.partitions == [0, 1]
    assert (second.member_id, second.member_epoch, second.assignment.topic_partitions) == ("two", 3, [])
    assert second.target_assignment.topic_partitions[0].partitions == [2, 3]


def test_deleted_topics_are_omitted() -> None:
    broker, _, _ = two_members()
    broker.broker.delete_topic(broker.partition().topic)
    [group] = broker.client().call(ConsumerGroupDescribeRequest(group_ids=["group"]), 1).groups
    assert [member.target_assignment.topic_partitions for member in group.members] == [[], []]


def test_empty_group_has_the_default_assignor() -> None:
    broker, one, two = two_members()
    one.leave()
    two.leave()
    [group] = broker.client().call(ConsumerGroupDescribeRequest(group_ids=["group"]), 0).groups
    assert (group.group_state, group.assignor_name, group.members) == ("Empty", "uniform", [])


def test_authorized_operations_are_returned_on_request() -> None:
    broker, _, _ = two_members()
    request = ConsumerGroupDescribeRequest(group_ids=["group", "none"], include_authorized_operations=True)
    known, unknown = broker.client().call(request, 1).groups
    assert known.authorized_operations > 0
    assert unknown.authorized_operations == -(2**31)


def test_unknown_and_classic_groups_are_not_found() -> None:
    broker, _, _ = two_members()
    stable_group(broker, "classic")
    request = ConsumerGroupDescribeRequest(group_ids=["none", "classic", ""])
    responses = [(group.error_code, group.error_message) for group in broker.client().call(request, 1).groups]
    assert responses == [
        (ErrorCode.INVALID_GROUP_ID, None),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a consumer group."),
    ]
