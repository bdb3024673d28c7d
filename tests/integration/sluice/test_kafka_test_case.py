"""Brokers for unittest: one a test, as the class says; what fails has the journal below it."""

import unittest
from typing import ClassVar

from sluice.embedded.options import BrokerOptions
from sluice.journal_events import Throttle
from sluice.kafka_test_case import KafkaTestCase

unittest_loader = unittest.TestLoader()


def results_of(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest_loader.loadTestsFromTestCase(case).run(result)
    return result


def test_each_test_has_brokers_as_the_class_says() -> None:
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
    assert len(Orders.seen) == 2, "two tests had the same brokers"


def test_coroutines_are_run() -> None:
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
    ((_, told),) = result.errors
    assert "ValueError: on purpose\nsluice journal: broker 127.0.0.1:" in told
    assert "sluice-test Produce v" in told


def test_what_fails_has_the_journal_below_it() -> None:
    class Orders(KafkaTestCase):
        def test_fails(self) -> None:
            self.kafka.client("shop").send("orders", b"a")
            self.kafka.assert_throttled("shop")

        def test_passes(self) -> None: ...

    ((_, told),) = results_of(Orders).failures
    assert "\nAssertionError: expected: client shop throttled for 1 ms or more\n" in told
    assert told.count("\nsluice journal: broker 127.0.0.1:") == 1
    assert "shop Produce v" in told.partition("sluice journal")[2]
