"""A member of a classic group, at a scripted coordinator in virtual time: request contents and error handling."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.consumer.group.assignors import ASSIGNORS
from sluice.client.consumer.group.consumer_protocol import (
    assignment_bytes,
    previous_assignment_bytes,
    read_assignment,
    read_subscription,
    subscription_bytes,
)
from sluice.client.consumer.group.heartbeat import Heartbeats
from sluice.client.consumer.group.membership import Generation, Joined, Membership, MembershipSettings
from sluice.client.errors import ApiException
from sluice.client.metadata.cluster import Cluster, Node, PartitionMetadata, TopicPartition
from sluice.protocol.apis.heartbeat import HeartbeatResponse
from sluice.protocol.apis.join_group import JoinGroupResponse, JoinGroupResponseMember
from sluice.protocol.apis.leave_group import LeaveGroupResponse
from sluice.protocol.apis.sync_group import SyncGroupResponse
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import ReceivedRequest, ScriptedResponse
from tests.support.consuming import gaps
from tests.support.group_network import GroupStage, Steps, group_stage

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
JOIN_BACKOFF_MS, INTERVAL_MS, SESSION_MS, POLL_MS = 100, 1000, 5000, 20_000


class Member:
    """A member subscribed to topic t. The coordinator accepts it as `m-1` in generation 1 with both partitions."""

    def __init__(self, stage: GroupStage, instance_id: str | None, assignor: str) -> None:
        self.stage = stage
        self.heartbeats = Heartbeats(INTERVAL_MS, SESSION_MS, POLL_MS, Steps())
        self.membership = Membership(
            MembershipSettings(SESSION_MS, POLL_MS, instance_id, (ASSIGNORS[assignor],), 2000, "b"),
            stage.coordinator,
            stage.subscriptions,
            stage.metadata,
            stage.client,
            self.heartbeats,
            StaticBackoff(JOIN_BACKOFF_MS),
        )
        stage.subscriptions.subscribe(["t"])
        stage.one.responses |= {
            "JoinGroup": lambda _: joined(),
            "SyncGroup": lambda _: SyncGroupResponse(assignment=assignment_bytes([P0, P1])),
            "Heartbeat": lambda _: HeartbeatResponse(),
            "LeaveGroup": lambda _: LeaveGroupResponse(),
        }

    async def join(self) -> Joined:
        self.heartbeats.polled(self.stage.client.clock.monotonic_ms())
        while (result := await self.membership.join()) is None:
            assert self.membership.has_no_generation
        return result

    async def beat(self, ms: float) -> None:
        """Send heartbeats for this time."""
        task = asyncio.ensure_future(self.membership.send_heartbeats(StaticBackoff(100)))
        await asyncio.sleep(ms / 1e3)
        task.cancel()
        await asyncio.wait([task])


@asynccontextmanager
async def new_member(
    instance_id: str | None = None, assignor: str = "range"
) -> AsyncIterator[tuple[GroupStage, Member]]:
    """Start a member that has not joined."""
    async with group_stage() as stage:
        yield stage, Member(stage, instance_id, assignor)


@asynccontextmanager
async def joined_member(instance_id: str | None = None) -> AsyncIterator[tuple[GroupStage, Member]]:
    """Start a member that has joined."""
    async with new_member(instance_id) as (stage, member):
        await member.join()
        yield stage, member


def place(stage: GroupStage, racks: dict[int, str]) -> None:
    """Place each partition of topic t on one broker in a rack."""
    others = {100 + ord(rack): Node(100 + ord(rack), "h", 1, rack) for rack in racks.values()}
    topics = {"t": {index: PartitionMetadata(replicas=(100 + ord(rack),)) for index, rack in racks.items()}}
    stage.metadata.cluster = Cluster({**stage.metadata.cluster.nodes, **others}, topics=topics)
    stage.metadata.update_version += 1


def joined(
    code: int = 0, *, leader: str = "m-0", members: tuple[JoinGroupResponseMember, ...] = (), protocol: str = "range"
) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        generation_id=-1 if code else 1,
        protocol_name=protocol,
        leader=leader,
        member_id="m-1",
        members=list(members),
    )


async def test_member_joins_and_receives_its_assignment() -> None:
    async with new_member() as (stage, member):
        assert member.membership.needs_to_join()
        assert await member.join() == Joined("range", [P0, P1], Generation(1, "m-1"))
        assert member.membership.generation == Generation(1, "m-1")
        assert not member.membership.needs_to_join()
        (request,) = stage.one.requests("JoinGroup")
        assert (request.message.session_timeout_ms, request.message.rebalance_timeout_ms) == (SESSION_MS, POLL_MS)
        (protocol,) = request.message.protocols
        wanted = read_subscription(protocol.metadata)
        assert (protocol.name, wanted.topics, wanted.rack_id) == ("range", ["t"], "b")
        (synced,) = stage.one.requests("SyncGroup")
        assert (synced.message.generation_id, synced.message.member_id, synced.message.assignments) == (1, "m-1", [])


async def test_leader_assigns_by_all_subscriptions() -> None:
    async with new_member() as (stage, member):
        wants = subscription_bytes({"t"}, (), -1)
        others = tuple(JoinGroupResponseMember(member_id=name, metadata=wants) for name in ("m-1", "m-2"))
        stage.one.responses["JoinGroup"] = lambda _: joined(leader="m-1", members=others)
        await member.join()
        (synced,) = stage.one.requests("SyncGroup")
        plan = {one.member_id: read_assignment(one.assignment) for one in synced.message.assignments}
        assert plan == {"m-1": [P0], "m-2": [P1]}


async def test_sticky_member_sends_its_previous_assignment() -> None:
    async with new_member(assignor="sticky") as (stage, member):
        had = subscription_bytes({"t"}, (), -1, user_data=previous_assignment_bytes([P0, P1], 1))
        members = tuple(JoinGroupResponseMember(member_id=name, metadata=had) for name in ("m-1", "m-2"))
        stage.one.responses["JoinGroup"] = lambda _: joined(protocol="sticky", leader="m-1", members=members[:1])
        await member.join()
        await member.join()
        sent = [read_subscription(one.message.protocols[0].metadata) for one in stage.one.requests("JoinGroup")]
        assert [one.user_data for one in sent] == [None, previous_assignment_bytes([P0, P1], 1)]
        assert [read_assignment(one.message.assignments[0].assignment) for one in stage.one.requests("SyncGroup")] == [
            [P0, P1],
            [P0, P1],
        ]


async def test_leader_with_a_rack_assigns_by_racks_and_rejoins_when_they_change() -> None:
    async with new_member() as (stage, member):
        wants = [subscription_bytes({"t"}, (), -1, rack) for rack in "ba"]
        others = tuple(JoinGroupResponseMember(member_id=f"m-{at}", metadata=want) for at, want in enumerate(wants, 1))
        stage.one.responses["JoinGroup"] = lambda _: joined(leader="m-1", members=others)
        await member.join()
        place(stage, {0: "a", 1: "b"})
        await member.join()
        synced = stage.one.requests("SyncGroup")[-1]
        plan = {one.member_id: read_assignment(one.assignment) for one in synced.message.assignments}
        assert plan == {"m-1": [P1], "m-2": [P0]}
        assert not member.membership.needs_to_join()
        place(stage, {0: "b", 1: "a"})
        assert member.membership.needs_to_join()


JOIN_ERRORS = [
    ("JoinGroup", ErrorCode.MEMBER_ID_REQUIRED, False, "m-1"),
    ("JoinGroup", ErrorCode.UNKNOWN_MEMBER_ID, False, ""),
    ("JoinGroup", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, True, ""),
    ("JoinGroup", ErrorCode.NOT_COORDINATOR, True, ""),
    ("SyncGroup", ErrorCode.REBALANCE_IN_PROGRESS, False, "m-1"),
    ("SyncGroup", ErrorCode.ILLEGAL_GENERATION, False, ""),
    ("SyncGroup", ErrorCode.UNKNOWN_MEMBER_ID, False, ""),
    ("SyncGroup", ErrorCode.COORDINATOR_NOT_AVAILABLE, True, "m-1"),
]


@pytest.mark.parametrize(("api", "code", "waits", "as_member"), JOIN_ERRORS)
async def test_retriable_join_error_rejoins(api: str, code: ErrorCode, waits: bool, as_member: str) -> None:
    async with new_member() as (stage, member):
        well = stage.one.responses[api]

        def once(request: ReceivedRequest) -> ScriptedResponse:
            if len(stage.one.requests(api)) > 1:
                return well(request)
            return joined(code) if api == "JoinGroup" else SyncGroupResponse(error_code=code)

        stage.one.responses[api] = once
        await member.join()
        first, second = stage.one.requests("JoinGroup")
        assert second.message.member_id == as_member
        waited_ms = second.at_ms - first.at_ms
        assert (JOIN_BACKOFF_MS <= waited_ms <= JOIN_BACKOFF_MS + 10) if waits else waited_ms < 5


async def test_fatal_join_error_is_raised() -> None:
    async with new_member() as (stage, member):
        stage.one.responses["JoinGroup"] = lambda _: joined(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        with pytest.raises(ApiException):
            await member.join()
        assert len(stage.one.requests("JoinGroup")) == 1


HEARTBEAT_ERRORS = [
    (ErrorCode.NONE, False, False),
    (ErrorCode.REBALANCE_IN_PROGRESS, True, False),
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, False, False),
    (ErrorCode.UNKNOWN_MEMBER_ID, True, True),
    (ErrorCode.ILLEGAL_GENERATION, True, True),
]


class TestHeartbeats:
    async def test_heartbeats_are_sent_every_interval_while_stable(self) -> None:
        async with joined_member() as (stage, member):
            await member.beat(5500)
            assert all(gap == pytest.approx(INTERVAL_MS, abs=2) for gap in gaps(stage.request_times_ms("Heartbeat")))
            assert len(stage.request_times_ms("Heartbeat")) == 5
            request = stage.one.requests("Heartbeat")[0].message
            assert (request.group_id, request.generation_id, request.member_id) == ("g", 1, "m-1")

    @pytest.mark.parametrize(("code", "rejoins", "out"), HEARTBEAT_ERRORS)
    async def test_heartbeat_errors_change_the_membership(self, code: ErrorCode, rejoins: bool, out: bool) -> None:
        async with joined_member() as (stage, member):
            stage.one.responses["Heartbeat"] = lambda _: HeartbeatResponse(error_code=code)
            await member.beat(1050)
            assert member.membership.needs_to_join() is rejoins
            assert member.membership.has_no_generation is out

    async def test_fatal_heartbeat_error_is_raised_to_the_application(self) -> None:
        async with joined_member() as (stage, member):
            refusal = HeartbeatResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
            stage.one.responses["Heartbeat"] = lambda _: refusal
            await member.beat(1050)
            with pytest.raises(ApiException):
                member.membership.needs_to_join()

    async def test_session_without_heartbeat_responses_looks_up_the_coordinator(self) -> None:
        async with joined_member() as (stage, member):
            stage.one.responses["Heartbeat"] = lambda _: HeartbeatResponse(
                error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            )
            await member.beat(SESSION_MS + 100)
            assert stage.request_times_ms("FindCoordinator")[:2] == [0, SESSION_MS]


@pytest.mark.parametrize(("instance_id", "leaves"), [(None, True), ("i", False)], ids=["dynamic", "static"])
async def test_closing_leaves_the_group_except_for_static_members(instance_id: str | None, leaves: bool) -> None:
    async with joined_member(instance_id) as (stage, member):
        await member.membership.leave("done", stage.deadline())
        assert len(stage.one.requests("LeaveGroup")) == int(leaves)
        if leaves:
            (identity,) = stage.one.requests("LeaveGroup")[0].message.members
            assert (identity.member_id, identity.reason) == ("m-1", "done")
        assert member.membership.generation == Generation(-1, "", instance_id)


async def test_commit_error_of_an_old_generation_is_ignored() -> None:
    async with joined_member() as (_, member):
        member.membership.rejected(Generation(0, "m-1"), ErrorCode.UNKNOWN_MEMBER_ID)
        assert not member.membership.needs_to_join()
        member.membership.rejected(member.membership.generation, ErrorCode.UNKNOWN_MEMBER_ID)
        assert member.membership.has_no_generation


async def test_changed_subscription_rejoins_the_group() -> None:
    async with joined_member() as (stage, member):
        stage.subscriptions.subscribe(["t", "u"])
        assert member.membership.needs_to_join()
