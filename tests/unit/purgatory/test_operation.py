"""Delayed operations: completion, expiry and cancellation happen once."""

import pytest

from sluice.clock import ManualClock
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.timer import Timer


class Noted(DelayedOperation):
    __slots__ = ("events",)

    def __init__(self, delay_ms: float) -> None:
        super().__init__(delay_ms)
        self.events: list[str] = []

    def on_complete(self) -> None:
        self.events.append("complete")

    def on_expiration(self) -> None:
        self.events.append("expiration")


def waiting(operation: DelayedOperation) -> tuple[ManualClock, DelayedOperationPurgatory]:
    clock = ManualClock()
    purgatory = DelayedOperationPurgatory("Test", Timer(clock))
    purgatory.delay(operation)
    return clock, purgatory


def test_operation_completes_for_the_first_caller_only() -> None:
    operation = Noted(10)
    assert [operation.force_complete() for _ in range(3)] == [True, False, False]
    assert operation.events == ["complete"]


def test_expiring_operation_completes_before_on_expiration() -> None:
    operation = Noted(10)
    clock, purgatory = waiting(operation)
    clock.advance(9.999)
    assert operation.events == []
    clock.advance(0.001)
    assert operation.events == ["complete", "expiration"]
    assert (purgatory.expirations, operation.force_complete()) == (1, False)


def test_operation_completed_in_time_never_expires() -> None:
    operation = Noted(10)
    clock, purgatory = waiting(operation)
    assert operation.force_complete()
    clock.advance(1_000)
    assert operation.events == ["complete"]
    assert (purgatory.expirations, len(purgatory)) == (0, 0)


def test_operation_is_completed_and_not_delayed_while_on_complete_runs() -> None:
    seen: list[object] = []

    class Looks(DelayedOperation):
        __slots__ = ()

        def on_complete(self) -> None:
            seen.extend((self.completed, len(purgatory), self.force_complete()))

    operation = Looks(10)
    _, purgatory = waiting(operation)
    operation.force_complete()
    assert seen == [True, 0, False]


def test_error_of_on_complete_is_raised_once_to_the_caller() -> None:
    class Fails(Noted):
        __slots__ = ()

        def on_complete(self) -> None:
            super().on_complete()
            raise ValueError("no")

    operation = Fails(10)
    clock, _ = waiting(operation)
    with pytest.raises(ValueError, match="no"):
        operation.force_complete()
    assert not operation.force_complete()
    clock.advance(1_000)
    assert operation.events == ["complete"]


def test_operation_without_try_complete_waits_for_its_timeout() -> None:
    operation = Noted(10)
    assert not operation.try_complete()
    assert not operation.completed


def test_on_complete_is_abstract() -> None:
    with pytest.raises(NotImplementedError):
        DelayedOperation(10).force_complete()
