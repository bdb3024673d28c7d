"""What a client knows of the cluster, and when it asks anew: Kafka's Metadata. No socket, no clock.

Theory of operation. The cluster is asked (a Metadata request) when
- it is wanted: something said that what is known is wrong (`request_update`), or a topic is new
  (`request_update_for_new_topics`: at once, whatever happened before, and only for the new topics);
- what is known is `metadata.max.age.ms` old;

but not before a backoff since the last time (KIP-580) has passed, the longer of two, each `retry.backoff.ms` growing
to its maximum, and drawn once for each answer or failure (Kafka draws whenever it looks; but who is told that it is due
must find it due a moment later, or nobody asks):
- of attempts that failed: disconnects and empty answers, in a row. One is the first, so two answers are at least one
  backoff apart;
- of *equivalent* answers: good ones, in a row, that taught nothing new. So who sends to a topic that the brokers keep
  calling unknown asks at 0 and then after about 100, 200, 400, 800, 1000, 1000 ms. A newer leader epoch, a topic's new
  id, a partition without epochs, a failed attempt, a topic that is new, and age, begin it from 0 again. This rule is
  Kafka's; the KIP does not have it, nor does the profile "kip".

A leader is believed by its epoch (KIP-320): an older epoch than one that was seen does not replace what is known,
unless the topic was made anew, which its id tells (KIP-516). Answers to Produce and Fetch may name a newer leader
(KIP-951): `update_partition_leadership`.

The versions: `request_version` counts what was asked for, `update_version` what was learnt, so that who waits for
something knows whether an answer can have it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import NamedTuple

from sluice.client.backoff import Backoff
from sluice.client.errors import INVALID_METADATA, KafkaException, exception_of
from sluice.protocol.apis.metadata import MetadataRequest, MetadataResponse, MetadataResponsePartition
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID

from .cluster import NO_EPOCH, NO_LEADER, Cluster, LeaderAndEpoch, Node, PartitionMetadata, Partitions, TopicPartition

log = logging.getLogger("sluice.client")

# Before it, a broker may tell epochs that it made up (KAFKA-9212).
_FIRST_RELIABLE_EPOCHS = 9


class MetadataRequestAndVersion(NamedTuple):
    """A request, and what `update` needs to know of it."""

    request: MetadataRequest
    request_version: int
    is_partial_update: bool


class Metadata:
    """A client's view of the cluster. Which topics it asks for and keeps is for those who inherit it; here: none."""

    def __init__(self, refresh_backoff: Backoff, max_age_ms: int, *, equivalent_backoff: Backoff | None) -> None:
        """`equivalent_backoff` is of answers that teach nothing; None: they are as good as any."""
        self._refresh_backoff = refresh_backoff
        self._equivalent_backoff = equivalent_backoff
        self._max_age_ms = max_age_ms
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
        self.on_update_requested: Callable[[], None] = lambda: None  # is told when the cluster may have to be asked
        self._bootstrap = Cluster({})
        self.cluster = self._bootstrap
        self.request_version = 0
        self.update_version = 0

    # -- which topics --------------------------------------------------------------------------------------------------

    def request_for_all(self) -> MetadataRequest:
        """Asks for everything that is wanted."""
        return MetadataRequest(topics=[])

    def request_for_new_topics(self) -> MetadataRequest | None:
        """Asks for what was added lately; None: as for everything."""
        return None

    def retains_topic(self, topic: str, is_internal: bool, now_ms: float) -> bool:
        """Whether a topic that was told of is wanted."""
        return True

    # -- when ----------------------------------------------------------------------------------------------------------

    def time_to_next_update_ms(self, now_ms: float) -> float:
        """How long until the cluster is to be asked; 0: now."""
        if not self.update_requested:
            left_ms = self._last_successful_refresh_ms + self._max_age_ms - now_ms
            if left_ms > 0:
                # Kafka takes the longer of this and the backoff. That is drawn when this is over, which comes to the
                # same, and nearly always spares the draw.
                return left_ms
        return self._time_to_allow_update_ms(now_ms)

    def _time_to_allow_update_ms(self, now_ms: float) -> float:
        if now_ms >= self._last_successful_refresh_ms + self._max_age_ms:
            self._equivalent_response_count = 0
        what = self._last_refresh_ms, self._attempts, self._equivalent_response_count
        if self._drawn_for != what:
            self._drawn_for, self._drawn_ms = what, self._drawn_backoff_ms()
        return max(0, self._last_refresh_ms + self._drawn_ms - now_ms)

    def _drawn_backoff_ms(self) -> int:
        backoff_ms = self._refresh_backoff.backoff(max(0, self._attempts - 1))
        if self._equivalent_backoff is not None and self._equivalent_response_count:
            backoff_ms = max(backoff_ms, self._equivalent_backoff.backoff(self._equivalent_response_count - 1))
        return backoff_ms

    @property
    def update_requested(self) -> bool:
        return self._need_full_update or self._need_partial_update

    def request_update(self, *, starts_anew: bool = False) -> int:
        """What is known is wrong. `starts_anew`: there is reason to think that the next answer tells more."""
        self._need_full_update = True
        if starts_anew:
            self._equivalent_response_count = 0
        self.on_update_requested()
        return self.update_version

    def request_update_for_new_topics(self) -> int:
        """Something else is wanted than before."""
        self._last_refresh_ms = -inf
        self._need_partial_update = True
        self._equivalent_response_count = 0
        self.request_version += 1
        self.on_update_requested()
        return self.update_version

    def next_request(self, now_ms: float) -> MetadataRequestAndVersion:
        """What to ask the cluster."""
        if not self._need_full_update and self._last_successful_refresh_ms + self._max_age_ms > now_ms:
            request = self.request_for_new_topics()
            if request is not None:
                return MetadataRequestAndVersion(request, self.request_version, is_partial_update=True)
        return MetadataRequestAndVersion(self.request_for_all(), self.request_version, is_partial_update=False)

    # -- what comes of it ----------------------------------------------------------------------------------------------

    def bootstrap(self, servers: Iterable[str]) -> None:
        """Begins with addresses, `host:port`."""
        self._bootstrap = Cluster.bootstrap(servers)
        self.rebootstrap()

    def rebootstrap(self) -> None:
        """Begins again, where all that was known of is gone (KIP-899).

        Different on purpose: where nothing was learnt since the last time, that is no update. In Kafka it wakes who
        waits for one. They ask for metadata, which begins again at once, for as long as nobody can be reached.
        """
        self._need_full_update = True
        if not self.is_at_bootstrap:
            self.update_version += 1
            self.cluster = self._bootstrap

    @property
    def is_at_bootstrap(self) -> bool:
        """Whether no more is known than what was configured."""
        return self.cluster is self._bootstrap

    def failed_update(self, now_ms: float) -> None:
        """Nobody answered, or with nothing."""
        self._last_refresh_ms = now_ms
        self._attempts += 1
        self._equivalent_response_count = 0

    def fatal_error(self, exception: KafkaException) -> None:
        """Asking again will not help: the next to wait for metadata is told."""
        self._fatal_exception = exception

    def raise_fatal_error(self) -> None:
        """Raises what was fatal, once."""
        exception, self._fatal_exception = self._fatal_exception, None
        if exception is not None:
            raise exception

    def raise_topic_error(self, topic: str) -> None:
        """Raises what was fatal, or that this topic is none that there can be, or not for us."""
        self.raise_fatal_error()
        code = self.cluster.topic_errors.get(topic, 0)
        if code in (ErrorCode.INVALID_TOPIC_EXCEPTION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
            raise exception_of(code, topic)

    def update(self, asked: MetadataRequestAndVersion, response: MetadataResponse, version: int, now_ms: float) -> None:
        """Takes an answer, in this version of the API, to what `next_request` said."""
        self._need_partial_update = asked.request_version < self.request_version
        self._last_refresh_ms = now_ms
        self._attempts = 0
        self.update_version += 1
        if not asked.is_partial_update:
            self._need_full_update = False
            self._last_successful_refresh_ms = now_ms
        self._equivalent_response_count += 1  # unless something in the answer is new
        self.cluster = self._cluster_from(response, asked.is_partial_update, version >= _FIRST_RELIABLE_EPOCHS, now_ms)
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
                continue  # asked for by an id that nobody knows
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
        """What holds of a partition: what is told, or what is known if that is by a newer epoch."""
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
        """Who leads, unless a newer epoch was seen than the one in which that was so."""
        seen = self._last_seen_leader_epochs.get(partition, NO_EPOCH)
        known = self.cluster.partition(partition)
        if known is None or (seen != NO_EPOCH and known.leader_epoch != seen):
            return LeaderAndEpoch(None, seen)
        return LeaderAndEpoch(self.cluster.nodes.get(known.leader_id), known.leader_epoch)

    def last_seen_leader_epoch(self, partition: TopicPartition) -> int:
        """The newest epoch that anybody told; -1: none."""
        return self._last_seen_leader_epochs.get(partition, NO_EPOCH)

    def update_last_seen_epoch_if_newer(self, partition: TopicPartition, epoch: int) -> bool:
        """Somebody else than the cluster knows of an epoch; if that is news, the cluster is asked."""
        seen = self._last_seen_leader_epochs.get(partition)
        if seen is None or epoch <= seen:
            return False
        self._last_seen_leader_epochs[partition] = epoch
        self.request_update()
        return True

    def update_partition_leadership(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Takes leaders' ids and epochs from an answer to Produce or Fetch (KIP-951); returns those that were news.

        `nodes` are where those leaders are. Nothing is learnt of a partition that is not known, from an epoch that is
        not newer, or of a leader that nobody says where to find.
        """
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
    return Cluster(
        nodes,
        cluster_id=cluster.cluster_id,
        controller_id=cluster.controller_id,
        topics=topics,
        topic_ids=cluster.topic_ids,
        topic_errors=cluster.topic_errors,
        internal_topics=cluster.internal_topics,
    )
