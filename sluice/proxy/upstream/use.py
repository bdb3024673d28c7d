"""What the clients of a test make in the cluster behind a proxy, and its removal.

Other users of the cluster create topics, too. So a topic counts only if a request through the proxy created it:

- CreateTopics with success. If its response was lost, the topic counts if it did not exist at the start.
- Metadata that allows automatic creation, answered by UNKNOWN_TOPIC_OR_PARTITION or LEADER_NOT_AVAILABLE: Kafka creates
  the topic after this response.
- The internal topics in the topology of a StreamsGroupHeartbeat, which the group coordinator creates (KIP-1071).

A group counts if a request through the proxy joined it or committed its offsets, and it did not exist at the start.
Transactional ids stay: Kafka has no request that deletes one, and forgets it after `transactional.id.expiration.ms`.

Optionally, requests that change topics or groups of before the start are refused.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from typing import cast

from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext
from sluice.client.admin.calls import Outcomes
from sluice.client.admin.lookups import find_coordinators
from sluice.client.errors import KafkaException
from sluice.client.network.in_flight import request_of
from sluice.errors import SluiceError
from sluice.protocol import error_response
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.alter_configs import AlterConfigsRequest
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from sluice.protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from sluice.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from sluice.protocol.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from sluice.protocol.apis.metadata import MetadataRequest, MetadataResponse
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from sluice.protocol.entities import Topics, reader_of
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID

from .cluster import UpstreamCluster

log = logging.getLogger("sluice.proxy")

CHANGES_TOPICS = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.DELETE_TOPICS,
        ApiKey.DELETE_RECORDS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    }
)
CHANGES_GROUPS = frozenset(
    {
        ApiKey.JOIN_GROUP,
        ApiKey.OFFSET_COMMIT,
        ApiKey.TXN_OFFSET_COMMIT,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.SHARE_GROUP_HEARTBEAT,
        ApiKey.STREAMS_GROUP_HEARTBEAT,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_GROUPS,
        ApiKey.OFFSET_DELETE,
    }
)
# APIs whose requests are handled one at a time, so that a refusal is sent in order.
CHECKED = CHANGES_TOPICS | CHANGES_GROUPS | {ApiKey.CREATE_TOPICS}

_DOES_NOT_EXIST_YET = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE})
_ABSENT = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND})
_TOPIC_RESOURCE, _GROUP_RESOURCE = 2, 32
_LEAVES = -1  # member epoch
# Much longer than a cluster takes to publish a change.
_REMOVED_WITHIN_S = 10.0
_LOOK_AGAIN_MS = 20.0

_Heartbeat = ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest


class UpstreamUse:
    def __init__(self, *, protects: bool) -> None:
        """`protects`: refuse requests that change what existed before."""
        self.topics: set[str] = set()
        self.groups: set[str] = set()
        self.refused: dict[str, None] = {}  # in order
        self._protects = protects
        self._topics_before: set[str] = set()  # names, and ids in hexadecimal
        self._groups_before: set[str] = set()
        self._unanswered: Counter[str] = Counter()  # topic -> CreateTopics requests without a response
        self._members: dict[tuple[str, str], type[Message]] = {}  # (group, member id) -> request that joined

    async def begin(self, upstream: UpstreamCluster) -> None:
        """Read what exists. Raises KafkaException."""
        topics = await upstream.admin.list_topics()
        ids = {topic.topic_id.hex() for topic in topics.values() if topic.topic_id != ZERO_UUID}
        self._topics_before = {name for name, topic in topics.items() if not topic.is_internal} | ids
        self._groups_before = set(await upstream.admin.list_groups())

    # -- called with each request and response -------------------------------------------------------------------------

    def refusal_of(self, ctx: RequestContext, request: Message, topics_by_id: Topics) -> Outcome | Message | None:
        """Note a request that creates topics or groups; return the response to a refused one."""
        api_key = ctx.route.api_key
        if isinstance(request, CreateTopicsRequest):
            if not request.validate_only:
                self._unanswered.update(topic.name for topic in request.topics)
            return None
        topics, groups = self._changed_by(api_key, request, topics_by_id)
        known_topics = topics & self._topics_before if self._protects else ()
        known_groups = groups & self._groups_before if self._protects else ()
        if not known_topics and not known_groups:
            self.groups |= groups - self._groups_before
            return None
        kind, name = ("topic", min(known_topics)) if known_topics else ("group", min(known_groups))
        self.refused[f"{API_KEYS[api_key].name}: {kind} {name} existed before the test"] = None
        if isinstance(request, ProduceRequest) and request.acks == 0:
            return NO_RESPONSE
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if known_topics else ErrorCode.GROUP_AUTHORIZATION_FAILED
        ctx.error_code = code
        return error_response.fail(api_key, ctx.version, request, code, f"{kind} {name} existed before the test")

    def answered(self, request: Message, response: Message) -> None:
        """Note what a request has created."""
        if isinstance(response, CreateTopicsResponse):
            if isinstance(request, CreateTopicsRequest) and not request.validate_only:
                self._unanswered.subtract(topic.name for topic in request.topics)
                self.topics |= {topic.name for topic in response.topics if not topic.error_code}
        elif isinstance(response, MetadataResponse):
            if isinstance(request, MetadataRequest) and request.allow_auto_topic_creation:
                self.topics |= {
                    topic.name
                    for topic in response.topics
                    if topic.name and topic.error_code in _DOES_NOT_EXIST_YET and topic.name not in self._topics_before
                }
        elif isinstance(response, JoinGroupResponse):
            if isinstance(request, JoinGroupRequest) and response.member_id:
                self._members[request.group_id, response.member_id] = JoinGroupRequest
        elif isinstance(request, _Heartbeat) and request.member_epoch != _LEAVES:
            member_id = request.member_id or response.member_id or ""  # type: ignore[attr-defined]  # all three have it
            self._members[request.group_id, member_id] = type(request)
            if isinstance(request, StreamsGroupHeartbeatRequest):
                self.topics |= set(_internal_topics(request)) - self._topics_before

    def _changed_by(self, api_key: int, request: Message, topics_by_id: Topics) -> tuple[set[str], set[str]]:
        if isinstance(request, AlterConfigsRequest | IncrementalAlterConfigsRequest):
            named = [(each.resource_type, each.resource_name) for each in request.resources]
            return (
                {name for kind, name in named if kind == _TOPIC_RESOURCE},
                {name for kind, name in named if kind == _GROUP_RESOURCE},
            )
        partitions, groups, _ = reader_of(api_key)(request, topics_by_id)
        topics = {topic for topic, _ in partitions} if api_key in CHANGES_TOPICS else set()
        return topics, set(groups) if api_key in CHANGES_GROUPS else set()

    # -- removal -------------------------------------------------------------------------------------------------------

    async def remove(self, upstream: UpstreamCluster) -> None:
        """Delete the topics and groups, and return when the cluster does not list them any more.

        Raises:
            SluiceError: Some of them remain.
        """
        lost = {topic for topic, count in self._unanswered.items() if count > 0} - self._topics_before
        try:
            async with asyncio.timeout(_REMOVED_WITHIN_S):
                await self._remove_groups(upstream)
                await self._remove_topics(upstream, self.topics | lost)
        except (KafkaException, TimeoutError) as error:
            names = ", ".join(sorted(self.topics | lost | self.groups))
            raise SluiceError(f"upstream: {names}: could not be deleted: {str(error) or 'timed out'}") from None

    async def _remove_groups(self, upstream: UpstreamCluster) -> None:
        for (group, member_id), joined_by in self._members.items():
            if group in self.groups:
                await _leave(upstream, group, member_id, joined_by)
        if self.groups:
            _raise_unless_absent(await upstream.admin.delete_groups(sorted(self.groups)))

    async def _remove_topics(self, upstream: UpstreamCluster, topics: set[str]) -> None:
        if not topics:
            return
        _raise_unless_absent(await upstream.admin.delete_topics(sorted(topics)))
        while not topics.isdisjoint(await upstream.topics_of_any_broker()):
            await upstream.pause(_LOOK_AGAIN_MS)


async def _leave(upstream: UpstreamCluster, group: str, member_id: str, joined_by: type[Message]) -> None:
    """Remove a member whose client has not left; one that has left is unknown."""
    if joined_by is JoinGroupRequest:
        request = request_of(LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id=member_id)]), oldest=3)
        response: type[Message] = LeaveGroupResponse
    else:
        heartbeat = cast("type[_Heartbeat]", joined_by)
        request = request_of(heartbeat(group_id=group, member_id=member_id, member_epoch=_LEAVES))
        response = request.api.response
    await upstream.calls.call_by_key(
        [group], find_coordinators, lambda _: request, response, lambda _: {group: None}, None
    )


def _internal_topics(request: StreamsGroupHeartbeatRequest) -> Iterator[str]:
    for subtopology in () if request.topology is None else request.topology.subtopologies:
        for topic in (*subtopology.state_changelog_topics, *subtopology.repartition_source_topics):
            yield topic.name


def _raise_unless_absent(outcomes: Outcomes[str, None]) -> None:
    for error in outcomes.errors().values():
        if getattr(error, "code", None) not in _ABSENT:
            raise error
