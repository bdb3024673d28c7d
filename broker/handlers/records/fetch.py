"""Fetch, key 1, versions 0-18.

Follows Kafka's KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages and DelayedFetch. Different on purpose:

- Up to v2 Kafka also truncates the first batch at the limit; here it is always whole.
- A request that closes the session of a long poll ends it. Java's consumer sends it when it closes, behind its last
  long poll on the same connection; with Kafka, each `close` waits for up to `fetch.max.wait.ms`.

The steps: read; wait for `min_bytes` (long poll) and read again; charge the quota. If a throttle delays reading
(KIP-13): wait, charge the size from the index, wait for the throttle time, read, correct the charge.
"""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.replica.fetch_session import FINAL_EPOCH
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import Charge, served
from sluice.protocol.apis.fetch import FetchRequest, FetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .down_conversion import FORMATS_KNOWN_SINCE
from .fetch_in_progress import TOPIC_IDS_SINCE, Fetch, begin_fetch, fetch_one

API = served("Fetch", "0-18", charge=Charge.FETCH_BYTES)


def handle(ctx: RequestContext, request: FetchRequest, broker: Broker) -> Message | Outcome:
    """Respond if `min_bytes` are available, a partition fails, or `max_wait_ms` is 0; else wait."""
    response = fetch_one(ctx, broker, request)
    if response is not None:
        return response
    fetch = begin_fetch(ctx, broker, request)
    if fetch is None:
        return _fail(ctx, request, ErrorCode(ctx.error_code))
    waits = request.max_wait_ms > 0
    if fetch.delays_read:
        if not waits or fetch.is_ready():
            return fetch.finish()
    else:
        # Reading is by reference and costs no more than `is_ready`.
        fetch.read()
        if fetch.has_read_enough or not waits:
            return fetch if ctx.version >= FORMATS_KNOWN_SINCE else fetch.converted()
    delayed = _DelayedFetch(ctx, fetch, request.max_wait_ms)
    wait = ctx.park(delayed, broker.replicas.fetches, fetch.partitions())
    if request.session_id:
        wait.on_next = partial(delayed.end_with_session, request.session_id)
    return wait


def _fail(ctx: RequestContext, request: FetchRequest, code: ErrorCode) -> Message:
    if code != ErrorCode.UNKNOWN_SERVER_ERROR:
        return FetchResponse(error_code=code)
    response = failed(ctx, request, code)
    assert isinstance(response, FetchResponse)
    response.session_id = request.session_id
    if ctx.version >= TOPIC_IDS_SINCE:
        response.responses = []
    return response


class _DelayedFetch(DelayedRequest):
    __slots__ = ("_fetch",)

    def __init__(self, ctx: RequestContext, fetch: Fetch, max_wait_ms: int) -> None:
        super().__init__(ctx, max_wait_ms)
        self._fetch = fetch

    def try_complete(self) -> bool:
        return self._fetch.is_ready() and self.force_complete()

    def end_with_session(self, session_id: int, following: Message) -> None:
        assert isinstance(following, FetchRequest)
        if following.session_id == session_id and following.session_epoch == FINAL_EPOCH:
            self.force_complete()

    def _respond(self) -> Message | Outcome:
        return self._fetch.finish()
