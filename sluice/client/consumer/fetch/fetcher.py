"""The Fetcher of a consumer (Kafka's Fetcher), which fetches ahead of the application. Sans-I/O.

    fetcher.send(now_ms)                    # request from each idle node; returns when to call again
    records = fetcher.collect(500)          # received records; advances the positions

Partitions are fetched from their leaders, or from replicas that the leaders name (`read_replicas.py`). One request to a
node fetches all its partitions, through a fetch session (KIP-227). It is sent when no fetch is in flight to the node
and no records from it are buffered: the session would drop partitions that the request omits.

After an error of a partition, `collect` raises it, or the partition is fetched again after a metadata update, a reset
or a validation, which have backoffs. Different on purpose: Kafka fetches again immediately, from the same leader.
"""

import logging
from collections import deque
from collections.abc import Mapping
from functools import partial
from math import inf
from typing import NamedTuple

from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.offset_reset import NONE
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.consumer.subscription_state import FetchPosition, PartitionState, SubscriptionState
from sluice.client.errors import KafkaException, error_name, exception_of
from sluice.client.metadata.cluster import Node, TopicPartition, by_topic
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.client.network.network_client import NetworkClient
from sluice.client.network.node_api_versions import NodeApiVersions
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

from .completed_fetch import CompletedFetch, FetchSettings
from .fetch_session import FINAL_EPOCH, NO_SESSION, FetchFrom, FetchSession, SessionRequest
from .read_replicas import ReadReplicas

log = logging.getLogger("sluice.client")

# The first version with magic 2, and the last one with topic names.
_OLDEST_VERSION, _LATEST_BY_NAME = 4, 12
_ON_LEADER_CHANGE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
_REFRESH = frozenset({
    *_ON_LEADER_CHANGE, ErrorCode.INCONSISTENT_TOPIC_ID, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE,
    ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
})  # fmt: skip
_TO_LEADER = _REFRESH - {ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR} | {
    ErrorCode.OFFSET_OUT_OF_RANGE
}
_OFFSET_FOR_LEADER_EPOCH, _FIRST_FOR_CONSUMERS = API_KEYS[ApiKey.OFFSET_FOR_LEADER_EPOCH], 3


class OffsetOutOfRangeError(KafkaException):
    """Positions outside the logs, where no reset policy applies. `offsets`: by partition."""

    def __init__(self, offsets: dict[TopicPartition, int]) -> None:
        places = ", ".join(f"{partition} at {offset}" for partition, offset in offsets.items())
        super().__init__(f"out of range, and auto.offset.reset=none: {places}")
        self.offsets = offsets


class FetcherSettings(NamedTuple):
    min_bytes: int
    max_bytes: int
    max_wait_ms: int
    max_partition_bytes: int
    reading: FetchSettings
    rack: str = ""


class Fetcher:
    def __init__(
        self,
        settings: FetcherSettings,
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        network: NetworkClient,
    ) -> None:
        self._settings = settings
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._network = network
        self._sessions: dict[int, FetchSession] = {}
        self._nodes_with_pending_fetches: set[int] = set()
        self._buffer: deque[CompletedFetch] = deque()
        self._replicas = ReadReplicas(subscriptions, metadata, network)
        self._failed_at_update: dict[TopicPartition, int] = {}  # the metadata version that led to an error

    # -- requests ------------------------------------------------------------------------------------------------------

    def send(self, now_ms: float) -> float:
        requested, until_ms = self._fetchable_by_node(now_ms)
        for node, partitions in requested.items():
            session = self._sessions.get(node.id)
            if session is None:
                session = self._sessions[node.id] = FetchSession(node.id)
            self._send_fetch(node, session, session.next_request(partitions), now_ms)
        return until_ms

    def _fetchable_by_node(self, now_ms: float) -> tuple[dict[Node, dict[TopicPartition, FetchFrom]], float]:
        buffered = {fetch.partition for fetch in self._buffer}
        busy = set(self._nodes_with_pending_fetches)
        fetchable: list[tuple[TopicPartition, FetchPosition, Node | None]] = []
        self._replicas.check_connections()
        for partition, state in self._subscriptions.items():
            if not state.is_fetchable or state.position is None:
                continue
            node = self._replicas.node_of(partition, state, now_ms)
            if partition not in buffered:
                fetchable.append((partition, state.position, node))
            elif node is not None:
                busy.add(node.id)
        requested: dict[Node, dict[TopicPartition, FetchFrom]] = {}
        until_ms = inf
        topic_ids = self._metadata.cluster.topic_ids
        for partition, position, node in fetchable:
            if node is None or self._failed_at_update.get(partition) == self._metadata.update_version:
                self._request_metadata()
            elif node.id in busy:
                continue
            elif node in requested or self._network.ready(node, now_ms):
                requested.setdefault(node, {})[partition] = FetchFrom(
                    topic_ids.get(partition.topic, ZERO_UUID),
                    position.offset,
                    self._settings.max_partition_bytes,
                    position.leader.epoch,
                )
            else:
                error = self._network.authentication_error(node.id)
                if error is not None:
                    raise error
                self._replicas.awaits_connection(node.id)
                until_ms = min(until_ms, now_ms + self._network.poll_delay_ms(node.id, now_ms))
        return requested, until_ms

    def _send_fetch(self, node: Node, session: FetchSession, request: SessionRequest, now_ms: float) -> None:
        names = {fetch_from.topic_id: partition.topic for partition, fetch_from in session.partitions.items()}
        names |= {topic_id: partition.topic for partition, topic_id in request.forget.items()}
        self._nodes_with_pending_fetches.add(node.id)
        self._replicas.connected(node.id)
        handle = partial(self._handle_fetch_response, session, session.partitions, names)
        self._network.send(node.id, self._request(request, names), handle, now_ms)

    def _request(self, request: SessionRequest, names: dict[bytes, str]) -> Request:
        settings = self._settings
        topics: dict[tuple[str, bytes], FetchTopic] = {}
        for (name, index), fetch_from in request.send.items():
            key = name, fetch_from.topic_id
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchTopic(topic=name, topic_id=fetch_from.topic_id, partitions=[])
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=fetch_from.leader_epoch,
                    fetch_offset=fetch_from.offset,
                    partition_max_bytes=fetch_from.max_bytes,
                )
            )
        forgotten = [
            ForgottenTopic(topic=name, topic_id=request.forget[TopicPartition(name, indexes[0])], partitions=indexes)
            for name, indexes in by_topic(request.forget).items()
        ]
        message = FetchRequest(
            max_wait_ms=settings.max_wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=int(settings.reading.read_committed),
            session_id=request.session_id,
            session_epoch=request.epoch,
            topics=list(topics.values()),
            forgotten_topics_data=forgotten,
            rack_id=settings.rack,
        )
        latest = _LATEST_BY_NAME if ZERO_UUID in names else None
        return request_of(message, oldest=_OLDEST_VERSION, latest=latest)

    # -- responses -----------------------------------------------------------------------------------------------------

    def _handle_fetch_response(
        self,
        session: FetchSession,
        requested: Mapping[TopicPartition, FetchFrom],
        names: dict[bytes, str],
        exchange: Exchange,
    ) -> None:
        self._nodes_with_pending_fetches.discard(session.node_id)
        response = exchange.response
        if not isinstance(response, FetchResponse):
            log.info("fetch failed", extra={"node": session.node_id, "error": str(exchange.failure())})
            session.handle_error()
            self._replicas.lost(session.node_id)
            return
        data = {
            TopicPartition(topic.topic or names.get(topic.topic_id, ""), one.partition_index): one
            for topic in response.responses
            for one in topic.partitions
        }
        if not session.handle_response(response.error_code, response.session_id, data, response.throttle_time_ms):
            if response.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR:
                self._request_metadata()
            return
        for partition, one in data.items():
            if one.error_code or one.records or one.diverging_epoch is not None:
                self._buffer.append(CompletedFetch(partition, requested[partition], one, self._settings.reading))
            else:
                self._update_offsets(partition, one)
            if one.preferred_read_replica >= 0 and not one.error_code:
                offset, replica = requested[partition].offset, one.preferred_read_replica
                if not self._replicas.referred(partition, offset, replica, exchange.received_ms):
                    self._failed_at_update[partition] = self._metadata.update_version
                    self._request_metadata()
        self._update_leaders(response, data)

    def _update_leaders(self, response: FetchResponse, data: dict[TopicPartition, PartitionData]) -> None:
        leaders = {
            partition: (one.current_leader.leader_id, one.current_leader.leader_epoch)
            for partition, one in data.items()
            if one.error_code in _ON_LEADER_CHANGE and one.current_leader is not None
        }
        if leaders:
            nodes = [Node(node.node_id, node.host, node.port, node.rack) for node in response.node_endpoints]
            for partition in self._metadata.update_partition_leadership(leaders, nodes):
                self._failed_at_update.pop(partition, None)
                self.leader_changed(partition)

    def leader_changed(self, partition: TopicPartition) -> None:
        leader = self._metadata.current_leader(partition)
        versions = None if leader.leader is None else self._network.api_versions(leader.leader.id)
        self._subscriptions.leader_changed(partition, leader, can_validate=can_validate(versions))

    # -- records -------------------------------------------------------------------------------------------------------

    def collect(self, most: int) -> list[ConsumerRecord]:
        """Return up to `most` received records; raise a partition's error in a call without records."""
        records: list[ConsumerRecord] = []
        paused: list[CompletedFetch] = []
        try:
            while self._buffer and len(records) < most and self._collect_first(records, most, paused):
                pass
        except KafkaException:
            if not records:
                raise  # with records, the next call raises it: an unreadable record stays until a seek
        finally:
            self._buffer.extendleft(reversed(paused))
        return records

    def _collect_first(self, records: list[ConsumerRecord], most: int, paused: list[CompletedFetch]) -> bool:
        """Collect from the first completed fetch; return False if it must wait for the next call."""
        fetch = self._buffer[0]
        state = self._subscriptions.get(fetch.partition)
        if state is None or state.position is None or state.position.offset != fetch.next_offset:
            self._buffer.popleft()  # the position has changed since the fetch
        elif not state.is_fetchable:
            paused.append(self._buffer.popleft())
        elif not fetch.data.error_code:
            if not self._take(state, fetch, records, most):
                self._buffer.popleft()
        elif records:
            return False
        else:
            self._buffer.popleft()
            self._subscriptions.moved_to_end(fetch.partition)
            self._handle_error(state, fetch)
        return True

    def _take(self, state: PartitionState, fetch: CompletedFetch, records: list[ConsumerRecord], most: int) -> bool:
        if not fetch.is_initialized:
            fetch.is_initialized = True
            self._update_offsets(fetch.partition, fetch.data)
            self._failed_at_update.pop(fetch.partition, None)
        position = state.position
        assert position is not None, "fetched without a position"
        try:
            has_more = fetch.take(records, most - len(records))
        finally:
            if fetch.next_offset > position.offset:
                state.position = FetchPosition(fetch.next_offset, fetch.last_epoch, position.leader)
        if not has_more:
            self._subscriptions.moved_to_end(fetch.partition)
        return has_more

    def _update_offsets(self, partition: TopicPartition, data: PartitionData) -> None:
        state = self._subscriptions.get(partition)
        if state is not None:
            state.high_watermark = data.high_watermark
            state.last_stable_offset = data.last_stable_offset
            state.log_start_offset = data.log_start_offset

    def _handle_error(self, state: PartitionState, fetch: CompletedFetch) -> None:
        code, partition = fetch.data.error_code, fetch.partition
        log.info("partition cannot be fetched", extra={"partition": str(partition), "error": error_name(code)})
        was_follower = code in _TO_LEADER and state.clear_preferred_replica()
        if was_follower or code in _REFRESH:
            if state.position is not None and state.position.leader.epoch == fetch.leader_epoch:
                self._failed_at_update[partition] = self._metadata.update_version
            self._request_metadata()
        elif code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._handle_out_of_range(state, fetch)
        else:
            raise exception_of(code, f"{partition}: {exception_of(code)}")

    def _handle_out_of_range(self, state: PartitionState, fetch: CompletedFetch) -> None:
        if self._subscriptions.default_reset is NONE:
            raise OffsetOutOfRangeError({fetch.partition: fetch.next_offset})
        state.reset_by(self._subscriptions.default_reset)

    # -- closing -------------------------------------------------------------------------------------------------------

    def close_sessions(self, now_ms: float) -> None:
        """Close the sessions of ready brokers, without waiting for responses."""
        for session in self._sessions.values():
            if session.session_id != NO_SESSION and self._network.is_ready(session.node_id, now_ms):
                request = SessionRequest(session.session_id, FINAL_EPOCH, {}, {})
                self._network.send(session.node_id, self._request(request, {}), _ignore, now_ms)

    def _request_metadata(self) -> None:
        if not self._metadata.update_requested:
            self._metadata.request_update()


def can_validate(versions: NodeApiVersions | None) -> bool:
    """Return whether a leader serves OffsetForLeaderEpoch; True if it is not connected yet."""
    return versions is None or versions.serves(_OFFSET_FOR_LEADER_EPOCH, _FIRST_FOR_CONSUMERS)


def _ignore(_exchange: Exchange) -> None:
    return None
