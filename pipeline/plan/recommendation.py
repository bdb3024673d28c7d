"""Recommended quotas: overrides for the clients that need most, and one default for all others.

"Fixed quotas for everyone but the top k outliers which can justify custom quotas" (KIP-13). A quota applies on each
broker, so the broker where a client needs most decides.

- A default is based on at least ten clients with a known demand. With fewer, each of them has an override. A default
  that is requested nevertheless is at least the need of half of the clients.
- Each quota has a headroom above the need, which is larger for clients whose demand varies.
- A demand that is a lower bound gives no override. The default is at least what such a client needed in the log; with a
  throttled client there is none.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sluice.pipeline.charges.charges import By, Client, Kind

from .analysis import Finding, readable
from .demand import Confidence, Demand

KEYS: dict[Kind, str] = {"Produce": "producer_byte_rate", "Fetch": "consumer_byte_rate"}
LEAST_CLIENTS = 10  # on which a default is based


class Policy(NamedTuple):
    most_overrides: int = 5
    headroom: float = 0.25  # of a known demand
    always_default: bool = False  # also from few clients, or beside throttled ones


class Need(NamedTuple):
    """The quota that one client needs, and its outcome with that quota."""

    user: str
    client_id: str
    quota: int
    broker: str  # where the client needs this quota
    brokers: int  # number that received requests of the client
    offered_rate: float  # bytes/s on `broker`, on average
    delay_p99_ms: int
    throttled_share: float
    confidence: Confidence = "known"
    uncertainty: float = 0.0

    @property
    def is_known(self) -> bool:
        return self.confidence in ("known", "uncertain")

    def headroom(self, least: float) -> float:
        return max(least, self.uncertainty) if self.confidence == "uncertain" else least

    def recommended(self, least_headroom: float) -> int:
        return readable(self.quota * (1 + self.headroom(least_headroom)))


class Recommendation(NamedTuple):
    """The quotas of one kind: `overrides` for the largest needs, descending, and the default for `others`."""

    kind: Kind
    default: int | None
    overrides: list[Need]
    others: list[Need]
    headroom: float = 0.25  # of each quota, at least
    why_no_default: str = ""

    @property
    def is_empty(self) -> bool:
        return self.default is None and not self.overrides

    @property
    def basis(self) -> int:
        return sum(need.is_known for need in self.others)

    @property
    def default_headroom(self) -> float:
        largest = max((need.quota for need in self.others), default=0)
        return self.default / largest - 1 if self.default and largest else 0.0


def recommend(
    needs: Iterable[Finding],
    demands: Mapping[Client, Demand],
    by: By,
    policy: Policy,
    least_ms: float,
    withheld: str = "",
) -> list[Recommendation]:
    """Return a recommendation for each kind; none has a quota if `withheld` gives a reason.

    `needs` and `demands` are of the same clients and brokers; one seen for less than `least_ms` was seen too briefly.
    """
    by_kind: dict[Kind, dict[tuple[str, str], Need]] = {}
    for finding in needs:
        client, of_kind = finding.client, by_kind.setdefault(finding.client.kind, {})
        need = _need(finding, demands[client], least_ms)
        before = of_kind.get((client.user, client.client_id))
        of_kind[client.user, client.client_id] = need if before is None else _most(before, need)
    found = {kind: list(by_kind[kind].values()) for kind in KEYS if kind in by_kind}
    for all_needs in found.values():
        all_needs.sort(key=lambda need: (-need.recommended(policy.headroom), need.user, need.client_id))
    if withheld:
        return [Recommendation(kind, None, [], each, policy.headroom, withheld) for kind, each in found.items()]
    return [_of_kind(kind, each, by, policy) for kind, each in found.items()]


def _of_kind(kind: Kind, needs: list[Need], by: By, policy: Policy) -> Recommendation:
    why = _why_no_default(needs)
    known = sum(need.is_known for need in needs)
    if why and not policy.always_default:
        may_have = [need for need in needs if need.is_known and _has_name(need, by)]
        overrides = may_have if known < LEAST_CLIENTS else may_have[: policy.most_overrides]
        chosen = set(overrides)
        return Recommendation(
            kind, None, overrides, [need for need in needs if need not in chosen], policy.headroom, why
        )
    most = min(policy.most_overrides, known - LEAST_CLIENTS if known >= LEAST_CLIENTS else (len(needs) - 1) // 2)
    overrides = []
    for need in needs:
        if len(overrides) >= most or not (need.is_known and _has_name(need, by)):
            break
        overrides.append(need)
    default = needs[len(overrides)].recommended(policy.headroom)
    overrides = [need for need in overrides if need.recommended(policy.headroom) > default]
    return Recommendation(kind, default, overrides, needs[len(overrides) :], policy.headroom)


def _why_no_default(needs: list[Need]) -> str:
    throttled, known = sum(need.confidence == "throttled" for need in needs), sum(need.is_known for need in needs)
    if throttled:
        return f"{throttled:,} of {len(needs):,} clients were throttled, so their demand is not known"
    if known < LEAST_CLIENTS:
        return f"it would be based on {known} clients with a known demand; at least {LEAST_CLIENTS} are required"
    return ""


def _has_name(need: Need, by: By) -> bool:
    """Return whether a client can have an override; clients without a name share one default."""
    return bool(need.user or by == "client-id") and bool(need.client_id or by == "user")


def _need(finding: Finding, demand: Demand, least_ms: float) -> Need:
    client, outcome = finding.client, finding.outcome
    return Need(
        client.user,
        client.client_id,
        int(finding.candidate.quota),
        client.broker,
        1,
        outcome.offered_rate,
        outcome.delay_p99_ms,
        outcome.throttled_share,
        demand.confidence(least_ms),
        demand.uncertainty,
    )


def _most(one: Need, other: Need) -> Need:
    larger = max(one, other, key=lambda need: (need.quota, need.broker))
    was_throttled = "throttled" in (one.confidence, other.confidence)
    confidence = "throttled" if was_throttled else larger.confidence
    return larger._replace(brokers=one.brokers + 1, confidence=confidence)
