"""purgatory/operation.py: the four verbs, exactly once."""

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


def test_an_operation_completes_for_the_first_caller_only() -> None:
    operation = Noted(10)
    assert [operation.force_complete() for _ in range(3)] == [True, False, False]
    assert operation.events == ["complete"]


def test_time_completes_an_operation_before_it_expires_it() -> None:
    operation = Noted(10)
    clock, purgatory = waiting(operation)
    clock.advance(9.999)
    assert operation.events == []
    clock.advance(0.001)
    assert operation.events == ["complete", "expiration"]
    assert (purgatory.expirations, operation.force_complete()) == (1, False)


def test_an_operation_completed_in_time_never_expires() -> None:
    operation = Noted(10)
    clock, purgatory = waiting(operation)
    assert operation.force_complete()
    clock.advance(1_000)
    assert operation.events == ["complete"]
    assert (purgatory.expirations, len(purgatory)) == (0, 0)


def test_an_operation_is_completed_and_waits_no_more_while_on_complete_runs() -> None:
    seen: list[object] = []

    class Looks(DelayedOperation):
        __slots__ = ()

        def on_complete(self) -> None:
            seen.extend((self.completed, len(purgatory), self.force_complete()))

    operation = Looks(10)
    _, purgatory = waiting(operation)
    operation.force_complete()
    assert seen == [True, 0, False]


def test_what_on_complete_raises_goes_to_the_caller_and_it_is_not_called_again() -> None:
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


def test_one_that_only_waits_for_its_time_is_not_completed_by_trying() -> None:
    operation = Noted(10)
    assert not operation.try_complete()
    assert not operation.completed


def test_what_happens_on_completion_must_be_said() -> None:
    with pytest.raises(NotImplementedError):
        DelayedOperation(10).force_complete()
