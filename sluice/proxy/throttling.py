"""The quotas of a proxy, in addition to those of the upstream broker: the longer throttle time applies.

Different from a broker of our own:

- A Fetch is charged when the upstream has read it. In `HOLD` (KIP-13) its response then waits for the throttle time. In
  `MUTE` (KIP-219) an empty response takes its place, and the upstream sends the records again.
- Controller mutations are counted from the request (`mutations`).
- Request time (KIP-124) cannot be limited: the time of the upstream's threads is not visible from outside, and a
  response also waits for other replicas, members or records.
"""

from functools import partial
from typing import cast

from sluice.broker.requests.context import FetchOutcome, RequestContext
from sluice.broker.requests.served_api import ServedApi
from sluice.broker.throttling.profile import Throttling
from sluice.broker.throttling.scope import EVERYTHING
from sluice.broker.throttling.throttler import ChargeResponse, Response, Throttler
from sluice.broker.throttling.throttling_mode import MODES, ThrottlingMode, hold_above_quota
from sluice.broker.throttling.verdict import Encoded, HeldRead, Verdict
from sluice.protocol.apis import ApiKey
from sluice.proxy.upstream.connection import ForwardedContext

REQUEST_TIME_REFUSAL = (
    "request_percentage is not possible in a proxy: it cannot measure the time of the upstream brokers' threads"
)
_HOLD = MODES[Throttling.HOLD]
_HOLD_RESPONSE = ThrottlingMode(_HOLD.holds, _HOLD.charge, hold_above_quota)


class ForwardedThrottler(Throttler):
    scope = EVERYTHING

    def charge_of(self, api: ServedApi) -> ChargeResponse:
        charge = super().charge_of(api)
        return partial(_charge_unless_exempt, charge) if self.scope else charge

    def _mode_of(self, api_key: int, version: int) -> ThrottlingMode:
        mode = super()._mode_of(api_key, version)
        return _HOLD_RESPONSE if mode is _HOLD and api_key == ApiKey.FETCH else mode

    def _charge_mutation(self, ctx: RequestContext, response: Response) -> Verdict | None:
        """Mute the client for the proxy's own throttle time; the upstream mutes its connection by itself."""
        mutations = cast(ForwardedContext, ctx).mutations
        if mutations is None or not mutations.throttle_ms:
            return None
        return self._decide(ctx, response, mutations.throttle_ms, self.controller.mutation)


def _charge_unless_exempt(
    charge: ChargeResponse, ctx: RequestContext, response: Response
) -> Verdict | HeldRead | Encoded | None:
    if not cast(ForwardedContext, ctx).is_exempt:
        return charge(ctx, response)
    return Verdict(response.response) if isinstance(response, FetchOutcome) else None
