"""StreamsGroupDescribe: Streams groups with their topology and members; and the other API of topologies."""

from sluice.protocol.apis.streams_group_describe import StreamsGroupDescribeRequest
from sluice.protocol.apis.streams_group_heartbeat import Endpoint, KeyValue, TaskOffset
from sluice.protocol.apis.streams_group_topology_description_update import StreamsGroupTopologyDescriptionUpdateRequest
from sluice.protocol.errors import ErrorCode
from tests.support.group_members import converge
from tests.support.groups import stable_group
from tests.support.streams_groups import AT_ONCE, StreamsMember
from tests.support.virtual_broker import VirtualBroker, broker_with_topic


def make_broker(*overrides: str) -> VirtualBroker:
    return broker_with_topic(*AT_ONCE, "group.streams.num.standby.replicas=1", *overrides, partitions=2)


def test_a_group_is_described_with_its_topology_and_members() -> None:
    broker = make_broker()
    one, two = StreamsMember(broker, "one", instance_id="i"), StreamsMember(broker, "two")
    offsets = [TaskOffset(subtopology_id="1", partition=index, offset=5 + index) for index in (1, 0)]
    one.join(rack_id="r", user_endpoint=Endpoint(host="h", port=1), client_tags=[KeyValue(key="zone", value="a")])
    two.join()
    converge(one, two)
    one.heartbeat(task_offsets=offsets, task_end_offsets=offsets[:1])
    [group] = broker.client().call(StreamsGroupDescribeRequest(group_ids=["group"]), 1).groups
    assert (group.group_state, group.assignor_name, group.topology_description_status) == ("Stable", "sticky", 0)
    assert group.group_epoch == group.assignment_epoch == one.epoch
    first, second = group.topology.subtopologies
    assert (first.source_topics, first.repartition_sink_topics) == (["t"], ["words"])
    [words], [counts] = second.repartition_source_topics, second.state_changelog_topics
    assert (words.name, words.partitions, counts.name, counts.partitions) == ("words", 2, "counts", 2)
    assert [(config.key, config.value) for config in counts.topic_configs] == [("cleanup.policy", "compact")]
    member = group.members[0]
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("one", "i", "r", one.epoch)
    assert (member.client_id, member.client_host, member.process_id) == ("client", "/127.0.0.1", "process of one")
    assert (member.topology_epoch, member.is_classic) == (0, False)
    assert (member.user_endpoint.host, member.user_endpoint.port) == ("h", 1)
    assert [(tag.key, tag.value) for tag in member.client_tags] == [("zone", "a")]
    assert [(one.partition, one.offset) for one in member.task_offsets] == [(0, 5), (1, 6)]
    assert [(one.partition, one.offset) for one in member.task_end_offsets] == [(1, 6)]
    for each, owned in zip(group.members, (one.owned, two.owned), strict=True):
        for tasks in (each.assignment, each.target_assignment):
            described = (tasks.active_tasks, tasks.standby_tasks, tasks.warmup_tasks)
            found = [{(ids.subtopology_id, index) for ids in role for index in ids.partitions} for role in described]
            assert found == [*map(set, owned)]


def test_a_topology_that_is_not_ready_is_described_as_it_was_sent() -> None:
    broker = VirtualBroker(*AT_ONCE)
    StreamsMember(broker).join()
    request = StreamsGroupDescribeRequest(group_ids=["group"], include_topology_description=True)
    [group] = broker.client().call(request, 1).groups
    assert (group.group_state, group.topology_description_status, group.topology_description) == ("NotReady", 1, None)
    assert group.topology.subtopologies[1].repartition_source_topics[0].partitions == 0


def test_groups_that_are_not_described() -> None:
    broker = make_broker()
    stable_group(broker, "classic")
    StreamsMember(broker).join()
    names = ["none", "classic", "", "group"]
    request = StreamsGroupDescribeRequest(group_ids=names, include_authorized_operations=True)
    groups = broker.client().call(request, 1).groups
    assert [(group.error_code, group.error_message) for group in groups] == [
        (ErrorCode.INVALID_GROUP_ID, None),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group none not found."),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Group classic is not a streams group."),
        (0, None),
    ]
    assert groups[3].authorized_operations > 0


def test_disabled_groups_are_not_described() -> None:
    broker = make_broker("group.coordinator.rebalance.protocols=classic,consumer")
    [group] = broker.client().call(StreamsGroupDescribeRequest(group_ids=["group"]), 1).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert StreamsMember(broker).join().error_code == ErrorCode.UNSUPPORTED_VERSION


def test_topology_descriptions_need_a_plugin() -> None:
    request = StreamsGroupTopologyDescriptionUpdateRequest(group_id="group", member_id="one")
    response = make_broker().client().call(request, 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.error_message == "The broker has no streams group topology description plugin configured."
