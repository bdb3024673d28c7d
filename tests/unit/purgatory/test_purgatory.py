"""The purgatory: watching, checking and purging, and a stateful comparison with a simple model."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.clock import ManualClock
from sluice.purgatory.operation import DelayedOperation
from sluice.purgatory.purgatory import DelayedOperationPurgatory
from sluice.purgatory.timer import Timer


class Room:
    """A purgatory in virtual time with a list of events."""

    def __init__(self, purge_interval: int = 1000) -> None:
        self.clock = ManualClock()
        self.purgatory = DelayedOperationPurgatory("Test", Timer(self.clock), purge_interval)
        self.events: list[str] = []

    def operation(self, name: str, delay_ms: float = 100, then: Callable[[], object] = lambda: None) -> "Waits":
        return Waits(name, delay_ms, self.events, then)

    def watch(self, name: str, *keys: str, delay_ms: float = 100, then: Callable[[], object] = lambda: None) -> "Waits":
        operation = self.operation(name, delay_ms, then)
        assert not self.purgatory.try_complete_else_watch(operation, keys)
        return operation


@pytest.fixture
def room() -> Room:
    return Room()


class Waits(DelayedOperation):
    """An operation that waits for `ready`, records its events, and calls `then` on completion."""

    __slots__ = ("events", "name", "ready", "then")

    def __init__(self, name: str, delay_ms: float, events: list[str], then: Callable[[], object]) -> None:
        super().__init__(delay_ms)
        self.name = name
        self.ready = False
        self.events = events
        self.then = then

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.events.append(self.name)
        self.then()

    def on_expiration(self) -> None:
        self.events.append(f"{self.name} expired")


class Counts(DelayedOperation):
    """An operation that completes at the given try (from 1) and records the watched entries at each try."""

    __slots__ = ("at_try", "purgatory", "watched")

    def __init__(self, at_try: int, purgatory: DelayedOperationPurgatory) -> None:
        super().__init__(100)
        self.at_try = at_try
        self.purgatory = purgatory
        self.watched: list[int] = []

    def try_complete(self) -> bool:
        self.watched.append(self.purgatory.watched)
        return len(self.watched) >= self.at_try and self.force_complete()

    def on_complete(self) -> None:
        pass


TRIES = {
    "ready at the first try: neither watched nor delayed": (1, True, [0], 0, 0),
    "ready at the second try: its watch entries linger": (2, True, [0, 2], 2, 0),
    "not ready: watched under both keys and delayed": (3, False, [0, 2], 2, 1),
}


@pytest.mark.parametrize(("at_try", "completed", "watched_at_tries", "watched", "delayed"), TRIES.values(), ids=TRIES)
def test_operation_is_tried_watched_and_tried_again(
    at_try: int, completed: bool, watched_at_tries: list[int], watched: int, delayed: int
) -> None:
    purgatory = Room().purgatory
    operation = Counts(at_try, purgatory)
    assert purgatory.try_complete_else_watch(operation, ("a", "b")) is completed
    assert operation.watched == watched_at_tries
    assert (purgatory.watched, purgatory.delayed, len(purgatory)) == (watched, delayed, delayed)


def test_watched_only_operation_is_tried_at_the_next_check(room: Room) -> None:
    operation = room.operation("late")
    operation.ready = True
    room.purgatory.watch(operation, ["key"])
    assert (room.events, room.purgatory.delayed, room.purgatory.watched) == ([], 1, 1)
    assert room.purgatory.check_and_complete("key") == 1
    assert (room.events, room.purgatory.delayed, room.purgatory.watched) == (["late"], 0, 0)


def test_watched_only_operation_expires(room: Room) -> None:
    room.purgatory.watch(room.operation("late", delay_ms=50), ["key"])
    room.clock.advance(50)
    assert room.events == ["late", "late expired"]


def test_check_completes_ready_operations_of_the_key_in_order(room: Room) -> None:
    first, waits, third, other = (
        room.watch(name, key) for name, key in (("first", "a"), ("waits", "a"), ("third", "a"), ("other", "b"))
    )
    first.ready = third.ready = other.ready = True
    assert room.purgatory.check_and_complete("a") == 2
    assert room.events == ["first", "third"]
    assert (room.purgatory.watched, room.purgatory.delayed) == (2, 2)
    assert not waits.completed
    assert room.purgatory.check_and_complete("an unused key") == 0


def test_completed_operation_lingers_under_other_keys_until_checked(room: Room) -> None:
    room.watch("it", "a", "b", "c").ready = True
    assert room.purgatory.check_and_complete("a") == 1
    assert (room.purgatory.watched, room.purgatory.delayed) == (2, 0)
    assert room.purgatory.check_and_complete("b") == 0
    assert room.purgatory.watched == 1
    assert room.events == ["it"]


def test_completed_operation_is_not_tried_again() -> None:
    purgatory = Room().purgatory
    operation = Counts(99, purgatory)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.force_complete()
    assert purgatory.check_and_complete("a") == 0
    assert len(operation.watched) == 2, "the two tries before it was delayed"


@pytest.mark.parametrize("how", ["check", "purge"])
def test_key_without_operations_is_removed(how: str) -> None:
    room = Room(purge_interval=0 if how == "purge" else 1000)
    operation = room.watch("it", "a", "b")
    operation.force_complete()
    if how == "check":
        room.purgatory.check_and_complete("a")
        room.purgatory.check_and_complete("b")
    assert not room.purgatory._watchers, "or every former topic would be kept"


def test_operation_that_is_never_ready_expires_and_lingers(room: Room) -> None:
    room.watch("it", "a", delay_ms=500)
    room.clock.advance(499)
    assert room.events == []
    room.clock.advance(1)
    assert room.events == ["it", "it expired"]
    assert (room.purgatory.watched, room.purgatory.delayed, room.purgatory.expirations) == (1, 0, 1)


@pytest.mark.parametrize("delay_ms", [0, 250, 86_400_000 * 30], ids=["no delay", "250 ms", "30 days"])
def test_operation_without_keys_waits_for_its_timeout(room: Room, delay_ms: int) -> None:
    room.purgatory.delay(room.operation("it", delay_ms))
    assert room.events == [], "never within the call"
    assert (room.purgatory.watched, room.purgatory.delayed) == (0, 1)
    room.clock.advance(delay_ms)
    assert room.events == ["it", "it expired"]
    assert len(room.purgatory) == 0


def test_purgatories_share_a_timer_and_count_separately(room: Room) -> None:
    other = DelayedOperationPurgatory("Other", room.purgatory._timer)
    room.purgatory.delay(room.operation("second", 20))
    other.delay(room.operation("first", 10))
    other.delay(room.operation("third", 30))
    room.clock.advance(20)
    assert room.events == ["first", "first expired", "second", "second expired"]
    assert (room.purgatory.delayed, room.purgatory.expirations) == (0, 1)
    assert (other.delayed, other.expirations) == (1, 1)


WAITS_AGAIN = {
    "delayed again": lambda purgatory, operation: purgatory.delay(operation),
    "watched again": lambda purgatory, operation: purgatory.try_complete_else_watch(operation, ["a"]),
}


@pytest.mark.parametrize("wait_again", WAITS_AGAIN.values(), ids=WAITS_AGAIN)
def test_operation_is_delayed_only_once(
    room: Room, wait_again: Callable[[DelayedOperationPurgatory, DelayedOperation], object]
) -> None:
    operation = room.watch("it", "a")
    with pytest.raises(AssertionError, match="is already delayed"):
        wait_again(room.purgatory, operation)


def test_completed_operation_cannot_be_delayed(room: Room) -> None:
    operation = room.operation("it")
    operation.force_complete()
    with pytest.raises(AssertionError, match="is already completed"):
        room.purgatory.delay(operation)


def test_watched_operation_needs_a_key(room: Room) -> None:
    with pytest.raises(AssertionError, match="has no key"):
        room.purgatory.try_complete_else_watch(room.operation("it"), [])


PURGES = {
    "as many completed as the interval: all linger": (3, 3, 3),
    "one more: all are purged": (3, 4, 0),
    "and the count restarts": (3, 6, 2),
    "an interval of 0: none lingers": (0, 1, 0),
}


class TestPurge:
    @pytest.mark.parametrize(("interval", "completed", "watched"), PURGES.values(), ids=PURGES)
    def test_completed_operations_are_purged_above_the_interval(
        self, interval: int, completed: int, watched: int
    ) -> None:
        room = Room(interval)
        for _ in range(completed):
            room.watch("it", "a").force_complete()
        assert room.purgatory.watched == watched

    def test_purge_keeps_the_order_of_pending_operations(self) -> None:
        room = Room(purge_interval=2)
        names = ["1", "done", "2", "done", "done", "3"]
        operations = [room.watch(name, "a", "b") for name in names]
        for operation in operations:
            if operation.name == "done":
                operation.force_complete()
            else:
                operation.ready = True
        room.watch("done", "a").force_complete()  # now 4 are completed, 3 are pending
        assert room.purgatory.watched == 6
        assert room.purgatory.check_and_complete("b") == 3
        assert room.events == ["done"] * 4 + ["1", "2", "3"]

    def test_purge_is_postponed_until_completed_outnumber_pending(self) -> None:
        room = Room(purge_interval=2)
        for _ in range(10):
            room.watch("waits", "a")
        for _ in range(10):
            room.watch("done", "a").force_complete()
        assert room.purgatory.watched == 20
        room.watch("done", "a").force_complete()
        assert room.purgatory.watched == 10

    def test_expired_operations_are_purged_without_new_ones(self) -> None:
        room = Room(purge_interval=2)
        for _ in range(3):
            room.watch("it", "a", "b")
        room.clock.advance(100)
        assert (room.purgatory.watched, room.purgatory.expirations) == (0, 3)

    def test_operation_completed_at_the_second_try_counts_for_the_purge(self) -> None:
        purgatory = Room(purge_interval=1).purgatory
        for _ in range(2):
            assert purgatory.try_complete_else_watch(Counts(2, purgatory), ["a"])
        assert purgatory.watched == 0


class TestReentrancy:
    def test_operation_that_checks_its_own_key_completes_those_before_and_after_it(self, room: Room) -> None:

        def append() -> None:
            before.ready = after.ready = True
            room.events.append(f"checked {room.purgatory.check_and_complete('a')}")

        before = room.watch("before", "a")
        room.watch("it", "a", then=append).ready = True
        after = room.watch("after", "a")
        assert room.purgatory.check_and_complete("a") == 1, "the others were completed by the inner check"
        assert room.events == ["it", "before", "after", "checked 2"]
        assert (room.purgatory.watched, room.purgatory.delayed) == (0, 0)

    def test_operation_ready_after_a_nested_check_is_completed(self, room: Room) -> None:

        def check_then_make_ready() -> None:
            assert room.purgatory.check_and_complete("a") == 0
            next_one.ready = True

        room.watch("it", "a", then=check_then_make_ready).ready = True
        next_one = room.watch("next", "a")
        room.watch("last", "a")
        assert room.purgatory.check_and_complete("a") == 2
        assert room.events == ["it", "next"]

    def test_chain_of_checks_over_other_keys_completes_each_once(self, room: Room) -> None:
        for at, key in enumerate("abcd"):
            next_key = "abcd"[(at + 1) % 4]
            room.watch(key, key, next_key, then=partial(room.purgatory.check_and_complete, next_key)).ready = True
        assert room.purgatory.check_and_complete("a") == 1
        assert sorted(room.events) == ["a", "b", "c", "d"]
        assert room.purgatory.delayed == 0

    def test_operation_watched_under_a_key_during_its_check_stays(self, room: Room) -> None:
        room.watch("it", "a", then=lambda: room.watch("new", "a", delay_ms=7)).ready = True
        assert room.purgatory.check_and_complete("a") == 1
        assert (room.purgatory.watched, room.purgatory.delayed) == (1, 1)
        room.clock.advance(7)
        assert room.events == ["it", "new", "new expired"]

    def test_operation_watched_under_a_key_emptied_by_a_nested_check_stays(self, room: Room) -> None:

        def check_then_watch() -> None:
            assert room.purgatory.check_and_complete("a") == 0
            room.watch("new", "a").ready = True

        room.watch("it", "a", then=check_then_watch).ready = True
        assert room.purgatory.check_and_complete("a") == 1
        assert (room.purgatory.watched, room.purgatory.delayed) == (1, 1)
        assert room.purgatory.check_and_complete("a") == 1
        assert room.events == ["it", "new"]
        assert room.purgatory.watched == 0

    def test_purge_during_a_check_loses_no_operation(self) -> None:
        room = Room(purge_interval=0)
        for name in "1234":
            room.watch(name, "a", "b").ready = name != "3"
        assert room.purgatory.check_and_complete("a") == 3
        assert room.events == ["1", "2", "4"]
        assert (room.purgatory.watched, room.purgatory.delayed) == (2, 1)

    def test_expiring_operation_may_complete_and_delay_others(self, room: Room) -> None:

        def complete_and_delay() -> None:
            neighbour.force_complete()
            room.purgatory.delay(room.operation("at once", 0))

        room.watch("it", "a", delay_ms=10, then=complete_and_delay)
        neighbour = room.watch("neighbour", "a", delay_ms=10)
        room.clock.advance(10)
        assert room.events == ["it", "neighbour", "it expired", "at once", "at once expired"]

    def test_operation_completed_inside_its_own_try_is_not_completed_twice(self, room: Room) -> None:

        class Undone(Waits):
            __slots__ = ()

            def try_complete(self) -> bool:
                self.force_complete()  # as if a side effect completed it
                return self.force_complete()

        operation = Undone("it", 100, room.events, lambda: None)
        assert not room.purgatory.try_complete_else_watch(operation, ["a"])
        room.clock.advance(1_000)
        assert room.events == ["it"]
        assert room.purgatory.delayed == 0


class TestFailures:
    def test_error_on_completion_is_logged_and_others_continue(self, caplog: pytest.LogCaptureFixture) -> None:
        room = Room()
        for name, then in (("1", lambda: None), ("fails", lambda: 1 // 0), ("2", lambda: None)):
            room.watch(name, "a", then=then).ready = True
        assert room.purgatory.check_and_complete("a") == 3
        assert room.events == ["1", "fails", "2"]
        assert (room.purgatory.watched, room.purgatory.delayed) == (0, 0)
        assert [record.name for record in caplog.records] == ["sluice.purgatory"]

    def test_error_on_expiry_is_logged_and_others_continue(self, room: Room, caplog: pytest.LogCaptureFixture) -> None:
        room.purgatory.delay(room.operation("fails", 10, then=lambda: 1 // 0))
        room.purgatory.delay(room.operation("it", 10))
        room.clock.advance(10)
        assert room.events == ["fails", "it", "it expired"]
        assert (room.purgatory.delayed, room.purgatory.expirations) == (0, 2)
        assert [record.name for record in caplog.records] == ["sluice.purgatory"]

    def test_operation_whose_check_fails_waits_for_its_timeout(self, caplog: pytest.LogCaptureFixture) -> None:
        room = Room()

        class FailsWhenReady(Waits):
            __slots__ = ()

            def try_complete(self) -> bool:
                if self.ready:
                    raise ValueError("cannot say")
                return False

        operation = FailsWhenReady("it", 100, room.events, lambda: None)
        room.purgatory.try_complete_else_watch(operation, ["a"])
        operation.ready = True
        assert room.purgatory.check_and_complete("a") == 0
        assert room.purgatory.watched == 1
        room.clock.advance(100)
        assert room.events == ["it", "it expired"]
        assert len(caplog.records) == 1

    @pytest.mark.parametrize("fails_at", [1, 2], ids=["at the first try", "at the second"])
    def test_error_before_the_delay_is_raised_to_the_caller(self, room: Room, fails_at: int) -> None:
        tries = 0

        class Fails(Waits):
            __slots__ = ()

            def try_complete(self) -> bool:
                nonlocal tries
                tries += 1
                if tries == fails_at:
                    raise ValueError("cannot say")
                return False

        with pytest.raises(ValueError, match="cannot say"):
            room.purgatory.try_complete_else_watch(Fails("it", 100, room.events, lambda: None), ["a"])
        room.clock.advance(1_000)
        assert (room.purgatory.check_and_complete("a"), room.purgatory.watched, room.purgatory.delayed) == (0, 0, 0)
        assert room.events == []

    def test_error_at_the_second_try_counts_for_the_purge(self) -> None:
        room = Room(purge_interval=1)

        def fail() -> None:
            raise ValueError("no")

        class CompletesAtTheSecondTry(Waits):
            __slots__ = ()

            def try_complete(self) -> bool:
                ready, self.ready = self.ready, True
                return ready and self.force_complete()

        for _ in range(2):
            with pytest.raises(ValueError, match="no"):
                room.purgatory.try_complete_else_watch(
                    CompletesAtTheSecondTry("it", 100, room.events, fail), ["a", "b"]
                )
        assert room.purgatory.watched == 0


def test_after_the_timer_closes_nothing_expires_but_checks_still_complete(room: Room) -> None:
    ready = room.watch("ready", "a", delay_ms=10)
    room.watch("waits", "a", delay_ms=10)
    room.purgatory._timer.close()
    room.clock.advance(1_000)
    ready.ready = True
    assert room.purgatory.check_and_complete("a") == 1
    assert (room.events, room.purgatory.delayed, room.purgatory.expirations) == (["ready"], 1, 0)


KEYS = ("a", "b", "c")
INTERVAL = 3


class PurgatoryAgainstLists(RuleBasedStateMachine):
    """The model: a list of (key, operation) entries and a list of pending operations, both in creation order."""

    def __init__(self) -> None:
        super().__init__()
        self.room = Room(INTERVAL)
        self.purgatory = self.room.purgatory
        self.now_ms = 0
        self.made = 0
        self.expired = 0
        self.expected: list[str] = []
        self.entries: list[tuple[str, Waits]] = []
        self.waiting: list[tuple[int, int, Waits]] = []  # deadline, number, operation
        self.completed: set[str] = set()
        self.lingering = 0

    def _make(self, delay_ms: int) -> Waits:
        self.made += 1
        return self.room.operation(str(self.made), delay_ms)

    def _model_completes(self, operation: Waits) -> None:
        self.expected.append(operation.name)
        self.completed.add(operation.name)
        self.waiting = [entry for entry in self.waiting if entry[2] is not operation]
        self.lingering += 1
        if self.lingering > INTERVAL and self.lingering > len(self.waiting):
            self.lingering = 0
            self.entries = [entry for entry in self.entries if entry[1].name not in self.completed]

    @rule(
        delay_ms=st.sampled_from([0, 1, 2, 300, 70_000]),
        keys=st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
        ready=st.sampled_from([False, False, False, True]),
    )
    def watch(self, delay_ms: int, keys: list[str], ready: bool) -> None:
        operation = self._make(delay_ms)
        operation.ready = ready
        assert self.purgatory.try_complete_else_watch(operation, keys) is ready
        if ready:
            self.expected.append(operation.name)
        else:
            self.entries += [(key, operation) for key in keys]
            self.waiting.append((self.now_ms + delay_ms, self.made, operation))

    @rule(delay_ms=st.sampled_from([0, 1, 2, 300, 70_000]))
    def delay(self, delay_ms: int) -> None:
        operation = self._make(delay_ms)
        self.purgatory.delay(operation)
        self.waiting.append((self.now_ms + delay_ms, self.made, operation))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def make_ready(self, data: st.DataObject) -> None:
        data.draw(st.sampled_from(self.waiting))[2].ready = True

    @rule(key=st.sampled_from(KEYS))
    def check(self, key: str) -> None:
        ready = [
            operation
            for at, operation in self.entries
            if at == key and operation.ready and operation.name not in self.completed
        ]
        assert self.purgatory.check_and_complete(key) == len(ready)
        for operation in ready:
            self._model_completes(operation)
        self.entries = [entry for entry in self.entries if entry[0] != key or entry[1].name not in self.completed]

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def force(self, data: st.DataObject) -> None:
        operation = data.draw(st.sampled_from(self.waiting))[2]
        assert operation.force_complete()
        self._model_completes(operation)

    @rule(step_ms=st.sampled_from([0, 1, 2, 299, 70_000]))
    def advance(self, step_ms: int) -> None:
        self.room.clock.advance(step_ms)
        self.now_ms += step_ms
        for deadline_ms, _, operation in sorted(self.waiting, key=lambda entry: entry[:2]):
            if deadline_ms <= self.now_ms:
                self._model_completes(operation)
                self.expected.append(f"{operation.name} expired")
                self.expired += 1

    @invariant()
    def agree(self) -> None:
        assert self.room.events == self.expected
        assert self.purgatory.delayed == len(self.purgatory) == len(self.waiting)
        assert self.purgatory.watched == len(self.entries)
        assert self.purgatory.expirations == self.expired


TestPurgatoryAgainstLists = PurgatoryAgainstLists.TestCase
TestPurgatoryAgainstLists.settings = settings(stateful_step_count=40)
