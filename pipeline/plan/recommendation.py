"""Recommended quotas: one default, and overrides for the few clients that need more.

"Fixed quotas for everyone but the top k outliers which can justify custom quotas" (KIP-13). A quota applies on each
broker, so the broker where a client needs most decides.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sluice.pipeline.charges.charges import By, Kind

from .analysis import Finding

KEYS: dict[Kind, str] = {"Produce": "producer_byte_rate", "Fetch": "consumer_byte_rate"}


class Need(NamedTuple):
    """The quota that one client needs, and its outcome with that quota."""

    user: str
    client_id: str
    quota: int  # bytes/s
    broker: str  # where the client needs this quota
    brokers: int  # that the client sent requests to
    offered_rate: float  # bytes/s on `broker`, on average
    delay_p99_ms: int
    throttled_share: float


class Recommendation(NamedTuple):
    """The quotas of one kind: `overrides` for the largest needs, descending, and the default for `others`."""

    kind: Kind
    default: int  # bytes/s
    overrides: list[Need]
    others: list[Need]


def recommend(needs: Iterable[Finding], by: By, most_overrides: int) -> list[Recommendation]:
    """Return a recommendation for each kind; without overrides, the default is the largest need."""
    by_kind: dict[Kind, dict[tuple[str, str], Need]] = {}
    for finding in needs:
        client, found = finding.client, by_kind.setdefault(finding.client.kind, {})
        before = found.get((client.user, client.client_id))
        found[client.user, client.client_id] = _most(before, _need(finding))
    return [_of_kind(kind, list(by_kind[kind].values()), by, most_overrides) for kind in KEYS if kind in by_kind]


def _of_kind(kind: Kind, needs: list[Need], by: By, most_overrides: int) -> Recommendation:
    needs.sort(key=lambda need: (-need.quota, need.user, need.client_id))
    overrides: list[Need] = []
    for need in needs[:-1]:  # at least one need determines the default
        if len(overrides) == most_overrides or not _has_name(need, by):
            break
        overrides.append(need)
    default = needs[len(overrides)].quota
    overrides = [need for need in overrides if need.quota > default]
    return Recommendation(kind, default, overrides, needs[len(overrides) :])


def _has_name(need: Need, by: By) -> bool:
    """Clients without a client id share one default."""
    return bool(need.user or by == "client-id") and bool(need.client_id or by == "user")


def _need(finding: Finding) -> Need:
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
    )


def _most(one: Need | None, other: Need) -> Need:
    if one is None:
        return other
    larger = max(one, other, key=lambda need: (need.quota, need.broker))
    return larger._replace(brokers=one.brokers + 1)
