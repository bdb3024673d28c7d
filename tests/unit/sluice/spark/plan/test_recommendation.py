"""Overrides for the few that need more and one default for all, as far as the log shows what they need."""

from collections.abc import Iterable

import pytest

from sluice.spark.charges.charges import By, Client, Kind
from sluice.spark.plan.analysis import Finding
from sluice.spark.plan.demand import Confidence, Stated
from sluice.spark.plan.recommendation import Policy, Recommendation, recommend
from sluice.spark.plan.replay import Candidate, Outcome

OUTCOME = Outcome._make([0] * len(Outcome._fields))
KINDS: tuple[Confidence, ...] = ("throttled", "incomplete", "irregular", "brief", "uncertain")


def need(client_id: str, quota: float, *, kind: Kind = "Produce", broker: str = "1", user: str = "") -> Finding:
    return Finding(Client(kind, broker, user, client_id), Candidate(quota, "kip-13", "closed"), OUTCOME)


def quotas_for(
    needs: Iterable[Finding], by: By = "client-id", withheld: str = "", **policy: object
) -> list[Recommendation]:
    """Recommend without headroom; clients whose names begin with a kind of demand have that kind."""
    found = list(needs)
    demands = {each.client: stated(each.client.client_id.partition("-")[0]) for each in found}
    return recommend(found, demands, by, Policy(**{"headroom": 0.0, **policy}), "record more", withheld)  # type: ignore[arg-type]  # by name


def stated(kind: str) -> Stated:
    return Stated(next((each for each in KINDS if each == kind), "known"), 1.0, 0.5)


def clients(count: int) -> list[Finding]:
    return [need(f"web-{number}", 10 * (number + 1)) for number in range(count)]


DEFAULTS = {
    "below ten clients each has an override, and others no quota": (9, 5, False, None, 9, 0),
    "a default is based on ten clients": (10, 5, False, 100, 0, 10),
    "overrides leave ten clients for the default": (12, 5, False, 100, 2, 10),
    "overrides are limited": (20, 5, False, 150, 5, 15),
    "without overrides the default is the largest need": (20, 0, False, 200, 0, 20),
    "a requested default is the need of the middle client at least": (9, 9, True, 50, 4, 5),
    "of two clients, that of the larger": (2, 9, True, 20, 0, 2),
    "of one client, its own": (1, 9, True, 10, 0, 1),
}


@pytest.mark.parametrize(
    ("count", "most", "always_default", "default", "overridden", "basis"), DEFAULTS.values(), ids=DEFAULTS
)
def test_the_default_stands_on_enough_clients(
    count: int, most: int, always_default: bool, default: int | None, overridden: int, basis: int
) -> None:
    (found,) = quotas_for(clients(count), most_overrides=most, always_default=always_default)
    assert (found.default, len(found.overrides), len(found.others)) == (default, overridden, count - overridden)
    assert found.basis == basis
    assert [each.quota for each in found.overrides] == [10 * (count - number) for number in range(overridden)]
    assert bool(found.why_no_default) is (default is None)


LOWER_BOUNDS = [
    ("throttled", None, ["web-11", "web-10", "web-9", "web-8", "web-7"]),
    ("brief", 500, []),
    ("irregular", 500, []),
    ("uncertain", 750, []),
    ("web-12", 120, ["web-12"]),
]


@pytest.mark.parametrize(("name", "default", "overridden"), LOWER_BOUNDS)
def test_a_client_whose_demand_is_a_lower_bound_has_no_override(
    name: str, default: int | None, overridden: list[str]
) -> None:
    (found,) = quotas_for([*clients(12), need(name, 500)], most_overrides=5 if default is None else 1)
    if name == "uncertain":  # its headroom is its uncertainty
        assert (found.default, found.overrides[0].recommended(0.0)) == (120, default)
    else:
        assert (found.default, [each.client_id for each in found.overrides]) == (default, overridden)


def test_a_default_beside_a_throttled_client_must_be_requested() -> None:
    (found,) = quotas_for([*clients(12), need("throttled", 5)], always_default=True)
    assert (found.default, len(found.overrides), found.basis) == (100, 2, 10)


@pytest.mark.parametrize("always_default", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "uncertain"])
def test_nothing_is_based_on_lower_bounds_alone(kind: str, always_default: bool) -> None:
    bounds = [need(f"{kind}-{number}", 100 + number) for number in range(12)]
    (found,) = quotas_for(bounds, always_default=always_default)
    assert (found.is_empty, len(found.others)) == (True, 12)
    assert found.why_no_default == "it would be based on lower bounds of 12 clients alone; record more"
    (found,) = quotas_for([need("web", 500), *bounds[:2]], always_default=True)
    assert (found.default, [each.client_id for each in found.overrides]) == (None, ["web"])
    assert found.why_no_default == "it would be based on lower bounds of 2 clients alone; record more"


def test_the_basis_and_the_headroom_of_a_default_are_of_known_demands() -> None:
    (found,) = quotas_for([need("brief", 50), need("web", 20)], always_default=True)
    assert (found.default, found.basis, len(found.others)) == (50, 1, 2)
    assert found.default_headroom == 1.5


def test_a_throttled_client_does_not_decide_a_default() -> None:
    (found,) = quotas_for([need("throttled", 50), need("web", 20)], always_default=True)
    assert (found.default, [each.client_id for each in found.overrides]) == (None, ["web"])
    assert found.why_no_default.endswith("would decide it, and its demand is not known; record more")


def test_each_quota_has_a_headroom() -> None:
    (found,) = quotas_for([*clients(11), need("uncertain", 500)], headroom=0.25)
    assert found.default == 125
    assert found.default_headroom == 0.25
    assert [each.recommended(0.25) for each in found.overrides] == [750, 138]
    assert quotas_for(clients(11)[:1], headroom=0.25)[0].default_headroom == 0


def test_nothing_is_recommended_from_a_log_that_does_not_show_the_demand() -> None:
    (found,) = quotas_for(clients(12), withheld="the log is short", always_default=True)
    assert (found.is_empty, len(found.others), found.why_no_default) == (True, 12, "the log is short")


def test_a_need_equal_to_the_default_has_no_override() -> None:
    (found,) = quotas_for([need(f"web-{number}", 10) for number in range(12)])
    assert (found.default, found.overrides, len(found.others)) == (10, [], 12)


def test_the_broker_with_the_largest_need_decides() -> None:
    needs = [need("a", 10, broker="1"), need("a", 70, broker="2"), need("a", 30, broker="3")]
    (only,) = quotas_for(needs, "user", always_default=True)[0].others
    assert (only.quota, only.broker, only.brokers) == (70, "2", 3)


def test_kinds_are_recommended_separately() -> None:
    found = quotas_for([need("a", 10, kind="Fetch"), need("a", 70)], always_default=True)
    assert [(each.kind, each.default) for each in found] == [("Produce", 70), ("Fetch", 10)]


NAMELESS = {
    "no client id": ("client-id", "", ""),
    "no user": ("user", "", ""),
    "a user without a client id": ("user+client-id", "bob", ""),
}


@pytest.mark.parametrize(("by", "user", "client_id"), NAMELESS.values(), ids=NAMELESS)
def test_a_client_without_a_name_has_no_override_and_sets_the_default(by: By, user: str, client_id: str) -> None:
    needs = [need(client_id, 500, user=user), need("x", 5, user="y"), need("z", 5, user="z")]
    (found,) = quotas_for(needs, by, always_default=True)
    assert (found.default, found.overrides) == (500, [])
    (found,) = quotas_for(needs, by)
    assert [each.client_id for each in found.overrides] == ["x", "z"]


def test_without_needs_there_is_no_recommendation() -> None:
    assert quotas_for([]) == []
