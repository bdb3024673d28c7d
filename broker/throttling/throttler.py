"""Charges requests to quotas (Kafka's KafkaApis and RequestHandlerHelper), and throttles clients above a quota.

The charges of a request:

- Bytes (KIP-13). A Produce is charged its size, header and body, after its records are appended. A Fetch is charged the
  size of its response.
- Controller mutations (KIP-599). The handlers of CreateTopics, CreatePartitions and DeleteTopics charge them, and put
  the throttle time into the response.
- Request time (KIP-124): the processing time of every request. As in Kafka, fetches of followers, Produce with acks=0,
  requests that only brokers send, and SASL are exempt.

A request above a quota is processed, and the client is throttled until its average over the windows is back at the
quota:

    throttle time = charged in the windows / quota - length of the windows

A request above two quotas is throttled for the longer time. `quota.profile` selects a mode of `throttling_mode` for
each request version (`profile`).
"""

from collections.abc import Callable
from functools import cache
from sys import float_info
from typing import TYPE_CHECKING

from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, ServedApi
from sluice.clock import Clock
from sluice.protocol.apis import ApiKey
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.quotas.quota_managers import ControllerQuotas, QuotaManagers

from .profile import HOLD, MUTE, WITHHOLD, Profile
from .request_charges import RequestCharges, ThrottleJournal, throttle_times_of
from .throttle_histogram import ThrottleHistograms
from .throttling_mode import Hold, Mute, ThrottlingMode, Withhold, throttle_time_of

if TYPE_CHECKING:
    from sluice.quotas.mutation_quota import ControllerMutationQuota


class Throttler:
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
        charges = RequestCharges(quotas, throttled, clock, histograms, journal)
        self.profile = profile
        self.quotas = quotas
        self.controller = controller
        self.histograms = histograms
        self.time = charges.time
        self.request_timer = charges.request_timer
        self._hold = Hold(charges)
        self._modes = {HOLD: self._hold, WITHHOLD: Withhold(charges), MUTE: Mute(charges)}
        self._fetch_mode = cache(lambda version: self._modes[profile.throttling_of(ApiKey.FETCH, version)])
        self.holds_fetch: Callable[[int], bool] = cache(lambda version: self._fetch_mode(version) is self._hold)
        self._wall_ms = self._now_ms = 0  # of the last produce request

    def finisher(self, api: ServedApi) -> Callable[[RequestContext, Message | Outcome], None]:
        if api.cluster_action:
            return self.finish_cluster_action
        return {
            Charge.PRODUCE_BYTES: self.finish_produce,
            Charge.FETCH_BYTES: self.finish_fetch,
            Charge.SHARE_FETCH_BYTES: self.finish_share_fetch,
            Charge.MUTATIONS: self.finish_mutation,
            Charge.REQUEST: self.finish,
            Charge.NONE: _answer,
        }[api.charge]

    def charge_before_read(
        self, ctx: RequestContext, size: int, read: Callable[[int], Message | Outcome]
    ) -> Message | Outcome:
        """Charge a held fetch `size` bytes; after its throttle time, call `read` with that time in ms."""
        return self._hold.charge_before_read(ctx, size, read)

    def largest_fetch(self, ctx: RequestContext) -> float:
        """Return the bytes that the quota grants an idle client at once; a larger response would never be sent."""
        if not self.quotas.fetch.quotas_enabled or not self.profile.cuts_fetches:
            return float_info.max
        return self.quotas.fetch.max_value_in_quota_window(ctx.session.user, ctx.session.client_id)

    def mutation_quota(self, ctx: RequestContext, strict_since: int) -> "ControllerMutationQuota | None":
        """Return the quota for created and deleted partitions, if any.

        From version `strict_since` on, requests may be rejected with THROTTLING_QUOTA_EXCEEDED. Older ones, whose
        clients do not support the error, are processed and throttled.
        """
        manager = self.controller.mutation
        if manager is None:
            return None
        strict = ctx.version >= strict_since
        return manager.quota_for(ctx.session.user, ctx.session.client_id, self.time.at(ctx.now_ms), strict=strict)

    def refuses_auto_creation(self, ctx: RequestContext, partitions: int) -> bool:
        """Charge an automatic topic creation; return whether the quota rejects it.

        The quota is strict, because Kafka's brokers send the latest CreateTopics.
        """
        quota = self.mutation_quota(ctx, strict_since=0)
        return quota is not None and not quota.record(partitions)

    # -- finishers: each charges one kind of request and sends its response -------------------------------------------

    def finish(self, ctx: RequestContext, response: Message | Outcome) -> None:
        if self.quotas.request is None:
            ctx.responder.answer(ctx, response)
        else:
            self._mode(ctx).finish(ctx, response, 0, None)

    def finish_cluster_action(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Finish a request that only brokers send, exempt if authorized, as in Kafka."""
        if self.quotas.request is None:
            ctx.responder.answer(ctx, response)
        elif ctx.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            self._mode(ctx).finish(ctx, response, 0, None)
        else:
            self._mode(ctx).finish_exempt(ctx, response, 0, None)

    def finish_mutation(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Finish a request whose handler charged its mutations and set the throttle time."""
        throttle_ms = throttle_time_of(response)
        if self.quotas.request is None and not throttle_ms:
            ctx.responder.answer(ctx, response)
        else:
            self._mode(ctx).finish(ctx, response, throttle_ms, self.controller.mutation)

    def finish_produce(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Charge a Produce; with acks=0 there is no response, but the connection is throttled."""
        quotas = self.quotas
        if not quotas.produce.quotas_enabled and quotas.request is None:
            ctx.responder.answer(ctx, response)
            return
        if ctx.now_ms != self._wall_ms:  # requests of one read often have the same time
            self._wall_ms = ctx.now_ms
            self._now_ms = self.time.at(ctx.now_ms)
        now_ms = self._now_ms
        throttle_ms = quotas.produce.record(ctx.session.user, ctx.session.client_id, ctx.request_bytes, now_ms)
        if throttle_ms <= 0 and quotas.request is None:
            ctx.responder.answer(ctx, response)
            stats = (ctx.session.throttle_times or throttle_times_of(ctx.session)).produce
            stats.zeros += 1
            if now_ms >= stats.put_by_ms:
                stats.put_zeros(now_ms)
        elif response is NO_RESPONSE:
            self._mode(ctx).finish_exempt(ctx, response, throttle_ms, quotas.produce)
        else:
            self._mode(ctx).finish(ctx, response, throttle_ms, quotas.produce)

    def finish_fetch(self, ctx: RequestContext, response: Message | Outcome) -> None:
        assert isinstance(response, Message)
        if self.quotas.fetch.quotas_enabled or self.quotas.request is not None:
            self._fetch_mode(ctx.version).finish_fetch(ctx, response)
            return
        fetch, ctx.fetch = ctx.fetch, None
        ctx.charged_bytes = 0
        if fetch is not None:
            fetch.sent(response)
        ctx.responder.answer(ctx, response)

    def finish_share_fetch(self, ctx: RequestContext, response: Message | Outcome) -> None:
        """Charge the size of a response as KIP-219 does; without a session, charge nothing."""
        if ctx.fetch is None:
            self.finish(ctx, response)
        elif self.quotas.fetch.quotas_enabled or self.quotas.request is not None:
            assert isinstance(response, Message)
            self._modes[MUTE].finish_fetch(ctx, response)
        else:
            self.finish_fetch(ctx, response)

    def _mode(self, ctx: RequestContext) -> ThrottlingMode:
        return self._modes[self.profile.throttling_of(ctx.route.api_key, ctx.version)]


def _answer(ctx: RequestContext, response: Message | Outcome) -> None:
    ctx.responder.answer(ctx, response)
