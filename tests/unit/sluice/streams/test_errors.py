"""Task names, and names of the calls that timed out."""

import pytest

from sluice.client.errors import KafkaException, TimeoutException
from sluice.streams.errors import ClientTimeoutException, StreamsException, TaskCorruptedException, TaskId, client_call


def test_task_id_has_kafkas_format() -> None:
    assert str(TaskId(0, 12)) == "0_12"
    assert sorted([TaskId(1, 0), TaskId(0, 10), TaskId(0, 9)]) == [TaskId(0, 9), TaskId(0, 10), TaskId(1, 0)]


def test_timeout_is_labelled_with_its_call() -> None:
    cause = TimeoutException("not in time")
    with (
        pytest.raises(ClientTimeoutException, match=r"Consumer\.commit: not in time") as raised,
        client_call("Consumer.commit"),
    ):
        raise cause
    assert raised.value.call == "Consumer.commit"
    assert raised.value.__cause__ is cause


def test_other_errors_are_unchanged() -> None:
    with pytest.raises(KafkaException, match=r"^other$"), client_call("Consumer.commit"):
        raise KafkaException("other")


def test_corrupted_tasks_are_named() -> None:
    error = TaskCorruptedException([TaskId(1, 0), TaskId(0, 1)], "for a reason")
    assert str(error) == "task 0_1, 1_0: for a reason"
    assert isinstance(error, StreamsException)
