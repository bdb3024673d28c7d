"""Charges requests to quotas (Kafka's KafkaApis and RequestHandlerHelper), and decides when responses are sent.

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
each request version (`profile`). Nothing here sends or waits: the exchange carries out the `Verdict`.

With `sluice.quota.mode=shadow` requests are charged alike, and throttle times are recorded, but no client is throttled.
"""

from collections.abc import Callable, Mapping
from sys import float_info

from sluice.broker.journal.journal import Journal
from sluice.broker.requests.context import NO_RESPONSE, FetchOutcome, Outcome, RequestContext
from sluice.broker.requests.served_api import Charge, ServedApi
from sluice.clock import Clock
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.quotas.manager import ClientQuotaManager
from sluice.quotas.mutation_quota import ControllerMutationQuota
from sluice.quotas.quota_managers import ControllerQuotas, QuotaManagers

from .profile import Profile, Throttling
from .request_charges import RequestCharges, ThrottleHistograms, throttle_times_of
from .throttling_mode import MODES, ThrottlingMode, charge_before_read, charge_exempt, correct_charge_before_read
from .verdict import Encoded, HeldRead, Verdict

_SIZE_BYTES = 4  # charged with a fetch response, as in Kafka's FetchResponse.sizeOf

# APIs that change partitions, with the first version whose clients know THROTTLING_QUOTA_EXCEEDED.
MUTATIONS_STRICT_SINCE: Mapping[int, int] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.CREATE_PARTITIONS: 3,
    ApiKey.DELETE_TOPICS: 5,
}

Response = Message | Outcome
# Decides about a response; None if no quota applies and it is sent at once.
ChargeResponse = Callable[[RequestContext, Response], Verdict | HeldRead | Encoded | None]


class Throttler:
    def __init__(
        self,
        profile: Profile,
        quotas: QuotaManagers,
        controller: ControllerQuotas,
        clock: Clock,
        histograms: ThrottleHistograms,
        journal: Journal | None = None,
        *,
        is_shadow: bool = False,
    ) -> None:
        """`is_shadow`: record throttle times, but throttle no client."""
        self._charges = charges = RequestCharges(quotas, clock, histograms, journal, is_shadow=is_shadow)
        self.is_shadow = is_shadow
        self.profile = profile
        self.quotas = quotas
        self.controller = controller
        self.histograms = histograms
        self.time = charges.time
        self.request_timer = charges.request_timer
        self._modes: dict[int, list[ThrottlingMode]] = {}  # API key -> mode of each version
        self._fetch_modes = self._modes_of(ApiKey.FETCH)
        # By version: whether a throttle delays the read (KIP-13).
        self.holds_fetch = [mode.throttle_fetch is None for mode in self._fetch_modes]
        # User and client id -> the bytes that the quota grants an idle client at once: a larger fetch is never sent.
        cuts = profile.cuts_fetches and not is_shadow
        self.largest_fetch = quotas.fetch.max_value_in_quota_window if cuts else lambda _, __: float_info.max
        self._wall_ms = self._now_ms = 0  # of the last request that was charged bytes

    def charge_of(self, api: ServedApi) -> ChargeResponse:
        """Return the function that charges the requests of an API."""
        if api.cluster_action:
            return self._charge_cluster_action
        charges: dict[Charge, ChargeResponse] = {
            Charge.PRODUCE_BYTES: self._charge_produce,
            Charge.FETCH_BYTES: self._charge_fetch,  # type: ignore[dict-item]  # a Fetch has a response
            Charge.SHARE_FETCH_BYTES: self._charge_share_fetch,
            Charge.MUTATIONS: self._charge_mutation,
            Charge.REQUEST: self._charge_request,
            Charge.NONE: lambda _, __: None,
        }
        return charges[api.charge]

    def charge_encoding(self, ctx: RequestContext) -> None:
        """Charge the time since the last charge, which throttles only the next request."""
        self._charges.charge_time_no_throttle(ctx, self.time.at(ctx.now_ms))

    def charge_before_read(self, ctx: RequestContext, size: int, read: Callable[[int], Response]) -> Response:
        """Charge a held fetch `size` bytes; `read` gets its throttle time in ms, now or after that time."""
        return charge_before_read(self._charges, ctx, size, read)

    def delays_fetch(self, version: int) -> bool:
        """Return whether there are quotas, and a throttle delays the read of a Fetch."""
        has_quotas = self.quotas.fetch.quotas_enabled or self.quotas.request is not None
        return has_quotas and self.holds_fetch[version]

    def mutation_quota(self, ctx: RequestContext) -> ControllerMutationQuota | None:
        """Return the quota for created and deleted partitions, if any.

        If it is strict, requests may be rejected with THROTTLING_QUOTA_EXCEEDED. Those in older versions, whose clients
        do not know the error, are processed and throttled. Automatic creation is strict, because Kafka's brokers send
        the latest CreateTopics.
        """
        manager = self.controller.mutation
        if manager is None:
            return None
        strict = ctx.version >= MUTATIONS_STRICT_SINCE.get(ctx.route.api_key, 0) and not self.is_shadow
        return manager.quota_for(ctx.session.user, ctx.session.client_id, self.time.at(ctx.now_ms), strict=strict)

    def refuses_auto_creation(self, ctx: RequestContext, partitions: int) -> bool:
        """Charge an automatic topic creation; return whether the quota rejects it."""
        quota = self.mutation_quota(ctx)
        return quota is not None and not quota.record(partitions)

    # -- the charges of one kind of request each ---------------------------------------------------------------------

    def _charge_request(self, ctx: RequestContext, response: Response) -> Verdict | None:
        return None if self.quotas.request is None else self._decide(ctx, response, 0, None)

    def _charge_cluster_action(self, ctx: RequestContext, response: Response) -> Verdict | None:
        """Charge a request that only brokers send: exempt if authorized, as in Kafka."""
        if self.quotas.request is None:
            return None
        if ctx.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            return self._decide(ctx, response, 0, None)
        return charge_exempt(self._charges, ctx, response, 0, None, self._mode(ctx).holds)

    def _charge_mutation(self, ctx: RequestContext, response: Response) -> Verdict | None:
        """Charge a request whose handler charged its mutations and set the throttle time."""
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if self.quotas.request is None and not throttle_ms:
            return None
        if self.is_shadow and throttle_ms:
            response.throttle_time_ms = 0  # type: ignore[union-attr]  # it has this field
        return self._decide(ctx, response, throttle_ms, self.controller.mutation)

    def _charge_produce(self, ctx: RequestContext, response: Response) -> Verdict | None:
        """Charge a Produce; with acks=0 there is no response, but the connection is throttled."""
        quotas = self.quotas
        if not quotas.produce.quotas_enabled and quotas.request is None:
            return None
        if ctx.now_ms != self._wall_ms:  # requests of one read often have the same time
            self._move_time(ctx.now_ms)
        now_ms = self._now_ms
        session = ctx.session
        throttle_ms = quotas.produce.record(session.user, session.client_id, ctx.request_bytes, now_ms)
        if throttle_ms <= 0 and quotas.request is None:
            stats = (session.throttle_times or throttle_times_of(session)).produce
            stats.zeros += 1
            if now_ms >= stats.put_by_ms:
                stats.put_zeros(now_ms)
            return None
        if response is NO_RESPONSE:
            return charge_exempt(self._charges, ctx, response, throttle_ms, quotas.produce, self._mode(ctx).holds)
        return self._decide(ctx, response, throttle_ms, quotas.produce)

    def _charge_fetch(
        self, ctx: RequestContext, outcome: Message | FetchOutcome | HeldRead, mode: ThrottlingMode | None = None
    ) -> Verdict | HeldRead | Encoded | None:
        """Charge the size of a Fetch response, except to a follower; in the mode of its version if `mode` is None.

        An empty response, to a client above its quota, is no part of the fetch session.
        """
        quotas, session = self.quotas, ctx.session
        by_size = quotas.fetch
        fetch = None
        response: Message
        if type(outcome) is FetchResponse:  # first: other classes are slower to exclude
            response = outcome
        elif isinstance(outcome, FetchOutcome):
            fetch, response = outcome, outcome.response
        elif isinstance(outcome, HeldRead):  # charged already
            return outcome
        else:
            response = outcome
        if not by_size.quotas_enabled and quotas.request is None:
            if fetch is None:
                return None
            fetch.sent()
            return Verdict(response)
        body: list[bytes | memoryview]
        if ctx.long is None:  # cheaper than `encode`
            body = []
            ctx.route.encode(response, body)
        else:
            body = ctx.encode(response)
        size = 0
        for part in body:  # cheaper than `sum`, as most have two parts
            size += len(part)
        if ctx.now_ms != self._wall_ms:
            self._move_time(ctx.now_ms)
        now_ms = self._now_ms
        if fetch is not None and fetch.is_from_follower:
            self._charges.charge_time_exempt(ctx, now_ms)
        else:
            mode = mode or self._fetch_modes[ctx.version]
            charged = _SIZE_BYTES + size
            if mode.throttle_fetch is None:
                correct_charge_before_read(self._charges, ctx, fetch, charged, now_ms)
            else:
                byte_ms = by_size.record(session.user, session.client_id, charged, now_ms)
                if byte_ms > 0 or quotas.request is not None:
                    verdict = mode.throttle_fetch(self._charges, ctx, fetch, response, byte_ms, charged, now_ms)
                    if verdict is not None:
                        if fetch is not None and verdict.response is response:
                            fetch.sent()
                        return verdict
        # A throttle time is recorded already.
        if by_size.quotas_enabled and not response.throttle_time_ms:  # type: ignore[attr-defined]  # both have it
            stats = (session.throttle_times or throttle_times_of(session)).fetch
            stats.zeros += 1
            if now_ms >= stats.put_by_ms:
                stats.put_zeros(now_ms)
        if fetch is not None and fetch.sent():
            return Verdict(response)  # encoded again, with the id of the session that it opens
        return body, size

    def _move_time(self, wall_ms: int) -> None:
        self._wall_ms = wall_ms
        self._now_ms = self.time.at(wall_ms)

    def _charge_share_fetch(self, ctx: RequestContext, outcome: Response) -> Verdict | HeldRead | Encoded | None:
        """Charge the size of a response as KIP-219 does; without a session, charge no bytes."""
        if not isinstance(outcome, FetchOutcome):
            return self._charge_request(ctx, outcome)
        return self._charge_fetch(ctx, outcome, MODES[Throttling.MUTE])

    def _decide(
        self, ctx: RequestContext, response: Response, other_ms: int, manager: ClientQuotaManager | None
    ) -> Verdict:
        mode = self._mode(ctx)
        return mode.charge(self._charges, ctx, response, other_ms, manager, mode.holds)

    def _mode(self, ctx: RequestContext) -> ThrottlingMode:
        return (self._modes.get(ctx.route.api_key) or self._modes_of(ctx.route.api_key))[ctx.version]

    def _modes_of(self, api_key: int) -> list[ThrottlingMode]:
        versions = range(API_KEYS[api_key].max_version + 1)
        modes = self._modes[api_key] = [self._mode_of(api_key, version) for version in versions]
        return modes

    def _mode_of(self, api_key: int, version: int) -> ThrottlingMode:
        return MODES[Throttling.MUTE if self.is_shadow else self.profile.throttling_of(api_key, version)]
