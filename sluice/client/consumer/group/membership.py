"""A consumer's membership in a classic group: joining, heartbeats, leaving.

Kafka's AbstractCoordinator, and the assignment part of ConsumerCoordinator.

A member has no generation, is joining, or is stable. To join, it sends JoinGroup, then SyncGroup; the leader assigns
partitions in between. Errors of these and of heartbeats:

    MEMBER_ID_REQUIRED                          join again immediately, with the returned id
    UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION       join again immediately as a new member; all partitions are lost
    REBALANCE_IN_PROGRESS                       join again immediately
    COORDINATOR_LOAD_IN_PROGRESS                join again after a constant `retry.backoff.ms`, as in Kafka
    NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE  the same, after a lookup of the coordinator
    others                                      are raised to the application

A separate task sends heartbeats while the member is stable; heartbeat.py has its timers. Only a poll joins, because
joins call listeners.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from typing import NamedTuple

from sluice.client.backoff import Backoff
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.subscription_state import SubscriptionState
from sluice.client.errors import KafkaException, RetriableException, error_name
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from sluice.protocol.apis.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from sluice.protocol.apis.leave_group import LeaveGroupRequest, MemberIdentity
from sluice.protocol.apis.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from sluice.protocol.consumer_protocol import PROTOCOL_TYPE
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from . import consumer_protocol
from .abstract_coordinator import MOVED, GroupCoordinator
from .assignors import Assignor
from .group_member import GroupMember, Racks
from .heartbeat import Heartbeats

log = logging.getLogger("sluice.client")

_LEAVE_GROUP, _FIRST_OF_MANY_TO_LEAVE = 13, 3
# The margin for a JoinGroup response, which can take the whole rebalance timeout.
_JOIN_SLACK_MS = 5000
_NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})
_JOIN_AGAIN = frozenset({*_NOT_A_MEMBER, ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.REBALANCE_IN_PROGRESS})


class Generation(NamedTuple):
    """A consumer's identity for the coordinator. Outside of a group: -1 and no member id."""

    id: int = -1
    member_id: str = ""
    instance_id: str | None = None


class Joined(NamedTuple):
    assignor: str
    partitions: list[TopicPartition]
    generation: Generation


class MembershipSettings(NamedTuple):
    session_timeout_ms: int
    rebalance_timeout_ms: int
    instance_id: str | None
    assignors: tuple[Assignor, ...]
    request_timeout_ms: int
    rack: str = ""


class _RejoinNeededError(KafkaException):
    """An error that requires an immediate rejoin."""


class Membership:
    def __init__(
        self,
        settings: MembershipSettings,
        coordinator: GroupCoordinator,
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        network: AsyncNetwork,
        heartbeats: Heartbeats,
        join_backoff: Backoff,
    ) -> None:
        self._settings = settings
        self._coordinator = coordinator
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._network = network
        self.heartbeats = heartbeats
        self._join_backoff = join_backoff
        self.generation = Generation(instance_id=settings.instance_id)
        self.is_stable = False
        self._rejoin_needed = True
        self._joined_topics: frozenset[str] = frozenset()
        self._assigned_for: dict[str, int] | None = None  # partition counts of the last assignment, on the leader
        self._assigned_racks: Racks = {}
        self._racks_version = -1
        self._previous: bytes | None = None  # the last assignment, for assignors that send it
        self._error: KafkaException | None = None

    # -- state ---------------------------------------------------------------------------------------------------------

    @property
    def has_no_generation(self) -> bool:
        return self.generation.id < 0 or not self.generation.member_id

    def needs_to_join(self) -> bool:
        """Return whether the next poll must join; raise a fatal error of a heartbeat."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        subscriptions = self._subscriptions
        if self._assigned_for is not None and self._have_partitions_changed(self._assigned_for):
            self.rejoin("partitions changed")
        if self.is_stable and self._joined_topics != subscriptions.topics:
            self.rejoin("the subscription changed")
        return self._rejoin_needed

    def rejoin(self, reason: str) -> None:
        if not self._rejoin_needed:
            log.info("rejoining", extra={"group": self._coordinator.group_id, "reason": reason})
        self._rejoin_needed = True

    def rejected(self, generation: Generation, code: int) -> None:
        """Handle a commit rejected because of its generation or a rebalance."""
        if generation != self.generation:
            return
        if code in _NOT_A_MEMBER:
            self._reset_generation(error_name(code))
        else:
            self.rejoin("a rebalance")

    async def join(self) -> Joined | None:
        """Join; return None if the group has removed this member, which loses its partitions before it joins again."""
        self.is_stable = False
        while True:
            try:
                return await self._join_once()
            except _RejoinNeededError as error:
                log.info("joining again", extra={"group": self._coordinator.group_id, "reason": str(error)})
                if not self.generation.member_id:
                    return None
            except RetriableException as error:
                log.info(
                    "joining again after a backoff", extra={"group": self._coordinator.group_id, "reason": str(error)}
                )
                await self._coordinator.pause(self._join_backoff.backoff(0))

    async def leave(self, reason: str, deadline_ms: float = inf) -> None:
        """Leave, unless the member is static. Errors are only logged."""
        generation = self.generation
        self._reset_generation(reason)
        if not generation.member_id or generation.instance_id is not None or self._coordinator.node is None:
            return
        try:
            await self._coordinator.send(self._leaving(generation, reason), deadline_ms)
        except KafkaException as error:
            log.info("leaving the group failed", extra={"group": self._coordinator.group_id, "error": str(error)})

    # -- heartbeats ----------------------------------------------------------------------------------------------------

    async def send_heartbeats(self, auto_retry: Backoff) -> None:
        clock = self._network.clock
        while True:
            if not self.is_stable:
                await self._network.wait()
                continue
            now_ms = clock.monotonic_ms()
            heartbeats = self.heartbeats
            if self._coordinator.node is None:
                await self._find_coordinator_again(auto_retry)
            elif heartbeats.is_session_over(now_ms):
                self._coordinator.forget("no heartbeat response for session.timeout.ms")
                heartbeats.begin(now_ms)
            elif heartbeats.is_poll_overdue(now_ms):
                log.warning("max.poll.interval.ms exceeded: leaving", extra={"group": self._coordinator.group_id})
                await self.leave("max.poll.interval.ms is over")
            elif not heartbeats.is_in_flight and now_ms >= heartbeats.due_ms:
                await self._network.wait(self._send_heartbeat(now_ms))
            else:
                await self._network.wait(heartbeats.next_ms())

    async def _find_coordinator_again(self, auto_retry: Backoff) -> None:
        try:
            await self._coordinator.ensure()
        except RetriableException:
            await self._coordinator.pause(auto_retry.backoff(0))
        except KafkaException as error:
            self._network.raise_failure()
            self._error = error
            self._reset_generation(str(error))
            self._network.wakeup()

    def _send_heartbeat(self, now_ms: float) -> float:
        node, client, generation = self._coordinator.node, self._network.client, self.generation
        assert node is not None
        if not client.ready(node, now_ms):
            if client.connection_failed(node.id):
                self._coordinator.forget("the connection was lost")
                return now_ms
            return min(self.heartbeats.session_expires_ms, now_ms + client.poll_delay_ms(node.id, now_ms))
        request = request_of(
            HeartbeatRequest(
                group_id=self._coordinator.group_id,
                generation_id=generation.id,
                member_id=generation.member_id,
                group_instance_id=generation.instance_id,
            )
        )
        self.heartbeats.sent(now_ms)
        client.send(node.id, request, partial(self._handle_heartbeat_response, generation), now_ms)
        return self.heartbeats.next_ms()

    def _handle_heartbeat_response(self, generation: Generation, exchange: Exchange) -> None:
        now_ms, response = exchange.received_ms, exchange.response
        if generation != self.generation:
            return
        code = response.error_code if isinstance(response, HeartbeatResponse) else ErrorCode.NETWORK_EXCEPTION
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self.heartbeats.succeeded(now_ms)
            if code:
                self.rejoin("a rebalance")
            return
        self.heartbeats.failed(now_ms)
        if code in _NOT_A_MEMBER:
            self._reset_generation(f"a heartbeat failed with error {code}")
        elif code in MOVED or response is None:
            self._coordinator.forget(f"a heartbeat failed with error {code}")
        elif code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._fatal(code)

    def _fatal(self, code: int) -> None:
        try:
            self._coordinator.check(code)
        except KafkaException as error:
            self._error = error
            self._reset_generation(str(error))

    def _reset_generation(self, reason: str) -> None:
        self.generation = Generation(instance_id=self._settings.instance_id)
        self.is_stable = False
        self._assigned_for = None
        self.rejoin(reason)

    # -- joining -------------------------------------------------------------------------------------------------------

    async def _join_once(self) -> Joined:
        await self._coordinator.ensure()
        topics = self._subscriptions.topics
        response = await self._coordinator.send(self._joining(topics))
        assert isinstance(response, JoinGroupResponse), type(response).__name__
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.generation = self.generation._replace(member_id=response.member_id)
        self._check(response.error_code)
        self.generation = Generation(response.generation_id, response.member_id, self._settings.instance_id)
        protocol = response.protocol_name or ""
        self._assigned_for = None
        assignments: list[SyncGroupRequestAssignment] = []
        if response.leader == response.member_id:
            assignments = await self._assign(response, protocol)
        synced = await self._coordinator.send(self._syncing(protocol, assignments))
        assert isinstance(synced, SyncGroupResponse), type(synced).__name__
        self._check(synced.error_code)
        self._joined_topics = topics
        self._rejoin_needed = False
        self.is_stable = True
        self.heartbeats.begin(self._network.clock.monotonic_ms())
        self._network.wakeup()
        assigned = consumer_protocol.read_assignment(bytes(synced.assignment))
        self._previous = consumer_protocol.previous_assignment_bytes(assigned, self.generation.id)
        return Joined(protocol, assigned, self.generation)

    def _check(self, code: int) -> None:
        if code in _NOT_A_MEMBER:
            self.generation = Generation(instance_id=self._settings.instance_id)
        if code in _JOIN_AGAIN:
            raise _RejoinNeededError(error_name(code))
        self._coordinator.check(code)

    def _joining(self, topics: frozenset[str]) -> Request:
        settings, owned = self._settings, self._subscriptions.assigned

        def metadata(assignor: Assignor) -> bytes:
            previous = self._previous if assignor.sends_previous else None
            return consumer_protocol.subscription_bytes(topics, owned, self.generation.id, settings.rack, previous)

        message = JoinGroupRequest(
            group_id=self._coordinator.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=self.generation.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[JoinGroupRequestProtocol(name=one.name, metadata=metadata(one)) for one in settings.assignors],
        )
        waits_ms = max(settings.request_timeout_ms, settings.rebalance_timeout_ms + _JOIN_SLACK_MS)
        return request_of(message, timeout_ms=waits_ms)

    async def _assign(self, response: JoinGroupResponse, protocol: str) -> list[SyncGroupRequestAssignment]:
        assignor = next(one for one in self._settings.assignors if one.name == protocol)
        members = [_member(one, assignor) for one in response.members]
        topics = frozenset[str]().union(*(member.topics for member in members))
        prepared = {} if assignor.prepare is None else await assignor.prepare(members)
        if self._subscriptions.group_subscribes(topics) or self._partition_counts(prepared) != prepared:
            await self._network.metadata_after(self._metadata.request_update_for_new_topics(), inf)
        self._assigned_for = self._partition_counts(topics)
        self._assigned_racks = self._racks(topics) if self._settings.rack else {}
        if response.skip_assignment:
            return []
        counts = {topic: count for topic, count in self._assigned_for.items() if count} | dict(prepared)
        racks = self._racks(counts) if any(member.rack for member in members) else {}
        plan = assignor.assign(members, counts, racks)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=consumer_protocol.assignment_bytes(partitions))
            for member, partitions in plan.items()
        ]

    def _syncing(self, protocol: str, assignments: list[SyncGroupRequestAssignment]) -> Request:
        generation = self.generation
        return request_of(
            SyncGroupRequest(
                group_id=self._coordinator.group_id,
                generation_id=generation.id,
                member_id=generation.member_id,
                group_instance_id=generation.instance_id,
                protocol_type=PROTOCOL_TYPE,
                protocol_name=protocol,
                assignments=assignments,
            ),
            timeout_ms=max(self._settings.request_timeout_ms, self._settings.rebalance_timeout_ms + _JOIN_SLACK_MS),
        )

    def _leaving(self, generation: Generation, reason: str) -> Request:
        group_id = self._coordinator.group_id

        def build(version: int) -> Message:
            if version < _FIRST_OF_MANY_TO_LEAVE:
                return LeaveGroupRequest(group_id=group_id, member_id=generation.member_id)
            return LeaveGroupRequest(
                group_id=group_id, members=[MemberIdentity(member_id=generation.member_id, reason=reason)]
            )

        return Request(_LEAVE_GROUP, build)

    def _have_partitions_changed(self, counts: Mapping[str, int]) -> bool:
        if counts != self._partition_counts(counts):
            return True
        if not self._assigned_racks or self._racks_version == self._metadata.update_version:
            return False
        self._racks_version = self._metadata.update_version
        return self._assigned_racks != self._racks(counts)

    def _racks(self, topics: Iterable[str]) -> Racks:
        cluster = self._metadata.cluster
        racks = {node.id: node.rack for node in cluster.nodes.values() if node.rack is not None}
        return {
            TopicPartition(topic, index): {racks[one] for one in partition.replicas if one in racks}
            for topic in topics
            for index, partition in cluster.topics.get(topic, {}).items()
        }

    def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        known = self._metadata.cluster.topics
        return {topic: len(known.get(topic, ())) for topic in topics}


def _member(joined: JoinGroupResponseMember, assignor: Assignor) -> GroupMember:
    subscription = consumer_protocol.read_subscription(bytes(joined.metadata))
    owned, generation_id = subscription.owned_partitions, subscription.generation_id
    if assignor.sends_previous:
        previous = consumer_protocol.read_previous_assignment(subscription.user_data)
        owned, generation_id = previous.topics, previous.generation_id
    return GroupMember(
        joined.member_id,
        joined.group_instance_id,
        frozenset(subscription.topics),
        frozenset(consumer_protocol.partitions_of(owned)),
        generation_id,
        subscription.rack_id or "",
    )
