"""The shortened demo: real clients get the rates of their quotas."""

import json
import subprocess
import sys

import pytest


def test_real_clients_get_the_rates_of_their_quotas() -> None:
    # Usually two whole cycles: on a busy machine, the bytes of one may differ from the quota by a tenth.
    command = [sys.executable, "-m", "sluice", "demo", "--seconds", "36", "--format", "json"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:  # clients that do not get a processor in time miss their rates
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout, result.stderr
    summary = json.loads(result.stdout)
    clients = {client["client_id"]: client for client in summary["clients"]}
    assert [problem for client in clients.values() for problem in client["problems"]] == []
    for name in ("bronze", "gold", "reader"):
        assert clients[name]["of_quota"] == pytest.approx(1, abs=0.05), name
        assert clients[name]["whole_cycles"] >= 1
        assert clients[name]["throttle_s"] > 10, f"{name} sends far more than its quota"
    for name in ("bronze", "gold"):
        assert clients[name]["of_quota"] == pytest.approx(clients[name]["virtual_of_quota"], rel=0.02), name
    assert clients["steady"]["throttle_s"] == 0
    assert clients["steady"]["requests"] > 100
    assert (summary["passed"], result.returncode) == (True, 0)
