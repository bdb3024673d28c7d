"""`throttle`: answers tell a throttle time that no quota demands. Does the client obey?"""

from typing import TYPE_CHECKING, Annotated, ClassVar

from msgspec import Meta

from sluice.broker.faults.matching.durations import Duration, parse_ms
from sluice.broker.faults.matching.errors import RuleProblem
from sluice.broker.faults.matching.match import Match
from sluice.protocol.apis import API_KEYS

from .action import RequestAction, RuleHit

if TYPE_CHECKING:
    from sluice.broker.faults.interfaces import InterceptedRequest

_INT32_MAX = 2**31 - 1


class Throttle(RequestAction, frozen=True, tag="throttle"):
    """Tells a throttle time, in place of what a quota demands if one does; it is the journal's of the answer, too."""

    SUMMARY: ClassVar[str] = "Tells a throttle time, with or without muting the connection for as long."

    throttle_time_ms: Annotated[Duration, Meta(description="what the answer says")]
    mute: Annotated[
        bool, Meta(description="whether the connection is not read for as long, as by a broker that means it (KIP-219)")
    ] = True

    def check(self, match: Match) -> None:
        if self._ms > _INT32_MAX:
            raise RuleProblem(
                "action.throttle_time_ms", f"{self.throttle_time_ms}: at most {_INT32_MAX} ms can be told"
            )

    def can_hit(self, api_key: int, version: int) -> bool:
        return API_KEYS[api_key].has_throttle_time(version)

    def answering(
        self, intercepted: "InterceptedRequest", hit: RuleHit, body: list[bytes | memoryview]
    ) -> list[bytes | memoryview]:
        return intercepted.set_throttle_time(body, round(self._ms))

    def sent(self, intercepted: "InterceptedRequest", hit: RuleHit) -> None:
        if self.mute:
            intercepted.mute(hit.fault, self._ms)

    @property
    def _ms(self) -> float:
        return parse_ms(self.throttle_time_ms, "action.throttle_time_ms")
