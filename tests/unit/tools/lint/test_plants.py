"""The plants of the lint matrix: complete for all rules, and true for aiokafka in virtual time."""

import logging
from collections import defaultdict
from collections.abc import Iterator

import pytest

from sluice.lint.registry import all_rules
from tools.lint.clients import BY_NAME
from tools.lint.plant import Plant
from tools.lint.plants import FEWER, all_plants
from tools.lint.scene import play_virtually
from tools.lint.verdicts import PLANTED, REMEDIED, Task, half_of, verdict_of

PLANTS = all_plants()
THREE = 3
# Of each folder of rules, those whose runs take a fraction of a second.
FAST = {
    "acks-below-all",
    "clock-ahead",
    "commit-ahead",
    "commit-per-record",
    "connection-per-message",
    "fetches-cut",
    "heartbeat-interval",
    "idle-connections",
    "one-record-transactions",
    "retries-without-growing-waits",
    "unknown-topic",
}
VIRTUAL = [plant for plant in PLANTS if plant.rule in FAST and "aiokafka" in plant.cells]


@pytest.fixture(autouse=True)
def _without_logs() -> Iterator[None]:
    """The clients log their failures, which are planted."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def clients_by_rule() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for plant in PLANTS:
        found[plant.rule] |= set(plant.cells)
    return found


def test_each_rule_is_planted_in_three_clients() -> None:
    found = clients_by_rule()
    assert {rule for rule in all_rules() if len(found[rule]) < THREE} == set(FEWER)


def test_each_plant_has_a_known_rule_and_known_clients() -> None:
    assert {plant.rule for plant in PLANTS} <= set(all_rules())
    assert {client for plant in PLANTS for client in plant.cells} <= set(BY_NAME)
    assert {rule for plant in PLANTS for rule in plant.also} <= set(all_rules())


@pytest.mark.parametrize("plant", VIRTUAL, ids=[plant.rule for plant in VIRTUAL])
def test_plant_is_found_and_its_remedy_true(plant: Plant) -> None:
    halves = {}
    for state in (PLANTED, REMEDIED):
        scene = plant.scene_of("aiokafka", 1, is_planted=state == PLANTED)
        run = play_virtually(scene, BY_NAME["aiokafka"], 1)
        halves[state] = half_of(Task(f"{plant.rule} {state}", "aiokafka", 1, scene), run)
    verdict = verdict_of(plant, **halves)
    assert verdict.passes, verdict
