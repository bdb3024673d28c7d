"""Each fuzz target with its seeds, and with a few thousand random changes of them."""

from random import Random

import pytest

from tools.fuzz.campaign import mutated
from tools.fuzz.targets import TARGETS, run, seeds

SEED = 20261122
# About a second each; the campaign `fuzz` runs longer and guided by coverage.
INPUTS = {
    "frames": 400,
    "records": 2000,
    "admin": 150,
    "properties": 300,
    "scenarios": 60,
    "files": 40,
    "responses": 300,
}


def run_or_report(target: str, data: bytes) -> None:
    try:
        run(target, data)
    except Exception as error:
        pytest.fail(f"{target}: {error!r}\nreproduce: python -m tools.fuzz run {target} --hex {data.hex()}")


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_and_random_changes_find_no_defect(target: str, pytestconfig: pytest.Config) -> None:
    inputs = seeds(target)
    for data in inputs:
        run_or_report(target, data)
    count = INPUTS[target] * (pytestconfig.getoption("--fuzz-factor") or 1)
    random = Random(SEED + count)
    for _ in range(count):
        run_or_report(target, mutated(random.choice(inputs), inputs, random))
