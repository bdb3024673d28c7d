"""The report of a failed test of this project: the brokers' last events, and the command that repeats the test."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
CODE = """
    import pytest
    from hypothesis import given, strategies

    from sluice import SyncBroker
    from sluice.protocol.apis.api_versions import ApiVersionsRequest
    from tests.support.virtual_broker import VirtualBroker

    pytest_plugins = ["tests.conftest"]

    @pytest.fixture(scope="module")
    def shared():
        with SyncBroker() as broker:
            yield broker

    def test_virtual_broker():
        broker = VirtualBroker()
        broker.client("shop").call(ApiVersionsRequest(), 0)
        assert broker.now_ms == 1

    def test_shared_broker(shared):
        shared.client("shop").send("orders", b"one pizza")
        assert not shared.journal.requests()

    def test_shared_broker_is_unused(shared):
        assert not shared.journal.requests()

    @given(strategies.integers())
    def test_property(number):
        assert number < 1000

    def test_skipped():
        pytest.skip("build: c: not built")

    def test_skipped_for_no_kind_of_reason():
        pytest.skip("later")

    def test_none():
        assert False
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the report of each failed test by the name of the test."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / "test_it.py").write_text(dedent(CODE))
    options = ["-q", "-pno:schemathesis", "-pno:cacheprovider", "--hypothesis-seed=7", "--hypothesis-profile=default"]
    command = [sys.executable, "-m", "pytest", *options]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "5"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "6 failed, 1 skipped" in done.stdout, done.stdout + done.stderr
    parts = done.stdout.split("\n____")
    return {part.split()[1]: part.partition("\n")[2] for part in parts[1:]}


REPORTS = {
    "broker in virtual time without a journal": (
        "test_virtual_broker",
        ["0.000 ms shop (port 40001) sends ApiVersions v0", "0.000 ms shop (port 40001) receives ApiVersions v0"],
    ),
    "broker of a fixture": ("test_shared_broker", ["shop Produce v", "shop closed by the client"]),
    "test of Hypothesis": (
        "test_property",
        ["PYTHONHASHSEED=5 pytest 'test_it.py::test_property' --hypothesis-seed=7 --hypothesis-profile=default"],
    ),
    "broker of a fixture without new events": ("test_shared_broker_is_unused", []),
    "test without a broker": ("test_none", ["PYTHONHASHSEED=5 pytest 'test_it.py::test_none'\n"]),
}


@pytest.mark.parametrize(("test", "lines"), REPORTS.values(), ids=REPORTS)
def test_report_of_a_failed_test_ends_with(test: str, lines: list[str], reports: dict[str, str]) -> None:
    assert [line for line in lines if line not in reports[test]] == []
    assert ("last events of the brokers" in reports[test]) == test.endswith("_broker")


def test_skip_without_a_kind_of_reason_is_a_failure(reports: dict[str, str]) -> None:
    assert (
        "skipped without a kind of reason (tests/support/skips.py): later"
        in (reports["test_skipped_for_no_kind_of_reason"])
    )
