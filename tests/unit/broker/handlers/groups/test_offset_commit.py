"""OffsetCommit: who may commit what."""

from typing import Any

import pytest

from sluice.protocol.apis.offset_commit import OffsetCommitRequestPartition
from sluice.protocol.errors import ErrorCode
from tests.support.groups import (
    Member,
    commit_code,
    commit_request,
    fetch_request,
    fetched,
    settled_group,
    stable_group,
)
from tests.support.virtual_broker import VirtualBroker

VERSIONS = range(11)
MEMBER: dict[str, Any] = {"member_id": "member", "generation_id_or_member_epoch": 1}


@pytest.mark.parametrize("version", VERSIONS)
def test_whoever_has_no_group_to_be_in_may_commit(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic(partitions=3)
    client = broker.client()
    response = client.ask(commit_request(5, partition=2, topic_id=topic.topic_id), version)
    assert commit_code(response) == ErrorCode.NONE
    [answer] = response.topics
    assert (answer.name, answer.topic_id) == (("t", bytes(16)) if version < 10 else ("", topic.topic_id))
    assert fetched(client.ask(fetch_request(2, 0), 9)) == {("t", 2): (5, 0), ("t", 0): (-1, 0)}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"topic": "u"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a topic that is not there"),
        pytest.param({"partition": 1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a partition that is not there"),
        pytest.param({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="a partition that cannot be"),
        pytest.param({"committed_metadata": "x" * 4096}, ErrorCode.NONE, id="the longest metadata"),
        pytest.param({"committed_metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE, id="longer metadata"),
        pytest.param({"committed_metadata": None}, ErrorCode.NONE, id="null metadata"),
    ],
)
def test_every_partition_has_its_own_answer(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    topic_id = topic.topic_id if fields.get("topic") is None else bytes(range(16))
    if version >= 10 and "topic" in fields:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    request = commit_request(**({"topic_id": topic_id} | fields))
    assert commit_code(broker.client().ask(request, version)) == code


@pytest.mark.parametrize("version", range(1, 11))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, ErrorCode.NONE, id="a member"),
        pytest.param({"member_id": "who"}, ErrorCode.UNKNOWN_MEMBER_ID, id="an id nobody has"),
        pytest.param({"generation_id_or_member_epoch": 0}, ErrorCode.ILLEGAL_GENERATION, id="the generation before"),
        pytest.param({"generation_id_or_member_epoch": -1}, ErrorCode.ILLEGAL_GENERATION, id="no generation"),
        pytest.param(
            {"member_id": "", "generation_id_or_member_epoch": -1}, ErrorCode.UNKNOWN_MEMBER_ID, id="a stranger"
        ),
    ],
)
def test_into_a_group_with_members_only_they_may_commit(version: int, fields: dict[str, Any], code: ErrorCode) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    stable_group(broker)
    request = commit_request(topic_id=topic.topic_id, **(MEMBER | fields))
    assert commit_code(broker.client().ask(request, version)) == code


@pytest.mark.parametrize("version", range(1, 11))
def test_a_generation_of_a_group_that_is_not_there_is_wrong(version: int) -> None:
    broker = VirtualBroker()
    topic = broker.topic()
    request = commit_request(topic_id=topic.topic_id, **MEMBER)
    wanted = ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
    assert commit_code(broker.client().ask(request, version)) == wanted
    assert broker.broker.groups.groups == {}


def test_a_static_member_is_told_when_another_has_its_place() -> None:
    broker = VirtualBroker()
    broker.topic()
    (member,) = settled_group(broker, 1, instance_id="i")
    assert member.commit() == ErrorCode.NONE
    assert member.commit(member_id="i-another") == ErrorCode.FENCED_INSTANCE_ID


def test_commits_wait_for_assignments_but_not_for_members() -> None:
    broker = VirtualBroker()
    broker.topic()
    members = settled_group(broker, 2)
    newcomer = Member(broker)
    newcomer.send_join()
    assert members[0].commit() == ErrorCode.NONE  # what it did in its generation, before it joins the next
    for member in members:
        member.send_join()
    for member in (*members, newcomer):
        member.joined()
    assert members[0].commit() == ErrorCode.REBALANCE_IN_PROGRESS
    assert members[0].commit(generation_id_or_member_epoch=1) == ErrorCode.ILLEGAL_GENERATION


def test_an_offset_may_go_back_and_keeps_what_was_said_with_it() -> None:
    broker = VirtualBroker()
    broker.topic()
    client = broker.client()
    client.ask(commit_request(9, committed_metadata="nine"), 9)
    client.ask(commit_request(5, committed_metadata="five", committed_leader_epoch=3), 9)
    [partition] = client.ask(fetch_request(), 9).groups[0].topics[0].partitions
    assert (partition.committed_offset, partition.metadata, partition.committed_leader_epoch) == (5, "five", 3)


def test_nothing_to_commit_makes_no_group() -> None:
    broker = VirtualBroker()
    broker.client().ask(commit_request(topic="u"), 9)
    assert broker.broker.groups_in_use is None


def test_commits_too_large_to_be_written_down_are_refused_as_a_whole() -> None:
    broker = VirtualBroker("offset.metadata.max.bytes=30000")
    broker.topic(partitions=40)
    client = broker.client()
    client.ask(commit_request(), 9)
    request = commit_request()
    request.topics[0].partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=8, committed_metadata="x" * 30_000)
        for index in range(40)  # together more than a batch may have
    ]
    response = client.ask(request, 9)
    assert {one.error_code for one in response.topics[0].partitions} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert fetched(client.ask(fetch_request(), 9)) == {("t", 0): (7, 0)}
