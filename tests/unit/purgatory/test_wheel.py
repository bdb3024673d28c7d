"""The timing wheel: tables, and a stateful comparison with a sorted list."""

from math import ceil

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sluice.purgatory.wheel import TimerTask, TimingWheel

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.fixture
def wheel() -> TimingWheel:
    return TimingWheel(0)


class Task(TimerTask):
    __slots__ = ("name",)

    def __init__(self, deadline_ms: float, name: object = None) -> None:
        self._before = None
        self.deadline_ms = deadline_ms
        self.name = name

    def __repr__(self) -> str:
        return f"Task({self.deadline_ms}, {self.name!r})"


def names_due(wheel: TimingWheel, now_ms: int) -> list[object]:
    wheel.advance(now_ms)
    names = []
    while (task := wheel.pop_due()) is not None:
        assert isinstance(task, Task)
        names.append(task.name)
    return names


@pytest.mark.parametrize("start_ms", [0, 255, 256, 65_535, 1_234_567_890], ids=lambda ms: f"from {ms}")
@pytest.mark.parametrize(
    "delay_ms",
    [1, 2, 255, 256, 257, 65_535, 65_536, 65_537, 30_000, 5 * HOUR_MS, 60 * DAY_MS, 40_000 * DAY_MS],
    ids=lambda ms: f"in {ms} ms",
)
def test_task_is_due_in_its_millisecond_not_before(start_ms: int, delay_ms: int) -> None:
    wheel = TimingWheel(start_ms)
    assert wheel.add(Task(start_ms + delay_ms, "it")) == start_ms + delay_ms
    assert names_due(wheel, start_ms + delay_ms - 1) == []
    assert names_due(wheel, start_ms + delay_ms) == ["it"]
    assert wheel.next_expiration_ms() is None


FRACTIONS = {"whole": (10.0, 10), "just after": (10.001, 11), "just before": (10.999, 11)}


@pytest.mark.parametrize(("deadline_ms", "expiration_ms"), FRACTIONS.values(), ids=FRACTIONS)
def test_fractional_deadline_is_rounded_up(wheel: TimingWheel, deadline_ms: float, expiration_ms: int) -> None:
    assert wheel.add(Task(deadline_ms, "it")) == expiration_ms
    assert names_due(wheel, expiration_ms - 1) == []
    assert names_due(wheel, expiration_ms) == ["it"]


PAST_DEADLINES = {"now": 500.0, "a moment ago": 499.5, "at the start": 0.0, "negative": -1e6}


@pytest.mark.parametrize("deadline_ms", PAST_DEADLINES.values(), ids=PAST_DEADLINES)
def test_past_deadline_is_due_at_the_next_advance_by_0(deadline_ms: float) -> None:
    wheel = TimingWheel(500)
    assert wheel.add(Task(deadline_ms, "it")) == 500
    assert wheel.pop_due() is None, "nothing is due before advance"
    assert wheel.next_expiration_ms() == 500
    assert names_due(wheel, 500) == ["it"]


def test_tasks_of_one_millisecond_keep_their_order_across_wheels(wheel: TimingWheel) -> None:
    wheel.add(Task(70_000, "from wheel 2"))
    wheel.advance(65_600)
    wheel.add(Task(70_000, "from wheel 1"))
    wheel.advance(69_990)
    wheel.add(Task(69_999.5, "from wheel 0"))
    assert names_due(wheel, 70_000) == ["from wheel 2", "from wheel 1", "from wheel 0"]


def test_tasks_expired_in_a_long_pause_are_ordered_by_deadline(wheel: TimingWheel) -> None:
    for deadline_ms in (300_000, 5, 70_000, 300, 6, 5):
        wheel.add(Task(deadline_ms, deadline_ms))
    assert names_due(wheel, DAY_MS) == [5, 5, 6, 300, 70_000, 300_000]


@pytest.mark.parametrize("delay_ms", [1, 300, 100_000], ids=lambda ms: f"in {ms} ms")
def test_cancelled_task_is_never_due_and_leaves_no_trace(wheel: TimingWheel, delay_ms: int) -> None:
    first, second, third = (Task(delay_ms, name) for name in ("first", "second", "third"))
    for task in (first, second, third):
        wheel.add(task)
    wheel.cancel(second)
    wheel.cancel(second)
    wheel.advance(delay_ms)
    wheel.cancel(first)
    assert names_due(wheel, delay_ms) == ["third"]
    assert wheel.next_expiration_ms() is None


def test_task_one_revolution_ahead_is_not_due(wheel: TimingWheel) -> None:
    wheel.add(Task(0, "now"))
    wheel.add(Task(256, "a turn ahead"))
    assert names_due(wheel, 255) == ["now"]
    assert names_due(wheel, 256) == ["a turn ahead"]


def test_next_expiration_is_now_until_the_due_tasks_are_popped(wheel: TimingWheel) -> None:
    wheel.add(Task(10))
    wheel.add(Task(DAY_MS))
    wheel.advance(20)
    assert wheel.next_expiration_ms() == 20
    assert wheel.pop_due() is not None
    next_ms = wheel.next_expiration_ms()
    assert next_ms is not None
    assert 20 < next_ms <= DAY_MS


def test_cancelling_the_last_task_of_a_bucket_removes_its_expiration(wheel: TimingWheel) -> None:
    near, far = Task(10), Task(DAY_MS)
    wheel.add(near)
    wheel.add(far)
    assert wheel.next_expiration_ms() == 10
    wheel.cancel(near)
    next_ms = wheel.next_expiration_ms()
    assert next_ms is not None
    assert 10 < next_ms <= DAY_MS
    wheel.cancel(far)
    assert wheel.next_expiration_ms() is None


def test_cancelled_task_does_not_delay_its_neighbours(wheel: TimingWheel) -> None:
    task = Task(10)
    for neighbour in (Task(10), task, Task(10)):
        wheel.add(neighbour)
    wheel.cancel(task)
    assert (task._before, task._after) == (None, None)


EMPTY_BUCKETS = {
    "within the first wheel": (200, 1),
    "30 s": (30_000, 2),
    "an hour": (HOUR_MS, 3),
    "30 days": (30 * DAY_MS, 4),
}


@pytest.mark.parametrize(("delay_ms", "most_steps"), EMPTY_BUCKETS.values(), ids=EMPTY_BUCKETS)
def test_empty_buckets_are_skipped(wheel: TimingWheel, delay_ms: int, most_steps: int) -> None:
    wheel.add(Task(delay_ms))
    steps = 0
    while (next_ms := wheel.next_expiration_ms()) is not None:
        steps += 1
        assert steps <= most_steps, "one step for each wheel that the task moves down"
        names_due(wheel, next_ms)


def test_time_does_not_go_back(wheel: TimingWheel) -> None:
    wheel.advance(1_000)
    wheel.advance(10)
    assert wheel.add(Task(500, "it")) == 1_000


# Near, around the wheels' boundaries, far and past deadlines; whole and fractional milliseconds.
DELAYS_MS = st.one_of(
    st.integers(-5, 20),
    st.integers(240, 270),
    st.integers(65_500, 65_600),
    st.integers(0, 90 * DAY_MS),
    st.floats(-2, 600, allow_nan=False),
)
STEPS_MS = st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(0, 70_000), st.integers(0, 100 * DAY_MS))


class WheelAgainstSortedList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 1_000
        self.wheel = TimingWheel(self.now_ms)
        self.count = 0
        self.waiting: list[tuple[int, int, Task]] = []  # expiration, number of the call to add, task
        self.due: list[Task] = []

    @rule(delay_ms=DELAYS_MS)
    def add(self, delay_ms: float) -> None:
        self.count += 1
        task = Task(self.now_ms + delay_ms, self.count)
        expiration_ms = max(ceil(task.deadline_ms), self.now_ms)
        assert self.wheel.add(task) == expiration_ms
        self.waiting.append((expiration_ms, self.count, task))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel_waiting(self, data: st.DataObject) -> None:
        entry = data.draw(st.sampled_from(self.waiting))
        self.waiting.remove(entry)
        self.wheel.cancel(entry[2])

    @precondition(lambda self: self.due)
    @rule(data=st.data())
    def cancel_due(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.due))
        self.due.remove(task)
        self.wheel.cancel(task)

    @rule(step_ms=STEPS_MS)
    def advance(self, step_ms: int) -> None:
        self._advance(self.now_ms + step_ms)

    @precondition(lambda self: self.waiting)
    @rule(before_ms=st.integers(0, 2))
    def advance_to_the_next(self, before_ms: int) -> None:
        self._advance(max(self.now_ms, min(self.waiting)[0] - before_ms))

    @rule()
    def pop(self) -> None:
        assert self.wheel.pop_due() is (self.due.pop(0) if self.due else None)

    @rule()
    def pop_all(self) -> None:
        while self.due:
            self.pop()
        assert self.wheel.pop_due() is None

    def _advance(self, now_ms: int) -> None:
        self.now_ms = now_ms
        self.wheel.advance(now_ms)
        self.waiting.sort(key=lambda entry: entry[:2])
        while self.waiting and self.waiting[0][0] <= now_ms:
            self.due.append(self.waiting.pop(0)[2])

    @invariant()
    def next_expiration_is_never_too_late(self) -> None:
        next_ms = self.wheel.next_expiration_ms()
        if self.due:
            assert next_ms == self.now_ms
        elif not self.waiting:
            assert next_ms is None
        else:
            earliest_ms = min(self.waiting)[0]
            assert next_ms is not None
            assert self.now_ms <= next_ms <= earliest_ms
            if earliest_ms ^ self.now_ms < 256:
                assert next_ms == earliest_ms


TestWheelAgainstSortedList = WheelAgainstSortedList.TestCase
TestWheelAgainstSortedList.settings = settings(stateful_step_count=40)
