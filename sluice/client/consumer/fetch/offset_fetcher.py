"""Offset requests to leaders, for resets, validations and lookups (Kafka's OffsetFetcher and its utilities). Sans-I/O.

Resets (ListOffsets) and validations (OffsetForLeaderEpoch, KIP-320) are retried after a constant `retry.backoff.ms`, as
in Kafka.

Different on purpose: if no record is as young as `by_duration`, the position becomes the log end offset; Kafka repeats
the request. Both continue with the same record.
"""

import logging
from collections.abc import Iterable, Mapping
from functools import partial
from math import inf

from sluice.client.backoff import Backoff
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.offset_reset import LATEST, OffsetReset
from sluice.client.consumer.subscription_state import (
    NO_OFFSET,
    FetchPosition,
    FetchState,
    SubscriptionState,
    Truncation,
)
from sluice.client.errors import KafkaException, RetriableException, exception_of
from sluice.client.metadata.cluster import NO_EPOCH, Node, TopicPartition, by_partition, values_by_topic
from sluice.client.network.in_flight import Exchange, Request, request_of
from sluice.client.network.network_client import NetworkClient
from sluice.clock import Clock
from sluice.protocol.apis.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from sluice.protocol.apis.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from sluice.protocol.errors import ErrorCode

from .fetcher import Fetcher, can_validate

log = logging.getLogger("sluice.client")

_CONSUMER = -1
_FIRST_WITH_ISOLATION, _FIRST_OF_ONE_OFFSET, _FIRST_FOR_CONSUMERS = 2, 1, 3
# Errors that the application must handle; all others are retried.
FATAL = frozenset({ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})


class LogTruncationError(KafkaException):
    """Logs that were truncated below positions, where no reset policy applies.

    `truncations`: each position, and the offset at which the log diverged.
    """

    def __init__(self, truncations: list[Truncation]) -> None:
        places = ", ".join(f"{one.partition} at {one.position.offset}" for one in truncations)
        super().__init__(f"truncated, and auto.offset.reset=none: {places}")
        self.truncations = truncations


class OffsetFetcher:
    def __init__(
        self,
        subscriptions: SubscriptionState,
        metadata: ConsumerMetadata,
        network: NetworkClient,
        fetcher: Fetcher,
        clock: Clock,
        backoff: Backoff,
        *,
        read_committed: bool,
    ) -> None:
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._network = network
        self._fetcher = fetcher
        self._clock = clock
        self._backoff = backoff
        self._read_committed = read_committed
        self._last_update_version = -1  # the metadata version whose leaders were applied
        self._error: KafkaException | None = None

    def run_once(self, now_ms: float) -> float:
        """Send the requests that are due; return when to call again. Raise an earlier fatal error."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._last_update_version != self._metadata.update_version:
            self._last_update_version = self._metadata.update_version
            for partition in list(self._subscriptions.assigned):
                self._fetcher.leader_changed(partition)
        return min(self._reset(now_ms), self._validate(now_ms))

    # -- resets --------------------------------------------------------------------------------------------------------

    def _reset(self, now_ms: float) -> float:
        subscriptions = self._subscriptions
        waiting = subscriptions.in_state(FetchState.AWAIT_RESET, now_ms)
        if waiting:
            by_node, until_ms = self._by_leader(waiting, now_ms)
            for node, partitions in by_node.items():
                subscriptions.retry_at(partitions, now_ms + self._network.request_timeout_ms)
                resets = {partition: subscriptions.state_of(partition).reset for partition in partitions}
                self._send_list_offsets(
                    node, {one: reset for one, reset in resets.items() if reset is not None}, now_ms
                )
        else:
            until_ms = inf
        return min(until_ms, subscriptions.next_retry_ms(FetchState.AWAIT_RESET, now_ms))

    def _send_list_offsets(self, node: Node, resets: dict[TopicPartition, OffsetReset], now_ms: float) -> None:
        wall_ms = self._clock.wall_ms()
        timestamps = {partition: reset.timestamp(wall_ms) for partition, reset in resets.items()}
        handle = partial(self._handle_list_offsets_response, resets)
        self._network.send(node.id, self.list_offsets(timestamps), handle, now_ms)

    def _handle_list_offsets_response(self, resets: dict[TopicPartition, OffsetReset], exchange: Exchange) -> None:
        now_ms, response = exchange.received_ms, exchange.response
        if not isinstance(response, ListOffsetsResponse):
            self._failed(resets, exchange, now_ms)
            return
        retried: list[TopicPartition] = []
        received = by_partition(response.topics)
        for partition, reset in resets.items():
            one = received.get(partition)
            if one is None or (one.error_code and one.error_code not in FATAL):
                retried.append(partition)
            elif one.error_code:
                self._subscriptions.failed([partition], now_ms, self._backoff)
                self._error = exception_of(one.error_code, f"{partition}: {exception_of(one.error_code)}")
            elif one.offset == NO_OFFSET and reset.duration_ms is not None:
                state = self._subscriptions.get(partition)
                if state is not None and state.reset == reset:
                    state.reset_by(LATEST)
            else:
                self._reset_to(partition, reset, one)
        self._schedule_retry(retried, now_ms)

    def _reset_to(self, partition: TopicPartition, reset: OffsetReset, received: ListOffsetsPartitionResponse) -> None:
        # Without a leader epoch: the offset came from the leader, and needs no validation.
        position = FetchPosition(received.offset, NO_EPOCH, self._metadata.current_leader(partition))
        if received.leader_epoch != NO_EPOCH:
            self._metadata.update_last_seen_epoch_if_newer(partition, received.leader_epoch)
        if self._subscriptions.reset_to(partition, reset, position):
            log.info("offset reset", extra={"partition": str(partition), "to": received.offset, "policy": reset.name})

    def list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> Request:
        """Return a request for the first offsets at or after timestamps."""
        message = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=int(self._read_committed),
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=self._metadata.current_leader(TopicPartition(topic, index)).epoch,
                            timestamp=timestamp,
                        )
                        for index, timestamp in pairs
                    ],
                )
                for topic, pairs in values_by_topic(timestamps).items()
            ],
            timeout_ms=self._network.request_timeout_ms,
        )
        return request_of(message, oldest=_FIRST_WITH_ISOLATION if self._read_committed else _FIRST_OF_ONE_OFFSET)

    # -- validations ---------------------------------------------------------------------------------------------------

    def _validate(self, now_ms: float) -> float:
        subscriptions = self._subscriptions
        waiting = subscriptions.in_state(FetchState.AWAIT_VALIDATION, now_ms)
        until_ms = inf
        if waiting:
            by_node, until_ms = self._by_leader(waiting, now_ms)
            for node, partitions in by_node.items():
                positions = {
                    partition: position
                    for partition in partitions
                    if (position := subscriptions.state_of(partition).position) is not None
                }
                if not can_validate(self._network.api_versions(node.id)):
                    for partition, position in positions.items():
                        subscriptions.state_of(partition).seek(position)
                    continue
                subscriptions.retry_at(partitions, now_ms + self._network.request_timeout_ms)
                handle = partial(self._handle_leader_epoch_response, positions)
                self._network.send(node.id, _leader_epoch_request(positions), handle, now_ms)
        return min(until_ms, subscriptions.next_retry_ms(FetchState.AWAIT_VALIDATION, now_ms))

    def _handle_leader_epoch_response(self, positions: dict[TopicPartition, FetchPosition], exchange: Exchange) -> None:
        now_ms, response = exchange.received_ms, exchange.response
        if not isinstance(response, OffsetForLeaderEpochResponse):
            self._failed(positions, exchange, now_ms)
            return
        received = {
            TopicPartition(topic.topic, one.partition): one for topic in response.topics for one in topic.partitions
        }
        retried: list[TopicPartition] = []
        truncations: list[Truncation] = []
        for partition, position in positions.items():
            one = received.get(partition, EpochEndOffset(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
            if one.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
                self._error = exception_of(one.error_code, partition.topic)
                self._subscriptions.failed([partition], now_ms, self._backoff)
            elif one.error_code:
                retried.append(partition)
            else:
                truncation = self._subscriptions.validated(partition, position, one.end_offset, one.leader_epoch)
                if truncation is not None:
                    truncations.append(truncation)
                    self._subscriptions.failed([partition], now_ms, self._backoff)
        if truncations:
            self._error = LogTruncationError(truncations)
        self._schedule_retry(retried, now_ms)

    # -- resets and validations ----------------------------------------------------------------------------------------

    def _by_leader(
        self, partitions: Iterable[TopicPartition], now_ms: float
    ) -> tuple[dict[Node, list[TopicPartition]], float]:
        found: dict[Node, list[TopicPartition]] = {}
        until_ms = inf
        for partition in partitions:
            node = self._metadata.current_leader(partition).leader
            if node is None:
                if not self._metadata.update_requested:
                    self._metadata.request_update()
            elif node in found or self._network.ready(node, now_ms):
                found.setdefault(node, []).append(partition)
            else:
                error = self._network.authentication_error(node.id)
                if error is not None:
                    raise error
                until_ms = min(until_ms, now_ms + self._network.poll_delay_ms(node.id, now_ms))
        return found, until_ms

    def _failed(self, partitions: Iterable[TopicPartition], exchange: Exchange, now_ms: float) -> None:
        failure = exchange.failure()
        if failure is not None and not isinstance(failure, RetriableException):
            self._error = failure
        self._schedule_retry(list(partitions), now_ms)

    def _schedule_retry(self, partitions: list[TopicPartition], now_ms: float) -> None:
        if partitions:
            self._subscriptions.failed(partitions, now_ms, self._backoff)
            self._metadata.request_update()


def _leader_epoch_request(positions: Mapping[TopicPartition, FetchPosition]) -> Request:
    message = OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            OffsetForLeaderTopic(
                topic=topic,
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, current_leader_epoch=position.leader.epoch, leader_epoch=position.offset_epoch
                    )
                    for index, position in pairs
                ],
            )
            for topic, pairs in values_by_topic(positions).items()
        ],
    )
    return request_of(message, oldest=_FIRST_FOR_CONSUMERS)
