"""The hierarchical timing wheel: tasks by deadline, with costs independent of their number.

Follows Kafka's `TimingWheel` and `TimerTaskList` (Varghese and Lauck). Different on purpose:

- 256 buckets per wheel, instead of Kafka's 20: see `_WHEEL_BITS`.
- Wheels are aligned to powers of 256, not to their creation time. So a task's wheel is the highest base-256 digit in
  which its expiration differs from the wheel's time, and its bucket is that digit: one XOR and one `bit_length`.
- No DelayQueue. One integer has a bit per occupied bucket, finer wheels in lower bits; the lowest set bit is the next
  bucket.

For example, the wheel's time is 0x0012F0:

- A task for 0x0012FA differs in the lowest digit: wheel 0, bucket 0xFA, which is 1 ms wide.
- A task for 0x001301 differs in the next digit: wheel 1, bucket 0x13, which is 256 ms wide and starts at 0x001300. At
  that time the bucket's tasks move to wheel 0.
"""

from math import ceil

# Width of a digit. Narrow digits move tasks often: a delay of 30 s moves twice at 6 bits, once at 8. Wide digits move
# many at once.
_WHEEL_BITS = 8
_BUCKETS = 1 << _WHEEL_BITS
_LAST_BUCKET = _BUCKETS - 1


class TimerTask:
    """A task with a deadline. It is also its own list node, so adding a task allocates nothing."""

    __slots__ = ("_after", "_before", "deadline_ms")

    deadline_ms: float
    _before: "TimerTask | None"  # None: not in a wheel
    _after: "TimerTask | None"

    def run(self) -> None:
        """Run the task; called once, at or after the deadline, unless cancelled."""
        raise NotImplementedError


class _Bucket(TimerTask):
    """A circular list of tasks in the order of arrival; the bucket itself is the sentinel."""

    __slots__ = ("bit", "start_ms")

    def __init__(self, bit: int) -> None:
        self._before = self._after = self
        self.bit = bit  # its bit in TimingWheel._occupied
        self.start_ms = 0  # of the time span of its current tasks


class TimingWheel:
    """Tasks by expiration, in whole milliseconds. It has no clock: its time is the last argument of `advance`."""

    __slots__ = ("_buckets", "_due", "_now_ms", "_occupied")

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._occupied = 0
        self._buckets: dict[int, _Bucket] = {}  # by bit number; created on demand, like Kafka's overflow wheels
        self._due = _Bucket(bit=0)  # no bit: never searched

    def add(self, task: TimerTask) -> int:
        """Add a task by its finite `deadline_ms`; return the first whole millisecond at or after it.

        A task with a past deadline is due at the next `advance`, not within this call.
        """
        now_ms = self._now_ms
        expiration_ms = ceil(task.deadline_ms)
        distance = expiration_ms ^ now_ms
        if expiration_ms <= now_ms:
            expiration_ms = now_ms
            index = now_ms & _LAST_BUCKET
            shift = 0
        elif distance < _BUCKETS:
            index = expiration_ms & _LAST_BUCKET
            shift = 0
        else:
            wheel = (distance.bit_length() - 1) // _WHEEL_BITS
            shift = wheel * _WHEEL_BITS
            index = wheel * _BUCKETS + (expiration_ms >> shift & _LAST_BUCKET)
        bucket = self._buckets.get(index)
        if bucket is None:
            bucket = self._buckets[index] = _Bucket(1 << index)
        last = bucket._before
        assert last is not None  # the list is circular
        if last is bucket:
            self._occupied |= bucket.bit
            bucket.start_ms = expiration_ms >> shift << shift
        task._before = last
        task._after = bucket
        last._after = bucket._before = task
        return expiration_ms

    def cancel(self, task: TimerTask) -> None:
        """Remove a task, if it is in the wheel."""
        before, after = task._before, task._after
        if before is None or after is None:
            return
        before._after = after
        after._before = before
        task._before = task._after = None  # a cancelled task must not keep its neighbours alive
        if before is after:  # only the bucket is left
            assert isinstance(before, _Bucket)
            self._occupied ^= before.bit

    def next_expiration_ms(self) -> int | None:
        """Return the time of the next `advance`; None without tasks.

        Exact for tasks within the current 256 ms, else the start of the next occupied bucket.
        """
        if self._due._after is not self._due:
            return self._now_ms
        occupied = self._occupied
        return self._buckets[(occupied & -occupied).bit_length() - 1].start_ms if occupied else None

    def advance(self, now_ms: int) -> None:
        """Advance the time to `now_ms`, after which `pop_due` returns the expired tasks. Time never goes back."""
        while occupied := self._occupied:
            lowest_bit = occupied & -occupied
            index = lowest_bit.bit_length() - 1
            bucket = self._buckets[index]
            if bucket.start_ms > now_ms:
                break
            self._occupied = occupied ^ lowest_bit
            if index < _BUCKETS:
                self._move_to_due(bucket)
            else:
                self._now_ms = bucket.start_ms
                self._place_again(bucket)
        self._now_ms = max(self._now_ms, now_ms)

    def pop_due(self) -> TimerTask | None:
        """Remove and return the expired task with the earliest expiration, the first added among equals."""
        due = self._due
        task = due._after
        assert task is not None  # the list is circular
        if task is due:
            return None
        after = task._after
        assert after is not None
        due._after = after
        after._before = due
        task._before = task._after = None
        return task

    def _move_to_due(self, bucket: _Bucket) -> None:
        due = self._due
        first, last, due_last = bucket._after, bucket._before, due._before
        assert first is not None
        assert last is not None
        assert due_last is not None
        due_last._after = first
        first._before = due_last
        last._after = due
        due._before = last
        bucket._before = bucket._after = bucket

    def _place_again(self, bucket: _Bucket) -> None:
        task = bucket._after
        bucket._before = bucket._after = bucket
        while task is not bucket:
            assert task is not None
            after = task._after
            self.add(task)
            task = after
