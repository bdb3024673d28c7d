"""WriteTxnMarkers, key 27, versions 0-2. Follows KafkaApis.handleWriteTxnMarkersRequest.

The response waits until the markers are replicated. In v2, the transaction version defines the epoch check (KIP-1228).
"""

from collections.abc import Callable, Collection, Iterator

from sluice.broker.broker import Broker
from sluice.broker.coordinator.transaction.markers import Marker, write_marker
from sluice.broker.metadata.topic import Partition, TopicPartition
from sluice.broker.replica.delayed_append import await_replication
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import write_txn_markers as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.invalid import InvalidRecords

API = served("WriteTxnMarkers", "0-2", cluster_action=True)

_Codes = dict[TopicPartition, ErrorCode]


def handle(ctx: RequestContext, request: api.WriteTxnMarkersRequest, broker: Broker) -> Message | Outcome:
    if not (
        broker.auth.authorize_cluster(ctx, AclOperation.ALTER, log_denied=False)
        or broker.auth.authorize_cluster(ctx, AclOperation.CLUSTER_ACTION)
    ):
        return _failed(ctx, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    codes: dict[int, _Codes] = ctx.mapping()
    written: dict[Partition, int] = {}
    for marker in request.markers:
        for name in ctx.counts(_names(marker)):  # a repeated partition gets one marker
            of_producer = codes.get(marker.producer_id)
            if of_producer is None:
                of_producer = codes[marker.producer_id] = ctx.mapping()
            partition = broker.metadata.partition(*name)
            if partition is None or broker.node_id not in partition.replicas:
                of_producer[name] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            if not broker.replicas.leads(partition):
                of_producer[name] = ErrorCode.NOT_LEADER_OR_FOLLOWER
                continue
            try:
                of_producer[name] = write_marker(broker, partition, _marker(marker), ctx.now_ms)
            except InvalidRecords as invalid:  # producer id or epoch -1: as in Kafka, the whole request fails
                return _failed(ctx, request, invalid.code)
            if not of_producer[name]:
                written[partition] = partition.log.log_end_offset

    def start(done: Callable[[Collection[Partition]], None]) -> None:
        await_replication(broker.replicas, written, broker.config.integer("request.timeout.ms"), done)

    def respond(missing: Collection[Partition]) -> Message:
        moved, late = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REQUEST_TIMED_OUT
        not_replicated = {
            TopicPartition(one.topic.name, one.index): late if broker.replicas.leads(one) else moved for one in missing
        }
        return _response(ctx, codes, not_replicated)

    return respond_when_done(ctx, start, respond)


def _failed(ctx: RequestContext, request: api.WriteTxnMarkersRequest, code: ErrorCode) -> api.WriteTxnMarkersResponse:
    codes: dict[int, _Codes] = ctx.mapping()
    for marker in request.markers:
        of_producer = codes[marker.producer_id] = ctx.mapping()
        for name in _names(marker):
            of_producer[name] = code
    return _response(ctx, codes, {})


def _names(marker: api.WritableTxnMarker) -> Iterator[TopicPartition]:
    return (TopicPartition(topic.name, index) for topic in marker.topics for index in topic.partition_indexes)


def _marker(marker: api.WritableTxnMarker) -> Marker:
    return Marker(
        marker.producer_id,
        marker.producer_epoch,
        marker.transaction_result,
        marker.coordinator_epoch,
        marker.transaction_version,
    )


def _response(ctx: RequestContext, codes: dict[int, _Codes], not_replicated: _Codes) -> api.WriteTxnMarkersResponse:
    return api.WriteTxnMarkersResponse(
        markers=[
            api.WritableTxnMarkerResult(producer_id=producer_id, topics=_topics(ctx, of_producer, not_replicated))
            for producer_id, of_producer in codes.items()
        ]
    )


def _topics(ctx: RequestContext, codes: _Codes, not_replicated: _Codes) -> list[api.WritableTxnMarkerTopicResult]:
    topics: dict[str, api.WritableTxnMarkerTopicResult] = ctx.mapping()
    for name, written in codes.items():
        code = written or not_replicated.get(name, written)
        ctx.error_code = ctx.error_code or code
        topic = topics.get(name.topic)
        if topic is None:
            topic = topics[name.topic] = api.WritableTxnMarkerTopicResult(name=name.topic)
        topic.partitions.append(api.WritableTxnMarkerPartitionResult(partition_index=name.partition, error_code=code))
    return list(topics.values())
