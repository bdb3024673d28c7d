"""The hierarchical timing wheel: tasks sorted by deadline, at a cost that does not depend on how many there are.

Follows Kafka's `TimingWheel` and `TimerTaskList` (Varghese and Lauck's hierarchical wheels). What differs:

- 256 buckets a wheel, Kafka has 20: see `_WHEEL_BITS`.
- Wheels are aligned to powers of 256, not to the moment they were made. So a task's wheel is the highest base-256 digit
  in which its expiration differs from the wheel's time, and its bucket is that digit: one XOR and one `bit_length`.
- No DelayQueue. One integer has a bit for every bucket that holds tasks, finer wheels in lower bits. As everything in a
  finer wheel is due before anything in a coarser one, the lowest set bit is the next bucket. Empty time costs nothing.
- A bucket knows its bit, so that cancelling the last task of a bucket clears it; Kafka lets the empty bucket expire.

By an example: the wheel's time is 0x0012F0. A task for 0x0012FA differs in the lowest digit: wheel 0, bucket 0xFA,
where a bucket is 1 ms wide. A task for 0x001301 differs in the digit above: wheel 1, bucket 0x13, which is 256 ms wide
and starts at 0x001300. When time reaches 0x001300, that bucket's tasks are placed again, now in wheel 0: a task moves
at most once per wheel. A bucket's tasks keep their order when they move down, and do so before any task can be placed
in the finer bucket directly: so tasks of one millisecond leave in the order they came.
"""

from math import ceil

# Width of a digit. The choice is between moving tasks often (narrow digits: a delay of 30 s is moved twice at 6 bits,
# once at 8) and moving many at once (wide ones: with 1,000,000 tasks spread over 30 s a bucket of wheel 1 holds 8,500
# at 8 bits and 34,000 at 10, all moved in one go). At 8 bits wheel 1 reaches 65 s, which is beyond the usual throttle,
# poll and session time-outs, and wheels 2 to 4 reach 4.6 hours, 49 days and 34 years.
_WHEEL_BITS = 8
_BUCKETS = 1 << _WHEEL_BITS
_LAST_BUCKET = _BUCKETS - 1


class TimerTask:
    """Something that happens at a moment. It is itself the link of a list, so that adding one allocates nothing."""

    __slots__ = ("_after", "_before", "deadline_ms")

    deadline_ms: float
    _before: "TimerTask | None"  # None: not in a wheel
    _after: "TimerTask | None"

    def run(self) -> None:
        """Called once, when the deadline has passed and the task was not cancelled."""
        raise NotImplementedError


class _Bucket(TimerTask):
    """A ring of tasks, in the order they came; it is the ring's own first and last link."""

    __slots__ = ("bit", "start_ms")

    def __init__(self, bit: int) -> None:
        self._before = self._after = self
        self.bit = bit  # the one bit of TimingWheel._occupied that stands for this bucket
        self.start_ms = 0  # of the span that the tasks in it now belong to


class TimingWheel:
    """Tasks by expiration, in whole milliseconds. Knows no clock: its time is what `advance` was last given."""

    __slots__ = ("_buckets", "_due", "_now_ms", "_occupied")

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self._occupied = 0
        self._buckets: dict[int, _Bucket] = {}  # by number of their bit, made on demand as Kafka's overflow wheels are
        self._due = _Bucket(bit=0)  # no bit: never looked for

    def add(self, task: TimerTask) -> int:
        """Places a task by its finite `deadline_ms`; returns the first whole millisecond that is not before it.

        A deadline in the past is as good as now: the task is due at the next `advance`, not within this call.
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
        assert last is not None  # a ring has no end
        if last is bucket:
            self._occupied |= bucket.bit
            bucket.start_ms = expiration_ms >> shift << shift
        task._before = last
        task._after = bucket
        last._after = bucket._before = task
        return expiration_ms

    def cancel(self, task: TimerTask) -> None:
        """Takes a task out, wherever it is; does nothing when it is not in the wheel."""
        before, after = task._before, task._after
        if before is None or after is None:
            return
        before._after = after
        after._before = before
        task._before = task._after = None  # a task kept by someone must not keep its former neighbours
        if before is after:  # nothing but the bucket is left in the ring
            assert isinstance(before, _Bucket)
            self._occupied ^= before.bit

    def next_expiration_ms(self) -> int | None:
        """When to call `advance` next; None when nothing waits.

        Exact for what expires within the current 256 ms, else the start of the next bucket that holds a task.
        """
        if self._due._after is not self._due:
            return self._now_ms
        occupied = self._occupied
        return self._buckets[(occupied & -occupied).bit_length() - 1].start_ms if occupied else None

    def advance(self, now_ms: int) -> None:
        """Moves time on to `now_ms`, from when on `pop_due` gives what has expired. Time never goes back."""
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
        """Takes out the expired task with the earliest expiration, the first added among equals."""
        due = self._due
        task = due._after
        assert task is not None  # a ring has no end
        if task is due:
            return None
        after = task._after
        assert after is not None
        due._after = after
        after._before = due
        task._before = task._after = None
        return task

    def _move_to_due(self, bucket: _Bucket) -> None:
        """Hangs a whole ring behind what is due already, at no cost per task."""
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
        """Spreads a coarse bucket over the finer wheels; none of its tasks can come back to it."""
        task = bucket._after
        bucket._before = bucket._after = bucket
        while task is not bucket:
            assert task is not None
            after = task._after
            self.add(task)
            task = after
