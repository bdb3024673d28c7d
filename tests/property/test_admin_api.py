"""Requests generated from the OpenAPI document of the admin port (schemathesis).

No response is a server error, each matches the document, and requests that the document does not accept are rejected.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broker_process import overrides, running_broker

SEED, EXAMPLES = 7, 2
# The event stream never ends, nor does the journal with `follow`. Requests that fit the schema but are meaningless are
# rejected with 400.
CONFIG = """
[[operations]]
include-path = "/api/v1/stream"
enabled = false

[[operations]]
include-path = "/api/v1/journal"
parameters = { follow = false }

[checks.positive_data_acceptance]
expected-statuses = ["2xx", "400", "403", "404", "409"]
"""
# Rules and scenarios have so many fields that covering every invalid value needs thousands of requests.
QUICK = """
[[operations]]
include-operation-id = ["post_faults", "post_scenarios_run"]
phases.coverage.enabled = false
"""


def test_every_response_matches_the_openapi_document(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    examples = pytestconfig.getoption("--api-examples")
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG if examples else CONFIG + QUICK)
    journal = overrides("sluice.journal.events=1024")
    with running_broker(tmp_path / "log", "--brokers", "3", *journal) as broker:
        command = [Path(sys.executable).with_name("st"), "--config-file", config, "--no-color"]
        options = ["run", f"{broker.admin}/api/openapi.json", "--phases", "examples,coverage,fuzzing"]
        bounds = ["--seed", SEED, "--max-examples", examples or EXAMPLES, "--request-timeout", 30, "--warnings", "off"]
        words = [str(word) for word in (*command, *options, *bounds)]
        result = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "Traceback" not in broker.log_text()
        assert broker.stop()[0] == 0
