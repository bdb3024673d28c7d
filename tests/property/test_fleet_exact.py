"""The exact simulation of fleets: the same seed gives the same result in any process; the process remains as it was."""

import gc
import logging
import subprocess
import sys

import numpy as np
import pytest

from sluice.fleet.exact.run import run_exact
from sluice.fleet.models.client_model import Group
from sluice.fleet.models.presets import PRESETS
from tests.fleets.compare import FAILURES

CLIENTS = 4
# The addresses of objects differ between processes, so that an order that depends on them differs in some of these.
PROCESSES = 5
_PRINT = "import sys; from tests.property.test_fleet_exact import text_of; print(text_of(sys.argv[1]))"


def text_of(client: str) -> str:
    found = run_exact([Group(client, PRESETS[client], CLIENTS)], FAILURES["killed leader"].scenario, seed=1)
    return " ".join(f"{kind}={times.tolist()}" for kind, times in found.items())


@pytest.mark.parametrize("client", ["aiokafka", "sluice"])
def test_seed_gives_the_same_result_in_each_process(client: str) -> None:
    command = [sys.executable, "-c", _PRINT, client]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONHASHSEED": "0"})
        for _ in range(PROCESSES)
    ]
    results = [process.communicate()[0] for process in running]
    assert "produce_requests=[" in results[0]
    assert len(set(results)) == 1


def test_run_restores_collections_and_logs() -> None:
    before = gc.get_threshold(), logging.getLogger("aiokafka").level
    run = run_exact([Group("aiokafka", PRESETS["aiokafka"], 1)], FAILURES["refused"].scenario, seed=1)
    assert (gc.get_threshold(), logging.getLogger("aiokafka").level) == before
    assert np.all(np.diff(run["produce_requests"]) >= 0)
