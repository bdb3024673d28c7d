"""Charges requests to quotas and makes their connections wait: who, and for how long. How is `quota_profile`'s.

Follows KafkaApis.handleProduceRequest, handleFetchRequest and RequestHandlerHelper. What is charged:

- bytes: a produce request, its header and body, once its records are in the log; a fetch, the response's size;
- request time (KIP-124): every request, by `request_timer`. Exempt, as in Kafka, are fetches of followers, produce with
  acks=0, and what only brokers ask; and all of SASL, which comes before anyone is somebody;
- controller mutations (KIP-599): by the handlers of the three APIs that have them, which put the wait into the answer.

A request that is over two quotas waits once, for the longer of the two times, and only that quota's metrics show it.
Up to Kafka 1.1 (`WITHHOLD`) it waited for one after the other.
"""

from collections.abc import Callable
from sys import float_info
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from sluice.broker.requests.context import NO_RESPONSE, PARKED, FetchInProgress, Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, ServedApi
from sluice.broker.requests.session import Session
from sluice.clock import Clock
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.client_throttle_times import ClientThrottleTimes
from sluice.quotas.manager import ClientQuotaManager
from sluice.quotas.monotonic_wall_clock import MonotonicWallClock
from sluice.quotas.quota_managers import ControllerQuotas, QuotaManagers

from .profile import HOLD, MUTE, WITHHOLD, Profile
from .request_timer import RequestTimer
from .throttle_histogram import ThrottleHistograms

if TYPE_CHECKING:
    from sluice.quotas.mutation_quota import ControllerMutationQuota


@runtime_checkable
class _TellsThrottleTime(Protocol):
    throttle_time_ms: int


class ThrottleJournal(Protocol):
    """The journal, as throttling is recorded in it."""

    def throttled(self, ctx: RequestContext, quota: str, throttle_ms: int) -> None:
        """Record that a quota throttles a client."""


class _Wait(DelayedOperation):
    """A connection that serves a throttle time, which the manager `by` demands."""

    __slots__ = ("_by", "_ctx")

    def __init__(self, ctx: RequestContext, by: ClientQuotaManager, throttle_ms: int) -> None:
        super().__init__(throttle_ms)
        self._ctx = ctx
        self._by = by
        by.queue_size += 1

    def on_complete(self) -> None:
        self._by.queue_size -= 1
        self.go_on()

    def go_on(self) -> None:
        """The throttle time is over."""
        raise NotImplementedError


class MutedChannel(_Wait):
    """A connection that is not read until its throttle time is over."""

    __slots__ = ()

    def go_on(self) -> None:
        self._ctx.connection.resume()


class HeldResponse(_Wait):
    """A response that goes out when its throttle time is over. It holds no record bytes of the request."""

    __slots__ = ("_finish",)

    def __init__(
        self, ctx: RequestContext, by: ClientQuotaManager, throttle_ms: int, finish: Callable[[], None]
    ) -> None:
        super().__init__(ctx, by, throttle_ms)
        self._finish = finish  # answers, or makes it wait again

    def go_on(self) -> None:
        connection = self._ctx.connection
        connection.waiting = False
        self._finish()
        if not connection.waiting:
            connection.resume()


class HeldFetch(_Wait):
    """A fetch that reads the log, and answers, when its throttle time is over."""

    __slots__ = ("_read", "_throttle_ms")

    def __init__(
        self, ctx: RequestContext, by: ClientQuotaManager, throttle_ms: int, read: Callable[[], FetchResponse]
    ) -> None:
        super().__init__(ctx, by, throttle_ms)
        self._read = read
        self._throttle_ms = throttle_ms

    def go_on(self) -> None:
        self._ctx.responder.complete(self._ctx, self._answer)

    def _answer(self) -> FetchResponse:
        response = self._read()
        response.throttle_time_ms = self._throttle_ms
        return response


class Throttler:
    """Charges requests to quotas and makes their connections wait."""

    def __init__(
        self,
        profile: Profile,
        quotas: QuotaManagers,
        controller: ControllerQuotas,
        throttled: DelayedOperationPurgatory,
        clock: Clock,
        histograms: ThrottleHistograms,
        journal: ThrottleJournal | None = None,
    ) -> None:
        self.profile = profile
        self.quotas = quotas
        self.controller = controller
        self.throttled = throttled
        self.time = MonotonicWallClock(quotas.produce.config.window_ms)
        self.request_timer = RequestTimer(clock)
        self._wall_ms = self._now_ms = 0  # of the last produce request
        self.histograms = histograms
        self._clock = clock
        self._journal = journal

    def finisher(self, api: ServedApi) -> Callable[[RequestContext, Message | Outcome], None]:
        """Return the function that charges and sends the responses of an API."""
        if api.cluster_action:
            return self.finish_cluster_action
        return {
            Charge.PRODUCE_BYTES: self.finish_produce,
            Charge.FETCH_BYTES: self.finish_fetch,
            Charge.MUTATIONS: self.finish_mutation,
            Charge.REQUEST: self.finish,
            Charge.NONE: _answer,
        }[api.charge]

    def holds_fetch(self, version: int) -> bool:
        """Whether a fetch of this version that is over quota waits before it reads, instead of being muted."""
        return self.profile.throttling_of(ApiKey.FETCH, version) is HOLD

    def largest_fetch(self, ctx: RequestContext) -> float:
        """Bytes that one fetch of this client may have: what an idle client gets at once, else a large one would be
        refused for ever.
        """
        if not self.quotas.fetch.quotas_enabled or not self.profile.cuts_fetches:
            return float_info.max
        return self.quotas.fetch.max_value_in_quota_window(ctx.session.user, ctx.session.client_id)

    def mutation_quota(self, ctx: RequestContext, strict_since: int) -> "ControllerMutationQuota | None":
        """What a request's topics have to ask before they are created or deleted; None where there is no quota.

        It may refuse requests from version `strict_since` on: their clients know the error.
        """
        manager = self.controller.mutation
        if manager is None:
            return None
        strict = ctx.version >= strict_since
        return manager.quota_for(ctx.session.user, ctx.session.client_id, self.time.at(ctx.now_ms), strict=strict)

    def refuses_auto_creation(self, ctx: RequestContext, partitions: int) -> bool:
        """Charges a topic that is created because a client asked for it; Kafka's brokers ask for it strictly."""
        quota = self.mutation_quota(ctx, strict_since=0)
        return quota is not None and not quota.record(partitions)

    # -- what is done with a response ----------------------------------------------------------------------------------

    def finish(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges any other request than those below, and answers it."""
        if self.quotas.request is None:
            ctx.responder.answer(ctx, response)
        else:
            self._finish(ctx, response, 0, None, exempt=False)

    def finish_cluster_action(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Answer a request that only brokers send; it is charged only if it is refused, as in Kafka."""
        if self.quotas.request is None:
            ctx.responder.answer(ctx, response)
        else:
            refused = ctx.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self._finish(ctx, response, 0, None, exempt=not refused)

    def finish_mutation(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a request whose handler has charged its mutations, and found the throttle time in the response."""
        throttle_ms = response.throttle_time_ms if isinstance(response, _TellsThrottleTime) else 0
        if self.quotas.request is None and not throttle_ms:
            ctx.responder.answer(ctx, response)
        else:
            self._finish(ctx, response, throttle_ms, self.controller.mutation, exempt=False)

    def finish_produce(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a produce request and answers it (acks=0: makes the connection wait without an answer)."""
        quotas = self.quotas
        if not quotas.produce.quotas_enabled and quotas.request is None:
            ctx.responder.answer(ctx, response)
            return
        if ctx.now_ms != self._wall_ms:  # most often the requests of one turn follow each other
            self._wall_ms = ctx.now_ms
            self._now_ms = self.time.at(ctx.now_ms)
        now_ms = self._now_ms
        throttle_ms = quotas.produce.record(ctx.session.user, ctx.session.client_id, ctx.request_bytes, now_ms)
        if throttle_ms <= 0 and quotas.request is None:
            ctx.responder.answer(ctx, response)
            told = (ctx.session.throttle_times or _throttle_times_of(ctx.session)).produce
            told.zeros += 1
            if now_ms >= told.put_by_ms:
                told.put_zeros(now_ms)
            return
        self._finish(ctx, response, throttle_ms, quotas.produce, exempt=response is NO_RESPONSE)

    def finish_fetch(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Charges a fetch by the size of its response and answers it; over quota, with an empty response.

        A fetch that is to be held (KIP-13) was charged before it read anything, by `charge_before_read`; here the
        charge is corrected to what is sent.
        """
        assert isinstance(response, FetchResponse)
        quotas = self.quotas
        if not quotas.fetch.quotas_enabled and quotas.request is None:
            fetch, ctx.fetch = ctx.fetch, None
            ctx.charged_bytes = 0
            if fetch is not None:
                fetch.sent(response)
            ctx.responder.answer(ctx, response)
            return
        body: list[bytes | memoryview] = []
        ctx.route.encode(response, body)
        body_bytes = sum(map(len, body))
        size = 4 + body_bytes  # Kafka's FetchResponse.sizeOf counts 4 more for its size
        fetch, ctx.fetch = ctx.fetch, None  # there is none where a session is not known
        charged_bytes, ctx.charged_bytes = ctx.charged_bytes, 0
        throttling = self.profile.throttling_of(ApiKey.FETCH, ctx.version)
        now_ms = self.time.at(ctx.now_ms)
        byte_ms = request_ms = 0
        if fetch is not None and fetch.is_from_follower:
            self._charge_time(ctx, now_ms, exempt=True)  # what followers fetch is no client's
        elif throttling is HOLD:  # it has been served, so this is for the next request to feel
            self.quotas.fetch.record_no_throttle(ctx.session.user, ctx.session.client_id, size - charged_bytes, now_ms)
            self._charge_time_no_throttle(ctx, now_ms)
        else:
            request_ms = self._charge_time(ctx, now_ms, exempt=False) if throttling is MUTE else 0
            byte_ms = self.quotas.fetch.record(ctx.session.user, ctx.session.client_id, size, now_ms)
        throttle_ms = max(byte_ms, request_ms)
        if (throttle_ms <= 0 or throttling is WITHHOLD) and fetch is not None and fetch.sent(response):
            body = []
            ctx.route.encode(response, body)
            body_bytes = sum(map(len, body))
        if throttling is WITHHOLD and (throttle_ms > 0 or self.quotas.request is not None):
            self._withhold(ctx, response, byte_ms, self.quotas.fetch)
        elif throttle_ms <= 0:
            ctx.responder.send(ctx, body, body_bytes)
            if self.quotas.fetch.quotas_enabled and not response.throttle_time_ms:  # it may have been held before
                told = (ctx.session.throttle_times or _throttle_times_of(ctx.session)).fetch
                told.zeros += 1
                if now_ms >= told.put_by_ms:
                    told.put_zeros(now_ms)
        else:
            by = self._note(ctx, self.quotas.fetch, byte_ms, request_ms, now_ms)
            # What is not sent costs nothing: the client comes back for the same bytes.
            self.quotas.fetch.unrecord(ctx.session.user, ctx.session.client_id, size, now_ms)
            ctx.responder.answer(ctx, _throttled(ctx, fetch, throttle_ms))
            self._wait(ctx, MutedChannel(ctx, by, throttle_ms))

    def charge_before_read(
        self, ctx: RequestContext, size: int, read: Callable[[], FetchResponse]
    ) -> FetchResponse | Outcome:
        """Charges a fetch for the `size` it is about to read, and reads: at once, or when its throttle time is over."""
        ctx.charged_bytes = size
        now_ms = self.time.at(ctx.now_ms)
        byte_ms = self.quotas.fetch.record(ctx.session.user, ctx.session.client_id, size, now_ms)
        request_ms = self._charge_time(ctx, now_ms, exempt=False)
        throttle_ms = max(byte_ms, request_ms)
        if throttle_ms <= 0:
            return read()
        by = self._note(ctx, self.quotas.fetch, byte_ms, request_ms, now_ms)
        self._wait(ctx, HeldFetch(ctx, by, throttle_ms, read))
        return PARKED

    # -- how all of them wait ------------------------------------------------------------------------------------------

    def _finish(
        self,
        ctx: RequestContext,
        response: Message | Outcome,
        other_ms: int,
        manager: ClientQuotaManager | None,
        *,
        exempt: bool,
    ) -> None:
        """Charges request time, and answers; `manager` demands a wait of `other_ms` for something else."""
        throttling = self.profile.throttling_of(ctx.route.api_key, ctx.version)
        if throttling is WITHHOLD and not exempt:
            self._withhold(ctx, response, other_ms, manager)
            return
        now_ms = self.time.at(ctx.now_ms)
        request_ms = self._charge_time(ctx, now_ms, exempt=exempt)
        throttle_ms = max(other_ms, request_ms)
        if throttle_ms <= 0:
            self._answer(ctx, response, exempt=exempt)
            return
        by = self._note(ctx, manager, other_ms, request_ms, now_ms)
        _tell(response, throttle_ms)
        if throttling is MUTE:
            self._answer(ctx, response, exempt=exempt)
            self._wait(ctx, MutedChannel(ctx, by, throttle_ms))
        else:
            self._wait(ctx, HeldResponse(ctx, by, throttle_ms, lambda: ctx.responder.answer(ctx, response)))

    def _withhold(
        self,
        ctx: RequestContext,
        response: Message | Outcome,
        other_ms: int,
        manager: ClientQuotaManager | None,
    ) -> None:
        """As up to Kafka 1.1: waits for the one quota, then is charged to the other and waits for that."""

        def charge_time() -> None:
            now_ms = self.time.at(ctx.now_ms)
            request_ms = self._charge_time(ctx, now_ms, exempt=False)
            _tell(response, other_ms + request_ms)
            if request_ms <= 0:
                self._answer(ctx, response)
                return
            by = self._note(ctx, None, 0, request_ms, now_ms)
            self._wait(ctx, HeldResponse(ctx, by, request_ms, lambda: ctx.responder.answer(ctx, response)))

        if other_ms <= 0:
            charge_time()
            return

        def go_on() -> None:
            if not ctx.connection.closed:
                ctx.now_ms = self._clock.wall_ms()
                self.request_timer.resume()
                charge_time()

        by = self._note(ctx, manager, other_ms, 0, self.time.at(ctx.now_ms))
        if self.quotas.request is not None:
            self.request_timer.pause(ctx)
        self._wait(ctx, HeldResponse(ctx, by, other_ms, go_on))

    def _answer(self, ctx: RequestContext, response: Message | Outcome, *, exempt: bool = False) -> None:
        ctx.responder.answer(ctx, response)
        if not exempt:
            self._charge_time_no_throttle(ctx, self.time.at(ctx.now_ms))

    def _charge_time(self, ctx: RequestContext, now_ms: int, *, exempt: bool) -> int:
        """Charges what was worked until now; returns how long the client must wait for it."""
        request = self.quotas.request
        if request is None:
            return 0
        used = request.percentage(self.request_timer.take_nanos(ctx))
        if exempt:
            request.record_exempt(used, now_ms)
            return 0
        return request.record(ctx.session.user, ctx.session.client_id, used, now_ms)

    def _charge_time_no_throttle(self, ctx: RequestContext, now_ms: int) -> None:
        request = self.quotas.request
        if request is not None:
            used = request.percentage(self.request_timer.take_nanos(ctx))
            request.record_no_throttle(ctx.session.user, ctx.session.client_id, used, now_ms)

    def _note(
        self, ctx: RequestContext, manager: ClientQuotaManager | None, other_ms: int, request_ms: int, now_ms: int
    ) -> ClientQuotaManager:
        """Tells the quota that demands the longer wait, of two equal ones that of request time, as in Kafka; which is
        returned.
        """
        by = manager if other_ms > request_ms else self.quotas.request
        assert by is not None, "a wait that no quota demands"
        throttle_ms = max(other_ms, request_ms)
        by.record_throttle_time(ctx.session.user, ctx.session.client_id, throttle_ms, now_ms)
        if ctx.route.api_key == ApiKey.PRODUCE:
            (ctx.session.throttle_times or _throttle_times_of(ctx.session)).produce.record(throttle_ms, now_ms)
        elif ctx.route.api_key == ApiKey.FETCH:
            (ctx.session.throttle_times or _throttle_times_of(ctx.session)).fetch.record(throttle_ms, now_ms)
        self.histograms.add(ctx.route.api_name, ctx.session.user, ctx.session.client_id, throttle_ms, now_ms)
        if self._journal is not None:
            self._journal.throttled(ctx, by.kind, throttle_ms)
        return by

    def _wait(self, ctx: RequestContext, operation: DelayedOperation) -> None:
        ctx.connection.park(operation.force_complete)
        ctx.connection.mute()
        self.throttled.delay(operation)


def _throttle_times_of(session: Session) -> ClientThrottleTimes:
    session.throttle_times = ClientThrottleTimes()
    return session.throttle_times


def _answer(ctx: RequestContext, response: Message | Outcome) -> None:
    ctx.responder.answer(ctx, response)


def _tell(response: Message | Outcome, throttle_ms: int) -> None:
    """Puts the throttle time into a response that has a field for it."""
    if isinstance(response, _TellsThrottleTime):
        response.throttle_time_ms = throttle_ms


def _throttled(ctx: RequestContext, fetch: FetchInProgress | None, throttle_ms: int) -> FetchResponse:
    if fetch is not None:
        return fetch.throttled(throttle_ms)
    ctx.error_code = 0  # as in Kafka the client is not told that its session is none
    return FetchResponse(throttle_time_ms=throttle_ms)
