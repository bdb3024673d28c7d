"""StreamsGroupHeartbeat: joining, staying, leaving, statuses, and every error."""

from typing import Any

import pytest

from sluice.broker.coordinator.group.streams import member as stored
from sluice.broker.coordinator.group.streams import rebalance
from sluice.broker.coordinator.group.streams.group import StreamsGroup, StreamsState, topology_record
from sluice.broker.coordinator.group.streams.heartbeat import StreamsProtocol
from sluice.broker.coordinator.group.streams.heartbeat_validation import least_record_bytes
from sluice.broker.coordinator.group.streams.member import MemberState, Tasks
from sluice.broker.coordinator.group.streams.topology import Status, topology_of
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from sluice.protocol.apis.streams_group_heartbeat import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TaskIds,
    TaskOffset,
    TopicInfo,
    Topology,
)
from sluice.protocol.errors import ErrorCode
from tests.support.consumer_groups import ConsumerMember
from tests.support.coordinators import reload_groups
from tests.support.group_members import converge, joined, settled
from tests.support.streams_groups import (
    AT_ONCE,
    COMPACT,
    StreamsMember,
    stateless,
    statuses,
    streams_group,
    task_ids,
    tasks_of,
    word_count,
)
from tests.support.virtual_broker import VirtualBroker, broker_with_topic

SESSION_MS, REBALANCE_MS = 45_000, 60_000
NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def make_broker(*overrides: str, partitions: int = 2) -> VirtualBroker:
    return broker_with_topic(*AT_ONCE, *overrides, partitions=partitions)


@pytest.fixture
def broker() -> VirtualBroker:
    return make_broker()


def stateless_member(broker: VirtualBroker, member_id: str = "member", **fields: Any) -> StreamsMember:
    return StreamsMember(broker, member_id, topology=stateless(), **fields)


def topology_with(**fields: Any) -> Topology:
    return Topology(subtopologies=[Subtopology(subtopology_id="0", source_topics=["t"], **fields)])


def tasks(*numbers: int, name: str = "0") -> frozenset[tuple[str, int]]:
    return frozenset((name, number) for number in numbers)


# -- invalid requests --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param({"member_id": " "}, "MemberId can't be empty.", id="no member id"),
        pytest.param({"group_id": ""}, "GroupId can't be empty.", id="no group id"),
        pytest.param({"instance_id": ""}, "InstanceId can't be empty.", id="empty instance id"),
        pytest.param({"rack_id": "\t"}, "RackId can't be empty.", id="blank rack id"),
        pytest.param({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request.",
                     id="join without rebalance timeout"),
        pytest.param({"active_tasks": None}, "ActiveTasks must be empty when (re-)joining.", id="join without tasks"),
        pytest.param({"standby_tasks": task_ids({("0", 0)})}, "StandbyTasks must be empty when (re-)joining.",
                     id="join with tasks"),
        pytest.param({"topology": None}, "Topology must be non-null when (re-)joining.", id="join without topology"),
        pytest.param({"member_epoch": -2, "topology": None}, "InstanceId can't be null.",
                     id="temporary leave without instance id"),
        pytest.param({"member_epoch": -3, "topology": None},
                     "MemberEpoch is -3, but must be greater than or equal to -2.", id="epoch below -2"),
        pytest.param({"member_epoch": 1, "topology": None, "warmup_tasks": None},
                     "If one task-type is non-null, all must be non-null.", id="some kinds of tasks"),
        pytest.param({"member_epoch": 1}, "Topology can only be provided when (re-)joining.", id="topology to stay"),
        pytest.param({"topology": Topology(subtopologies=[Subtopology(source_topic_regex=["t.*"])])},
                     "Regular expressions for source topics are not supported yet.", id="regular expression"),
        pytest.param({"task_offsets": [TaskOffset(subtopology_id="0", partition=1, offset=2)] * 2},
                     "Task offsets contain a duplicate entry for subtopology 0 and partition 1.",
                     id="duplicate offset"),
        pytest.param({"task_end_offsets": [TaskOffset(subtopology_id="0", partition=1, offset=2)] * 2},
                     "Task offsets contain a duplicate entry for subtopology 0 and partition 1.",
                     id="duplicate end offset"),
    ],
)  # fmt: skip
def test_an_invalid_request_is_rejected_without_creating_the_group(
    broker: VirtualBroker, fields: dict[str, Any], message: str
) -> None:
    response = StreamsMember(broker).join(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)
    assert "group" not in broker.broker.groups.groups


SOURCE = Subtopology(subtopology_id="0", source_topics=["t"])


@pytest.mark.parametrize(
    ("topology", "error", "message"),
    [
        pytest.param(stateless("__consumer_offsets", "t"), ErrorCode.STREAMS_INVALID_TOPOLOGY,
                     "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
                     id="internal topic"),
        pytest.param(stateless("a b", "t", ""), ErrorCode.STREAMS_INVALID_TOPOLOGY,
                     "Topic names a b, are not valid topic names.", id="invalid topic names"),
        pytest.param(Topology(subtopologies=[
            Subtopology(subtopology_id="0", source_topics=["t"],
                        state_changelog_topics=[TopicInfo(name="c", partitions=3)])]),
                     ErrorCode.STREAMS_INVALID_TOPOLOGY,
                     "Changelog topic c must have an undefined partition count, but it is set to 3.",
                     id="partition count of a changelog topic"),
        pytest.param(Topology(subtopologies=[Subtopology(subtopology_id="0")]), ErrorCode.STREAMS_INVALID_TOPOLOGY,
                     "No source topics found for subtopology 0", id="no source topic"),
        pytest.param(Topology(subtopologies=[SOURCE, SOURCE]), ErrorCode.UNKNOWN_SERVER_ERROR, None,
                     id="duplicate sub-topology"),
    ],
)  # fmt: skip
def test_an_invalid_topology_is_rejected(
    broker: VirtualBroker, topology: Topology, error: ErrorCode, message: str | None
) -> None:
    response = StreamsMember(broker, topology=topology).join()
    assert (response.error_code, response.error_message) == (error, message)
    assert "group" not in broker.broker.groups.groups


def test_streams_groups_can_be_disabled_by_their_feature(broker: VirtualBroker) -> None:
    broker.broker.features.set_level("streams.version", 0)
    assert StreamsMember(broker).join().error_code == ErrorCode.UNSUPPORTED_VERSION


# -- groups and members ------------------------------------------------------------------------------------------------


def test_members_of_other_protocols_are_rejected(broker: VirtualBroker) -> None:
    StreamsMember(broker).join()
    assert ConsumerMember(broker, "consumer").join().error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_epochs_are_fenced(broker: VirtualBroker) -> None:
    member = joined(stateless_member(broker))
    greater = member.send(member_epoch=member.epoch + 1)
    smaller = member.send(member_epoch=member.epoch - 1, **NO_TASKS | {"active_tasks": task_ids({("0", 9)})})
    assert greater.error_code == smaller.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "greater member epoch (3)" in greater.error_message
    assert "smaller member epoch (1)" in smaller.error_message


def test_the_previous_epoch_is_accepted_after_a_lost_response(broker: VirtualBroker) -> None:
    one, _ = joined(stateless_member(broker, "one")), joined(stateless_member(broker, "two"))
    before = one.epoch
    one.heartbeat()
    one.heartbeat()
    assert one.epoch == before + 1
    assert one.heartbeat(member_epoch=before).error_code == 0
    assert one.send(member_epoch=before).error_code == ErrorCode.FENCED_MEMBER_EPOCH, "without its tasks"


def test_a_member_in_an_unknown_state_must_rejoin(broker: VirtualBroker) -> None:
    member = joined(stateless_member(broker))
    group = streams_group(broker)
    group.put(group.members["member"]._replace(state=MemberState.UNKNOWN))
    response = member.heartbeat()
    assert response.error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert "is in a unknown state" in response.error_message
    assert tasks_of(member.join()) == Tasks(tasks(0, 1))


@pytest.mark.parametrize(
    ("owned", "message"),
    [
        pytest.param(("9", 0), "Subtopology 9 does not exist in the topology.", id="sub-topology"),
        pytest.param(("0", 2), "Task 2 for subtopology 0 is invalid. Number of tasks for this subtopology: 2",
                     id="partition"),
        pytest.param(("0", -1), "Task -1 for subtopology 0 is invalid. Number of tasks for this subtopology: 2",
                     id="negative partition"),
    ],
)  # fmt: skip
def test_tasks_outside_of_the_topology_are_rejected(
    broker: VirtualBroker, owned: tuple[str, int], message: str
) -> None:
    member = joined(stateless_member(broker))
    response = member.send(**NO_TASKS | {"active_tasks": task_ids({owned})})
    assert (response.error_code, response.error_message) == (ErrorCode.INVALID_REQUEST, message)


def test_the_first_task_outside_of_the_topology_is_named_in_the_order_of_the_request(broker: VirtualBroker) -> None:
    member = joined(stateless_member(broker))
    owned = [TaskIds(subtopology_id=name, partitions=[1]) for name in ("0", "9", "8")]
    response = member.send(**NO_TASKS | {"active_tasks": owned[:1], "standby_tasks": owned[1:]})
    assert response.error_message == "Subtopology 9 does not exist in the topology."


# -- records that are too large ----------------------------------------------------------------------------------------

NAMES = [f"{number:040}" for number in range(30)]
TOPICS = [TopicInfo(name=str(number), topic_configs=COMPACT) for number in range(90)]
GROUPS = [CopartitionGroup(source_topics=[0] * 9) for _ in range(60)]


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"topology": stateless(*NAMES)}, id="source topics"),
        pytest.param({"topology": topology_with(repartition_sink_topics=NAMES)}, id="sink topics"),
        pytest.param({"topology": topology_with(repartition_source_topics=TOPICS)}, id="repartition topics"),
        pytest.param({"topology": topology_with(state_changelog_topics=TOPICS)}, id="changelog topics"),
        pytest.param({"topology": topology_with(copartition_groups=GROUPS)}, id="copartition groups"),
        pytest.param({"topology": Topology(subtopologies=[Subtopology(subtopology_id=str(number), source_topics=["t"])
                                                          for number in range(110)])}, id="sub-topologies"),
        pytest.param({"client_tags": [KeyValue(key=name, value="x") for name in NAMES]}, id="client tags"),
    ],
)  # fmt: skip
def test_a_request_whose_record_is_too_large_is_rejected_before_it_is_processed(
    fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = StreamsGroupHeartbeatRequest(**fields)
    if request.topology is None:
        tags = {tag.key: tag.value for tag in request.client_tags or ()}
        _, record = StreamsGroup("group").member_record(stored.StreamsMember("member", client_tags=tags))
    else:
        _, record = topology_record("group", topology_of(request.topology))
    assert 1000 < least_record_bytes(request) <= len(record or b"")
    broker = make_broker("message.max.bytes=1000")
    monkeypatch.setattr(StreamsProtocol, "_accept", None)
    response = StreamsMember(broker).join(**fields)
    assert (response.error_code, response.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "group" not in broker.broker.groups.groups


def test_more_tasks_than_fit_into_records_are_not_assigned(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = make_broker("message.max.bytes=1000", partitions=126)
    monkeypatch.setattr(rebalance, "assign", None)
    response = stateless_member(broker).join()
    assert (response.error_code, response.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "group" not in broker.broker.groups.groups


# -- topics and topologies ---------------------------------------------------------------------------------------------


def test_internal_topics_are_created_with_their_configs(broker: VirtualBroker) -> None:
    member = StreamsMember(broker)
    response = member.join()
    assert (response.member_epoch, tasks_of(response)) == (2, Tasks())
    assert statuses(response) == {Status.MISSING_INTERNAL_TOPICS: "Internal topics are missing: counts, words"}
    assert streams_group(broker).state is StreamsState.NOT_READY
    topics = broker.broker.cluster.topics
    assert {name: len(topics[name].partitions) for name in ("words", "counts")} == {"words": 2, "counts": 2}
    assert topics["counts"].config.own == {"cleanup.policy": "compact"}
    response = member.heartbeat()
    assert (response.member_epoch, response.status) == (3, [])
    assert tasks_of(response) == Tasks(tasks(0, 1) | tasks(0, 1, name="1"))
    assert streams_group(broker).state is StreamsState.STABLE


def test_missing_source_topics_are_awaited() -> None:
    broker = VirtualBroker(*AT_ONCE)
    member = StreamsMember(broker)
    assert statuses(member.join()) == {Status.MISSING_SOURCE_TOPICS: "Source topics t are missing."}
    assert statuses(member.heartbeat()).keys() == {Status.MISSING_SOURCE_TOPICS}
    broker.topic("t", 1)
    assert statuses(member.heartbeat()).keys() == {Status.MISSING_INTERNAL_TOPICS}
    assert member.heartbeat().status == []


def test_new_partitions_change_the_tasks_and_mismatch_internal_topics(broker: VirtualBroker) -> None:
    (member,) = settled(StreamsMember(broker))
    more = CreatePartitionsTopic(name="t", count=3, assignments=None)
    broker.client().call(CreatePartitionsRequest(topics=[more], timeout_ms=1000), 3)
    response = member.heartbeat()
    detail = "Existing topic words has different number of partitions: expected 3, found 2"
    assert statuses(response) == {Status.INCORRECTLY_PARTITIONED_TOPICS: detail}
    assert streams_group(broker).state is StreamsState.NOT_READY
    assert tasks_of(response) == Tasks()


def test_creation_errors_are_reported_and_retried_after_two_heartbeat_intervals() -> None:
    broker = make_broker()
    topology = word_count()
    topology.subtopologies[1].repartition_source_topics[0].replication_factor = 7
    member = StreamsMember(broker, topology=topology)
    missing = "Internal topics are missing: "
    assert statuses(member.join()) == {Status.MISSING_INTERNAL_TOPICS: f"{missing}counts, words"}
    expected = f"{missing}words; Creation failed: words (Unable to replicate the partition 7 time(s): "
    for _ in range(2):
        assert statuses(member.heartbeat())[Status.MISSING_INTERNAL_TOPICS].startswith(expected)
    broker.advance(10_000)
    assert statuses(member.heartbeat()) == {Status.MISSING_INTERNAL_TOPICS: f"{missing}words"}, "another attempt"


def test_internal_topics_have_a_limit_of_partitions(broker: VirtualBroker) -> None:
    topology = word_count()
    topology.subtopologies[1].repartition_source_topics[0].partitions = 10_001
    member = joined(StreamsMember(broker, topology=topology))
    detail = statuses(member.heartbeat())[Status.MISSING_INTERNAL_TOPICS]
    problem = "Excessively large number of partitions per request."
    assert detail.endswith(f"; Creation failed: words ({problem}), counts ({problem}).")
    assert broker.broker.cluster.topics.keys().isdisjoint({"words", "counts"})


def test_a_different_topology_is_rejected_and_an_older_one_is_stale(broker: VirtualBroker) -> None:
    stateless_member(broker, "one").join()
    other = StreamsMember(broker, "two")
    response = other.join()
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.error_message == "Topology updates are not supported yet."
    other.leave()
    broker = make_broker()
    StreamsMember(broker, "one", topology=word_count(epoch=1)).join()
    response = StreamsMember(broker, "two", topology=word_count()).join()
    detail = "The member's topology epoch 0 is behind the group's topology epoch 1."
    assert response.error_code == 0
    assert statuses(response)[Status.STALE_TOPOLOGY] == detail


def test_the_topology_outlives_the_members(broker: VirtualBroker) -> None:
    member = joined(StreamsMember(broker))
    member.leave()
    assert stateless_member(broker).join().error_code == ErrorCode.INVALID_REQUEST
    assert member.join().error_code == 0


# -- assignment --------------------------------------------------------------------------------------------------------


def test_members_share_the_tasks(broker: VirtualBroker) -> None:
    one, two = settled(StreamsMember(broker, "one"), StreamsMember(broker, "two"))
    assert one.owned.active | two.owned.active == tasks(0, 1) | tasks(0, 1, name="1")
    assert len(one.owned.active) == len(two.owned.active) == 2
    assert streams_group(broker).state is StreamsState.STABLE
    two.leave()
    converge(one)
    assert len(one.owned.active) == 4


def test_a_task_has_one_owner_until_it_is_given_up(broker: VirtualBroker) -> None:
    one, two = joined(stateless_member(broker, "one")), joined(stateless_member(broker, "two"))
    assert two.owned == Tasks()
    one.clings = True
    one.heartbeat()
    one.heartbeat()
    assert two.heartbeat().active_tasks is None
    assert streams_group(broker).state is StreamsState.RECONCILING
    one.clings = False
    one.heartbeat()
    two.heartbeat()
    assert [len(member.owned.active) for member in (one, two)] == [1, 1]


def test_a_member_that_does_not_give_up_tasks_is_removed(broker: VirtualBroker) -> None:
    one = joined(stateless_member(broker, "one"), rebalance_timeout_ms=10_000)
    two = joined(stateless_member(broker, "two"))
    one.clings = True
    one.heartbeat()
    broker.advance(9_999)
    assert one.heartbeat().error_code == 0
    broker.advance(1)
    assert one.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    converge(two)
    assert len(two.owned.active) == 2


def test_standby_tasks_follow_the_config_of_the_group() -> None:
    broker = make_broker("group.streams.num.standby.replicas=1")
    members = settled(StreamsMember(broker, "one"), StreamsMember(broker, "two"))
    assert [len(member.owned.standby) for member in members] == [1, 1]
    assert not members[0].owned.standby & members[0].owned.active


def test_the_first_assignment_waits_for_more_members() -> None:
    broker = broker_with_topic("group.streams.assignment.interval.ms=0", partitions=2)
    one, two = stateless_member(broker, "one"), stateless_member(broker, "two")
    delayed = {Status.ASSIGNMENT_DELAYED: "Assignment delayed due to the configured initial rebalance delay."}
    assert statuses(one.join()) == delayed
    assert (one.epoch, one.owned) == (1, Tasks())
    broker.advance(2_999)
    assert statuses(two.join()) == delayed
    broker.advance(1)
    assert [len(tasks_of(member.heartbeat()).active) for member in (one, two)] == [1, 1]  # type: ignore[union-attr]
    assert one.epoch == two.epoch == streams_group(broker).group_epoch


def test_the_delay_ends_without_members() -> None:
    broker = broker_with_topic(partitions=2)
    member = joined(stateless_member(broker))
    member.leave()
    broker.advance(3_000)
    assert streams_group(broker).state is StreamsState.EMPTY
    assert statuses(member.join()).keys() == {Status.ASSIGNMENT_DELAYED}


def test_assignments_have_a_minimum_interval() -> None:
    overrides = ("group.streams.initial.rebalance.delay.ms=0", "group.streams.assignment.interval.ms=1000")
    broker = broker_with_topic(*overrides, partitions=2)
    one, two = stateless_member(broker, "one"), stateless_member(broker, "two")
    assert one.join().status == []
    detail = "Assignment delayed due to the configured assignment interval."
    assert statuses(two.join()) == {Status.ASSIGNMENT_DELAYED: detail}
    assert statuses(one.heartbeat()) == {Status.ASSIGNMENT_DELAYED: detail}
    broker.advance(1_000)
    assert one.heartbeat().status == []
    converge(one, two)
    assert [len(member.owned.active) for member in (one, two)] == [1, 1]


def test_changed_configs_of_a_group_rebalance_it(broker: VirtualBroker) -> None:
    (member,) = settled(StreamsMember(broker))
    epoch = member.epoch
    broker.broker.cluster.group_configs.configure("group", {"streams.num.standby.replicas": "1"})
    assert member.heartbeat().member_epoch == epoch + 1
    assert member.heartbeat().member_epoch == epoch + 1


# -- sessions and leaving ----------------------------------------------------------------------------------------------


def test_a_silent_member_is_removed(broker: VirtualBroker) -> None:
    member = joined(StreamsMember(broker))
    broker.advance(SESSION_MS - 1)
    member.heartbeat()
    broker.advance(SESSION_MS - 1)
    assert member.heartbeat().error_code == 0
    broker.advance(SESSION_MS)
    assert streams_group(broker).state is StreamsState.EMPTY
    assert member.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_last_member_leaves_an_assignment_epoch_without_time(broker: VirtualBroker) -> None:
    member = joined(StreamsMember(broker))
    response = member.leave()
    assert (response.member_epoch, response.status) == (-1, [])
    group = streams_group(broker)
    assert (group.assignment_epoch, group.assignment_timestamp_ms) == (group.group_epoch, 0)


def test_a_static_member_returns_to_its_tasks(broker: VirtualBroker) -> None:
    one = joined(stateless_member(broker, "one", instance_id="i", process_id="p"))
    assert one.leave(-2).member_epoch == -2
    assert streams_group(broker).state is StreamsState.RECONCILING
    broker.advance(SESSION_MS - 1)
    two = stateless_member(broker, "two", instance_id="i", process_id="p")
    epoch = streams_group(broker).group_epoch
    response = two.join()
    assert tasks_of(response) == Tasks(tasks(0, 1))
    assert streams_group(broker).group_epoch == response.member_epoch == epoch, "without a rebalance"
    assert list(streams_group(broker).members) == ["two"]


def test_a_static_member_that_is_away_does_not_have_to_revoke_tasks(broker: VirtualBroker) -> None:
    one = joined(stateless_member(broker, "one", instance_id="i", process_id="p"), rebalance_timeout_ms=1_000)
    joined(stateless_member(broker, "two", process_id="q"))
    one.heartbeat()
    assert streams_group(broker).members["one"].state is MemberState.UNREVOKED_TASKS
    one.leave(-2)
    broker.advance(1_000)
    assert "one" in streams_group(broker).members


def test_a_static_member_without_its_instance_id_starts_a_rebalance_when_it_changes(broker: VirtualBroker) -> None:
    member = joined(stateless_member(broker, "one", instance_id="i"))
    epoch = streams_group(broker).group_epoch
    for instance_id, later in (("i", 0), (None, 1)):
        member.heartbeat(instance_id=instance_id, rebalance_timeout_ms=7_000 + later)
        assert streams_group(broker).group_epoch == epoch + later


# -- other fields ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaves", [False, True])
def test_a_member_shuts_down_the_application(broker: VirtualBroker, leaves: bool) -> None:
    one, two = joined(StreamsMember(broker, "one")), joined(StreamsMember(broker, "two"))
    detail = "Streams group member one encountered a fatal error and requested a shutdown for the entire application."
    if leaves:
        one.leave(shutdown_application=True)
    else:
        assert statuses(one.heartbeat(shutdown_application=True))[Status.SHUTDOWN_APPLICATION] == detail
        two.heartbeat(shutdown_application=True)
        one.leave()
    assert statuses(two.heartbeat())[Status.SHUTDOWN_APPLICATION] == detail
    two.leave()
    assert Status.SHUTDOWN_APPLICATION not in statuses(two.join()), "a new start of the application"


def test_settings_in_responses() -> None:
    broker = make_broker("group.streams.task.offset.interval.ms=20000", "group.streams.acceptable.recovery.lag=7")
    member = StreamsMember(broker)
    response = member.join()
    assert (response.heartbeat_interval_ms, response.task_offset_interval_ms) == (5_000, 20_000)
    assert response.acceptable_recovery_lag == 7
    assert member.heartbeat(version=0).acceptable_recovery_lag_legacy == 0


def test_required_client_tags() -> None:
    broker = make_broker("group.streams.rack.aware.assignment.tags=zone,cluster")
    member = StreamsMember(broker)
    detail = (
        "Missing required client tags for rack-aware standby assignment: [cluster]. Configure them via "
        "'client.tag.<tagKey>' in your Streams config."
    )
    response = member.join(client_tags=[KeyValue(key="zone", value="a")])
    assert statuses(response)[Status.MISSING_CLIENT_TAGS] == detail
    assert Status.MISSING_CLIENT_TAGS in statuses(member.heartbeat())
    assert Status.MISSING_CLIENT_TAGS not in statuses(member.heartbeat(version=0))


def test_repeated_client_tag_is_an_internal_error(broker: VirtualBroker) -> None:
    tags = [KeyValue(key="zone", value="a"), KeyValue(key="zone", value="b")]
    response = StreamsMember(broker).join(client_tags=tags)
    assert (response.error_code, response.error_message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)
    assert "group" not in broker.broker.groups.groups


def test_partitions_by_endpoint(broker: VirtualBroker) -> None:
    one = joined(StreamsMember(broker, "one"), user_endpoint=Endpoint(host="h", port=1))
    two = joined(StreamsMember(broker, "two"))
    converge(one, two)
    response = two.heartbeat(endpoint_information_epoch=-1)
    [entry] = response.partitions_by_user_endpoint
    assert (entry.user_endpoint.host, entry.user_endpoint.port) == ("h", 1)
    topics = {"0": ["t"], "1": ["words"]}
    expected = {(topic, index) for name, index in one.owned.active for topic in topics[name]}
    assert {(one.topic, index) for one in entry.active_partitions for index in one.partitions} == expected
    assert entry.standby_partitions == []
    assert two.heartbeat().partitions_by_user_endpoint is None, "the same epoch"
    epoch = two.endpoint_epoch
    one.join()
    assert two.heartbeat().endpoint_information_epoch == epoch + 1
    assert two.heartbeat(endpoint_information_epoch=-1).partitions_by_user_endpoint == []


def test_offsets_are_kept_until_they_are_reported_again(broker: VirtualBroker) -> None:
    member = joined(StreamsMember(broker), task_offsets=[TaskOffset(subtopology_id="1", partition=0, offset=5)])
    member.heartbeat(task_end_offsets=[TaskOffset(subtopology_id="1", partition=0, offset=9)])
    assert streams_group(broker).offsets_of("member") == ({("1", 0): 5}, {("1", 0): 9})
    member.heartbeat(task_offsets=[])
    assert streams_group(broker).offsets_of("member") == ({}, {("1", 0): 9})


# -- loading -----------------------------------------------------------------------------------------------------------


def test_a_loaded_group_continues(broker: VirtualBroker) -> None:
    one = StreamsMember(broker, "one")
    two = StreamsMember(broker, "two", instance_id="i")
    one.join(client_tags=[KeyValue(key="zone", value="a")], rack_id="r", user_endpoint=Endpoint(host="h", port=1))
    two.join()
    converge(one, two)
    three = joined(StreamsMember(broker, "three"))
    one.heartbeat()
    before = streams_group(broker)
    reload_groups(broker)
    after = streams_group(broker)
    assert after is not before
    assert after.topology == before.topology
    assert after.target == before.target
    assert dict(after.members) == dict(before.members)
    assert after.static_members == before.static_members
    for name in ("group_epoch", "assignment_epoch", "assignment_timestamp_ms", "metadata_hash", "state",
                 "validated_topology_epoch", "assignment_configs"):  # fmt: skip
        assert getattr(after, name) == getattr(before, name), name
    tasks_before = (one.owned, two.owned)
    converge(one, two, three)
    assert after.state is StreamsState.STABLE
    assert after.group_epoch == before.group_epoch
    assert sum(len(member.owned.active) for member in (one, two, three)) == 4
    assert all(mine.active <= old.active for mine, old in zip((one.owned, two.owned), tasks_before, strict=True))


def test_deadlines_restart_after_loading(broker: VirtualBroker) -> None:
    one = joined(stateless_member(broker, "one"), rebalance_timeout_ms=10_000)
    joined(stateless_member(broker, "two"))
    one.clings = True
    one.heartbeat()
    reload_groups(broker)
    broker.advance(10_000)
    assert one.heartbeat().error_code == ErrorCode.UNKNOWN_MEMBER_ID
    broker.advance(SESSION_MS)
    assert streams_group(broker).state is StreamsState.EMPTY


def test_heartbeats_of_version_0_and_1_differ_only_in_added_fields(broker: VirtualBroker) -> None:
    member = StreamsMember(broker)
    assert member.join(version=0).error_code == 0
    assert member.client.call(StreamsGroupHeartbeatRequest(group_id="group", member_id="member", member_epoch=2), 0)
