"""The exact simulation of fleets: the same seed gives the same result in any process; the process remains as it was."""

import gc
import json
import logging

import numpy as np
import pytest

from sluice.fleet.models.client_model import Group
from sluice.fleet.models.presets import PRESETS
from tools.fleets.compare import FAILURES
from tools.fleets.exact.run import run_exact
from tools.fleets.exact_attempts import start_attempts

CLIENTS = 4
# The addresses of objects differ between processes, so that an order that depends on them differs in some of these.
PROCESSES = 5


@pytest.mark.parametrize("client", ["aiokafka", pytest.param("sluice", marks=pytest.mark.many_clients)])
def test_seed_gives_the_same_result_in_each_process(client: str) -> None:
    running = [start_attempts(client, PRESETS[client], CLIENTS, "killed leader") for _ in range(PROCESSES)]
    results = [process.communicate()[0] for process in running]
    assert json.loads(results[0])["produce_requests"]
    assert len(set(results)) == 1


def test_run_restores_collections_and_logs() -> None:
    before = gc.get_threshold(), logging.getLogger("aiokafka").level
    run = run_exact([Group("aiokafka", PRESETS["aiokafka"], 1)], FAILURES["refused"].scenario, seed=1)
    assert (gc.get_threshold(), logging.getLogger("aiokafka").level) == before
    assert np.all(np.diff(run["produce_requests"]) >= 0)
