"""Fetch, key 1, versions 0-18.

Follows Kafka's KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages and DelayedFetch. Different on purpose: up to
v2 Kafka also truncates the first batch at the limit; here it is always whole.

The steps: wait for `min_bytes` (long poll), read, charge the quota. If a throttle delays reading (KIP-13): wait, charge
the size from the index, wait for the throttle time, read, correct the charge.
"""

from sluice.broker.broker import Broker
from sluice.broker.log.log_results import LogRead
from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.fetch_session import RequestedPartition
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.broker.requests.served_api import Charge, served
from sluice.protocol.apis.fetch import FetchRequest, FetchResponse
from sluice.protocol.message import Message

from .general_fetch import Fetch, begin_fetch
from .session_fetch import read_in_session
from .single_partition_fetch import build_response, eligible_partition, read_available, waits_at_end

API = served("Fetch", "0-18", charge=Charge.FETCH_BYTES)


def handle(ctx: RequestContext, request: FetchRequest, broker: Broker) -> Message | Outcome:
    """Respond if `min_bytes` are available, a partition fails, or `max_wait_ms` is 0; else wait."""
    if request.session_id:
        response = read_in_session(ctx, broker, request)
        if response is not None:
            return response
    elif (partition := eligible_partition(ctx, broker, request)) is not None:
        found = read_available(request, request.topics[0].partitions[0], partition, broker.max_fetch_bytes)
        if found is not None:
            return build_response(request, partition, found)
        if waits_at_end(broker, request, partition):
            return ctx.park_for_more(
                _DelayedSinglePartitionFetch(ctx, broker, request, partition), broker.replicas.fetches, (partition,)
            )
    return _handle_general(ctx, broker, request)


def _handle_general(ctx: RequestContext, broker: Broker, request: FetchRequest) -> Message | Outcome:
    fetch = ctx.fetch = begin_fetch(ctx, broker, request)
    if fetch is None:
        return FetchResponse(error_code=ctx.error_code)
    if request.max_wait_ms > 0 and fetch.is_at_end():
        operation = _DelayedFetch(ctx, fetch, request.max_wait_ms)
        return ctx.park_for_more(operation, broker.replicas.fetches, fetch.partitions())
    if fetch.delays_read:
        if request.max_wait_ms <= 0 or fetch.is_ready():
            return fetch.finish()
    else:
        # Reading is by reference and costs no more than `is_ready`.
        response = fetch.read()
        if request.max_wait_ms <= 0 or fetch.has_read_enough:
            return fetch.converted(response)
    return ctx.park(_DelayedFetch(ctx, fetch, request.max_wait_ms), broker.replicas.fetches, fetch.partitions())


class _DelayedFetch(DelayedRequest):
    __slots__ = ("_fetch",)

    def __init__(self, ctx: RequestContext, fetch: Fetch, max_wait_ms: int) -> None:
        super().__init__(ctx, max_wait_ms)
        self._fetch = fetch

    def try_complete(self) -> bool:
        return self._fetch.is_ready() and self.force_complete()

    def _respond(self) -> Message | Outcome:
        return self._fetch.finish()


class _DelayedSinglePartitionFetch(DelayedRequest):
    """A long poll of one partition; uses the fast path if possible."""

    __slots__ = ("_broker", "_found", "_item", "_partition", "_request")

    def __init__(self, ctx: RequestContext, broker: Broker, request: FetchRequest, partition: Partition) -> None:
        super().__init__(ctx, request.max_wait_ms)
        self._broker = broker
        self._request = request
        self._partition = partition
        topic = request.topics[0]
        self._item = RequestedPartition(topic.topic or topic.topic_id, topic.partitions[0], broker.metadata)
        self._found: LogRead | None = None

    def try_complete(self) -> bool:
        ctx, request, partition = self._ctx, self._request, self._partition
        if eligible_partition(ctx, self._broker, request) is partition:
            requested = request.topics[0].partitions[0]
            self._found = read_available(request, requested, partition, self._broker.max_fetch_bytes)
            if self._found is not None:
                return self.force_complete()
        return self._general_fetch().is_ready() and self.force_complete()

    def _respond(self) -> Message | Outcome:
        found, self._found = self._found, None
        if found is not None:
            return build_response(self._request, self._partition, found)
        fetch = self._ctx.fetch = self._general_fetch()
        return fetch.finish()

    def _general_fetch(self) -> Fetch:
        # As in Kafka, the limit at arrival applies; there was no quota then.
        max_bytes = min(self._request.max_bytes, self._broker.max_fetch_bytes)
        return Fetch(self._ctx, self._broker, self._request, [self._item], opens_session=False, max_bytes=max_bytes)
