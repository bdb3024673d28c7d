"""A member of a KIP-848 group, for which neither client has the protocol: heartbeats around sluice's consumer.

It sends heartbeats between polls. After an error of the group it gives up its partitions, and joins again.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from random import Random
from typing import TypeVar

from sluice.client.admin import AdminClient
from sluice.client.admin.lookups import find_coordinators
from sluice.client.errors import KafkaException, RetriableException, exception_of
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis import consumer_group_heartbeat as heartbeat_api
from sluice.protocol.apis import offset_commit as commit_api
from sluice.protocol.apis import offset_fetch as fetch_api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .clients import API_TIMEOUT_MS, CLIENT_ID, GROUP_REQUEST_TIMEOUT_MS, TOPIC, Records, SluiceConsumer

M = TypeVar("M", bound=Message)

BROKER_CONFIG: Mapping[str, str | float] = {
    "group.consumer.min.session.timeout.ms": 6000,
    "group.consumer.session.timeout.ms": 6000,
    "group.consumer.min.heartbeat.interval.ms": 1000,
    "group.consumer.heartbeat.interval.ms": 1000,
}
RELEASES = ("kafka-4.4", "all")  # that serve the protocol
_JOIN_EPOCH, _LEAVE_EPOCH = 0, -1
_FENCED = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)
_REBALANCE_TIMEOUT_MS = 10_000


class Kip848Consumer:
    reports_committed = fences_leaders = True

    def __init__(
        self, bootstrap: str, random: Random, changed: Callable[[], None], *, committed_only: bool, group: str
    ) -> None:
        self._consumer = SluiceConsumer(bootstrap, random, (), changed, committed_only=committed_only)
        given: dict[str, str | int] = {
            "bootstrap.servers": bootstrap,
            "client.id": CLIENT_ID,
            "request.timeout.ms": GROUP_REQUEST_TIMEOUT_MS,
            "default.api.timeout.ms": GROUP_REQUEST_TIMEOUT_MS,
        }
        self._admin = AdminClient(given, random=random)
        self._changed = changed
        self._group = group
        self._member_id = f"{random.getrandbits(128):032x}"
        self._epoch = _JOIN_EPOCH
        self._topic_id = bytes(16)
        self._owned: frozenset[int] = frozenset()
        self._reports_all = True  # in the next heartbeat
        self._due_s = 0.0

    async def start(self) -> None:
        await self._consumer.start()

    async def poll(self) -> Records:
        if asyncio.get_running_loop().time() >= self._due_s:
            await self._heartbeat()
        if not self._owned:
            await asyncio.sleep(0.3)
            return {}
        return await self._consumer.poll()

    async def end_offset(self, partition: int) -> int:
        return await self._consumer.end_offset(partition)

    async def commit(self, offsets: Mapping[int, int]) -> None:
        partitions = [
            commit_api.OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
            for index, offset in offsets.items()
        ]
        request = commit_api.OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self._epoch,
            member_id=self._member_id,
            topics=[commit_api.OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
        )
        response = await self._call(request, commit_api.OffsetCommitResponse, 9)
        for one in response.topics[0].partitions:
            if one.error_code:
                raise exception_of(one.error_code)

    async def committed(self, partition: int) -> int | None:
        return (await self._committed([partition]))[partition]

    def assigned(self) -> Collection[int]:
        return sorted(self._owned)

    async def close(self) -> None:
        try:
            if self._epoch != _JOIN_EPOCH:
                async with asyncio.timeout(API_TIMEOUT_MS / 1e3):
                    leave = heartbeat_api.ConsumerGroupHeartbeatRequest(
                        group_id=self._group, member_id=self._member_id, member_epoch=_LEAVE_EPOCH
                    )
                    await self._call(leave, heartbeat_api.ConsumerGroupHeartbeatResponse)
        finally:
            await self._consumer.close()
            await self._admin.close()

    # -- the protocol --------------------------------------------------------------------------------------------------

    async def _heartbeat(self) -> None:
        request = heartbeat_api.ConsumerGroupHeartbeatRequest(
            group_id=self._group, member_id=self._member_id, member_epoch=self._epoch
        )
        if self._reports_all:
            request.rebalance_timeout_ms = _REBALANCE_TIMEOUT_MS
            request.subscribed_topic_names = [TOPIC]
            owned = heartbeat_api.TopicPartitions(topic_id=self._topic_id, partitions=sorted(self._owned))
            request.topic_partitions = [owned] if self._owned else []
        self._reports_all = True  # unless there is a response
        try:
            response = await self._call(request, heartbeat_api.ConsumerGroupHeartbeatResponse)
        except RetriableException:
            return
        if response.error_code in _FENCED:
            self._epoch = _JOIN_EPOCH
            self._assign(frozenset())
            return
        if response.error_code:
            error = exception_of(response.error_code)
            if isinstance(error, RetriableException):
                return
            raise error
        self._epoch, self._reports_all = response.member_epoch, False
        self._due_s = asyncio.get_running_loop().time() + response.heartbeat_interval_ms / 1e3
        if response.assignment is not None:
            await self._reconcile(response.assignment)

    async def _reconcile(self, assignment: heartbeat_api.Assignment) -> None:
        target = frozenset(index for topic in assignment.topic_partitions for index in topic.partitions)
        if target == self._owned:
            return
        positions: dict[int, int | None] = {
            index: await self._consumer.position(index) for index in target & self._owned
        }
        positions |= await self._committed(sorted(target - self._owned)) if target - self._owned else {}
        self._topic_id = next((topic.topic_id for topic in assignment.topic_partitions), self._topic_id)
        self._assign(target)
        self._consumer.seek({index: offset or 0 for index, offset in positions.items()})
        self._reports_all, self._due_s = True, 0.0  # acknowledge at once

    def _assign(self, partitions: frozenset[int]) -> None:
        self._changed()
        self._owned = partitions
        self._consumer.assign(sorted(partitions))

    async def _committed(self, partitions: list[int]) -> dict[int, int | None]:
        topic = fetch_api.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=partitions)
        group = fetch_api.OffsetFetchRequestGroup(group_id=self._group, topics=[topic])
        while True:
            request = fetch_api.OffsetFetchRequest(groups=[group], require_stable=True)
            (found,) = (await self._call(request, fetch_api.OffsetFetchResponse, 9)).groups
            results = [one for each in found.topics for one in each.partitions]
            code = found.error_code or next((one.error_code for one in results if one.error_code), 0)
            if code == ErrorCode.UNSTABLE_OFFSET_COMMIT:
                await asyncio.sleep(0.3)
            elif code:
                raise exception_of(code)
            else:
                return {
                    one.partition_index: one.committed_offset if one.committed_offset >= 0 else None for one in results
                }

    async def _call(self, request: Message, response: type[M], latest: int | None = None) -> M:
        calls = self._admin._calls
        deadline_ms = calls.deadline_ms(None)
        found = (await find_coordinators(calls, [self._group], deadline_ms))[self._group]
        if isinstance(found, KafkaException):
            raise found
        return await calls.call_once(found, request_of(request, latest=latest), response, deadline_ms)
