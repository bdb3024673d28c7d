"""Which quotas to set, from what each client needs: one default for all, and overrides for the few that it would be too
small for. "Fixed quotas for everyone but the top k outliers which can justify custom quotas", as KIP-13 has it.

A quota is of each broker, so what a client needs is what it needs on the broker where that is most.
"""

from collections.abc import Iterable
from typing import NamedTuple

from sluice.pipeline.charges.charges import By, Kind

from .analysis import Finding

KEYS: dict[Kind, str] = {"Produce": "producer_byte_rate", "Fetch": "consumer_byte_rate"}


class Need(NamedTuple):
    """The quota that one client needs, and what it comes to with that."""

    user: str
    client_id: str
    quota: int  # bytes/s
    broker: str  # on which it is
    brokers: int  # on how many the client was
    offered_rate: float  # bytes/s there, on average
    delay_p99_ms: int
    throttled_share: float


class Recommendation(NamedTuple):
    """Of one kind of quota. `overrides` are those that need most, the largest first; `others` all that are left."""

    kind: Kind
    default: int  # bytes/s
    overrides: list[Need]
    others: list[Need]


def recommend(needs: Iterable[Finding], by: By, most_overrides: int) -> list[Recommendation]:
    """With at most so many overrides. Without any the default has to be what the largest client needs."""
    by_kind: dict[Kind, dict[tuple[str, str], Need]] = {}
    for finding in needs:
        client, found = finding.client, by_kind.setdefault(finding.client.kind, {})
        before = found.get((client.user, client.client_id))
        found[client.user, client.client_id] = _most(before, _need(finding))
    return [_of_kind(kind, list(by_kind[kind].values()), by, most_overrides) for kind in KEYS if kind in by_kind]


def _of_kind(kind: Kind, needs: list[Need], by: By, most_overrides: int) -> Recommendation:
    needs.sort(key=lambda need: (-need.quota, need.user, need.client_id))
    overrides: list[Need] = []
    for need in needs[:-1]:  # somebody is left for the default
        if len(overrides) == most_overrides or not _has_name(need, by):
            break
        overrides.append(need)
    default = needs[len(overrides)].quota
    overrides = [need for need in overrides if need.quota > default]
    return Recommendation(kind, default, overrides, needs[len(overrides) :])


def _has_name(need: Need, by: By) -> bool:
    """Whether there can be a quota of its own: who has no client id shares the default of all who have none."""
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
