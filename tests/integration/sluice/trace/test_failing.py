"""Traces of failed tests: the findings begin with the cause.

failing.py has a test for each cause, with real clients. They run once, in processes of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.traces import read_trace

pytestmark = pytest.mark.failing_tests
ROOT = Path(__file__).parents[4]
FAILING = Path(__file__).parent / "failing.py"
MOST = 3  # findings that a reader looks at

# Test -> the finding that names its cause, or the beginning of its id.
CAUSES = {
    "reader_of_another_topic": "read-elsewhere",
    "reader_of_another_partition": "read-elsewhere",
    "reader_from_the_end": "read-from-end",
    "reader_of_an_open_transaction": "records-not-committed",
    "reader_of_an_aborted_transaction": "transaction-aborted",
    "group_of_another_name": "group-without-offsets",
    "group_that_never_commits": "nothing-committed",
    "commit_of_an_older_offset": "commit-went-back",
    "producer_that_does_not_flush": "nothing-produced",
    "rule_for_another_client": "rule-never-fired",
    "rule_for_another_api": "rule-never-fired",
    "rule_for_another_topic": "rule-never-fired",
    "producer_above_its_quota": "throttled",
    "consumer_above_its_quota": "throttled",
    "admin_above_its_quota": "throttled",
    "producer_without_permission": "authorization-failed",
    "producer_with_a_wrong_password": "authentication-failed",
    "lost_response": "unanswered-request",
    "response_that_is_too_late": "unanswered-request",
    "connections_that_are_closed": "retries",
    "connections_over_the_limit": "connection-refused",
    "retries_that_end": "retries",
    "poll_too_late": "poll-too-late",
    "member_that_was_not_closed": "unclosed-client",
    "static_id_that_is_used_twice": "member-fenced",
    "members_that_come_and_go": "rebalance-loop",
    "member_whose_heartbeats_are_lost": "unanswered-request",
    "producers_with_one_transactional_id": "producer-fenced",
    "transaction_that_times_out": "transaction-timed-out",
    "unknown_topic": "unknown-topic",
    "record_that_is_too_large": "not-retriable",
    "broker_that_is_down": "broker-down",
    "isolated_replicas": "broker-down",
    "slow_election": "election-without-leader",
    "leader_that_moves": "leader-moved",
    "records_that_an_election_lost": "lost-records",
}


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the failing tests, and return the folder of their traces."""
    folder = tmp_path_factory.mktemp("failing")
    options = ["-q", "-n2", "-pno:cacheprovider", f"--kafka-trace-dir={folder}"]
    command = [sys.executable, "-m", "pytest", *options, str(FAILING.relative_to(ROOT))]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert f"{len(CAUSES)} failed in" in done.stdout, done.stdout[-2000:]
    return folder


@pytest.mark.parametrize(("name", "cause"), CAUSES.items(), ids=CAUSES)
def test_findings_begin_with_the_cause(name: str, cause: str, traces: Path) -> None:
    trace = read_trace(traces / f"tests-integration-sluice-trace-failing.py-test_{name}.html")
    assert any(finding.id.startswith(cause) for finding in trace.findings[:MOST])
