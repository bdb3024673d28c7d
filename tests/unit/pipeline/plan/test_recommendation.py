"""One default for all and overrides for the few that need more."""

import pytest

from sluice.pipeline.charges.charges import By, Client, Kind
from sluice.pipeline.plan.analysis import Finding
from sluice.pipeline.plan.recommendation import recommend
from sluice.pipeline.plan.replay import Candidate, Outcome

OUTCOME = Outcome._make([0] * len(Outcome._fields))


def need(client_id: str, quota: float, *, kind: Kind = "Produce", broker: str = "1", user: str = "") -> Finding:
    return Finding(Client(kind, broker, user, client_id), Candidate(quota, "kip-13", "closed"), OUTCOME)


NEEDS = [need("small", 10), need("huge", 9000), need("tiny", 5), need("large", 800)]


@pytest.mark.parametrize(
    ("overrides", "default", "overridden"),
    [
        pytest.param(0, 9000, [], id="without overrides the default is the largest need"),
        pytest.param(1, 800, ["huge"], id="one override lowers the default to the next need"),
        pytest.param(2, 10, ["huge", "large"], id="the largest needs get overrides first"),
        pytest.param(9, 5, ["huge", "large", "small"], id="one need is left for the default"),
    ],
)
def test_overrides_are_limited(overrides: int, default: int, overridden: list[str]) -> None:
    (found,) = recommend(NEEDS, "client-id", overrides)
    assert found.default == default
    assert [each.client_id for each in found.overrides] == overridden
    assert {each.client_id for each in found.overrides + found.others} == {"small", "huge", "tiny", "large"}


def test_a_need_equal_to_the_default_has_no_override() -> None:
    (found,) = recommend([need("a", 10), need("b", 10), need("c", 10)], "client-id", 2)
    assert (found.default, found.overrides, len(found.others)) == (10, [], 3)


def test_the_broker_with_the_largest_need_decides() -> None:
    (found,) = recommend([need("a", 10, broker="1"), need("a", 70, broker="2"), need("a", 30, broker="3")], "user", 5)
    (only,) = found.others
    assert (only.quota, only.broker, only.brokers) == (70, "2", 3)


def test_kinds_are_recommended_separately() -> None:
    found = recommend([need("a", 10, kind="Fetch"), need("a", 70)], "client-id", 5)
    assert [(each.kind, each.default) for each in found] == [("Produce", 70), ("Fetch", 10)]


@pytest.mark.parametrize(
    ("by", "user", "client_id"),
    [
        pytest.param("client-id", "", "", id="no client id"),
        pytest.param("user", "", "", id="no user"),
        pytest.param("user+client-id", "bob", "", id="a user without a client id"),
    ],
)
def test_a_client_without_a_name_has_no_override_and_sets_the_default(by: By, user: str, client_id: str) -> None:
    (found,) = recommend([need(client_id, 500, user=user), need("x", 5, user="y")], by, 5)
    assert (found.default, found.overrides) == (500, [])


def test_without_needs_there_is_no_recommendation() -> None:
    assert recommend([], "client-id", 5) == []
