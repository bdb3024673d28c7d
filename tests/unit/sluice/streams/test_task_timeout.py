"""Task timeouts: deadlines as a table of events and times."""

import logging
from contextlib import nullcontext

import pytest

from sluice.client.config import Profile
from sluice.client.errors import TimeoutException
from sluice.streams.errors import ClientTimeoutException, StreamsException, TaskId
from sluice.streams.task_timeout import TaskTimeout

LATE = TimeoutException("it took too long")


TIMEOUTS = {
    "the first timeout sets the deadline": (100, [1000], None),
    "before the deadline": (100, [1000, 1099], None),
    "at the deadline": (100, [1000, 1100], None),
    "after the deadline": (100, [1000, 1101], 1101),
    "the deadline is that of the first timeout": (100, [1000, 1050, 1099, 1100, 1500], 1500),
    "one last attempt, however late": (100, [1000, 9000], 9000),
    "0 allows one more attempt": (0, [1000], None),
    "0, in the same millisecond": (0, [1000, 1000], None),
    "0, one millisecond later": (0, [1000, 1001], 1001),
}


@pytest.mark.parametrize(("timeout_ms", "times_ms", "fails_at_ms"), TIMEOUTS.values(), ids=TIMEOUTS)
def test_timeout_fails_after_the_deadline(timeout_ms: int, times_ms: list[int], fails_at_ms: int | None) -> None:
    timeout = TaskTimeout(TaskId(0, 1), timeout_ms, "kafka")
    failed_at_ms = None
    for now_ms in times_ms:
        assert failed_at_ms is None
        try:
            timeout.timed_out(now_ms, LATE)
        except StreamsException:
            failed_at_ms = now_ms
    assert failed_at_ms == fails_at_ms


def test_progress_clears_the_deadline() -> None:
    timeout = TaskTimeout(TaskId(0, 1), 100, "kafka")
    timeout.timed_out(1000, LATE)
    deadlines = [timeout.deadline_ms]
    timeout.clear()
    deadlines.append(timeout.deadline_ms)
    timeout.timed_out(2000, LATE)
    deadlines.append(timeout.deadline_ms)
    assert deadlines == [1100, None, 2100]


@pytest.mark.parametrize(("profile", "timeout_ms", "fails"), [("kafka", 0, False), ("kip", 0, True), ("kip", 1, False)])
def test_with_the_kip_profile_0_allows_no_second_attempt(profile: Profile, timeout_ms: int, fails: bool) -> None:
    timeout = TaskTimeout(TaskId(0, 1), timeout_ms, profile)
    message = r"task 0_1: 0 ms without progress \(task.timeout.ms=0\)"
    with pytest.raises(StreamsException, match=message) if fails else nullcontext():
        timeout.timed_out(1000, LATE)


def test_error_names_task_call_and_duration() -> None:
    timeout = TaskTimeout(TaskId(0, 1), 100, "kafka")
    late = ClientTimeoutException("Consumer.commit", LATE)
    timeout.timed_out(1000, late)
    with pytest.raises(StreamsException) as raised:
        timeout.timed_out(1345, late)
    assert str(raised.value) == (
        "task 0_1: 345 ms without progress (task.timeout.ms=100): Consumer.commit: it took too long"
    )
    assert raised.value.task_id == TaskId(0, 1)
    assert raised.value.__cause__ is late


def test_each_timeout_is_logged_with_call_and_remaining_time(caplog: pytest.LogCaptureFixture) -> None:
    timeout = TaskTimeout(TaskId(2, 3), 100, "kafka")
    with caplog.at_level(logging.WARNING, logger="sluice.streams"):
        timeout.timed_out(1000, ClientTimeoutException("Consumer.commit", LATE))
        timeout.timed_out(1030, LATE)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert caplog.messages == [
        "task 2_3: timeout of Consumer.commit; it will be retried, for 100 ms at least",
        "task 2_3: timeout of a client; it will be retried, for 70 ms at least",
    ]
