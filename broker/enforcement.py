"""Who is made to wait, how, and for how long: byte-rate quotas charged to requests, by `quota.profile`.

KIP-13 holds an answer back; since KIP-219 (Kafka 2.0) the answer goes out at once and the connection is muted. Clients
that know KIP-219 wait by themselves after an answer that names a throttle time: were their answers held back too, they
would wait twice. `by-version` therefore holds back for request versions older than KIP-219 and mutes for the others,
so that no client waits twice and old clients see what KIP-13 describes. The other profiles treat all versions alike.

| profile | produce over quota | fetch over quota | empty client id | arithmetic |
|---|---|---|---|---|
| `kip-13` | appended; the answer is held | held before the log is read | shares the default quota's bucket | 3.8 on |
| `kafka-0.9` to `1.1` | as `kip-13` | read, then held | as `kip-13` | up to 3.7 |
| `kafka-2.0` to `3.7` | appended; answered, then muted | empty answer, un-recorded, muted | unlimited | up to 3.7 |
| `kafka-3.8` on | the same | the same | the same | 3.8 on |
| `by-version` | v0-5 as `kip-13`, v6+ as `kafka-4.4` | v0-7 as `kip-13`, v8+ as `kafka-4.4` | as `kip-13` | 3.8 on |

A fetch is cut to what an idle client may have at once; Kafka does so from 2.5 on.
What is charged: a produce request, its header and body, once its records are in the log; a fetch, the response's size.
"""

from collections.abc import Callable
from enum import Enum
from sys import float_info
from typing import TYPE_CHECKING, NamedTuple

from sluice.kafka_releases import RELEASES
from sluice.protocol.apis import FETCH, PRODUCE
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.apis.produce import ProduceResponse
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.manager import ClientQuotaManager
from sluice.quotas.sensor import Rate, RateUpTo37

from .context import PARKED, Outcome, RequestContext

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .handlers.fetch import Fetch


class Throttling(Enum):
    """How a request over quota is made to wait."""

    HOLD = "hold"  # the answer waits in the purgatory, then says how long it waited; a fetch reads after that (KIP-13)
    WITHHOLD = "withhold"  # the same, but a fetch has read before: what every release up to 1.1 did
    MUTE = "mute"  # the answer goes out at once; the connection is not read for as long as it says (KIP-219)


HOLD, WITHHOLD, MUTE = Throttling
_BY_VERSION = None

# The first version whose clients wait by themselves after an answer with a throttle time (KIP-219).
_SELF_THROTTLING_SINCE = {PRODUCE: 6, FETCH: 8}


class Profile(NamedTuple):
    """One value of `quota.profile`. Without a throttling of its own it goes by the version of the request."""

    throttling: Throttling | None
    empty_client_id_shares_default: bool
    rate: type[Rate] = Rate
    cuts_fetches: bool = True

    def throttling_of(self, api_key: int, version: int) -> Throttling:
        """How an over-quota request of this API and version is made to wait."""
        if self.throttling is not _BY_VERSION:
            return self.throttling
        return MUTE if version >= _SELF_THROTTLING_SINCE[api_key] else HOLD


# Since which release Kafka does as the profile says.
_SINCE = {
    "0.9": Profile(WITHHOLD, empty_client_id_shares_default=True, rate=RateUpTo37, cuts_fetches=False),
    "2.0": Profile(MUTE, empty_client_id_shares_default=False, rate=RateUpTo37, cuts_fetches=False),
    "2.5": Profile(MUTE, empty_client_id_shares_default=False, rate=RateUpTo37),
    "3.8": Profile(MUTE, empty_client_id_shares_default=False),
}


def _profiles() -> dict[str, Profile]:
    profiles = {
        "by-version": Profile(_BY_VERSION, empty_client_id_shares_default=True),
        "kip-13": Profile(HOLD, empty_client_id_shares_default=True),
    }
    profile = _SINCE[RELEASES[0]]
    for release in RELEASES:
        profile = profiles[f"kafka-{release}"] = _SINCE.get(release, profile)
    return profiles


PROFILES = _profiles()


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
        return self.profile.throttling_of(FETCH, version) is HOLD

    def largest_fetch(self, ctx: RequestContext) -> float:
        """Bytes that one fetch of this client may have: what an idle client gets at once, else a large one would be
        refused for ever.
        """
        if not self.profile.cuts_fetches:
            return float_info.max
        return self.fetch.max_value_in_quota_window(ctx.user, ctx.client_id)

    def finish_produce(self, dispatcher: "Dispatcher", ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a produce request and answers it (acks=0: makes the connection wait without an answer)."""
        if not self.produce.quotas_enabled:
            dispatcher.answer(ctx, response)
            return
        throttle_ms = self.produce.record(ctx.user, ctx.client_id, ctx.request_bytes, ctx.now_ms)
        if throttle_ms <= 0:
            dispatcher.answer(ctx, response)
            return
        self.produce.record_throttle_time(ctx.user, ctx.client_id, throttle_ms, ctx.now_ms)
        if isinstance(response, ProduceResponse):
            response.throttle_time_ms = throttle_ms
        if self.profile.throttling_of(PRODUCE, ctx.version) is MUTE:
            dispatcher.answer(ctx, response)
            self._wait(ctx, _Muted(ctx, throttle_ms))
        else:
            self._wait(ctx, _Held(dispatcher, ctx, response, throttle_ms))

    def finish_fetch(self, dispatcher: "Dispatcher", ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a fetch by the size of its response and answers it; over quota, with an empty response.

        A fetch that is to be held (KIP-13) was charged before it read anything, by `charge_before_read`; here the
        charge is corrected to what is sent.
        """
        assert isinstance(response, FetchResponse)
        body: list[bytes | memoryview] = []
        ctx.route.encode(response, body)
        size = response_size(body)
        fetch, ctx.fetch = ctx.fetch, None  # there is none where a session is not known
        charged_bytes, ctx.charged_bytes = ctx.charged_bytes, 0
        throttling = self.profile.throttling_of(FETCH, ctx.version)
        if fetch is not None and fetch.is_from_follower:
            throttle_ms = 0  # what followers fetch is no client's (Kafka has other quotas for it)
        elif throttling is HOLD:
            self.fetch.record_no_throttle(ctx.user, ctx.client_id, size - charged_bytes, ctx.now_ms)
            throttle_ms = 0  # it has been served
        else:
            throttle_ms = self.fetch.record(ctx.user, ctx.client_id, size, ctx.now_ms)
        if (throttle_ms <= 0 or throttling is WITHHOLD) and fetch is not None and fetch.sent(response):
            body = []
            ctx.route.encode(response, body)
        if throttle_ms <= 0:
            dispatcher.send(ctx, body)
            return
        self.fetch.record_throttle_time(ctx.user, ctx.client_id, throttle_ms, ctx.now_ms)
        if throttling is WITHHOLD:
            response.throttle_time_ms = throttle_ms
            self._wait(ctx, _Held(dispatcher, ctx, response, throttle_ms))
            return
        # What is not sent costs nothing: the client comes back for the same bytes.
        self.fetch.unrecord(ctx.user, ctx.client_id, size, ctx.now_ms)
        dispatcher.answer(ctx, _throttled(ctx, fetch, throttle_ms))
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


def _throttled(ctx: RequestContext, fetch: "Fetch | None", throttle_ms: int) -> FetchResponse:
    if fetch is not None:
        return fetch.throttled(throttle_ms)
    ctx.error_code = 0  # as in Kafka the client is not told that its session is none
    return FetchResponse(throttle_time_ms=throttle_ms)


def response_size(body: list[bytes | memoryview]) -> int:
    """Bytes a fetch response is charged for: its body and 4 more for its size (Kafka's FetchResponse.sizeOf)."""
    return 4 + sum(map(len, body))
