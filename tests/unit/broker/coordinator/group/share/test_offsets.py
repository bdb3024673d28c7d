"""Describing, altering and deleting start offsets of share groups, deleting groups, and what survives a reload."""

from typing import Any

import pytest

from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog
from sluice.broker.coordinator.group.share.state_partitions import StatePartitions
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import GROUP_METADATA_TOPIC
from sluice.protocol.errors import ErrorCode
from tests.support.coordinators import move_leader, pictured, reload_groups
from tests.support.group_members import converge, joined, settled
from tests.support.groups import fetch_request
from tests.support.messages import request
from tests.support.records import produce
from tests.support.share_groups import AT_ONCE, MemoryPersister, ShareMember, share_group
from tests.support.virtual_broker import Client, broker_with_topic

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
NO_ERROR = ErrorCode.NONE


class Stage:
    """A broker with topic `t` of two partitions, share state in memory, and an admin client."""

    def __init__(self) -> None:
        self.broker = broker_with_topic(AT_ONCE, "offsets.retention.minutes=1", partitions=2)
        self.persister = MemoryPersister()
        vars(self.broker.broker)["share_persister"] = self.persister
        self.client: Client = self.broker.client()

    def emptied(self) -> "Stage":
        """Let a member use the group until its partitions are initialized, and leave."""
        (member,) = settled(ShareMember(self.broker))
        member.leave()
        return self

    def describe(self, topics: dict[str, list[int]] | None = None) -> Any:
        """Return (partition, start offset, lag, error) by topic."""
        listed = [{"topic_name": name, "partitions": indexes} for name, indexes in (topics or {}).items()]
        group = {"group_id": "group", "topics": None if topics is None else listed}
        [found] = self.client.call(request("DescribeShareGroupOffsets", groups=[group]), 1).groups
        assert not found.error_code, found
        return {
            topic.topic_name: [
                (one.partition_index, one.start_offset, one.lag, one.error_code) for one in topic.partitions
            ]
            for topic in found.topics
        }

    def alter(self, topics: dict[str, dict[int, int]], group_id: str = "group") -> Any:
        altered = [
            {
                "topic_name": name,
                "partitions": [{"partition_index": index, "start_offset": offset} for index, offset in offsets.items()],
            }
            for name, offsets in topics.items()
        ]
        return self.client.call(request("AlterShareGroupOffsets", group_id=group_id, topics=altered), 0)

    def delete_offsets(self, *topics: str, group_id: str = "group") -> Any:
        named = [{"topic_name": topic} for topic in topics]
        return self.client.call(request("DeleteShareGroupOffsets", group_id=group_id, topics=named), 0)

    def delete_group(self) -> ErrorCode:
        [result] = self.client.call(request("DeleteGroups", groups_names=["group"]), 2).results
        return ErrorCode(result.error_code)

    def describe_group(self, group_id: str = "group") -> Any:
        [group] = self.client.call(request("ShareGroupDescribe", group_ids=[group_id]), 1).groups
        return group


@pytest.fixture
def stage() -> Stage:
    return Stage()


# -- describing --------------------------------------------------------------------------------------------------------


def test_lag_counts_records_after_the_start_without_completed_ones(stage: Stage) -> None:
    stage.emptied()
    for _ in range(5):
        stage.client.call(produce(9), 9)
    assert stage.describe() == {"t": [(0, -1, -1, NO_ERROR), (1, -1, -1, NO_ERROR)]}
    for key, state in stage.persister.states.items():
        stage.persister.states[key] = state._replace(start_offset=2, delivery_complete_count=1)
    assert stage.describe() == {"t": [(0, 2, 2, NO_ERROR), (1, 2, -3, NO_ERROR)]}
    described = stage.describe({"t": [0], "unknown": [7]})
    assert described == {"t": [(0, 2, 2, NO_ERROR)], "unknown": [(7, -1, -1, NO_ERROR)]}


def test_lag_after_the_lowest_start_wraps_as_in_java(stage: Stage) -> None:
    stage.emptied()
    stage.alter({"t": {0: -(2**63)}})
    stage.client.call(produce(9), 9)
    assert stage.describe({"t": [0]}) == {"t": [(0, -(2**63), 1 - 2**63, NO_ERROR)]}


UNKNOWN_OFFSETS = {
    "a partition of an unknown group": ({"t": [0]}, {"t": [(0, -1, -1, NO_ERROR)]}),
    "no topics": ({}, {}),
    "all topics of an unknown group": (None, {}),
}


@pytest.mark.parametrize(("topics", "expected"), UNKNOWN_OFFSETS.values(), ids=UNKNOWN_OFFSETS)
def test_unknown_offsets_are_described_as_missing(
    stage: Stage, topics: dict[str, list[int]] | None, expected: dict[str, list[tuple[int, int, int, int]]]
) -> None:
    assert stage.describe(topics) == expected


def test_topic_that_is_created_during_the_read_is_described_as_missing(stage: Stage) -> None:
    stage.emptied()
    read = stage.persister.read_summary

    def creating(*arguments: Any) -> None:
        stage.broker.cluster.create(NewTopic("new", 1, 1))
        read(*arguments)

    vars(stage.persister)["read_summary"] = creating
    missing = [(0, -1, -1, NO_ERROR)]
    assert stage.describe({"t": [0], "new": [0]}) == {"t": missing, "new": missing}


def test_failed_read_is_described_as_missing(stage: Stage) -> None:
    stage.emptied().persister.fails[1] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.describe()["t"][1] == (1, -1, -1, NO_ERROR)


# -- altering ----------------------------------------------------------------------------------------------------------


def test_altering_sets_offsets_of_existing_partitions_and_creates_the_group(stage: Stage) -> None:
    response = stage.alter({"t": {0: 5, 7: 1}, "unknown": {0: 1}})
    assert not response.error_code
    assert [
        (topic.topic_name, [(one.partition_index, one.error_code) for one in topic.partitions])
        for topic in response.responses
    ] == [("unknown", [(0, UNKNOWN)]), ("t", [(0, NO_ERROR), (7, UNKNOWN)])]
    assert stage.describe() == {"t": [(0, 5, -5, NO_ERROR)]}
    assert stage.persister.requests == [("initialize", "group", 1, [{0: 5}])]
    assert stage.describe_group().group_state == "Empty"


def test_repeated_topic_of_an_alteration_is_returned_once(stage: Stage) -> None:
    topics = [
        {"topic_name": name, "partitions": [{"partition_index": one, "start_offset": 5} for one in indexes]}
        for name, indexes in (("t", [0]), ("nowhere", [0]), ("t", [1]), ("nowhere", [1]), ("nothing", []))
    ]
    response = stage.client.call(request("AlterShareGroupOffsets", group_id="group", topics=topics), 0)
    assert [
        (topic.topic_name, [(one.partition_index, one.error_code) for one in topic.partitions])
        for topic in response.responses
    ] == [("nowhere", [(0, UNKNOWN), (1, UNKNOWN)]), ("t", [(0, 0), (1, 0)])]
    found = stage.describe({"t": [0, 1]})["t"]
    assert [start_offset for _, start_offset, _, _ in found] == [5, 5]


def test_failed_alteration_is_reported_by_partition(stage: Stage) -> None:
    stage.persister.fails[1] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    [topic] = stage.alter({"t": {0: 5, 1: 6}}).responses
    assert [one.error_code for one in topic.partitions] == [NO_ERROR, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert stage.describe() == {}


@pytest.mark.parametrize("request_", ["alter", "delete_offsets", "delete_group"])
def test_group_with_members_cannot_be_changed(stage: Stage, request_: str) -> None:
    ShareMember(stage.broker).join()
    calls = {
        "alter": lambda: stage.alter({"t": {0: 0}}).error_code,
        "delete_offsets": lambda: stage.delete_offsets("t").error_code,
        "delete_group": stage.delete_group,
    }
    assert calls[request_]() == ErrorCode.NON_EMPTY_GROUP


INVALID_GROUP_IDS = {
    "no group id": ("", ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_GROUP_ID),
    "missing group": ("missing", NO_ERROR, ErrorCode.GROUP_ID_NOT_FOUND),
}


@pytest.mark.parametrize(("group_id", "alters", "deletes"), INVALID_GROUP_IDS.values(), ids=INVALID_GROUP_IDS)
def test_invalid_group_id_is_rejected(stage: Stage, group_id: str, alters: ErrorCode, deletes: ErrorCode) -> None:
    assert stage.alter({}, group_id).error_code == alters
    assert stage.delete_offsets("t", group_id=group_id).error_code == deletes


# -- deleting ----------------------------------------------------------------------------------------------------------


def test_deleting_offsets_removes_the_state_of_topics(stage: Stage) -> None:
    stage.broker.topic("other")
    responses = stage.emptied().delete_offsets("t", "other", "unknown").responses
    assert [(topic.topic_name, topic.error_code, topic.error_message) for topic in responses] == [
        ("t", NO_ERROR, None),
        ("other", UNKNOWN, "There is no offset information to delete."),
        ("unknown", UNKNOWN, UNKNOWN.message),
    ]
    assert stage.persister.states == {}
    assert share_group(stage.broker).partitions == StatePartitions()


def test_deletion_of_offsets_that_failed_can_be_repeated(stage: Stage) -> None:
    stage.emptied().persister.fails[1] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    [topic] = stage.delete_offsets("t").responses
    assert topic.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.persister.fails.clear()
    [topic] = stage.delete_offsets("t").responses
    assert topic.error_code == NO_ERROR
    assert stage.persister.states == {}


def test_deleting_a_group_deletes_its_state_first(stage: Stage) -> None:
    stage.emptied().persister.fails[0] = ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.delete_group() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.describe_group().group_state == "Empty"
    stage.persister.fails.clear()
    assert stage.delete_group() == NO_ERROR
    assert stage.persister.states == {}
    gone = stage.describe_group()
    assert (gone.error_code, gone.error_message) == (ErrorCode.GROUP_ID_NOT_FOUND, "Group group not found.")
    assert stage.delete_group() == ErrorCode.GROUP_ID_NOT_FOUND


def test_deletion_of_a_group_waits_for_the_share_coordinator(stage: Stage) -> None:
    stage.emptied().persister.holds = True
    stage.client.send(request("DeleteGroups", groups_names=["group"]), 2)
    assert not stage.client.responses
    stage.persister.release()
    stage.broker.broker.actions.complete()
    assert stage.client.response().message.results[0].error_code == NO_ERROR


# -- groups ------------------------------------------------------------------------------------------------------------


def test_described_group_has_epochs_members_and_partitions(stage: Stage) -> None:
    member = joined(ShareMember(stage.broker), rack_id="r")
    converge(member)
    group = stage.describe_group()
    assert (group.group_state, group.assignor_name) == ("Stable", "simple")
    assert (group.group_epoch, group.assignment_epoch) == (3, 3)
    [described] = group.members
    [topic] = described.assignment.topic_partitions
    assert (described.member_id, described.rack_id, described.member_epoch) == ("member", "r", 3)
    assert (described.client_host, described.subscribed_topic_names) == ("/127.0.0.1", ["t"])
    assert (topic.topic_name, topic.partitions) == ("t", [0, 1])


def test_share_groups_are_listed_by_type_and_state(stage: Stage) -> None:
    stage.emptied()
    listed = {
        (kind, state): [
            (group.group_id, group.protocol_type, group.group_type, group.group_state)
            for group in stage.client.call(request("ListGroups", types_filter=[kind], states_filter=[state]), 5).groups
        ]
        for kind in ("Share", "consumer")
        for state in ("empty", "stable")
    }
    found = [("group", "share", "share", "Empty")]
    assert listed == {("Share", "empty"): found} | {key: [] for key in [*listed][1:]}


def test_share_group_has_no_committed_offsets(stage: Stage) -> None:
    (group,) = stage.emptied().client.call(fetch_request(), 9).groups
    offsets = [one.committed_offset for topic in group.topics for one in topic.partitions]
    assert (group.error_code, set(offsets)) == (ErrorCode.NONE, {-1})


def test_share_groups_do_not_expire(stage: Stage) -> None:
    stage.emptied().broker.advance(20 * 60_000)
    assert share_group(stage.broker).state_name == "Empty"


def test_group_is_the_same_after_its_coordinator_reloads(stage: Stage) -> None:
    member = joined(ShareMember(stage.broker), rack_id="r")
    converge(member)
    before = pictured(stage.broker)
    reload_groups(stage.broker)
    assert pictured(stage.broker) == before
    stage.broker.advance(44_999)
    assert member.heartbeat().error_code == NO_ERROR
    stage.broker.advance(45_000)
    assert share_group(stage.broker).state_name == "Empty"


def test_another_broker_continues_a_group_after_a_move() -> None:
    broker = broker_with_topic("sluice.brokers=3", AT_ONCE, partitions=3)
    partition = CoordinatorLog(broker.broker, GROUP_METADATA_TOPIC).partition_of("group")
    (member,) = settled(ShareMember(broker, client=broker.client(node_id=partition.leader)))
    move_leader(broker, partition, partition.leader % 3 + 1)
    assert member.heartbeat().error_code == ErrorCode.NOT_COORDINATOR
    member.client = broker.client(node_id=partition.leader)
    assert member.heartbeat().member_epoch == 3
    assert member.heartbeat(subscribed_topic_names=["t"]).assignment is not None
    assert member.partitions == {"t": [0, 1, 2]}
