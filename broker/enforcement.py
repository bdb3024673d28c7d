"""Who is made to wait, how, and for how long: byte-rate quotas charged to requests, by `quota.profile`.

KIP-13 holds an answer back; since KIP-219 (Kafka 2.0) the answer goes out at once and the connection is muted. Clients
that know KIP-219 wait by themselves after an answer that names a throttle time: were their answers held back too, they
would wait twice. `by-version` therefore holds back for request versions older than KIP-219 and mutes for the others,
so that no client waits twice and old clients see what KIP-13 describes. The other profiles treat all versions alike.

| profile | produce over quota | fetch over quota | empty client id |
|---|---|---|---|
| `kip-13` | appended; the answer is held | held before the log is read | shares the default quota's bucket |
| `kafka-4.4` | appended; answered at once, then muted | empty answer at once, un-recorded, muted | unlimited |
| `by-version` | v0-5 as `kip-13`, v6+ as `kafka-4.4` | v0-7 as `kip-13`, v8+ as `kafka-4.4` | as `kip-13` |

What is charged: a produce request, its header and body, once its records are in the log; a fetch, the response's size.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple

from sluice.protocol.apis import FETCH, PRODUCE
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.apis.produce import ProduceResponse
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.manager import ClientQuotaManager

from .context import PARKED, Outcome, RequestContext

if TYPE_CHECKING:
    from .dispatch import Dispatcher

HOLD: Literal["hold"] = "hold"  # the answer waits in the purgatory, then says how long it waited (KIP-13)
MUTE: Literal["mute"] = (
    "mute"  # the answer goes out at once; the connection is not read for as long as it says (KIP-219)
)
Throttling = Literal["hold", "mute"]

# The first version whose clients wait by themselves after an answer with a throttle time (KIP-219).
_SELF_THROTTLING_SINCE = {PRODUCE: 6, FETCH: 8}


class Profile(NamedTuple):
    """One value of `quota.profile`."""

    throttling: Literal["hold", "mute", "by-version"]
    empty_client_id_shares_default: bool

    def throttling_of(self, api_key: int, version: int) -> Throttling:
        """How an over-quota request of this API and version is made to wait."""
        if self.throttling != "by-version":
            return self.throttling
        return MUTE if version >= _SELF_THROTTLING_SINCE.get(api_key, 0) else HOLD


PROFILES = {
    "by-version": Profile("by-version", empty_client_id_shares_default=True),
    "kip-13": Profile(HOLD, empty_client_id_shares_default=True),
    "kafka-4.4": Profile(MUTE, empty_client_id_shares_default=False),
}


class _Muted(DelayedOperation):
    """A connection that is not read until its throttle time is over."""

    __slots__ = ("_ctx",)

    def __init__(self, ctx: RequestContext, throttle_ms: int) -> None:
        super().__init__(throttle_ms)
        self._ctx = ctx

    def on_complete(self) -> None:
        self._ctx.connection.resume()


class _Held(DelayedOperation):
    """A response that goes out when its throttle time is over. It holds no record bytes of the request."""

    __slots__ = ("_ctx", "_dispatcher", "_response")

    def __init__(
        self, dispatcher: "Dispatcher", ctx: RequestContext, response: Message | Outcome, throttle_ms: int
    ) -> None:
        super().__init__(throttle_ms)
        self._dispatcher = dispatcher
        self._ctx = ctx
        self._response = response

    def on_complete(self) -> None:
        self._dispatcher.answer(self._ctx, self._response)
        self._ctx.connection.resume()


class _HeldFetch(DelayedOperation):
    """A fetch that reads the log, and answers, when its throttle time is over."""

    __slots__ = ("_ctx", "_read", "_throttle_ms")

    def __init__(self, ctx: RequestContext, read: Callable[[], FetchResponse], throttle_ms: int) -> None:
        super().__init__(throttle_ms)
        self._ctx = ctx
        self._read = read
        self._throttle_ms = throttle_ms

    def on_complete(self) -> None:
        self._ctx.broker.dispatcher.complete(self._ctx, self._answer)

    def _answer(self) -> FetchResponse:
        response = self._read()
        response.throttle_time_ms = self._throttle_ms
        return response


class Enforcement:
    """Charges requests to quotas and makes their connections wait."""

    def __init__(
        self,
        profile: Profile,
        produce: ClientQuotaManager,
        fetch: ClientQuotaManager,
        throttled: DelayedOperationPurgatory,
    ) -> None:
        self.profile = profile
        self.produce = produce
        self.fetch = fetch
        self.throttled = throttled

    def holds_fetch(self, version: int) -> bool:
        """Whether a fetch of this version that is over quota waits before it reads, instead of being muted."""
        return self.profile.throttling_of(FETCH, version) == HOLD

    def finish_produce(self, dispatcher: "Dispatcher", ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a produce request and answers it (acks=0: makes the connection wait without an answer)."""
        throttle_ms = self.produce.record(ctx.user, ctx.client_id, ctx.request_bytes, ctx.now_ms)
        if throttle_ms <= 0:
            dispatcher.answer(ctx, response)
            return
        self.produce.record_throttle_time(ctx.user, ctx.client_id, throttle_ms, ctx.now_ms)
        if isinstance(response, ProduceResponse):
            response.throttle_time_ms = throttle_ms
        if self.profile.throttling_of(PRODUCE, ctx.version) == HOLD:
            self._wait(ctx, _Held(dispatcher, ctx, response, throttle_ms))
        else:
            dispatcher.answer(ctx, response)
            self._wait(ctx, _Muted(ctx, throttle_ms))

    def finish_fetch(self, dispatcher: "Dispatcher", ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a fetch by the size of its response and answers it; over quota, with an empty response.

        A fetch that is to be held (KIP-13) was charged before it read anything, by `charge_before_read`; here the
        charge is corrected to what is sent.
        """
        assert isinstance(response, FetchResponse)
        body: list[bytes | memoryview] = []
        ctx.route.encode(response, body)
        size = response_size(body)
        # A fetch that fails before it reads has neither of the two.
        fetched, ctx.fetched = ctx.fetched, []
        charged_bytes, ctx.charged_bytes = ctx.charged_bytes, 0
        if self.holds_fetch(ctx.version):
            self.fetch.record_no_throttle(ctx.user, ctx.client_id, size - charged_bytes, ctx.now_ms)
            throttle_ms = 0  # it has been served
        else:
            throttle_ms = self.fetch.record(ctx.user, ctx.client_id, size, ctx.now_ms)
        if throttle_ms <= 0:
            for topic, sent_bytes in fetched:
                topic.bytes_out += sent_bytes
            dispatcher.send(ctx, body)
            return
        # What is not sent costs nothing: the client comes back for the same bytes.
        self.fetch.unrecord(ctx.user, ctx.client_id, size, ctx.now_ms)
        self.fetch.record_throttle_time(ctx.user, ctx.client_id, throttle_ms, ctx.now_ms)
        dispatcher.answer(ctx, FetchResponse(throttle_time_ms=throttle_ms))
        self._wait(ctx, _Muted(ctx, throttle_ms))

    def charge_before_read(
        self, ctx: RequestContext, size: int, read: Callable[[], FetchResponse]
    ) -> FetchResponse | Outcome:
        """Charges a fetch for the `size` it is about to read, and reads: at once, or when its throttle time is over."""
        ctx.charged_bytes = size
        throttle_ms = self.fetch.record(ctx.user, ctx.client_id, size, ctx.now_ms)
        if throttle_ms <= 0:
            return read()
        self.fetch.record_throttle_time(ctx.user, ctx.client_id, throttle_ms, ctx.now_ms)
        self._wait(ctx, _HeldFetch(ctx, read, throttle_ms))
        return PARKED

    def _wait(self, ctx: RequestContext, operation: DelayedOperation) -> None:
        ctx.connection.park(operation.force_complete)
        ctx.connection.mute()
        self.throttled.delay(operation)


def response_size(body: list[bytes | memoryview]) -> int:
    """Bytes a fetch response is charged for: its body and 4 more for its size (Kafka's FetchResponse.sizeOf)."""
    return 4 + sum(map(len, body))
