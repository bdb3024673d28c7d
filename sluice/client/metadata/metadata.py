"""Cluster metadata, and the times of its updates (Kafka's Metadata). Sans-I/O.

A Metadata request is due when
- an update was requested: `request_update` for outdated metadata, or `request_update_for_new_topics`, which ignores the
  backoff and requests only the new topics;
- metadata is `metadata.max.age.ms` old.

It is not sent before the longer of two backoffs since the last response or failure (KIP-580), each from
`retry.backoff.ms` up to its maximum. A backoff is drawn once: Kafka draws at each check, but an update reported as due
must still be due a moment later. The backoffs grow with
- failures in a row: disconnects and empty responses. The first failure does not count;
- *equivalent* responses in a row: successful ones without changes. A producer to a missing topic requests metadata at 0
  and then after about 100, 200, 400, 800, 1000, 1000 ms.

A response with an older leader epoch than the newest one seen does not replace the leader (KIP-320), unless its topic
id shows that the topic was recreated (KIP-516).

`request_version` counts requests for new topics, `update_version` counts updates: a waiting caller can detect a
response that includes its request.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from math import inf
from typing import NamedTuple

from sluice.client.backoff import Backoff
from sluice.client.errors import INVALID_METADATA, KafkaException, exception_of
from sluice.protocol.apis.metadata import MetadataRequest, MetadataResponse, MetadataResponsePartition
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

from .cluster import NO_EPOCH, NO_LEADER, Cluster, LeaderAndEpoch, Node, PartitionMetadata, Partitions, TopicPartition

log = logging.getLogger("sluice.client")

# Before this version, brokers may return invalid leader epochs (KAFKA-9212).
_FIRST_RELIABLE_EPOCHS = 9


class MetadataRequestAndVersion(NamedTuple):
    request: MetadataRequest
    request_version: int
    is_partial_update: bool


class Metadata:
    """The metadata of a client. Subclasses choose the topics; this class requests none."""

    def __init__(self, refresh_backoff: Backoff, max_age_ms: int, *, equivalent_backoff: Backoff | None) -> None:
        """Store the backoffs; without `equivalent_backoff`, equivalent responses do not delay requests."""
        self._refresh_backoff = refresh_backoff
        self._equivalent_backoff = equivalent_backoff
        self.max_age_ms = max_age_ms
        self._last_refresh_ms = -inf
        self._last_successful_refresh_ms = -inf
        self._attempts = 0
        self._equivalent_response_count = 0
        self._drawn_for: tuple[float, int, int] | None = None
        self._drawn_ms = 0
        self._need_full_update = False
        self._need_partial_update = False
        self._last_seen_leader_epochs: dict[TopicPartition, int] = {}
        self._fatal_exception: KafkaException | None = None
        self.on_update_requested: Callable[[], None] = lambda: None
        self._bootstrap = Cluster({})
        self.cluster = self._bootstrap
        self.request_version = 0
        self.update_version = 0

    # -- topics --------------------------------------------------------------------------------------------------------

    def request_for_all(self) -> MetadataRequest:
        return MetadataRequest(topics=[])

    def request_for_new_topics(self) -> MetadataRequest | None:
        """Return a request for topics added since the last one; None to request all."""
        return None

    def retains_topic(self, topic: str, is_internal: bool, now_ms: float) -> bool:
        return True

    # -- schedule ------------------------------------------------------------------------------------------------------

    def time_to_next_update_ms(self, now_ms: float) -> float:
        """Return the milliseconds until an update is due; 0: now."""
        if not self.update_requested:
            left_ms = self._last_successful_refresh_ms + self.max_age_ms - now_ms
            if left_ms > 0:
                # Kafka returns the longer of this and the backoff. Drawing the backoff later has the same effect.
                return left_ms
        return self._time_to_allow_update_ms(now_ms)

    def _time_to_allow_update_ms(self, now_ms: float) -> float:
        if now_ms >= self._last_successful_refresh_ms + self.max_age_ms:
            self._equivalent_response_count = 0
        draw_key = self._last_refresh_ms, self._attempts, self._equivalent_response_count
        if self._drawn_for != draw_key:
            self._drawn_for, self._drawn_ms = draw_key, self._drawn_backoff_ms()
        return max(0, self._last_refresh_ms + self._drawn_ms - now_ms)

    def _drawn_backoff_ms(self) -> int:
        backoff_ms = self._refresh_backoff.backoff(max(0, self._attempts - 1))
        if self._equivalent_backoff is not None and self._equivalent_response_count:
            backoff_ms = max(backoff_ms, self._equivalent_backoff.backoff(self._equivalent_response_count - 1))
        return backoff_ms

    @property
    def update_requested(self) -> bool:
        return self._need_full_update or self._need_partial_update

    def request_update(self) -> int:
        """Request an update; return the current version."""
        self._need_full_update = True
        self.on_update_requested()
        return self.update_version

    def request_update_for_new_topics(self) -> int:
        """Request an update for a changed set of topics; return the current version."""
        self._last_refresh_ms = -inf
        self._need_partial_update = True
        self._equivalent_response_count = 0
        self.request_version += 1
        self.on_update_requested()
        return self.update_version

    def next_request(self, now_ms: float) -> MetadataRequestAndVersion:
        if not self._need_full_update and self._last_successful_refresh_ms + self.max_age_ms > now_ms:
            request = self.request_for_new_topics()
            if request is not None:
                return MetadataRequestAndVersion(request, self.request_version, is_partial_update=True)
        return MetadataRequestAndVersion(self.request_for_all(), self.request_version, is_partial_update=False)

    # -- updates -------------------------------------------------------------------------------------------------------

    def bootstrap(self, servers: Iterable[str]) -> None:
        self._bootstrap = Cluster.bootstrap(servers)
        self.rebootstrap()

    def rebootstrap(self) -> None:
        """Restart from the bootstrap addresses (KIP-899).

        Different on purpose: if these are in use already, this is not an update. In Kafka it is one, which wakes
        waiting callers, whose requests cause the next rebootstrap, in a loop.
        """
        self._need_full_update = True
        if not self.is_at_bootstrap:
            self.update_version += 1
            self.cluster = self._bootstrap

    @property
    def is_at_bootstrap(self) -> bool:
        return self.cluster is self._bootstrap

    def failed_update(self, now_ms: float) -> None:
        self._last_refresh_ms = now_ms
        self._attempts += 1
        self._equivalent_response_count = 0

    def fatal_error(self, exception: KafkaException) -> None:
        self._fatal_exception = exception

    def raise_fatal_error(self) -> None:
        exception, self._fatal_exception = self._fatal_exception, None
        if exception is not None:
            raise exception

    def raise_topic_error(self, topic: str) -> None:
        """Raise the fatal error, or the error of an invalid or unauthorized topic."""
        self.raise_fatal_error()
        code = self.cluster.topic_errors.get(topic, 0)
        if code in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            raise exception_of(code, topic)

    def update(self, sent: MetadataRequestAndVersion, response: MetadataResponse, version: int, now_ms: float) -> None:
        self._need_partial_update = sent.request_version < self.request_version
        self._last_refresh_ms = now_ms
        self._attempts = 0
        self.update_version += 1
        if not sent.is_partial_update:
            self._need_full_update = False
            self._last_successful_refresh_ms = now_ms
        self._equivalent_response_count += 1  # reset below if the metadata has changed
        self.cluster = self._cluster_from(response, sent.is_partial_update, version >= _FIRST_RELIABLE_EPOCHS, now_ms)
        internal = self.cluster.internal_topics
        self._last_seen_leader_epochs = {
            partition: epoch
            for partition, epoch in self._last_seen_leader_epochs.items()
            if self.retains_topic(partition.topic, partition.topic in internal, now_ms)
        }

    def _cluster_from(
        self, response: MetadataResponse, is_partial: bool, reliable_epochs: bool, now_ms: float
    ) -> Cluster:
        before = self.cluster
        topics: dict[str, Partitions] = {}
        topic_ids: dict[str, bytes] = {}
        topic_errors: dict[str, int] = {}
        internal: set[str] = set()
        received: set[str] = set()
        for topic in response.topics:
            if topic.name is None:
                continue
            received.add(topic.name)
            if not self.retains_topic(topic.name, topic.is_internal, now_ms):
                continue
            if topic.is_internal:
                internal.add(topic.name)
            if topic.topic_id != ZERO_UUID:
                topic_ids[topic.name] = topic.topic_id
            if topic.error_code:
                topic_errors[topic.name] = topic.error_code
                if topic.error_code in INVALID_METADATA:
                    self.request_update()
                continue
            is_new = topic.topic_id not in (ZERO_UUID, before.topic_ids.get(topic.name))
            partitions: dict[int, PartitionMetadata] = {}
            for partition in topic.partitions:
                name = TopicPartition(topic.name, partition.partition_index)
                known = self._latest(name, partition, reliable_epochs, is_new)
                if known is not None:
                    partitions[name.partition] = known
                if partition.error_code in INVALID_METADATA:
                    self.request_update()
            topics[topic.name] = partitions
        if is_partial:
            kept = [
                topic
                for topic in {*before.topics, *before.topic_errors}
                if topic not in received and self.retains_topic(topic, topic in before.internal_topics, now_ms)
            ]
            topics |= {topic: before.topics[topic] for topic in kept if topic in before.topics}
            topic_ids |= {topic: before.topic_ids[topic] for topic in kept if topic in before.topic_ids}
            topic_errors |= {topic: before.topic_errors[topic] for topic in kept if topic in before.topic_errors}
            internal |= before.internal_topics.intersection(kept)
        return Cluster(
            {
                broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack)
                for broker in response.brokers
            },
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            topics=topics,
            topic_ids=topic_ids,
            topic_errors=topic_errors,
            internal_topics=internal,
        )

    def _latest(
        self, name: TopicPartition, received: MetadataResponsePartition, reliable_epochs: bool, is_new_topic: bool
    ) -> PartitionMetadata | None:
        seen = self._last_seen_leader_epochs.get(name)
        epoch = received.leader_epoch
        if not reliable_epochs or epoch == NO_EPOCH:
            self._last_seen_leader_epochs.pop(name, None)
            self._equivalent_response_count = 0
            return _partition(received, NO_EPOCH)
        if seen is not None and epoch < seen and not is_new_topic:
            return self.cluster.partition(name)
        self._last_seen_leader_epochs[name] = epoch
        if seen is None or epoch > seen or is_new_topic:
            self._equivalent_response_count = 0
        return _partition(received, epoch)

    # -- leaders -------------------------------------------------------------------------------------------------------

    def current_leader(self, partition: TopicPartition) -> LeaderAndEpoch:
        """Return the leader; None if its epoch is older than the newest one seen."""
        seen = self._last_seen_leader_epochs.get(partition, NO_EPOCH)
        known = self.cluster.partition(partition)
        if known is None or (seen != NO_EPOCH and known.leader_epoch != seen):
            return LeaderAndEpoch(None, seen)
        return LeaderAndEpoch(self.cluster.nodes.get(known.leader_id), known.leader_epoch)

    def update_last_seen_epoch_if_newer(self, partition: TopicPartition, epoch: int) -> None:
        """Record a leader epoch from another source; if it is newer, request an update."""
        if epoch > self._last_seen_leader_epochs.get(partition, epoch):
            self._last_seen_leader_epochs[partition] = epoch
            self.request_update()

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Apply newer, known leaders from a Produce or Fetch response (KIP-951); return the changed partitions."""
        known_nodes = {**self.cluster.nodes, **{node.id: node for node in nodes}}
        changed: dict[TopicPartition, PartitionMetadata] = {}
        for partition, (leader_id, epoch) in leaders.items():
            known = self.cluster.partition(partition)
            if NO_LEADER in (leader_id, epoch) or leader_id not in known_nodes or known is None:
                continue
            if epoch <= self.current_leader(partition).epoch:
                continue
            changed[partition] = known._replace(leader_id=leader_id, leader_epoch=epoch)
            self._last_seen_leader_epochs[partition] = epoch
        if changed:
            self.cluster = _with_leaders(self.cluster, known_nodes, changed)
        return set(changed)


def _partition(received: MetadataResponsePartition, epoch: int) -> PartitionMetadata:
    return PartitionMetadata(
        received.leader_id,
        epoch,
        tuple(received.replica_nodes),
        tuple(received.isr_nodes),
        tuple(received.offline_replicas),
        received.error_code,
    )


def _with_leaders(
    cluster: Cluster, nodes: Mapping[int, Node], changed: Mapping[TopicPartition, PartitionMetadata]
) -> Cluster:
    topics = dict(cluster.topics)
    for partition, metadata in changed.items():
        topics[partition.topic] = {**topics[partition.topic], partition.partition: metadata}
    found = copy(cluster)
    found.nodes, found.topics, found.is_bootstrap = nodes, topics, False
    return found
