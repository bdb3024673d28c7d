"""Tests of the sentences about a map."""

import pytest
from msgspec.structs import replace

from sluice.fleet.map.grid import Axis, Checked, Map, Region
from sluice.fleet.map.sentences import border, error, own_point

_ROW: list[Region] = ["recovers", "recovers", "late", "never"]
_MAP = Map(
    fleet="java:1000",
    x=Axis("load", [0.2, 0.4, 0.6, 0.8]),
    y=Axis("outage", [10, 20, 30]),
    regions=[_ROW, _ROW, ["recovers", "late", "never", "never"]],
    point=(0.4, 20),
    region="recovers",
    recovery_s=4,
    load=0.4,
    in_vain=0,
    checked=[Checked(0.2, 10, "recovers", "recovers", True), Checked(0.8, 10, "never", "recovers", False)],
    connection_cost=13,
)
_LOST = replace(_MAP, point=(0.8, 20), region="never", recovery_s=None)


SENTENCES = {
    "recovers": (_MAP, "completes operations as before 4 s after the outage."),
    "recovers late": (replace(_MAP, region="late", recovery_s=30), "30 s after the outage (late)."),
    "does not recover because of retries": (
        replace(_LOST, load=1.7, in_vain=0.98),
        "its requests need 1.7 times the capacity of the broker, and 98 % of that is spent on requests that have"
        " timed out. The queue grows, and retries keep it full: a stable state.",
    ),
    "overload": (replace(_LOST, load=1.2), "need 1.2 times the capacity of the broker, so that the queue grows."),
    "overload without an outage": (
        replace(_LOST, point=(2.5, 20), load=7.3, in_vain=0.98),
        "does not recover: its load is above the capacity of the broker, also without an outage.",
    ),
    "drains slowly": (
        replace(_LOST, load=0.97),
        "need 97 % of the capacity of the broker, so that the queue becomes shorter, but not in 120 s.",
    ),
}


@pytest.mark.parametrize(("found", "expected"), SENTENCES.values(), ids=SENTENCES)
def test_sentence_states_why(found: Map, expected: str) -> None:
    assert own_point(found).endswith(expected)


def test_border_is_that_of_the_row_and_column_of_the_fleet() -> None:
    assert border(_MAP) == (
        "With the other setting as it is, it recovers late with a load of 0.6 and more; it recovers late with an"
        " outage of 30 s and more."
    )
    assert border(_LOST) == "With the other setting as it is, it recovers late with a load of 0.6 and less."
    same = replace(_MAP, regions=[["late"] * 4] * 3, region="late")
    assert border(same) == "In the whole row and column of this point, the fleet recovers late."


def test_error_is_that_of_the_sample() -> None:
    assert "Here it agrees in 1 of 2." in error(_MAP)
    assert "Here" not in error(replace(_MAP, checked=[]))
