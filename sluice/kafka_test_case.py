"""Brokers for unittest: `self.kafka`, another one for each test.

    class OrdersTest(KafkaTestCase):
        kafka_options = {"brokers": 3, "quota": {"client_id": "shop", "produce": "100k"}}

        def test_orders_are_throttled(self):
            shop.order("one pizza", kafka=self.kafka.bootstrap)
            self.kafka.assert_throttled("shop")

A test that fails has the last events of the journal below its exception.
"""

import functools
import inspect
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ClassVar

from sluice.embedded.journal_assertions import last_events
from sluice.embedded.options import BrokerOptions, started
from sluice.embedded.sync_broker import SyncBroker
from sluice.embedded.sync_handles import SyncScenario


class KafkaTestCase(unittest.TestCase):
    """A TestCase with brokers. Coroutines: `class OrdersTest(KafkaTestCase, unittest.IsolatedAsyncioTestCase)`.

    A `setUp` of one's own calls `super().setUp()` first.
    """

    kafka_options: ClassVar[BrokerOptions] = {}  # those of @pytest.mark.kafka
    kafka: SyncBroker
    kafka_scenario: SyncScenario | None  # that of the options, which began with the test

    def setUp(self) -> None:
        super().setUp()
        self.kafka, self.kafka_scenario = self.enterContext(started(**self.kafka_options))

    def run(self, result: unittest.TestResult | None = None) -> unittest.TestResult | None:
        """As TestCase's."""
        name = self.id().rpartition(".")[2]
        own = vars(self).get(name)  # pytest has put it there
        setattr(self, name, self._with_journal_note(getattr(self, name)))
        try:
            return super().run(result)
        finally:
            delattr(self, name)
            if own is not None:
                setattr(self, name, own)

    def _with_journal_note(self, test: Callable[[], object]) -> Callable[[], object]:
        """Return the test with a note of the journal added to its exception."""
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
            yield
        except unittest.SkipTest:
            raise
        except Exception as error:
            error.add_note(f"sluice journal: {last_events(self.kafka)}")
            raise
