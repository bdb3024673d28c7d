"""`throttle`: throttle times without a quota."""

from typing import Annotated

from msgspec import Meta

from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import Duration, RuleProblem, parse_ms
from sluice.broker.faults.requests.fault_execution import FaultExecution, RequestAction, RuleHit
from sluice.protocol.apis import API_KEYS

_INT32_MAX = 2**31 - 1


class Throttle(RequestAction, frozen=True, tag="throttle"):
    """Sets the throttle time of responses, also instead of a quota's; can mute the connection for that time."""

    throttle_time_ms: Annotated[Duration, Meta(description="throttle time in the response")]
    mute: Annotated[
        bool, Meta(description="whether the connection is muted for that time, as with a real quota (KIP-219)")
    ] = True

    def check(self, match: Match) -> None:
        if self._ms > _INT32_MAX:
            raise RuleProblem(
                "action.throttle_time_ms", f"expected at most {_INT32_MAX} ms, got {self.throttle_time_ms}"
            )

    def can_hit(self, api_key: int, version: int) -> bool:
        return API_KEYS[api_key].has_throttle_time(version)

    def answering(
        self, intercepted: FaultExecution, hit: RuleHit, body: list[bytes | memoryview]
    ) -> list[bytes | memoryview]:
        return intercepted.set_throttle_time(body, round(self._ms))

    def sent(self, intercepted: FaultExecution, hit: RuleHit) -> None:
        if self.mute:
            intercepted.mute(hit.fault, self._ms)

    @property
    def _ms(self) -> float:
        return parse_ms(self.throttle_time_ms, "action.throttle_time_ms")
