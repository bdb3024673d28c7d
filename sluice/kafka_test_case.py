"""Brokers for unittest: `self.kafka`, new for each test.

    class OrdersTest(KafkaTestCase):
        kafka_options = {"brokers": 3, "quota": {"client_id": "shop", "produce": "100k"}}

        def test_orders_are_throttled(self):
            shop.order("one pizza", kafka=self.kafka.bootstrap)
            self.kafka.assert_throttled("shop")

The exception of a failed test has a note with the last journal events and, with SLUICE_TRACE=DIR, with its trace.
"""

import functools
import inspect
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from sluice.embedded.assertions.journal_assertions import last_events
from sluice.embedded.options import BrokerOptions, has_upstream, started
from sluice.embedded.sync_broker import SyncBroker
from sluice.embedded.sync_handles import SyncScenario
from sluice.embedded.traces.of_broker import note_trace
from sluice.errors import ProxyError


class KafkaTestCase(unittest.TestCase):
    """A TestCase with brokers. A `setUp` in a subclass must call `super().setUp()` first.

    For coroutines: `class OrdersTest(KafkaTestCase, unittest.IsolatedAsyncioTestCase)`.
    """

    kafka_options: ClassVar[BrokerOptions] = {}  # the options of @pytest.mark.kafka
    kafka: SyncBroker
    kafka_scenario: SyncScenario | None  # the scenario in kafka_options, started with the test

    def setUp(self) -> None:
        super().setUp()
        with _skipped_without_own_broker():
            self.kafka, self.kafka_scenario = self.enterContext(started(**self.kafka_options))

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        name = self.id().rpartition(".")[2]
        own = vars(self).get(name)
        setattr(self, name, self._with_journal_note(getattr(self, name)))
        try:
            return super().run(result)
        finally:
            delattr(self, name)
            if own is not None:
                setattr(self, name, own)

    def _with_journal_note(self, test: Callable[[], object]) -> Callable[[], object]:
        if inspect.iscoroutinefunction(test):

            @functools.wraps(test)
            async def awaited() -> object:
                with self._journal_note():
                    return await test()

            return awaited

        @functools.wraps(test)
        def called() -> object:
            with self._journal_note():
                return test()

        return called

    @contextmanager
    def _journal_note(self) -> Iterator[None]:
        try:
            with _skipped_without_own_broker():
                yield
        except unittest.SkipTest:
            raise
        except Exception as error:
            error.add_note(f"sluice journal: {last_events(self.kafka)}")
            note_trace(self.kafka, error, self.id(), inspect.getfile(type(self)))
            raise


@contextmanager
def _skipped_without_own_broker() -> Iterator[None]:
    """Skip a test that needs a broker of sluice, if SLUICE_KAFKA_UPSTREAM puts a proxy in its place."""
    try:
        yield
    except ProxyError as error:
        if not has_upstream():
            raise
        raise unittest.SkipTest(f"kafka-upstream: {error}") from None
