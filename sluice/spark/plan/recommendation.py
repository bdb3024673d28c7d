"""Recommended quotas: overrides for the clients that need most, and one default for all others.

"Fixed quotas for everyone but the top k outliers which can justify custom quotas" (KIP-13). A quota applies on each
broker, so the broker where a client needs most decides.

- A default is based on at least ten clients with a known demand. With fewer, each of them has an override. A default
  that is requested nevertheless is at least the need of half of the clients.
- Each quota has a headroom above the need, which is larger for clients whose demand varies.
- A demand that is a lower bound gives no override, and nothing is based on lower bounds alone. The default is at least
  what such a client needed in the log. With a throttled client there is none, unless it is requested and this client
  needed less than others.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sluice.spark.charges.charges import By, Client, Kind

from .analysis import Finding, readable
from .demand import Stated

KEYS: dict[Kind, str] = {"Produce": "producer_byte_rate", "Fetch": "consumer_byte_rate"}
LEAST_CLIENTS = 10  # on which a default is based


class Policy(NamedTuple):
    most_overrides: int = 5
    headroom: float = 0.25  # of a known demand
    always_default: bool = False  # also from few clients, or beside throttled ones


class Need(NamedTuple):
    """The quota that one client needed in the log, and its outcome with that quota."""

    user: str
    client_id: str
    quota: int
    broker: str  # where the client needs this quota
    brokers: int  # number that received requests of the client
    demand: Stated  # on `broker`
    delay_p99_ms: int
    throttled_share: float

    def headroom(self, least: float) -> float:
        return max(least, self.demand.uncertainty) if self.demand.confidence == "uncertain" else least

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
        """Number of clients on which the default is based, and for which it is known to be sufficient."""
        return sum(need.demand.is_known for need in self.others)

    @property
    def default_headroom(self) -> float:
        largest = max((need.quota for need in self.others if need.demand.is_known), default=0)
        return self.default / largest - 1 if self.default and largest else 0.0


def recommend(
    needs: Iterable[Finding], demands: Mapping[Client, Stated], by: By, policy: Policy, advice: str, withheld: str = ""
) -> list[Recommendation]:
    """Return a recommendation for each kind; none has a quota if `withheld` gives a reason.

    `needs` and `demands` are of the same clients and brokers. `advice` states what to record if no demand is known.
    """
    by_kind: dict[Kind, dict[tuple[str, str], Need]] = {}
    for finding in needs:
        client, of_kind = finding.client, by_kind.setdefault(finding.client.kind, {})
        need = _need(finding, demands[client])
        before = of_kind.get((client.user, client.client_id))
        of_kind[client.user, client.client_id] = need if before is None else _most(before, need)
    found = {kind: list(by_kind[kind].values()) for kind in KEYS if kind in by_kind}
    for all_needs in found.values():
        all_needs.sort(key=lambda need: (-need.recommended(policy.headroom), need.user, need.client_id))
    if withheld:
        return [Recommendation(kind, None, [], each, policy.headroom, withheld) for kind, each in found.items()]
    return [_of_kind(kind, each, by, policy, advice) for kind, each in found.items()]


def _of_kind(kind: Kind, needs: list[Need], by: By, policy: Policy, advice: str) -> Recommendation:
    known = sum(need.demand.is_known for need in needs)
    why = _why_no_default(needs, known, advice)
    if why and not (policy.always_default and known):
        return _without_default(kind, needs, by, policy, why)
    most = min(policy.most_overrides, known - LEAST_CLIENTS if known >= LEAST_CLIENTS else (len(needs) - 1) // 2)
    overrides: list[Need] = []
    for need in needs:
        if len(overrides) >= most or not (need.demand.is_known and _has_name(need, by)):
            break
        overrides.append(need)
    others = needs[len(overrides) :]
    if not any(need.demand.is_known for need in others):
        return _without_default(kind, needs, by, policy, _why_no_default(others, 0, advice))
    if others[0].demand.confidence == "throttled":
        why = f"a client that was throttled would decide it, and its demand is not known; {advice}"
        return _without_default(kind, needs, by, policy, why)
    default = needs[len(overrides)].recommended(policy.headroom)
    overrides = [need for need in overrides if need.recommended(policy.headroom) > default]
    return Recommendation(kind, default, overrides, needs[len(overrides) :], policy.headroom)


def _without_default(kind: Kind, needs: list[Need], by: By, policy: Policy, why: str) -> Recommendation:
    overrides = [need for need in needs if need.demand.is_known and _has_name(need, by)]
    if sum(need.demand.is_known for need in needs) >= LEAST_CLIENTS:
        overrides = overrides[: policy.most_overrides]
    chosen = set(overrides)
    return Recommendation(kind, None, overrides, [need for need in needs if need not in chosen], policy.headroom, why)


def _why_no_default(needs: list[Need], known: int, advice: str) -> str:
    if not known:
        return f"it would be based on lower bounds of {len(needs):,} clients alone; {advice}"
    throttled = sum(need.demand.confidence == "throttled" for need in needs)
    if throttled:
        return f"the demand of {throttled:,} of {len(needs):,} clients is not known, because of throttling; {advice}"
    if known < LEAST_CLIENTS:
        return f"it would be based on {known} clients with a known demand; at least {LEAST_CLIENTS} are required"
    return ""


def _has_name(need: Need, by: By) -> bool:
    """Return whether a client can have an override; clients without a name share one default."""
    return bool(need.user or by == "client-id") and bool(need.client_id or by == "user")


def _need(finding: Finding, demand: Stated) -> Need:
    client, outcome = finding.client, finding.outcome
    return Need(
        client.user,
        client.client_id,
        int(finding.candidate.quota),
        client.broker,
        1,
        demand,
        outcome.delay_p99_ms,
        outcome.throttled_share,
    )


def _most(one: Need, other: Need) -> Need:
    larger = max(one, other, key=lambda need: (need.quota, need.broker))
    return larger._replace(brokers=one.brokers + 1)
