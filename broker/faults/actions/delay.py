"""`delay` and `hold`: delay a request before it is handled, or its response, for a time or until its release."""

from random import Random  # noqa: TID251  (the type of an argument)
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import Duration, RuleProblem, parse_ms
from sluice.broker.faults.requests.fault_execution import NEVER_MS, FaultExecution, Reply, RequestAction, RuleHit

_FIXED, _UNIFORM, _EXPONENTIAL, _NORMAL = {"ms"}, {"min", "max"}, {"mean"}, {"mean", "stddev"}
_DISTRIBUTIONS = (_FIXED, _UNIFORM, _EXPONENTIAL, _NORMAL)


class Delay(RequestAction, frozen=True, tag="delay"):
    """Delays a request or its response for a constant or random time."""

    DRAWS: ClassVar[bool] = True

    ms: Annotated[Duration | None, Meta(description="constant delay")] = None
    min: Annotated[Duration | None, Meta(description="minimum of a uniform distribution; requires max")] = None
    max: Annotated[Duration | None, Meta(description="maximum of a uniform distribution; requires min")] = None
    mean: Annotated[Duration | None, Meta(description="mean of an exponential or, with stddev, normal one")] = None
    stddev: Annotated[Duration | None, Meta(description="standard deviation; negative delays count as 0")] = None
    when: Annotated[
        Literal["before", "after"], Meta(description="delay the request before its handling, or its response")
    ] = "before"

    def check(self, match: Match) -> None:
        given = {name for name in ("ms", "min", "max", "mean", "stddev") if getattr(self, name) is not None}
        if given not in _DISTRIBUTIONS:
            has = ", ".join(sorted(given)) or "none of them"
            raise RuleProblem("action", f"expected ms, or min and max, or mean, or mean and stddev; got {has}")
        for name in sorted(given):
            self._ms(name)
        if given == _UNIFORM and self._ms("min") > self._ms("max"):
            raise RuleProblem("action.max", f"expected at least min ({self.min}), got {self.max}")

    def draw(self, random: Random) -> float:
        if self.ms is not None:
            return self._ms("ms")
        if self.min is not None:
            return random.uniform(self._ms("min"), self._ms("max"))
        mean_ms = self._ms("mean")
        if self.stddev is not None:
            return max(0.0, random.gauss(mean_ms, self._ms("stddev")))
        return random.expovariate(1 / mean_ms) if mean_ms else 0.0

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        return intercepted.wait_before(hit.fault, hit.drawn) if self.when == "before" else None

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        return intercepted.wait_after(hit.fault, hit.drawn, reply) if self.when == "after" else reply

    def _ms(self, name: str) -> float:
        value = getattr(self, name)
        assert value is not None
        return parse_ms(value, f"action.{name}")


class Hold(RequestAction, frozen=True, tag="hold"):
    """Holds requests, or their responses, until the rule releases them, ends or is removed."""

    when: Annotated[
        Literal["before", "after"], Meta(description="hold the request before its handling, or its response")
    ] = "before"

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        return intercepted.wait_before(hit.fault, NEVER_MS, is_held=True) if self.when == "before" else None

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        if self.when != "after":
            return reply
        return intercepted.wait_after(hit.fault, NEVER_MS, reply, is_held=True)
