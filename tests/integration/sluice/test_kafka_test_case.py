"""Brokers for unittest: one per test, with the class's options; a failure report ends with the journal."""

import unittest
from pathlib import Path
from typing import ClassVar

import pytest

from sluice.embedded.options import BrokerOptions
from sluice.embedded.traces import started
from sluice.journal_events import Throttle
from sluice.kafka_test_case import KafkaTestCase
from tests.support.traces import read_trace

unittest_loader = unittest.TestLoader()


def results_of(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest_loader.loadTestsFromTestCase(case).run(result)
    return result


def test_each_test_has_brokers_with_the_class_options() -> None:
    class Orders(KafkaTestCase):
        kafka_options: ClassVar[BrokerOptions] = {"brokers": 2, "quota": {"client_id": "shop", "produce": "100k"}}
        seen: ClassVar[set[str]] = set()

        def test_throttled(self) -> None:
            self.seen.add(self.kafka.bootstrap)
            self.kafka.client("shop").send("orders", bytes(1_020_000))
            self.kafka.wait_for(Throttle)
            self.kafka.assert_throttled("shop")

        def test_not_throttled(self) -> None:
            self.seen.add(self.kafka.bootstrap)
            assert len(self.kafka.brokers) == 2
            assert self.kafka_scenario is None

        @unittest.expectedFailure
        def test_expected(self) -> None:
            raise ValueError

        @unittest.skip("on purpose")
        def test_skipped(self) -> None: ...

        def test_skips(self) -> None:
            self.skipTest("on purpose")

    result = results_of(Orders)
    assert result.wasSuccessful(), result.failures + result.errors
    assert (result.testsRun, len(result.skipped), len(result.expectedFailures)) == (5, 2, 1)
    assert len(Orders.seen) == 2, "two tests shared brokers"


def test_coroutine_tests_are_run() -> None:
    class Orders(KafkaTestCase, unittest.IsolatedAsyncioTestCase):
        kafka_options: ClassVar[BrokerOptions] = {"scenario": "throttle-storm"}

        async def asyncSetUp(self) -> None:
            self.kafka.client().send("orders", b"a")

        async def test_ok(self) -> None:
            assert self.kafka_scenario is not None

        async def test_fails(self) -> None:
            raise ValueError("on purpose")

    result = results_of(Orders)
    assert result.testsRun == 2
    ((_, report),) = result.errors
    assert "ValueError: on purpose\nsluice journal: broker 127.0.0.1:" in report
    assert "sluice-test Produce v" in report


def test_failure_report_ends_with_the_journal() -> None:
    class Orders(KafkaTestCase):
        def test_fails(self) -> None:
            self.kafka.client("shop").send("orders", b"a")
            self.kafka.assert_throttled("shop")

        def test_passes(self) -> None: ...

    ((_, report),) = results_of(Orders).failures
    assert "\nAssertionError: expected: client shop throttled for 1 ms or more\n" in report
    assert report.count("\nsluice journal: broker 127.0.0.1:") == 1
    assert "shop Produce v" in report.partition("sluice journal")[2]


def test_failure_report_names_the_trace(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Orders(KafkaTestCase):
        def test_fails(self) -> None:
            self.kafka.client("shop").send("orders", b"a")
            self.fail("on purpose")

        def test_passes(self) -> None:
            self.kafka.client("shop").send("orders", b"a")

        def test_skips(self) -> None:
            self.kafka.client("shop").send("orders", b"a")
            self.skipTest("on purpose")

    monkeypatch.setattr(started, "recorder", None)  # that of the plugin, which runs this test
    monkeypatch.setenv("SLUICE_TRACE", str(tmp_path / "traces"))
    ((test, report),) = results_of(Orders).failures
    (file,) = (tmp_path / "traces").iterdir()
    assert f"\nsluice trace: {file}\n" in report
    trace = read_trace(file)
    assert (trace.title, trace.result) == (test.id(), "failed")
    assert trace.failure is not None
    assert Path(trace.failure.file).absolute() == Path(__file__)
