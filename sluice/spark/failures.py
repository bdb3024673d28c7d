"""Spark's errors as one line: Spark prints pages, with the cause at the end."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sluice.errors import SluiceError

# Lines that begin with an exception, as in a stack trace; and lines that end with one.
_BEGINS = re.compile(r"^(?:Caused by: |: )?(?:[\w$]+\.)*([A-Z][\w$]*(?:Exception|Error)): (.+)$")
_ENDS = re.compile(r"^.* (?:[a-z][\w$]*\.)+([A-Z][\w$]*(?:Exception|Error)): (.+)$")

_OF_SPARK = ("pyspark", "py4j")  # not imported, because PySpark is optional


@contextmanager
def spark_errors_in_one_line() -> Iterator[None]:
    """Raise Spark's errors as SluiceError with the innermost cause."""
    try:
        yield
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in _OF_SPARK:
            raise
        raise SluiceError(cause(str(error))) from None


def cause(text: str) -> str:
    """Return the last exception in Spark's message, or its first line if it names none."""
    if "Some data may have been lost" in text:  # from Spark's Kafka source, followed by a long text
        return "the topic has deleted records that were not read yet. Pass --skip-lost to continue without them"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for pattern in (_BEGINS, _ENDS):
        found = [match for match in map(pattern.match, lines) if match]
        if found:
            return f"{found[-1][1]}: {found[-1][2]}"
    return lines[0]
