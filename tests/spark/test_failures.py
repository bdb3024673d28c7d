"""The line of a Spark failure that names the cause."""

import pytest

from sluice.spark.failures import cause

_TASK = "Lost task 0.3 in stage 2.0 (TID 4) (localhost executor driver)"


CAUSES = {
    "the exception of a call": (
        "An error occurred while calling o1.start.\n: org.apache.hadoop.fs.FileException: no folder\n\tat a.b(C:1)",
        "FileException: no folder",
    ),
    "the innermost of a stack trace": (
        "a.SparkException: outer\n\tat a.b(C:1)\nCaused by: a.b.TimeoutException: inner\n\t... 8 more",
        "TimeoutException: inner",
    ),
    "the task's exception at the end of the job's line": (
        f"Job aborted due to stage failure: {_TASK}: org.apache.kafka.errors.InvalidTopicException: no topic\n\nat",
        "InvalidTopicException: no topic",
    ),
    "the first line without an exception": ("[WRONG] A cause.\nDetails.", "[WRONG] A cause."),
    "lost records, with the remedy": (
        "Some data may have been lost because they are not available\nCaused by: a.OffsetOutOfRangeException: 5",
        "the topic has deleted records that were not read yet. Pass --skip-lost to continue without them",
    ),
}


@pytest.mark.parametrize(("text", "line"), CAUSES.values(), ids=CAUSES)
def test_the_cause_is_one_line(text: str, line: str) -> None:
    assert cause(text) == line
